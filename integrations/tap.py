# SPDX-License-Identifier: MIT
"""Runs test functions and says TAP on stdout."""
import time


def run(tests, wanted, argument):
    """Calls each of `tests` that `wanted` names, or all, with `argument`; returns how many failed."""
    tests, failed = [t for t in tests if not wanted or t.__name__ in wanted], 0
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        started, name = time.monotonic(), test.__name__.replace("_", " ")
        try:
            test(argument)
            print(f"ok {number} - {name} ({time.monotonic() - started:.0f} s)", flush=True)
        except Exception as error:  # pylint: disable=broad-exception-caught
            failed += 1
            print(f"not ok {number} - {name}", flush=True)
            print("\n".join("# " + line for line in f"{type(error).__name__}: {error}".splitlines()[:20]), flush=True)
    return failed
