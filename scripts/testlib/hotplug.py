# SPDX-License-Identifier: MIT
"""What a test in the guest cannot do from inside: pull the device out and put it back, as the machine's owner would. The test prints
"@host unplug ID" or "@host plug ID" as a line of its own; ID is that of a device that this guest was given."""
import re
import time

from guestlib.paths import GuestError

REQUEST = re.compile(rb"^@host (unplug|plug) (\S+)\s*$", re.MULTILINE)
GONE_S = 60


class Hotplug:
    def __init__(self, session):
        self.session = session
        self.seen = b""
        self.failure = ""

    def take(self, data):
        """Gets the output as it comes, and does what whole lines of it ask for."""
        self.seen += data
        end = self.seen.rfind(b"\n") + 1
        lines, self.seen = self.seen[:end], self.seen[end:]
        for action, name in REQUEST.findall(lines):
            try:
                self._do(action.decode(), name.decode())
            except GuestError as e:
                self.failure = str(e)

    def _do(self, action, name):
        device = self.session.devices.get(name)
        if device is None:
            raise GuestError(f"the test asked for '{action} {name}', but this guest has {', '.join(self.session.devices) or 'no device'}")
        qmp = self.session.machine.qmp
        if action == "unplug":
            qmp.command("device_del", id=name)
            return
        # The guest has seen it go a moment before QEMU is done with it.
        end = time.monotonic() + GONE_S
        while any(child["name"] == name for child in qmp.command("qom-list", path="/machine/peripheral")):
            if time.monotonic() > end:
                raise GuestError(f"{name} is still there {GONE_S} s after the test asked to plug it in again")
            time.sleep(0.1)
        qmp.device_add(device)
