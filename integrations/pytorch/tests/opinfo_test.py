#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's operators on the device: every one that opinfo_claimed.txt names passes all its samples, and the device counted kernels.

opinfo_test.py LIBRARY RESULT.json [OPERATOR…]; runs opinfo_run.py inside scripts/frameworks, on $ENPU_DEVICE.
"""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "integrations"))
from results import update  # noqa: E402

FLOOR = 60  # operators that must run kernels and pass
MUST = ("matmul bmm addmm nn.functional.conv2d nn.functional.conv_transpose2d nn.functional.max_pool2d nn.functional.avg_pool2d "
        "nn.functional.batch_norm nn.functional.layer_norm nn.functional.group_norm softmax nn.functional.gelu nn.functional.silu "
        "nn.functional.embedding nn.functional.scaled_dot_product_attention nn.functional.cross_entropy").split()
DEADLINE = 3600


def claimed():
    lines = (HERE / "opinfo_claimed.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def run(library, names, out):
    environment = dict(os.environ, ENPU_TORCH_LIBRARY=str(library), ENPU_TORCH_FALLBACK="forbid")
    environment.setdefault("ENPU_DEVICE", "sim:local-mem=1G")
    command = [str(ROOT / "scripts/frameworks"), "pytorch", "run", "python3", str(HERE / "opinfo_run.py"), str(out), *names]
    return subprocess.run(command, env=environment, timeout=DEADLINE, check=False).returncode


def problems_of(table, names, whole):
    rows = table["operators"]
    for name in names:
        row = rows.get(name)
        if row is None:
            yield f"{name}: PyTorch has no such operator with f32 samples"
        elif row["verdict"] != "passed":
            yield f"{name}: {row['verdict']}: {row.get('reason')}"
    if table["fallbacks"]:
        yield f"operators ran on the CPU: {table['fallbacks']}"
    if table["device"].get("jobs_failed"):
        yield f"{table['device']['jobs_failed']} jobs of the device failed"
    if not whole:
        return
    executed = [name for name in names if rows.get(name, {}).get("kernels") and rows[name]["verdict"] == "passed"]
    if len(executed) < FLOOR:
        yield f"{len(executed)} operators ran kernels and passed, {FLOOR} are asked"
    yield from (f"{name}: did not run kernels on the device and pass" for name in MUST if name not in executed)


def main():
    library, result = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    names = sys.argv[3:] or claimed()
    out = result.with_name("pytorch-opinfo.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.unlink(missing_ok=True)
    code = run(library, names, out)
    if code or not out.exists():
        print(f"failed: opinfo_run.py ended with {code}")
        return 1
    table = json.loads(out.read_text(encoding="utf-8"))
    rows = table["operators"]
    passed = sum(row["verdict"] == "passed" for row in rows.values())
    samples = sum(row["samples"] for row in rows.values())
    if not sys.argv[3:]:
        # The samples' reference is the CPU itself, so a failure is what got worse than it.
        update(result, "pytorch", {
            "suite": "OpInfo samples of torch.testing._internal, f32, forward and backward", "claimed": len(names), "samples": samples,
            "executed_on_npu": sum(bool(row["kernels"]) and row["verdict"] == "passed" for row in rows.values()), "passed": passed,
            "failed": len(names) - passed, "worse_than_cpu_baseline": len(names) - passed, "device": table["device"]})
    problems = list(problems_of(table, names, not sys.argv[3:]))
    print(f"pytorch: {passed} of {len(names)} operators passed, {samples} samples")
    for problem in problems:
        print(f"failed: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
