# SPDX-License-Identifier: MIT
"""What a sanitizer kernel tells besides its log: KUnit results, memory that leaked. Nothing on kernels without."""
import re

from guestlib import kernel_log
from guestlib.paths import GuestError
from guestlib.session import Session, make_config
from guestlib.stage import module_path, stage

from .results import FAILED, PASSED, SKIPPED, Case

KMEMLEAK = "/sys/kernel/debug/kmemleak"
CASE = re.compile(r"^    (not )?ok \d+ (\S+)(?: # SKIP ?(.*))?$")
# An object counts as leaked when it is older than 5 s and two scans found no pointer to it.
SCAN = f"echo scan >{KMEMLEAK}; sleep 6; echo scan >{KMEMLEAK}; cat {KMEMLEAK}"


def run_kunit():
    """The cases of enpu_kunit.ko, which is built for kernels that have KUnit."""
    if not module_path().with_name("enpu_kunit.ko").exists():
        return []
    config = make_config()
    stage(config, tests=[])
    try:
        with Session(config) as session:
            session.agent.check("insmod /enpu/enpu_kunit.ko", 120)
            return read_ktap(session.take_kernel_log())
    except GuestError as e:
        return [Case("guest", "kernel", "kunit", "enpu_kunit.ko", FAILED, 0, str(e))]


def read_ktap(log):
    """Cases of a raw kernel log; alarms in it fail a case of their own."""
    cases, notes = [], []
    for _, text in kernel_log.parse(log):
        match = CASE.match(text)
        if not match:
            notes.append(text.strip())
            continue
        status = FAILED if match.group(1) else SKIPPED if match.group(3) is not None else PASSED
        cases.append(Case("guest", "kernel", "kunit", match.group(2), status, 0,
                          "\n".join(notes[-20:]) if status == FAILED else match.group(3) or ""))
        notes = []
    if not cases:
        cases.append(Case("guest", "kernel", "kunit", "enpu_kunit.ko", FAILED, 0, "it printed no result"))
    if problems := kernel_log.findings(log):
        cases.append(Case("guest", "kernel", "kunit", "kernel log is clean", FAILED, 0, "\n".join(problems)))
    print(f"  kunit: {sum(c.status == PASSED for c in cases)} passed, {sum(c.status == FAILED for c in cases)} failed", flush=True)
    return cases


def forget_leaks(session):
    """What the boot left behind is not ours."""
    session.run(f"[ ! -e {KMEMLEAK} ] || {{ echo scan >{KMEMLEAK}; echo clear >{KMEMLEAK}; }}", 300)


def leaks(session, level, names):
    """One case: nothing that the kernel allocated since forget_leaks is lost. The module goes first, with all it holds."""
    if session.run(f"[ -e {KMEMLEAK} ]")[0]:
        return []
    try:
        session.run("! grep -q ^enpu /proc/modules || rmmod enpu", 60)
        status, text = session.run(SCAN, 600)
        problems = session.problems(("kmemleak: \\d+ new",))
    except GuestError as e:
        status, text, problems = 1, str(e), []
    case = Case("guest", level, "kmemleak", f"no memory leaks after {names}", PASSED)
    if status or text.strip() or problems:
        case.status, case.reason = FAILED, (text.strip() + "\n" + "\n".join(problems))[:6000]
        print(f"  kmemleak: {case.reason}")
    return [case]
