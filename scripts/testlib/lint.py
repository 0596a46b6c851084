# SPDX-License-Identifier: MIT
"""The lint lane: things that a build alone does not tell."""
import os
import subprocess
import time

from guestlib import paths

from .results import FAILED, PASSED, SKIPPED, Case

SKIP = 77
CHECKS = sorted((paths.ROOT / "scripts" / "lint.d").glob("*"))


def run_lint(options):
    """Each file in scripts/lint.d is one check: exit 0 passed, 77 skipped (last line says why), else failed."""
    cases = []
    for check in CHECKS:
        if options.name and options.name not in check.name:
            continue
        started = time.monotonic()
        try:
            done = subprocess.run([check], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=600, check=False, cwd=paths.ROOT, env=dict(os.environ, ENPU_BUILD=str(paths.BUILD)))
            output, code = done.stdout.strip(), done.returncode
        except subprocess.TimeoutExpired:
            output, code = "took more than 600 s", 124
        status = {0: PASSED, SKIP: SKIPPED}.get(code, FAILED)
        last = output.splitlines()[-1] if output else ""
        reason = last if status == SKIPPED else output[-2000:] if status == FAILED else ""
        if status == FAILED:
            print("\n".join(output.splitlines()[-25:]))
        print(f"  {check.name}: {status}{' (' + last + ')' if status == SKIPPED else ''}", flush=True)
        cases.append(Case("lint", "lint", check.name, check.name, status, time.monotonic() - started, reason))
    return cases
