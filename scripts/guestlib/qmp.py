# SPDX-License-Identifier: MIT
"""QEMU's monitor protocol over a socket that we listen on."""
import json
import socket
import time

from .paths import GuestError


class Qmp:
    def __init__(self, listener, deadline_s=10):
        listener.settimeout(deadline_s)
        try:
            self.sock, _ = listener.accept()
        except TimeoutError as e:
            raise GuestError(f"QEMU did not open its monitor within {deadline_s} s") from e
        self.buffer = b""
        self.events = []
        self._read(deadline_s)
        self.command("qmp_capabilities")

    def _read(self, deadline_s):
        """The next message; raises GuestError when QEMU is gone or silent."""
        end = time.monotonic() + deadline_s
        while b"\n" not in self.buffer:
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            try:
                data = self.sock.recv(65536)
            except (TimeoutError, socket.timeout) as e:
                raise GuestError(f"QEMU's monitor did not answer within {deadline_s} s") from e
            except OSError as e:
                raise GuestError(f"QEMU's monitor broke off: {e}") from e
            if not data:
                raise GuestError("QEMU ended")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def command(self, name, deadline_s=15, **arguments):
        self.sock.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        while True:
            message = self._read(deadline_s)
            if "return" in message:
                return message["return"]
            if "error" in message:
                raise GuestError(f"QEMU refused {name} {arguments or ''}: {message['error']['desc']}")
            self.events.append(message)

    def hmp(self, line):
        """A command of the human monitor; returns its text."""
        return self.command("human-monitor-command", **{"command-line": line})

    def device_add(self, text):
        """device_add with the syntax of -device: 'enpu,cores=2,local-mem=256M'."""
        answer = self.hmp(f"device_add {text}").strip()
        if answer:
            raise GuestError(f"the device '{text}' could not be added: {answer}")

    def wait_status(self, wanted, deadline_s):
        end = time.monotonic() + deadline_s
        while True:
            status = self.command("query-status")["status"]
            if status in wanted:
                return status
            if time.monotonic() > end:
                raise GuestError(f"QEMU is still '{status}' after {deadline_s} s, wanted {'/'.join(wanted)}")
            time.sleep(0.02)

    def migrate(self, path, deadline_s=60):
        self.command("migrate", uri=f"file:{path}")
        end = time.monotonic() + deadline_s
        while True:
            state = self.command("query-migrate").get("status")
            if state == "completed":
                return
            if state in ("failed", "cancelled") or time.monotonic() > end:
                raise GuestError(f"the snapshot could not be written to {path}: {state}")
            time.sleep(0.02)
