# SPDX-License-Identifier: MIT
"""Random accesses to the whole device inside QEMU: MMIO, doorbells, config space, memory that it reads by DMA
(qemu-device/qemu/enpu-attack-test.c). On the QEMU with sanitizers where that has been built."""
import os
import re
import subprocess
import time

from guestlib import paths
from guestlib.paths import GuestError

from . import libfuzzer

SANITIZED = paths.BUILD / "asan"
TESTS = ("/x86_64/enpu/attack/random/sync", "/x86_64/enpu/attack/random/threads")


def build_sanitized():
    """The model and QEMU with AddressSanitizer and UBSan, in build/asan; QEMU's tree is kept in the cache."""
    log = SANITIZED / "log"
    log.mkdir(parents=True, exist_ok=True)
    if not (SANITIZED / "build.ninja").exists():
        libfuzzer.logged(["cmake", "-G", "Ninja", "-S", str(paths.ROOT), "-B", str(SANITIZED), "-DENPU_SANITIZE=address,undefined"],
                         log / "cmake.log")
    libfuzzer.logged(["nice", "ninja", "-C", str(SANITIZED), "enpu-model"], log / "build.log")
    env = dict(os.environ, ENPU_BUILD=str(SANITIZED), ENPU_QEMU_KIND="asan")
    if subprocess.run([paths.ROOT / "scripts" / "qemu", "build"], env=env, check=False).returncode:
        raise GuestError("QEMU with sanitizers does not build; its messages are above")


def environment(build):
    """Of a program that starts that QEMU. What a sanitizer finds ends it."""
    return dict(os.environ, QTEST_QEMU_BINARY=str(build / "bin" / "qemu-system-x86_64"), LD_LIBRARY_PATH=str(build / "lib"),
                G_TEST_DBUS_DAEMON="", ASAN_OPTIONS="detect_leaks=0:abort_on_error=1",
                UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:abort_on_error=1")


def run(target, options):
    build = SANITIZED if (SANITIZED / "bin" / "qenpu-attack-test").exists() else paths.BUILD
    seed = options.seed or int(time.time())
    log = libfuzzer.BUILD / "log" / f"{target}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"fuzz: {target} for {options.time} s, seed {seed}, {'with' if build == SANITIZED else 'without'} sanitizers; log {log}", flush=True)
    started, steps, findings = time.monotonic(), 0, []
    with open(log, "w", encoding="utf-8", errors="replace") as out:
        for test in TESTS:
            env = dict(environment(build), ENPU_FUZZ_SECONDS=str(options.time // len(TESTS)))
            command = ["nice", "-n", "19", str(build / "bin" / "qenpu-attack-test"), "--tap", "-p", test, f"--seed=R02S{seed:032x}"]
            done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                  timeout=options.time + 600, check=False)
            out.write(done.stdout)
            steps += sum(int(n) for n in re.findall(r"(\d+) steps", done.stdout))
            if done.returncode:
                print(done.stdout[-3000:])
                findings.append(f"{test} ended with {done.returncode}, see {log}")
    return {"target": target, "executions": steps, "seconds": round(time.monotonic() - started), "seed": seed, "findings": findings}
