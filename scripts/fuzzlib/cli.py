# SPDX-License-Identifier: MIT
"""scripts/fuzz: the command line."""
import argparse
import json
import os
import sys

from guestlib import paths
from guestlib.paths import GuestError

from . import coverage, device, guest, libfuzzer

TARGETS = {"model": libfuzzer.run, "builder": libfuzzer.run, "lowering": libfuzzer.run, "device": device.run, "ioctl": guest.run}


def main():
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description="Builds the fuzzers by clang and runs them.")
    parser.add_argument("what", nargs="+", metavar="WHAT",
                        help=f"'all', targets of {', '.join(TARGETS)}; 'coverage' of the corpus in the tree; 'merge TARGET': what was "
                             "found and covers more goes into the tree; 'build': the programs of libFuzzer; 'qemu': QEMU with sanitizers")
    parser.add_argument("--time", type=int, default=int(os.environ.get("TIME") or 1800), help="seconds of each target (TIME, 1800)")
    parser.add_argument("--plain", action="store_true", help="without clang: changed inputs of the corpora, no feedback from coverage")
    parser.add_argument("--seed", type=int, default=0, help="0: by the clock")
    options = parser.parse_args()
    try:
        return work(parser, options)
    except GuestError as e:
        print(f"fuzz: {e}", file=sys.stderr)
        return 1


def work(parser, options):
    what = options.what
    if what[0] == "merge":
        if len(what) != 2 or TARGETS.get(what[1]) is not libfuzzer.run:
            parser.error("merge takes one of model, builder, lowering")
        return libfuzzer.merge(what[1])
    if what == ["build"]:
        libfuzzer.build()
        return 0
    if what == ["qemu"]:
        device.build_sanitized()
        return 0
    if what == ["coverage"]:
        libfuzzer.build()
        return coverage.report()
    targets = list(TARGETS) if what == ["all"] else what
    for target in targets:
        if target not in TARGETS:
            parser.error(f"no target '{target}'; there are {', '.join(TARGETS)}")
    rows = [TARGETS[target](target, options) for target in targets]
    for row in rows:
        if not row["executions"]:
            row["findings"].append("nothing was executed")
    save(rows)
    for row in rows:
        print(f"{row['target']}: {row['executions']} executions in {row['seconds']} s, seed {row['seed']}, "
              f"{'no finding' if not row['findings'] else 'FINDINGS: ' + ' '.join(row['findings'])}")
    failed = any(row["findings"] for row in rows)
    if what == ["all"]:
        failed = coverage.report() != 0 or failed
    return 1 if failed else 0


def save(rows):
    """Rows of this run replace those of the same target; the others stay."""
    path = paths.BUILD / "results" / "fuzz.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    names = {row["target"] for row in rows}
    kept = [row for row in old if row["target"] not in names]
    path.write_text(json.dumps(kept + rows, indent=1) + "\n", encoding="utf-8")
