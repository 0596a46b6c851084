#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How hal-cts tells apart what fails, what is known to fail, what passes against expectation and what a device never has:
expected_test.py HAL_CTS."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
CASE = "fence: a submission signals several"
BROKEN = {"ENPU_HAL_LAYERS": "fault", "ENPU_HAL_FAULTS": "submit:count=0"}  # every submission is refused


def run(case, device="cpu", expected=None, **environment):
    """(exit status, counts, status of the case, its reason, stderr) of one case."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "cts.json"
        known = pathlib.Path(folder) / "known"
        known.write_text(f"# known failures\n{expected} | it is broken on purpose\n" if expected else "", encoding="utf-8")
        done = subprocess.run([PROGRAM, case], env={**os.environ, "ENPU_DEVICE": device, "ENPU_CTS_OUT": str(out), **environment,
                                                    "ENPU_CTS_EXPECTED": str(known)},
                              capture_output=True, text=True, timeout=60, check=False)
        result = json.loads(out.read_text(encoding="utf-8"))
        mine = next(entry for entry in result["cases"] if entry["name"] == case)
        return done.returncode, result, mine["status"], mine["reason"], done.stderr


def first_kernel_case():
    """The name of a case that needs kernels, which the null backend has not."""
    listed = subprocess.run([PROGRAM, "--list-tests", "[kernel]", "--verbosity", "quiet"], capture_output=True, text=True, timeout=60, check=True)
    return listed.stdout.splitlines()[0].strip()


def failure():
    code, result, status, reason, _ = run(CASE, **BROKEN)
    return code == 1 and status == "failed" and result["failed"] == 1 and reason


def known_failure():
    code, result, status, reason, _ = run(CASE, expected=CASE, **BROKEN)
    return code == 0 and status == "expected_failure" and result["expected_failure"] == 1 and result["failed"] == 0 and \
        reason == "it is broken on purpose"


def unexpected_pass():
    code, result, status, reason, stderr = run(CASE, expected=CASE)
    return code == 1 and status == "failed" and result["failed"] == 1 and "unexpected pass" in reason and "unexpected pass" in stderr


def unsupported():
    case = first_kernel_case()
    code, result, status, reason, _ = run(case, device="null", expected=case)
    return code == 0 and status == "unsupported" and result["unsupported"] == 1 and reason.startswith("unsupported")


TESTS = {"a case that fails makes the run fail": failure,
         "a case that is known to fail is an expected failure, and the run passes": known_failure,
         "a case that is known to fail and passes makes the run fail": unexpected_pass,
         "what a device never has is unsupported, also when it stands on the list": unsupported}
print(f"1..{len(TESTS)}")
failed = 0
for number, (name, test) in enumerate(TESTS.items(), 1):
    good = bool(test())
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
sys.exit(1 if failed else 0)
