# SPDX-License-Identifier: MIT
"""Where scripts/planted puts a mistake, and how the harness is run there."""
