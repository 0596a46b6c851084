# SPDX-License-Identifier: MIT
"""Runs all tests, lane by lane, and writes what came out."""
