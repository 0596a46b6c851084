# SPDX-License-Identifier: MIT
"""The fuzzer of the kernel interface, in a guest (tests/guest/kernel/fuzz_test.cpp)."""
import os
import re
import subprocess
import time

from guestlib import paths

from . import libfuzzer


def run(target, options):
    seed = options.seed or int(time.time())
    env = dict(os.environ, ENPU_FUZZ_SECONDS=str(options.time), ENPU_FUZZ_SEED=str(seed))
    log = libfuzzer.BUILD / "log" / f"{target}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"fuzz: {target} for {options.time} s, seed {seed}; log {log}", flush=True)
    started = time.monotonic()
    with open(log, "w", encoding="utf-8") as out:
        # Not as far back as the others: in the guest there are deadlines.
        code = subprocess.run(["nice", "-n", "10", paths.ROOT / "scripts" / "test", "fuzz", "--name", "kmod-fuzz-long"], env=env,
                              stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    report = paths.results() / "guest" / "kmod-fuzz-long.log"
    text = report.read_text(encoding="utf-8", errors="replace") if report.exists() else ""
    match = re.search(r"(\d+) calls", text)
    print(text.split("--- kernel log ---")[0], end="")
    return {"target": target, "executions": int(match.group(1)) if match else 0, "seconds": round(time.monotonic() - started),
            "seed": seed, "findings": [f"ended with {code}, see {log}"] if code else []}
