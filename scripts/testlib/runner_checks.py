# SPDX-License-Identifier: MIT
"""The guest runner itself: a guest ends with the program that started it, however that one ends; a wire joins two guests."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from guestlib import kernel_log, paths
from guestlib.network import Wire
from guestlib.paths import GuestError
from guestlib.session import SLOWER, Session, make_config

from .results import FAILED, PASSED, SKIPPED, Case

# Starts a guest, says where it is, then waits to be ended from outside.
PROGRAM = """
import time
from guestlib.machine import Machine
from guestlib.session import make_config
with Machine(make_config()) as machine:
    print(machine.process.pid, machine.dir, flush=True)
    time.sleep(60)
"""
LIMIT_S = 10


def run_runner():
    return [ends(name, number) for name, number in (("is asked to end", signal.SIGTERM), ("is killed", signal.SIGKILL))] + [wired()]


def running(pid):
    """Whether a process still runs; one that has ended may wait for its parent."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def ends(name, number):
    case = Case("guest", "guest", "runner", f"a guest ends when its runner {name}", PASSED)
    started = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": str(paths.ROOT / "scripts")}) as program:
        pid, _, folder = program.stdout.readline().strip().partition(" ")
        program.send_signal(number)
        try:
            program.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            program.kill()
            case.status, case.reason = FAILED, f"the runner itself still ran {LIMIT_S} s after signal {number}"
            return case
    if not pid:
        case.status, case.reason = FAILED, "the guest did not start"
        return case
    deadline = time.monotonic() + LIMIT_S
    while running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    if running(pid):
        os.kill(int(pid), signal.SIGKILL)
        case.status, case.reason = FAILED, f"QEMU still ran {LIMIT_S} s after its runner had ended"
    elif number == signal.SIGTERM and pathlib.Path(folder).exists():
        case.status, case.reason = FAILED, f"the runner left {folder} behind"
    case.seconds = time.monotonic() - started
    return case


def wired():
    """Two guests reach each other; a guest without a wire has no card; where one is killed the other stays well."""
    case, started = Case("guest", "guest", "runner", "a wire joins two guests", PASSED), time.monotonic()
    if paths.VARIANT == "debug":
        case.status, case.reason = SKIPPED, "the sanitizer kernel is built without a driver of the network card (virtio_net)"
        return case
    try:
        with tempfile.TemporaryDirectory(prefix="enpu-wire.") as folder:
            join(Wire("listen", f"{folder}/wire"), Wire("connect", f"{folder}/wire"))
    except GuestError as e:
        case.status, case.reason = FAILED, str(e)
    case.seconds = time.monotonic() - started
    return case


def join(one, two):
    with Session(make_config()) as alone:
        cards = alone.agent.check("ls /sys/class/net").split()
        if cards != ["lo"]:
            raise GuestError(f"a guest without a wire has {cards}")
    with Session(make_config(), wire=one) as first, Session(make_config(), wire=two) as second:
        for session, other in ((first, one.other), (second, two.other)):
            session.agent.check(f"ping -c 1 -W {10 * SLOWER} {other}", 15 * SLOWER)
        second.machine.process.kill()
        first.agent.check(f"ping -c 1 -W 1 {one.other} && exit 1 || exit 0", 15 * SLOWER)
        problems = first.problems() + kernel_log.findings(second.machine.drain_serial())
        if problems:
            raise GuestError("; ".join(problems))
