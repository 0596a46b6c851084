# SPDX-License-Identifier: MIT
"""The guest lane: GUEST tests in as few guests as their devices allow. A test that hangs or crashes the guest costs only itself."""
import os
import shlex
import time
import xml.etree.ElementTree as ET

from guestlib import paths
from guestlib.cli import default_device
from guestlib.paths import GuestError
from guestlib.session import DEFAULT_DEVICE, DEVICE_ENVIRONMENT, SLOWER, Session, make_config
from guestlib.stage import module_path, read_list, stage

from . import cts, kernel_checks, results
from .hotplug import Hotplug
from .results import FAILED, PASSED, SKIPPED, Case
from .rows import Rows
from .runner_checks import run_runner

# Variables that choose what a test in the guest does, passed on from here.
PASSED_ON = ("ENPU_FAULTS", "ENPU_SEED", "ENPU_FUZZ_SECONDS", "ENPU_FUZZ_SEED")

# Catch2's exit status of a program whose cases were all skipped.
ALL_SKIPPED = 4


def selected(options, lane):
    for test in read_list()["tests"]:
        if test.get("lane", "guest") == lane and (not options.level or test["level"] in options.level) and (not options.name or options.name in test["name"]):
            yield test


def run_guest(options):
    own = run_runner() if not options.name and (not options.level or "guest" in options.level) else []
    return own + run_lane(options, "guest")


def run_lane(options, lane):
    """The tests that are registered for a lane of the guest."""
    return run_tests(list(selected(options, lane)), kunit=lane == "guest")


def run_tests(tests, kunit):
    if not tests:
        return [Case("guest", "kernel", "guest", "guest", SKIPPED, 0, "no test is registered for the guest")]
    groups = {}
    for test in tests:
        groups.setdefault((tuple(test["devices"]) or (DEFAULT_DEVICE,), test["memory"], test["no_module"]), []).append(test)
    rows = Rows()
    cases, has_device = kernel_checks.run_kunit() if kunit else [], default_device() != "none"
    for (devices, memory, no_module), members in groups.items():
        devices = [d for d in devices if d != "none"]
        if devices and not has_device:
            cases += skip_all(members, "this QEMU was built without the device; run 'make device'")
            continue
        if not (no_module or module_path().exists()):
            cases += skip_all(members, "enpu.ko is not built; run 'make kmod'")
            continue
        config = make_config(memory=memory)
        stage(config, tests=[t["name"] for t in members])
        cases += run_group(config, devices, not no_module, members, rows)
    rows.write()
    return cases


def skip_all(tests, reason):
    return [Case("guest", t["level"], t["name"], t["name"], SKIPPED, 0, reason) for t in tests]


def run_group(config, devices, module, tests, rows):
    """Runs tests in one guest; after a hang or a crash a new guest goes on with the next test."""
    cases, session = [], None
    try:
        for test in tests:
            if session is None:
                try:
                    session = Session(config, devices, "enpu.ko" if module else None)
                    kernel_checks.forget_leaks(session)
                    print(f"  guest ready in {session.seconds:.1f} s ({config.accel}; {' '.join(devices) or 'no device'})", flush=True)
                    boot = session.problems()
                    if boot:
                        cases.append(Case("guest", "kernel", "boot", "kernel log after insmod", FAILED, 0, "\n".join(boot)))
                except GuestError as e:
                    print(f"  the guest did not come up: {e}")
                    cases.append(Case("guest", test["level"], test["name"], "guest comes up", FAILED, 0, str(e)))
                    return cases
            own, usable = run_test(session, config, test, rows)
            cases += own
            if not usable:
                session.close()
                session = None
        if session:
            cases += kernel_checks.leaks(session, tests[0]["level"], ", ".join(t["name"] for t in tests))
    finally:
        if session:
            session.close()
    return cases


def script_of(test):
    lines = [DEVICE_ENVIRONMENT, f"export ENPU_TEST_FILES=/enpu/share/{test['name']}",
             f"export ENPU_SLOWER={SLOWER}"]
    variables = [tuple(pair.split("=", 1)) for pair in test["env"]]
    variables += [(name, os.environ[name]) for name in PASSED_ON if name in os.environ]
    lines += [f"export {shlex.quote(name)}={shlex.quote(value)}" for name, value in variables]
    binary = "/enpu/bin/" + test["binary"].rsplit("/", 1)[1]
    report = [] if test["plain"] else ["--reporter", "console", "--reporter", f"JUnit::out=/out/{test['name']}.xml"]
    return "\n".join(lines + ["cd /tmp", "exec " + shlex.join([binary, *test["args"], *report])])


def run_test(session, config, test, rows):
    """(cases, whether the guest can go on)."""
    name, level, started = test["name"], test["level"], time.monotonic()
    folder = paths.results() / "guest"
    folder.mkdir(parents=True, exist_ok=True)
    report = paths.pathlib.Path(config.out) / f"{name}.xml"
    report.unlink(missing_ok=True)
    report.with_name(f"{name}.cts.json").unlink(missing_ok=True)
    usable, problems, output, limit = True, [], "", test["timeout"] * SLOWER
    hotplug = Hotplug(session)
    try:
        status, output = session.run(script_of(test), limit, hotplug.take)
        output = rows.take(output)
        problems = session.problems(test["allow_log"])
        usable = not any("BUG" in p or "Oops" in p for p in problems)
    except GuestError as e:
        status, usable, output = -1, False, str(e)
    seconds = time.monotonic() - started
    for extra in paths.pathlib.Path(config.out).glob("*.json"):
        extra.replace(paths.results() / extra.name)
    (folder / f"{name}.log").write_text(output + "\n--- kernel log ---\n" + session.log_text, encoding="utf-8")
    session.log_text = ""
    own = cts.take(report.with_name(f"{name}.cts.json"), name, "guest", level) or read_cases(report, output, level, name)
    if not own and status in (0, 77):
        own = [Case("guest", level, name, name, SKIPPED if status else PASSED, seconds, output.strip()[-200:] if status else "")]
    elif status and not any(c.status == FAILED for c in own) and not only_skipped(status, own):
        why = f"killed after {limit} s" if status == 137 and seconds >= limit else f"ended with {status}"
        own.append(Case("guest", level, name, "(whole program)", FAILED, seconds, f"{why}: {output[-1500:]}"))
    if hotplug.failure:
        own.append(Case("guest", level, name, "the host does what the test asks for", FAILED, 0, hotplug.failure))
    if problems:
        own.append(Case("guest", level, name, "kernel log is clean", FAILED, 0, "\n".join(problems)))
    failed = results.count(own, FAILED)
    if failed:
        print(output[-4000:])
        for line in problems[:10]:
            print(f"    kernel: {line}")
    print(f"  {name}: {results.count(own, PASSED)} passed, {failed} failed, {results.count(own, SKIPPED)} skipped ({seconds:.1f} s)",
          flush=True)
    return own, usable


def only_skipped(status, cases):
    return status == ALL_SKIPPED and cases and all(c.status == SKIPPED for c in cases)


def read_cases(report, output, level, name):
    if report.exists():
        try:
            return results.from_junit(report.read_text(encoding="utf-8", errors="replace"), "guest", level, name)
        except ET.ParseError:
            return []
    return results.from_tap(output, "guest", level, name) if results.has_tap(output) else []
