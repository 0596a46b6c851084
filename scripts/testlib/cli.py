# SPDX-License-Identifier: MIT
"""scripts/test: the command line."""
import argparse
import sys
import time

from guestlib import paths
from guestlib.paths import GuestError

from . import cts, results
from .cuda import run_cuda
from .guest import run_guest, run_lane
from .host import run_device, run_device_asan, run_host
from .lint import run_lint
from .results import FAILED, PASSED, SKIPPED, Case

LANES = {"lint": run_lint, "host": run_host, "device": run_device, "cuda": run_cuda, "guest": run_guest}
# Further lanes, run when they are named: of the guest, and one of its own.
LONG = ("faults", "soak", "fuzz")
NAMED = {"device-asan": run_device_asan}
# Lanes that take too long for every run, and the command that runs each.
LEFT_OUT = {
    "asan": "make test-asan: everything on the host under AddressSanitizer and UBSan",
    "device-asan": "make test-device-asan: qtests and the guest lane on a QEMU with AddressSanitizer and UBSan",
    "fuzz": "make fuzz: every fuzzer for half an hour, and the coverage of their corpora",
    "tsan": "make test-tsan: everything on the host under ThreadSanitizer",
    "faults": "make test-faults: each fault under each workload",
    "soak": "make test-soak: 10,000 jobs of four processes under 500 faults",
    "kernel-debug": "make test-kernel-debug: the guest lane, KUnit and kmemleak on the sanitizer kernel",
    "kernel-next": "make test-kernel-next: the guest lane on the newest kernel of Debian",
    "planted": "make test-planted: mistakes planted into the model and the module, each to be found by the bring-up harness",
    "install": "make test-install: the packages in a clean Debian root, on the module that DKMS built there (needs root)",
    "vfio": "make test-vfio: the bring-up harness on the device below any driver, behind an IOMMU",
    "browser": "make test-browser: the page of a trace in headless Chromium",
    "frameworks": "make test-frameworks: ggml's own operator tests on the backend",
    "two-guests": "make test-two-guests: one language model on the NPUs of two guests, and the death of one",
    "models": "make test-models: real ONNX models on the simulator against the CPU provider",
    "bench": "make bench: measurements, no pass or fail",
}


def main():
    parser = argparse.ArgumentParser(prog="scripts/test", description="Runs test lanes and writes build/results/.")
    parser.add_argument("lanes", nargs="*", metavar="LANE", help=f"of {', '.join(LANES)}; default all")
    parser.add_argument("--level", action="append", help="only tests of this level, repeatable")
    parser.add_argument("--name", help="only tests whose name contains this")
    options = parser.parse_args()
    for lane in options.lanes:
        if lane not in LANES and lane not in LONG and lane not in NAMED:
            parser.error(f"no lane '{lane}'; there are {', '.join([*LANES, *LONG, *NAMED])}")
    lanes = options.lanes or list(LANES)
    cases, started = [], time.monotonic()
    for lane in lanes:
        print(f"== lane {lane}", flush=True)
        before = time.monotonic()
        try:
            run = LANES.get(lane) or NAMED.get(lane)
            own = run(options) if run else run_lane(options, lane)
        except GuestError as e:
            own = [Case(lane, lane, lane, lane, FAILED, 0, str(e))]
            print(f"  {e}")
        cases += own
        print(f"== lane {lane}: {results.count(own, PASSED)} passed, {results.count(own, FAILED)} failed, "
              f"{results.count(own, SKIPPED)} skipped in {time.monotonic() - before:.0f} s", flush=True)
    return report(cases, options, time.monotonic() - started)


def report(cases, options, seconds):
    whole = not (options.lanes or options.level or options.name)
    if whole:
        for lane, command in LEFT_OUT.items():
            cases.append(Case(lane, lane, lane, f"lane {lane}", SKIPPED, 0, command))
    results.write(paths.results(), cases, seconds)
    cts.write()
    for case in cases:
        if case.status == SKIPPED:
            print(f"skipped: {case.lane}/{case.suite}: {case.name}: {case.reason}")
    for case in cases:
        if case.status == FAILED:
            print(f"FAILED: {case.lane}/{case.suite}: {case.name}: {first_line(case.reason)}")
    failed = results.count(cases, FAILED)
    passed, skipped = results.count(cases, PASSED), results.count(cases, SKIPPED)
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not (passed or skipped) else 0


def first_line(text):
    return (text.strip().splitlines() or [""])[0][:200]


if __name__ == "__main__":
    sys.exit(main())
