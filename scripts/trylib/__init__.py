# SPDX-License-Identifier: MIT
"""What scripts/try-packages stands on: a Debian root, and the guest that runs in it."""
