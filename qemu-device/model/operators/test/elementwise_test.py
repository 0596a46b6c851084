# SPDX-License-Identifier: MIT
"""elementwise_test.py PROBE: every operator but the dense ones against NumPy, as TAP."""
import sys

import cases_elementwise
import cases_reduction
import cases_shape
from harness import OPERATOR, Cases, open_device

DENSE = ("PACK", "CONV2D", "CONV_TRANSPOSE2D", "MATMUL", "POOL")


def coverage(device):
    """Every dtype that the capability registers give an operator has been run above."""
    claimed = {(name, dtype) for name, o in OPERATOR.items() if name not in DENSE for dtype in o["dtypes"]}
    missing = sorted(claimed - device.pairs)
    assert not missing, f"never run: {missing}"


if __name__ == "__main__":
    device, cases = open_device(), Cases()
    for module in (cases_elementwise, cases_reduction, cases_shape):
        module.add(cases, device)
    cases.case(coverage, device)
    sys.exit(cases.main())
