#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The digits example trains on the device, falling back forbidden, to the losses of the CPU.

digits_test.py LIBRARY RESULT.json; runs the example inside scripts/frameworks, on $ENPU_DEVICE.
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

EPOCHS, BATCHES, DEADLINE = 4, 24, 900
TOLERANCE = 1e-3  # relative, of each epoch's mean loss: rounding grows from step to step
FORWARD_AND_BACKWARD = {"conv2d_fwd": 3 + 1, "conv_transpose2d_fwd": 1, "matmul_fwd": 6}  # kernels of a step, at least


def train(device, library, out):
    environment = dict(os.environ, ENPU_TORCH_LIBRARY=str(library), ENPU_TORCH_FALLBACK="forbid")
    environment.setdefault("ENPU_DEVICE", "sim:local-mem=1G")
    subprocess.run([str(ROOT / "scripts/frameworks"), "pytorch", "run", "python3", str(HERE.parent / "examples/digits.py"), "--device", device,
                    "--epochs", str(EPOCHS), "--result", str(out)], env=environment, timeout=DEADLINE, check=True)
    return json.loads(out.read_text(encoding="utf-8"))


def problems_of(ours, theirs, worst):
    if worst > TOLERANCE:
        yield f"losses differ by {worst:.2e}: {ours['losses']} on the device, {theirs['losses']} on the CPU"
    if ours["losses"][-1] > ours["losses"][0] / 10 or ours["accuracy"] < 0.9:
        yield f"it has not learned: losses {ours['losses']}, accuracy {ours['accuracy']}"
    if ours["accuracy"] != theirs["accuracy"]:
        yield f"accuracy is {ours['accuracy']} on the device, {theirs['accuracy']} on the CPU"
    if ours["fallbacks"]:
        yield f"operators ran on the CPU: {ours['fallbacks']}"
    counted = ours["counters"]
    if not counted["from_device"] or counted.get("jobs_failed"):
        yield f"the device's own counters: {counted}"
    for kernel, each in FORWARD_AND_BACKWARD.items():
        if counted.get(kernel, 0) < each * EPOCHS * BATCHES:
            yield f"the device counted {counted.get(kernel, 0)} {kernel}, {each * EPOCHS * BATCHES} are at least needed"


def main():
    library, result = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    result.parent.mkdir(parents=True, exist_ok=True)
    ours, theirs = (train(device, library, result.with_name(f"pytorch-digits-{device}.json")) for device in ("enpu", "cpu"))
    worst = max(abs(a - b) / b for a, b in zip(ours["losses"], theirs["losses"]))
    problems = list(problems_of(ours, theirs, worst))
    update(result, "pytorch", {"training": {
        "name": "digits", "epochs": EPOCHS, "losses": ours["losses"], "cpu_losses": theirs["losses"], "max_rel_err": worst,
        "accuracy": ours["accuracy"], "task_equal": ours["accuracy"] == theirs["accuracy"], "device": ours["counters"]}})
    print(f"digits: losses differ by {worst:.1e} at most, accuracy {ours['accuracy']:.4f} on both")
    for problem in problems:
        print(f"failed: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
