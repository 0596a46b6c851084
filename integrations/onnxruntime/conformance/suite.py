#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""All node tests of ONNX: strictly on the provider, and with the CPU provider for the rest. TAP on stdout.

A test that the provider claims must pass; those of must_pass.txt must be claimed and counted by the device's own operator
counters; with the CPU provider for the rest none may fail that passes on the CPU provider alone (cpu_baseline.txt).

usage: suite.py ORT_CONFORMANCE EP DATA RESULT.json [--device SPEC] [--record]
  --record writes must_pass.txt and cpu_baseline.txt anew instead of comparing with them.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
import results  # noqa: E402

FLOOR = 900  # tests that pass strictly, with operators counted by the device
DEADLINE = 280
HEADS = {
    "must_pass.txt": "Node tests of ONNX that run on the execution provider alone, and for which the device counts operators.",
    "cpu_baseline.txt": "Node tests of ONNX that pass on ONNX Runtime's CPU provider alone.",
}


def read_names(name):
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def write_names(name, names):
    text = f"# {HEADS[name]}\n# Written by suite.py --record.\n" + "".join(f"{n}\n" for n in sorted(names))
    (HERE / name).write_text(text, encoding="utf-8")


def read_known():
    """Claimed tests whose expected values differ for a reason: {name: reason}."""
    known = {}
    for line in (HERE / "known_differences.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, reason = line.split(None, 1)
            known[name] = reason
    return known


def run(options, mode):
    with tempfile.TemporaryDirectory() as work:
        path = pathlib.Path(work, "verdicts.json")
        command = [options.program, "--data", options.data, "--ep", options.ep, "--device", options.device, "--all", "--mode", mode,
                   "--json", str(path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=DEADLINE, check=False)
        if not path.exists() or done.returncode not in (0, 1):
            raise SystemExit(f"Bail out! ort-conformance ended with {done.returncode}: {done.stdout[-500:]}")
        return json.loads(path.read_text(encoding="utf-8"))


def passed(verdicts):
    return {name for name, v in verdicts.items() if v["state"] == "passed"}


def counted(verdict):
    report = verdict["report"]
    return bool(report and report["last_run"]["counted_by_device"] and report["since_open"]["ops_all_runs"])


def reason(name, strict, fallback):
    """Why a test is not run by the provider alone."""
    report = fallback[name]["report"]
    if report and report["left_out"]:
        first = report["left_out"][0]
        return f"{first['op']}: {first['reason']}"
    if fallback[name]["state"] == "refused":
        return "ONNX Runtime does not load it"
    return strict[name]["why"] if report else "it fails on the CPU provider too"


def judge(options, strict, fallback):
    claimed = {name for name, v in strict.items() if v["state"] != "refused"}
    good = passed(strict)
    on_npu = {name for name in good if counted(strict[name])}
    known = read_known()
    if options.record:
        cpu = passed(run(options, "cpu"))
        write_names("cpu_baseline.txt", cpu)
        write_names("must_pass.txt", on_npu)
    checks = [(f"{name} passes on the provider alone", name in good or name in known, strict[name]["why"]) for name in sorted(claimed)]
    checks += [(f"{name} is claimed and counted", name in on_npu, strict.get(name, {}).get("why", "it is gone"))
               for name in sorted(read_names("must_pass.txt") - on_npu)]
    baseline = read_names("cpu_baseline.txt")
    worse = sorted((baseline & set(fallback)) - passed(fallback) - set(known))
    checks += [(f"{name} is as good as on the CPU provider", False, fallback[name]["why"]) for name in worse]
    checks.append((f"{len(on_npu)} tests ran on the device, {FLOOR} are asked", len(on_npu) >= FLOOR, "too few"))
    left_out = collections.Counter(reason(name, strict, fallback) for name in set(strict) - claimed)
    row = {"suite": "ONNX node tests", "tests": len(strict), "claimed": len(claimed), "executed_on_npu": len(on_npu),
           "passed": len(good), "failed": len(claimed) - len(good), "known_differences": sorted(claimed & set(known) - good),
           "worse_than_cpu_baseline": len(worse), "cpu_baseline": len(baseline), "left_out": dict(left_out.most_common())}
    return checks, row


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "ep", "data", "result"):
        parser.add_argument(name)
    parser.add_argument("--device", default="sim")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    checks, row = judge(options, run(options, "strict"), run(options, "fallback"))
    results.update(options.result, "onnxruntime", row)
    print(f"1..{len(checks)}")
    for number, (name, good, why) in enumerate(checks, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}" + ("" if good else f"\n# {why}"))
    print(f"# {row['tests']} tests, {row['claimed']} claimed, {row['executed_on_npu']} ran on the device, {row['failed']} of the claimed "
          f"fail, {row['worse_than_cpu_baseline']} worse than on the CPU provider")
    return 0 if all(good for _, good, _ in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
