# SPDX-License-Identifier: MIT
"""Runs commands in the guest through its agent (scripts/image.d/agent)."""
import base64
import secrets
import select
import time

from .paths import GuestError

GRACE_S = 8  # the guest kills its command itself; only when that fails the host gives up


class Hang(GuestError):
    """The guest did not end a command although its own deadline has passed."""


def label(script):
    """The line of a script that names it best: its last."""
    return (script.strip().splitlines() or [""])[-1][:120]


class Agent:
    def __init__(self, machine):
        self.machine = machine
        self.sock = machine.agent
        self.buffer = b""

    def wait_ready(self, deadline_s):
        self._until(b"ready", time.monotonic() + deadline_s, None, "boot")

    def run(self, script, timeout_s=60, on_output=None):
        """Runs a shell script; returns (exit status, output). on_output gets each piece of bytes as it comes."""
        nonce = secrets.token_hex(6)
        line = f"{nonce} {int(timeout_s) + 1} {base64.b64encode(script.encode()).decode()}\n"
        self.sock.setblocking(True)
        self.sock.settimeout(10)
        self.sock.sendall(line.encode())
        return self._until(nonce.encode(), time.monotonic() + timeout_s + GRACE_S, on_output, script)

    def check(self, script, timeout_s=30):
        """Like run, but a failure is an error."""
        status, output = self.run(script, timeout_s)
        if status:
            raise GuestError(f"in the guest, '{script.strip()}' failed with {status}: {output.strip()}")
        return output

    def _until(self, nonce, end, on_output, what):
        """Reads up to the line "\\001NONCE STATUS"; passes on what comes before it."""
        mark, output = b"\x01" + nonce + b" ", []

        def emit(data):
            if data:
                output.append(data)
                if on_output:
                    on_output(data)

        while True:
            at = self.buffer.find(mark)
            if at >= 0 and b"\n" in self.buffer[at:]:
                emit(self.buffer[:at])
                line, self.buffer = self.buffer[at + len(mark):].split(b"\n", 1)
                return int(line), b"".join(output).decode(errors="replace")
            keep = self.buffer.rfind(b"\x01") if at < 0 else at
            if keep < 0 or len(self.buffer) - keep > 64:
                keep = len(self.buffer)
            emit(self.buffer[:keep])
            self.buffer = self.buffer[keep:]
            self._receive(end, what)

    def _receive(self, end, what):
        left = end - time.monotonic()
        if left <= 0:
            raise Hang(f"the guest did not finish '{label(what)}' in time")
        ready, _, _ = select.select([self.sock, self.machine.serial], [], [], min(left, 1.0))
        if self.machine.serial in ready:
            self.machine.drain_serial()
        if self.sock in ready:
            data = self.sock.recv(65536)
            if not data:
                raise self._gone(what)
            self.buffer += data
        elif not self.machine.alive():
            raise self._gone(what)

    def _gone(self, what):
        time.sleep(0.2)
        lines = self.machine.drain_serial().splitlines()[-40:]
        errors = self.machine.stderr().strip()[-1500:]
        return GuestError(f"the guest ended during '{label(what)}'\n" + "\n".join(lines) + (f"\nQEMU: {errors}" if errors else ""))
