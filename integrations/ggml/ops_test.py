#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ggml's own operator tests on the backend: every case that it claims must pass, and enough must be claimed.

A case that a backend does not claim counts as passed for ggml, so a floor of executed cases is part of the test.
Usage: ops_test.py LIBRARY RESULT.json [OPERATOR…]; runs inside scripts/frameworks, on $ENPU_DEVICE.
"""
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

PROGRAM = "/usr/libexec/x86_64-linux-gnu/ggml/test-backend-ops"
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "integrations"))
from results import update  # noqa: E402

OPERATORS = ("ADD SUB MUL DIV SQR SQRT LOG SIN COS CLAMP LEAKY_RELU SCALE ABS SGN NEG STEP TANH ELU RELU SIGMOID GELU GELU_ERF "
             "GELU_QUICK SILU HARDSWISH HARDSIGMOID EXP SOFTPLUS FLOOR CEIL REGLU GEGLU SWIGLU GEGLU_ERF GEGLU_QUICK NORM RMS_NORM "
             "L2_NORM GROUP_NORM SOFT_MAX ROPE ROPE_BACK SUM SUM_ROWS MEAN ARGMAX DUP CPY CONT REPEAT CONCAT GET_ROWS PAD "
             "PAD_REFLECT_1D POOL_2D ROLL OUT_PROD MUL_MAT_ID SET_ROWS DIAG_MASK_INF CUMSUM CONV_2D CONV_2D_DW IM2COL UPSCALE "
             "MUL_MAT").split()
# Of these the cases whose parameters match: all would take hours on the simulator.
PARTS = {"FLASH_ATTN_EXT": "kv=113,nb=(1|3),"}
FLOOR = 6500  # cases that must run
MUST = {"SOFT_MAX": 1, "ROPE": 1, "RMS_NORM": 1, "GET_ROWS": 1, "SET_ROWS": 1, "MUL_MAT_ID": 1, "FLASH_ATTN_EXT": 1, "IM2COL": 1, "CONV_2D": 1}
QUANTISED = 300  # MUL_MAT cases with q8_0, q4_0 and q4_K together
DEADLINE = 3600
LINE = re.compile(r"^\s*(\w+)\((.*)\): (OK|FAIL|not supported.*)$")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def run(library, operators, report, parameters=None):
    environment = dict(os.environ, GGML_BACKEND_PATH=str(library), ENPU_GGML_REPORT=str(report))
    environment.setdefault("ENPU_DEVICE", "sim:local-mem=2G")
    command = [str(ROOT / "scripts/frameworks"), "run", PROGRAM, "test", "-b", "NPU0", "-o", ",".join(operators)]
    command += ["-p", parameters] if parameters else []
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          timeout=DEADLINE, check=False)
    return done.returncode, done.stdout


def count(output):
    table = collections.defaultdict(lambda: {"passed": 0, "failed": 0, "not_claimed": 0})
    quantised, failures = 0, []
    for line in output.splitlines():
        match = LINE.match(COLOUR.sub("", line))
        if not match:
            failed = re.match(r"^.*?(\w+)\(.*\): FAIL", COLOUR.sub("", line))
            if failed:
                table[failed[1]]["failed"] += 1
                failures.append(COLOUR.sub("", line).strip())
            continue
        operator, arguments, verdict = match.groups()
        key = {"OK": "passed", "FAIL": "failed"}.get(verdict, "not_claimed")
        table[operator][key] += 1
        if key == "failed":
            failures.append(line)
        if operator == "MUL_MAT" and key == "passed" and re.search(r"type_a=(q8_0|q4_0|q4_K)\b", arguments):
            quantised += 1
    return dict(sorted(table.items())), quantised, failures


def main():
    library, result = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    operators = sys.argv[3:] or OPERATORS
    device_report = result.with_suffix(".device.json")
    device_report.unlink(missing_ok=True)
    whole = [o for o in operators if o not in PARTS]
    code, output = run(library, whole, device_report) if whole else (0, "")
    for operator, parameters in PARTS.items():
        if operator in operators or not sys.argv[3:]:
            more, text = run(library, [operator], device_report.with_suffix(".part.json"), parameters)
            code, output = code or more, output + text
    result.with_suffix(".log").write_text(output, encoding="utf-8")
    table, quantised, failures = count(output)
    executed = sum(row["passed"] + row["failed"] for row in table.values())
    passed = sum(row["passed"] for row in table.values())
    device_report = device_report if whole else device_report.with_suffix(".part.json")
    device = json.loads(device_report.read_text(encoding="utf-8")) if device_report.exists() else None
    update(result, "ggml", {
        "suite": "test-backend-ops", "claimed": executed, "executed_on_npu": executed, "passed": passed, "failed": executed - passed,
        "quantised_mul_mat": quantised, "device": device, "operators": table})
    for operator, row in table.items():
        print(f"{operator:16} {row['passed']:5} passed {row['failed']:3} failed {row['not_claimed']:5} not claimed")
    problems = failures[:20]
    if code:
        problems.append(f"test-backend-ops ended with {code}: {output.splitlines()[-1] if output else 'no output'}")
    if device is None or device["device_jobs"] == 0:
        problems.append("the device itself counted no job")
    if not sys.argv[3:]:
        if executed < FLOOR:
            problems.append(f"{executed} cases were executed, {FLOOR} are asked")
        if quantised < QUANTISED:
            problems.append(f"{quantised} quantised MUL_MAT cases passed, {QUANTISED} are asked")
        problems += [f"{name}: no case passed" for name in MUST if table.get(name, {}).get("passed", 0) < MUST[name]]
    print(f"ggml: {passed} of {executed} executed cases passed, {quantised} of them MUL_MAT with q8_0, q4_0 or q4_K")
    for problem in problems:
        print(f"failed: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
