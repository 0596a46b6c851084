#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Real models on the provider against ONNX Runtime's CPU provider, quantised ones against exact arithmetic: every heavy node on
the device, the same result for the user of the model, numbers within a stated tolerance. TAP on stdout.

usage: models_test.py EP WHEELS RESULT.json [--device SPEC] [MODEL…]
"""
import argparse
import collections
import pathlib
import sys
import time

import numpy as np
import onnx

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
import provider  # noqa: E402
import results  # noqa: E402
import zoo  # noqa: E402

FEWEST = 20  # inputs of each model


def heavy_nodes(source):
    """Heavy nodes by operator, those inside bodies too."""
    model = onnx.load_from_string(source) if isinstance(source, bytes) else onnx.load(source)
    count, graphs = collections.Counter(), [model.graph]
    while graphs:
        for node in graphs.pop().node:
            count[node.op_type] += node.op_type in provider.HEAVY
            graphs += [a.g for a in node.attribute if a.HasField("g")]
    return sum(count.values())


class Errors:
    """The largest difference of each output, by the largest magnitude that the output has for any input."""

    def __init__(self, outputs):
        self.difference, self.magnitude = np.zeros(outputs), np.full(outputs, 1e-6)

    def add(self, index, got, want):
        if got.shape != want.shape or got.dtype != want.dtype:
            self.difference[index] = np.inf
        elif want.size:
            a, b = got.astype(np.float64), want.astype(np.float64)
            difference = np.abs(a - b).max()
            self.difference[index] = max(self.difference[index], difference if np.isfinite(difference) else np.inf)
            self.magnitude[index] = max(self.magnitude[index], np.abs(b).max())

    def worst(self):
        return float(f"{(self.difference / self.magnitude).max():.3g}")


def measure(ep, model):
    source = model.source if isinstance(model.source, bytes) else str(model.source)
    session, reference = ep.session(source), model.reference(source)
    errors, equal, results_seen = Errors(len(session.get_outputs())), 0, set()
    for feed in model.feeds:
        want, got = reference.run(None, feed), session.run(None, feed)
        for index, (g, w) in enumerate(zip(got, want)):
            errors.add(index, g, w)
        expected = model.task(feed, want)
        results_seen.add(repr(expected))
        equal += model.task(feed, got) == expected
    report = session.report()
    heavy = heavy_nodes(model.source)
    left = [n for n in report["left_out"] if n["op"] in provider.HEAVY]
    counted = report["since_open"]["ops_all_runs"]
    ran = sum(counted.get(k, 0) for k in provider.HEAVY_KERNELS) if report["last_run"]["counted_by_device"] else 0
    return {"name": model.name, "inputs": len(model.feeds), "heavy_nodes": heavy, "on_npu": heavy - len(left), "nodes": report["nodes_total"],
            "nodes_on_npu": report["nodes_npu"], "heavy_kernels_counted": ran, "task_equal": equal, "different_results": len(results_seen),
            "max_rel_err": errors.worst(), "tolerance": model.tolerance, "reference": model.reference.__name__,
            "doubt": getattr(reference, "problem", lambda: None)()}


def problems(row):
    found = []
    if row["inputs"] < FEWEST:
        found.append(f"{row['inputs']} inputs, {FEWEST} are asked")
    if row["on_npu"] != row["heavy_nodes"] or row["heavy_nodes"] == 0:
        found.append(f"{row['on_npu']} of {row['heavy_nodes']} heavy nodes are on the NPU")
    if row["heavy_kernels_counted"] < row["inputs"]:
        found.append(f"the device counted {row['heavy_kernels_counted']} heavy kernels in {row['inputs']} runs")
    if row["task_equal"] != row["inputs"]:
        found.append(f"the result is the same for {row['task_equal']} of {row['inputs']} inputs")
    if row["different_results"] < 2:
        found.append("all inputs have one result, so that nothing is told apart")
    if row["doubt"]:
        found.append(row["doubt"])
    if not row["max_rel_err"] <= row["tolerance"]:
        found.append(f"max_rel_err is {row['max_rel_err']}, {row['tolerance']} is allowed")
    return found


def main():
    parser = argparse.ArgumentParser()
    for name in ("library", "wheels", "result"):
        parser.add_argument(name)
    parser.add_argument("--device", default="sim")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    options = parser.parse_args()
    names = options.models or list(zoo.ALL)
    ep, rows, failed = provider.Provider(options.library, options.device), [], 0
    print(f"1..{len(names)}", flush=True)
    for number, name in enumerate(names, 1):
        started = time.monotonic()
        row = measure(ep, zoo.ALL[name](options.wheels))
        found = problems(row)
        failed += bool(found)
        print(f"{'not ok' if found else 'ok'} {number} - {row['name']}: {row['inputs']} inputs, {row['on_npu']} of {row['heavy_nodes']} heavy nodes "
              f"({row['nodes_on_npu']} of {row['nodes']} in all), max_rel_err {row['max_rel_err']}, {time.monotonic() - started:.1f} s", flush=True)
        for problem in found:
            print(f"# {problem}")
        rows.append(row)
    if not options.models:
        results.update(options.result, "onnxruntime", {"models": rows})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
