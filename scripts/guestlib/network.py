# SPDX-License-Identifier: MIT
"""A wire between two guests: a network card in each, joined by a Unix socket of the host. It leads nowhere else, and there is no card in
a guest that did not ask for one: it is plugged in after the start, so that snapshots stay what they are."""
from dataclasses import dataclass

from .machine import SLOTS
from .paths import GuestError

HOSTS = {"listen": 1, "connect": 2}  # number of each end in its addresses
APPEAR_S = 10


def address(end):
    return f"10.0.0.{HOSTS[end]}"


@dataclass(frozen=True)
class Wire:
    """One end. The end that listens outlives the other; `path` is that of the socket."""
    end: str
    path: str

    @classmethod
    def parse(cls, text):
        """'listen=PATH' or 'connect=PATH'."""
        end, _, path = text.partition("=")
        if end not in HOSTS or not path:
            raise GuestError(f"a network is 'listen=PATH' or 'connect=PATH', not '{text}'")
        return cls(end, path)

    @property
    def address(self):
        return address(self.end)

    @property
    def other(self):
        return address("connect" if self.end == "listen" else "listen")


def plug(machine, wire):
    """Gives a machine that runs its card, in the last slot, so that NPUs take the first ones."""
    again = {} if wire.end == "listen" else {"reconnect-ms": 500}
    machine.qmp.command("netdev_add", type="stream", id="net", server=wire.end == "listen", addr={"type": "unix", "path": wire.path}, **again)
    # Nobody boots from it: no ROM.
    machine.qmp.device_add(f"virtio-net-pci,netdev=net,id=card,bus=slot{SLOTS - 1},mac=52:54:00:00:00:{HOSTS[wire.end]:02x},romfile=")


def configure(agent, wire, slower):
    """Loads the driver, which no other guest does, and gives the card its fixed address. The end that connects waits for the other."""
    def until(what, sentence):
        return (f"end=$(($(cut -d. -f1 /proc/uptime) + {APPEAR_S * slower})); until {what}; do [ $(cut -d. -f1 /proc/uptime) -lt $end ] || "
                f"{{ echo '{sentence}'; exit 1; }}; sleep 0.05; done\n")

    # The card knows nothing of the other end, so it is asked.
    answer = until(f"ping -c 1 -W 1 {wire.other} >/dev/null", f"no guest listens at {wire.path}") if wire.end == "connect" else ""
    status, output = agent.run("[ -s /modules/network ] || { echo 'this kernel has no driver of the network card (virtio_net)'; exit 1; }\n"
                               'while read -r module; do insmod "/modules/$module" || exit 1; done </modules/network\n'
                               + until("[ -e /sys/class/net/eth0 ]", "the network card did not appear")
                               + f"ip addr add {wire.address}/24 dev eth0 && ip link set eth0 up || exit 1\n" + answer, (2 * APPEAR_S + 20) * slower)
    if status:
        raise GuestError(f"the network card of {wire.address}: {output.strip() or status}")
