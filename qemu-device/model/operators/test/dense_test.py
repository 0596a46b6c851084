# SPDX-License-Identifier: MIT
"""dense_test.py PROBE: convolutions, matrix products, pooling and PACK against NumPy, as TAP."""
import sys

import cases_dense
import cases_integer
from elementwise_test import DENSE
from harness import OPERATOR, Cases, open_device


def coverage(device):
    """Every dtype that the capability registers give an operator has been run above."""
    claimed = {(name, dtype) for name in DENSE if name != "PACK" or device.is_model for dtype in OPERATOR[name]["dtypes"]}
    missing = sorted(claimed - device.pairs)
    assert not missing, f"never run: {missing}"


if __name__ == "__main__":
    device, cases = open_device(), Cases()
    for module in (cases_dense, cases_integer):
        module.add(cases, device)
    cases.case(coverage, device)
    sys.exit(cases.main())
