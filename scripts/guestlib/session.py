# SPDX-License-Identifier: MIT
"""A guest that is ready to run commands: from a snapshot where there is one, booted where not."""
import fcntl
import hashlib
import os
import pathlib
import re
import subprocess
import time

from . import kernel_log, network, paths
from .agent import Agent, Hang
from .machine import Config, Machine, command_line
from .paths import GuestError, say

READY_S = 90  # cold boot on a busy machine without KVM
# The sanitizer kernel does all that the others do, several times slower, and keeps shadow memory and freed memory.
# On a machine that is busy with other things, ENPU_PATIENCE=N makes every deadline of and in a guest N times as long.
SLOWER = (5 if paths.VARIANT == "debug" else 1) * max(1, int(os.environ.get("ENPU_PATIENCE", "1")))
DEBUG_MEMORY = {"1G": "2G"}
# Where programs in the guest find libraries and the device. The first device there is: a program before may have removed it and found it
# again under the next name.
DEVICE_ENVIRONMENT = ('for d in /dev/accel/accel*; do break; done; [ -e "$d" ] || d=/dev/accel/accel0; '
                      "export LD_LIBRARY_PATH=/enpu/lib ENPU_DEVICE=$d")

DEFAULT_DEVICE = "enpu,cores=2,threads=1,local-mem=256M"


def snapshot_path(config):
    """Depends on all that the guest's memory depends on; the shares are mounted after the restore and do not count."""
    neutral = Config(**{**config.__dict__, "share": "S", "out": "O", "gdb": False})
    key = hashlib.sha256()
    for part in (paths.file_hash(config.kernel), paths.file_hash(config.initrd), paths.file_hash(paths.qemu_binary()),
                 *command_line(neutral, "R")):
        key.update(part.encode() + b"\0")
    return paths.CACHE / "snapshots" / key.hexdigest()[:20]


def forget_old_snapshots(keep, limit=12):
    """Each build of QEMU leaves a snapshot behind; the oldest go."""
    files = sorted((p for p in keep.parent.iterdir() if p.suffix != ".lock"), key=lambda p: p.stat().st_mtime)
    for path in files[:-limit]:
        path.unlink(missing_ok=True)


class Session:
    """Machine + agent; with a wire (network.Wire) joined to another guest. Attributes: seconds (to the first command), from_snapshot,
    devices (id: what device_add takes)."""

    def __init__(self, config, devices=(), module=None, use_snapshot=True, wire=None):
        started = time.monotonic()
        self.config = config
        self.machine = None
        self.devices = {}
        self.log_text = ""
        try:
            try:
                self.from_snapshot = self._start(use_snapshot)
                self._prepare(devices)
                if wire:
                    network.plug(self.machine, wire)
                    network.configure(self.agent, wire, SLOWER)
                if module:
                    self.load_module(module)
            except Hang as e:
                raise GuestError(f"{e}\n{self.diagnosis()}") from e
        except BaseException:
            self.close()
            raise
        self.seconds = time.monotonic() - started

    def _start(self, use_snapshot):
        if not use_snapshot:
            self._boot()
            return False
        path = snapshot_path(self.config)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            with open(f"{path}.lock", "w", encoding="ascii") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not path.exists():
                    self._boot_and_save(path)
                    return False
        self.machine = Machine(self.config, incoming=path)
        os.utime(path)
        self.agent = Agent(self.machine)
        self.machine.qmp.wait_status(("running",), 20 * SLOWER)
        return True

    def _boot(self):
        self.machine = Machine(self.config)
        self.agent = Agent(self.machine)
        self.agent.wait_ready(READY_S * SLOWER)

    def _boot_and_save(self, path):
        say("booting the guest once for the snapshot (some seconds without KVM)")
        self._boot()
        problems = kernel_log.findings(self.agent.check("dmesg -r -c"))
        if problems:
            say("the kernel's boot log holds: " + "; ".join(problems[:3]))
        part = pathlib.Path(f"{path}.{os.getpid()}")
        self.machine.qmp.migrate(part)
        part.rename(path)
        forget_old_snapshots(path)
        self.machine.qmp.command("cont")

    def _prepare(self, devices):
        options = "trans=virtio,version=9p2000.L,msize=512000"
        for n, device in enumerate(devices):
            extra = "" if "bus=" in device else f",bus=slot{n}"
            extra += "" if "id=" in device else f",id=npu{n}"
            self.machine.qmp.device_add(device + extra)
            self.devices[re.search(r",id=([^,]+)", device + extra).group(1)] = device + extra
        self.agent.check(f"date -s @{int(time.time())} >/dev/null\n"
                         f"mount -t 9p -o ro,cache=mmap,{options} share /enpu\n"
                         f"mount -t 9p -o cache=none,{options} out /out\n", 30 * SLOWER)
        npus = sum(1 for d in devices if d.split(",")[0] == "enpu")
        if npus:
            self.agent.check(
                f"n=0; until [ $(cat /sys/bus/pci/devices/*/class | grep -c 0x1200) -ge {npus} ]; do n=$((n+1)); "
                f"[ $n -lt {200 * SLOWER} ] || {{ echo 'the device did not appear on the PCI bus'; exit 1; }}; sleep 0.05; done", 30 * SLOWER)

    def load_module(self, module):
        self.agent.check(f"insmod /enpu/{module}", 20 * SLOWER)
        self.agent.check(f"n=0; until [ -e /dev/accel/accel0 ]; do n=$((n+1)); [ $n -lt {100 * SLOWER} ] || "
                         "{ echo 'enpu.ko made no /dev/accel/accel0'; dmesg | tail -n 20; exit 1; }; sleep 0.05; done", 30 * SLOWER)

    def run(self, script, timeout_s=60, on_output=None):
        """(status, output); a hang raises GuestError with a diagnosis."""
        try:
            return self.agent.run(script, timeout_s, on_output)
        except Hang as e:
            raise GuestError(f"{e}\n{self.diagnosis()}") from e

    def take_kernel_log(self):
        """The raw kernel log since the last call."""
        log = self.agent.check("dmesg -r -c")
        self.log_text += log
        return log

    def problems(self, allowed=()):
        return kernel_log.findings(self.take_kernel_log(), allowed)

    def diagnosis(self):
        """What a hung guest can still tell: VM state, where the vCPUs are, blocked and all tasks, last console lines."""
        parts = []
        machine = self.machine
        try:
            parts.append(f"VM status: {machine.qmp.command('query-status')}")
            for cpu in range(self.config.smp):
                machine.qmp.hmp(f"cpu {cpu}")
                registers = machine.qmp.hmp("info registers")
                parts += [f"cpu{cpu}: {line}" for line in registers.splitlines() if "RIP" in line]
            for key in (b"8", b"w", b"t"):  # 8: everything goes to the console
                self._sysrq(key)
        except (GuestError, OSError) as e:
            parts.append(f"the monitor tells no more: {e}")
        console = machine.drain_serial()
        folder = paths.results()
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"hang-{time.strftime('%H%M%S')}-{os.getpid()}.txt"
        path.write_text("\n".join(parts) + "\n" + console, encoding="utf-8")
        blocked = [line for line in console.splitlines() if line.strip()]
        return "\n".join(parts + blocked[-15:] + [f"the whole diagnosis: {path}"])

    def _sysrq(self, key, limit_s=8):
        """The kernel's emergency key over the serial line; waits until the console has been still for a second."""
        machine = self.machine
        machine.qmp.command("chardev-send-break", id="serial")
        time.sleep(0.1)
        machine.serial.setblocking(True)
        machine.serial.settimeout(2)
        machine.serial.sendall(key)
        machine.serial.setblocking(False)
        end, still, size = time.monotonic() + limit_s, time.monotonic(), 0
        while time.monotonic() < end and time.monotonic() - still < 1:
            machine.drain_serial()
            if len(machine.serial_log) != size:
                still, size = time.monotonic(), len(machine.serial_log)
            time.sleep(0.05)

    def close(self):
        if self.machine:
            self.machine.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def make_config(**options):
    """A Config with the chosen kernel, our initramfs and the accelerator that works here."""
    kernel = paths.guest_kernel()
    if paths.VARIANT == "debug":
        options["memory"] = DEBUG_MEMORY.get(options.get("memory", "1G"), options.get("memory"))
    config = Config(kernel=kernel["KERNEL_VMLINUX"], initrd=str(paths.initramfs(kernel)), **options)
    for name, folder in (("share", paths.of_variant("root")), ("out", paths.of_variant("out"))):
        path = pathlib.Path(getattr(config, name) or paths.BUILD / "guest" / folder)
        path.mkdir(parents=True, exist_ok=True)
        setattr(config, name, str(path))
    config.accel = choose_accel(config)
    return config


def choose_accel(config):
    """kvm only when a guest really came up with it on this boot of the host: a /dev/kvm that opens may still not run it."""
    forced = os.environ.get("ENPU_ACCEL")
    if forced in ("kvm", "tcg"):
        return forced
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    memo = paths.CACHE / f"accel-{boot}"
    if memo.exists():
        return memo.read_text(encoding="ascii")
    accel = "kvm" if _kvm_boots(config) else "tcg"
    for old in paths.CACHE.glob("accel-*"):
        old.unlink(missing_ok=True)
    memo.write_text(accel, encoding="ascii")
    say("KVM works here" if accel == "kvm" else "/dev/kvm is here but a trial boot failed: using TCG (slow, but it works)")
    return accel


def _kvm_boots(config):
    try:
        with Machine(Config(**{**config.__dict__, "accel": "kvm"})) as machine:
            Agent(machine).wait_ready(8)
            return True
    except (GuestError, OSError, subprocess.SubprocessError):
        return False
