# SPDX-License-Identifier: MIT
"""The lane of a CUDA GPU: conformance suite, runtime tests and benchmark on it, or one skipped case where there is none."""
import ctypes
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

from guestlib import paths

from . import cts, results
from .results import FAILED, PASSED, SKIPPED, Case

# (suite, program, seconds), all of them Catch2 programs
PROGRAMS = (("hal-cts-cuda", "hal-cts", 200), ("runtime-cuda", "rt-tests", 200), ("cuda-bench", "enpu-cuda-bench", 60))


def compute_capability():
    """("90", "") for the first GPU, or (None, reason): asked of the driver itself, as the backend does."""
    name = os.environ.get("ENPU_CUDA_LIBRARY") or "libcuda.so.1"
    try:
        get = ctypes.CDLL(name).cuGetProcAddress_v2
    except (OSError, AttributeError) as e:
        return None, f"no CUDA device: {e}"

    def call(symbol, *arguments):
        address = ctypes.c_void_p()
        get(symbol.encode(), ctypes.byref(address), ctypes.c_int(2000), ctypes.c_uint64(0), None)
        return ctypes.CFUNCTYPE(ctypes.c_int)(address.value)(*arguments) if address.value else 500

    count, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    code = call("cuInit", ctypes.c_uint(0)) or call("cuDeviceGetCount", ctypes.byref(count))
    if code or count.value < 1:
        return None, f"no CUDA device: the driver sees {count.value} (error {code})"
    call("cuDeviceGetAttribute", ctypes.byref(major), ctypes.c_int(75), ctypes.c_int(0))
    call("cuDeviceGetAttribute", ctypes.byref(minor), ctypes.c_int(76), ctypes.c_int(0))
    return f"{major.value}{minor.value}", ""


def run_program(suite, program, seconds, folder):
    binary = paths.BUILD / "bin" / program
    if not binary.exists():
        return [Case("cuda", "hal", suite, suite, FAILED, 0, f"{binary} was not built; run 'make test-cuda'")]
    report = folder / f"{suite}.xml"
    report.unlink(missing_ok=True)
    environment = dict(os.environ, ENPU_DEVICE="cuda", ENPU_BENCH_OUT=str(folder / "bench.json"), ENPU_CTS_NAME="cuda",
                       ENPU_CTS_OUT=str(cts.FOLDER / "hal-cts-cuda.json"))
    started = time.monotonic()
    try:
        code = subprocess.run([str(binary), "--reporter", "console", "--reporter", f"JUnit::out={report}"], env=environment,
                              timeout=seconds, check=False, stdin=subprocess.DEVNULL).returncode
    except subprocess.TimeoutExpired:
        code = "more than its time"
    cases = []
    if report.exists():
        try:
            cases = results.from_junit(report.read_text(encoding="utf-8", errors="replace"), "cuda", "hal", suite)
        except ET.ParseError:
            pass
    if not cases or (code and not any(c.status == FAILED for c in cases)):
        status = FAILED if code or not cases else PASSED
        cases.append(Case("cuda", "hal", suite, "(whole program)", status, time.monotonic() - started, f"ended with {code}"))
    return cases


def run_cuda(options):
    capability, reason = compute_capability()
    if capability is None:
        return [Case("cuda", "hal", "cuda", "GPU", SKIPPED, 0, reason)]
    folder = paths.BUILD / "results" / "cuda"
    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    for suite, program, seconds in PROGRAMS:
        if not options.name or options.name in suite:
            cases += run_program(suite, program, seconds, folder)
    return cases


def main():
    """Prints the compute capability, or says on stderr why there is none and gives 1."""
    capability, reason = compute_capability()
    print(capability or reason, file=sys.stdout if capability else sys.stderr)
    return 0 if capability else 1
