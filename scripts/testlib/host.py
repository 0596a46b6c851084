# SPDX-License-Identifier: MIT
"""Lanes that need no guest: ctest (C++ and scripts) and the device's qtests."""
import os
import re
import subprocess
import time
import xml.etree.ElementTree as ET

from guestlib import paths

from . import cts, results
from .results import FAILED, PASSED, SKIPPED, Case


def run_host(options):
    """All ctest entries. Each writes its own cases; an entry without a readable report is one case."""
    folder = paths.BUILD / "results" / "host"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    summary = paths.BUILD / "results" / "ctest.xml"
    summary.unlink(missing_ok=True)
    cts.forget("host")
    command = ["ctest", "--test-dir", str(paths.BUILD), "--output-on-failure", "-j", str(os.cpu_count() or 1),
               "--output-junit", str(summary), "--no-tests=ignore"]
    if options.level:
        command += ["-L", f"^({'|'.join(options.level)})$"]
    if options.name:
        command += ["-R", options.name]
    prefix, environment = sanitizer()
    subprocess.run(prefix + command, check=False, env=environment)
    if not summary.exists():
        return [Case("host", "model", "ctest", "ctest", FAILED, 0, "ctest wrote no report; its output is above")]
    levels = entry_levels()
    cases = []
    for item in ET.parse(summary).getroot().iter("testcase"):
        name = item.get("name")
        level = levels.get(name, "model")
        cases += cts.cases(name, "host", level) or entry_cases(item, folder, level)
    return cases


def sanitizer():
    """(command prefix, environment) that the build's sanitizer needs."""
    environment = dict(os.environ)
    # What is asked for and cannot be had is null, as without a sanitizer: tests do ask.
    common = "allocator_may_return_null=1"
    environment.setdefault("ASAN_OPTIONS", common)
    cache = paths.BUILD / "CMakeCache.txt"
    kind = re.search(r"^ENPU_SANITIZE:STRING=(.*)$", cache.read_text(encoding="utf-8"), re.M) if cache.exists() else None
    if not kind or not kind[1]:
        return [], environment
    # Its dlopen is the caller of all libraries, so the loader does not look beside ONNX Runtime for what that loads.
    environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(paths.BUILD / "ort"), environment.get("LD_LIBRARY_PATH")]))
    if "thread" not in kind[1]:
        return [], environment
    supp = paths.ROOT / "scripts" / "tsan.supp"
    environment.setdefault("TSAN_OPTIONS", common + (f":suppressions={supp}" if supp.exists() else ""))
    # gcc 12's ThreadSanitizer does not know address spaces with more than 28 random bits.
    return ["setarch", "-R"], environment


def entry_levels():
    """{ctest entry: level}, from the labels that enpu_test sets."""
    import json
    done = subprocess.run(["ctest", "--test-dir", str(paths.BUILD), "--show-only=json-v1"], stdout=subprocess.PIPE, check=True)
    levels = {}
    for test in json.loads(done.stdout)["tests"]:
        for prop in test.get("properties", []):
            if prop["name"] == "LABELS":
                levels[test["name"]] = prop["value"][0]
    return levels


def entry_cases(item, folder, level):
    name, status = item.get("name"), item.get("status")
    seconds = float(item.get("time") or 0)
    cases = []
    for path, read in ((folder / f"{name}.xml", results.from_junit), (folder / f"{name}.tap", results.from_tap)):
        if path.exists():
            try:
                cases = read(path.read_text(encoding="utf-8", errors="replace"), "host", level, name)
            except ET.ParseError:
                cases = []
    if status == "run" and cases:
        return cases
    if status == "run":
        return [Case("host", level, name, name, PASSED, seconds)]
    message = item.find("skipped")
    if message is not None and cases:
        return cases  # each with its own reason
    if status in ("notrun", "disabled") or message is not None:
        return [Case("host", level, name, name, SKIPPED, 0, message.get("message") if message is not None else status)]
    if not any(c.status == FAILED for c in cases):
        failure, out = item.find("failure"), item.find("system-out")
        why = (failure.get("message") if failure is not None else "") or "failed"
        tail = (out.text or "")[-1500:] if out is not None else ""
        cases.append(Case("host", level, name, "(whole program)", FAILED, seconds, f"{why}: {tail}"))
    return cases


def run_device(options, build=None, lane="device", slower=1):
    """The qtests of the QEMU glue: each talks to its own QEMU, with no guest."""
    build = build or paths.BUILD
    binaries = sorted((build / "bin").glob("qenpu-*test"))
    if not binaries:
        return [Case(lane, "device", "qtest", "qtest", SKIPPED, 0, "no qtest was built; run 'make device'")]
    qemu = build / "bin" / "qemu-system-x86_64" if slower > 1 else paths.qemu_binary()
    environment = dict(os.environ, QTEST_QEMU_BINARY=str(qemu), G_TEST_DBUS_DAEMON="", LD_LIBRARY_PATH=str(build / "lib"))
    return [case for binary in binaries if not options.name or options.name in binary.name
            for case in run_qtest(binary, environment, lane, 300 * slower)]


def run_qtest(binary, environment, lane, limit_s):
    started = time.monotonic()
    try:
        done = subprocess.run([binary, "--tap", "-k"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=limit_s, check=False, stdin=subprocess.DEVNULL)
        output, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired as e:
        output, code = (e.stdout or b"").decode(errors="replace"), 124
    seconds = time.monotonic() - started
    own = results.from_tap(output, lane, "device", binary.name)
    if not own or code and not any(c.status == FAILED for c in own):
        own.append(Case(lane, "device", binary.name, "(whole program)", FAILED, seconds,
                        f"ended with {code} after {len(own)} tests: {output[-1500:]}"))
    if any(c.status == FAILED for c in own):
        print(output[-3000:])
    print(f"  {binary.name}: {results.count(own, PASSED)} passed, {results.count(own, FAILED)} failed ({seconds:.1f} s)", flush=True)
    return own


def run_device_asan(options):
    """The qtests, then the guest lane, on the QEMU that scripts/fuzz builds with sanitizers. What they find ends QEMU."""
    from fuzzlib import device

    from .guest import run_guest
    os.environ.update(device.environment(device.SANITIZED), ENPU_QEMU=str(device.SANITIZED / "bin" / "qemu-system-x86_64"))
    cases = run_device(options, device.SANITIZED, "device-asan", slower=4)
    return cases + run_guest(options)
