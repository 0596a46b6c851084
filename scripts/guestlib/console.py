# SPDX-License-Identifier: MIT
"""The interactive guest: joins this terminal and the guest's console, and lets other processes run commands in it."""
import json
import os
import select
import socket
import sys
import termios
import threading
import tty

from . import paths
from .paths import GuestError

ESCAPE = b"\x1d"  # Ctrl-], as telnet


def control_path():
    return paths.BUILD / "guest" / "control"


class ControlServer:
    """Serves 'guest exec' of other terminals on a socket in the build folder, one command at a time."""

    def __init__(self, session):
        self.session = session
        self.path = control_path()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(str(self.path))
        self.sock.listen(1)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                peer, _ = self.sock.accept()
            except OSError:
                return
            with peer, peer.makefile("rwb") as stream:
                try:
                    request = json.loads(stream.readline())
                    status, output = self.session.run(request["script"], request["timeout"])
                except (GuestError, OSError, ValueError, KeyError) as e:
                    status, output = 125, str(e)
                stream.write(json.dumps({"status": status, "output": output}).encode() + b"\n")

    def close(self):
        self.sock.close()
        self.path.unlink(missing_ok=True)


def execute(script, timeout_s):
    """Runs a script in the guest that another terminal has open; (status, output)."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(timeout_s + 30)
    try:
        sock.connect(str(control_path()))
    except OSError as e:
        raise GuestError("no guest is running here; start one with 'make guest' in another terminal") from e
    with sock, sock.makefile("rwb") as stream:
        stream.write(json.dumps({"script": script, "timeout": timeout_s}).encode() + b"\n")
        stream.flush()
        line = stream.readline()
    if not line:
        raise GuestError("the running guest ended")
    answer = json.loads(line)
    return answer["status"], answer["output"]


def attach(session):
    """Joins stdin/stdout and the guest's console until Ctrl-], end of input, or the end of the guest."""
    machine, console = session.machine, session.machine.console
    server = ControlServer(session)
    fd = sys.stdin.fileno()
    saved = termios.tcgetattr(fd) if os.isatty(fd) else None
    try:
        if saved:
            tty.setraw(fd)
        console.sendall(b"\n")
        sources = [fd, console, machine.serial]
        while machine.alive():
            ready, _, _ = select.select(sources, [], [], 0.5)
            if machine.serial in ready:
                before = len(machine.serial_log)
                machine.drain_serial()
                os.write(2, machine.serial_log[before:].replace(b"\n", b"\r\n") if saved else machine.serial_log[before:])
                if len(machine.serial_log) == before:
                    sources.remove(machine.serial)
            if console in ready:
                data = console.recv(65536)
                if not data:
                    break
                os.write(1, data)
            if fd in ready:
                data = os.read(fd, 4096)
                if not data or ESCAPE in data:
                    break
                console.sendall(data)
    finally:
        server.close()
        if saved:
            termios.tcsetattr(fd, termios.TCSADRAIN, saved)
            print()
