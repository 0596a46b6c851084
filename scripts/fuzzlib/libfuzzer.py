# SPDX-License-Identifier: MIT
"""The libFuzzer targets of tests/fuzz: build by clang, run, merge what was found into the corpus of the tree."""
import os
import re
import shutil
import subprocess
import time

from guestlib import paths
from guestlib.paths import GuestError

BUILD = paths.BUILD / "fuzz"
CORPUS = paths.ROOT / "tests" / "fuzz" / "corpus"
TARGETS = ("model", "builder", "lowering")
# One input: an endless loop or a flood of memory is a finding, too.
LIMITS = ["-timeout=60", "-report_slow_units=60", "-rss_limit_mb=4096", "-malloc_limit_mb=2048"]


def environment():
    """Counters of coverage go where they are asked for, not into the current folder."""
    return dict(os.environ, LLVM_PROFILE_FILE="/dev/null",
                ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=0:handle_abort=1", UBSAN_OPTIONS="print_stacktrace=1")


def build(*targets):
    """The programs, or those CMake targets, instrumented."""
    if not shutil.which("clang++"):
        raise GuestError("the fuzzers need clang and its runtime library: scripts/setup fuzz")
    log = BUILD / "log"
    log.mkdir(parents=True, exist_ok=True)
    if not (BUILD / "build.ninja").exists():
        command = ["cmake", "-G", "Ninja", "-S", str(paths.ROOT), "-B", str(BUILD), "-DENPU_FUZZ=ON", "-DCMAKE_C_COMPILER=clang",
                   "-DCMAKE_CXX_COMPILER=clang++"]
        logged(command, log / "cmake.log")
    logged(["ninja", "-C", str(BUILD), *(targets or [f"enpu-fuzz-{t}" for t in TARGETS])], log / "build.log")


def logged(command, log):
    with open(log, "w", encoding="utf-8") as out:
        if subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode:
            raise GuestError(f"'{command[0]}' failed:\n{log.read_text(encoding='utf-8')[-2000:]}\nthe whole log is in {log}")


def folders(target):
    found, crashes = BUILD / "corpus" / target, BUILD / "findings" / target
    found.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(parents=True, exist_ok=True)
    return found, crashes


def run_plain(target, options):
    """Without clang: the replay program of the usual build goes on with changed inputs, blindly."""
    _, crashes = folders(target)
    seed = options.seed or int(time.time())
    last, log = crashes / "last", BUILD / "log" / f"{target}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"fuzz: {target} for {options.time} s, seed {seed}, blindly; log {log}", flush=True)
    started = time.monotonic()
    with open(log, "w", encoding="utf-8", errors="replace") as out:
        code = subprocess.run(["nice", "-n", "19", paths.BUILD / "bin" / f"enpu-fuzz-{target}", "--seconds", str(options.time),
                               "--seed", str(seed), CORPUS / target], env=dict(os.environ, ENPU_FUZZ_LAST=str(last)), stdout=out,
                              stderr=subprocess.STDOUT, timeout=options.time + 600, check=False).returncode
    match = re.search(r"(\d+) changed ones", log.read_text(encoding="utf-8", errors="replace"))
    return {"target": target, "executions": int(match.group(1)) if match else 0, "seconds": round(time.monotonic() - started),
            "seed": seed, "findings": [f"ended with {code} at the input {last}"] if code else []}


def run(target, options):
    if options.plain or not shutil.which("clang++"):
        return run_plain(target, options)
    build(f"enpu-fuzz-{target}")
    found, crashes = folders(target)
    seed = options.seed or int(time.time())
    command = [str(BUILD / "bin" / f"enpu-fuzz-{target}"), f"-max_total_time={options.time}", f"-seed={seed}", "-print_final_stats=1",
               "-max_len=4096", *LIMITS, f"-artifact_prefix={crashes}/", str(found), str(CORPUS / target)]
    return follow(target, command, environment(), crashes, seed, options.time)


def follow(target, command, env, crashes, seed, limit_s):
    """Runs a libFuzzer program and reads what it says at its end."""
    before = set(crashes.iterdir())
    log = BUILD / "log" / f"{target}.log"
    print(f"fuzz: {target} for {limit_s} s, seed {seed}; log {log}", flush=True)
    started = time.monotonic()
    with open(log, "w", encoding="utf-8", errors="replace") as out:
        try:
            code = subprocess.run(["nice", "-n", "19", *command], env=env, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                  timeout=limit_s + 600, check=False).returncode
        except subprocess.TimeoutExpired:
            code = 124
    text = log.read_text(encoding="utf-8", errors="replace")
    match = re.search(r"stat::number_of_executed_units: (\d+)", text)
    findings = sorted(p.name for p in set(crashes.iterdir()) - before)
    if code and not findings:
        findings = [f"ended with {code}, see {log}"]
    if findings:
        print(text[-3000:])
    return {"target": target, "executions": int(match.group(1)) if match else 0, "seconds": round(time.monotonic() - started),
            "seed": seed, "findings": findings}


def merge(target):
    """Minimises: the files that are kept cover what all together do, the tree's own first."""
    build(f"enpu-fuzz-{target}")
    found, _ = folders(target)
    small = BUILD / "merged" / target
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir(parents=True)
    own = CORPUS / target
    own.mkdir(parents=True, exist_ok=True)
    # By edges alone, without their counts: few files.
    command = [str(BUILD / "bin" / f"enpu-fuzz-{target}"), "-merge=1", "-use_counters=0", "-use_value_profile=0", *LIMITS, str(small),
               str(own), str(found)]
    logged_env(command, BUILD / "log" / f"merge-{target}.log")
    new = [p for p in small.iterdir() if not any(same(p, q) for q in own.iterdir() if q.stat().st_size == p.stat().st_size)]
    for path in new:
        shutil.copy(path, own / path.name[:16])
    print(f"{target}: {len(new)} new files, {len(list(own.iterdir()))} in the tree, {sum(p.stat().st_size for p in own.iterdir())} bytes")
    return 0


def logged_env(command, log):
    with open(log, "w", encoding="utf-8") as out:
        if subprocess.run(command, env=environment(), stdout=out, stderr=subprocess.STDOUT, check=False).returncode:
            raise GuestError(f"'{command[0]}' failed; its log is in {log}")


def same(a, b):
    return a.read_bytes() == b.read_bytes()
