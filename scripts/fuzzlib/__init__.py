# SPDX-License-Identifier: MIT
"""What scripts/fuzz is made of."""
