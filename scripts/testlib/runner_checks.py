# SPDX-License-Identifier: MIT
"""The guest runner itself: a guest ends with the program that started it, however that one ends."""
import os
import pathlib
import signal
import subprocess
import sys
import time

from guestlib import paths

from .results import FAILED, PASSED, Case

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
    return [ends(name, number) for name, number in (("is asked to end", signal.SIGTERM), ("is killed", signal.SIGKILL))]


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
