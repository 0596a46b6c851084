# SPDX-License-Identifier: MIT
"""Boots, snapshots and drives the QEMU guest in which enpu is run and tested."""
