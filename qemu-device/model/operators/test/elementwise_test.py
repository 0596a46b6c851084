# SPDX-License-Identifier: MIT
"""elementwise_test.py PROBE: every operator but the dense ones against NumPy, as TAP."""
import sys

import cases_elementwise
from harness import Cases, open_device

if __name__ == "__main__":
    device, cases = open_device(), Cases()
    cases_elementwise.add(cases, device)
    sys.exit(cases.main())
