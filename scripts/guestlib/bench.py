# SPDX-License-Identifier: MIT
"""make bench: every benchmark in parts, each of which scripts/bench NAME runs alone ('scripts/bench docs' puts the last
results into docs/performance.md); one table, results as JSON, plots as SVG. QUICK=1 takes fewer samples, NATIVE=1 leaves out
the guest, ONLY_MODELS=TEXT takes the models whose name holds it."""
import sys
import time

from . import bench_device, bench_models, bench_queues, bench_runtime, bench_table, bench_tracing
from .paths import GuestError, say

# Each returns rows (bench_table.row) and what the guest's kernel log held that it must not.
PARTS = {
    "copies": bench_device.copies,
    "operators": bench_device.operators,
    "models": bench_models.models,
    "cores": bench_device.cores,
    "fairness": bench_device.fairness,
    "growth": bench_device.growth,
    "idle": bench_device.idle,
    "cold": bench_models.cold,
    "tracing": bench_tracing.tracing,
    "runtime": lambda: (bench_runtime.micro_rows(), []),
    "serving": lambda: (bench_runtime.serving_native(), []),
    "serving-guest": lambda: ([], []) if bench_table.native_only() else bench_runtime.serving_guest(),
    "queues": lambda: ([], []) if bench_table.native_only() else bench_queues.rows(),
}


def main():
    """Runs the parts named on the command line, all by default; rows of parts that did not run stay in the file. A part that fails does
    not keep the others from running."""
    if sys.argv[1:] == ["docs"]:
        bench_table.write_docs()
        return 0
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        raise GuestError(f"no benchmark '{unknown[0]}'; there are: {' '.join(PARTS)}")
    started = time.monotonic()
    rows, problems, failed, loads = [], [], [], {}
    for name in wanted:
        loads[name] = bench_table.other_load()
        if loads[name] > bench_table.QUIET:
            say(f"{name}: others keep {loads[name]:.1f} processors busy; what needs all of them, or wakes up often, is measured too slow")
        begin = time.monotonic()
        try:
            part_rows, part_problems = PARTS[name]()
        except GuestError as e:
            say(f"{name}: {e}")
            failed.append(name)
            continue
        rows += part_rows
        problems += part_problems
        say(f"{name}: {len(part_rows)} rows in {time.monotonic() - begin:.0f} s")
    bench_table.show(rows)
    for line in problems:
        say(f"the kernel log holds what it must not: {line}")
    bench_table.keep(rows, problems, time.monotonic() - started, loads)
    missed = [entry["name"] for entry in rows if not entry["ok"]]
    say(f"{len(rows)} rows, {len(missed)} miss their target; {time.monotonic() - started:.0f} s" + (f"; failed: {' '.join(failed)}" if failed else ""))
    return 1 if failed or problems else 0
