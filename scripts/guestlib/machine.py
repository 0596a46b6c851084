# SPDX-License-Identifier: MIT
"""One QEMU process: command line, sockets, start, death."""
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

from . import paths
from .paths import GuestError
from .qmp import Qmp

SLOTS = 3  # empty PCIe root ports, one a hot-added device
# no_timer_check: on a busy machine an emulated timer may miss the moment in which the kernel tries it at boot, which is a panic.
KERNEL_ARGS = ("console=ttyS0 quiet loglevel=4 nokaslr tsc=reliable no_timer_check panic=-1 oops=panic sysrq_always_enabled "
               "rcupdate.rcu_cpu_stall_timeout=60 mitigations=off random.trust_cpu=on rdinit=/init")


@dataclass
class Config:
    """What the guest is made of. Everything here but share, out and gdb is part of the snapshot's key."""
    memory: str = "1G"
    smp: int = 2
    accel: str = "tcg"
    append: str = ""
    qemu_args: list = field(default_factory=list)
    kernel: str = ""
    initrd: str = ""
    share: str = ""
    out: str = ""
    gdb: bool = False


def command_line(config, run_dir):
    """QEMU's arguments. The order and set of devices never depend on a run, so that snapshots fit."""
    # An AMD processor of 40 address bits, which TCG's is, has its HyperTransport hole at the very place where newer firmware
    # puts 64-bit windows: the slots would get no room.
    accel = (["-accel", "kvm", "-cpu", "host"] if config.accel == "kvm" else
             ["-accel", "tcg,thread=multi", "-cpu", "max,vendor=GenuineIntel"])
    args = [*accel, "-machine", "q35", "-m", config.memory, "-smp", str(config.smp), "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-kernel", config.kernel, "-initrd", config.initrd,
            "-append", f"{KERNEL_ARGS} {config.append}".strip()]
    for name in ("/usr/share/seabios", "/usr/share/qemu"):
        args += ["-L", name]
    args += ["-chardev", f"socket,id=mon,path={run_dir}/qmp,server=off", "-mon", "chardev=mon,mode=control",
             "-chardev", f"socket,id=serial,path={run_dir}/serial,server=off", "-serial", "chardev:serial",
             "-device", "virtio-serial-pci",
             "-chardev", f"socket,id=agent,path={run_dir}/agent,server=off",
             "-device", "virtserialport,chardev=agent,name=enpu.agent",
             "-chardev", f"socket,id=console,path={run_dir}/console,server=off",
             "-device", "virtconsole,chardev=console",
             "-fsdev", f"local,id=share,path={config.share},security_model=none,readonly=on,multidevs=remap",
             "-device", "virtio-9p-pci,fsdev=share,mount_tag=share",
             "-fsdev", f"local,id=out,path={config.out},security_model=none,multidevs=remap",
             "-device", "virtio-9p-pci,fsdev=out,mount_tag=out"]
    for n in range(SLOTS):
        # Room for the device's memory bar, which the firmware reserves before the device is there.
        args += ["-device", f"pcie-root-port,id=slot{n},chassis={n + 1},slot={n + 1},pref64-reserve=2G"]
    return args + list(config.qemu_args)


def end_by_exit(number, _):
    """A signal that asks us to end runs the 'with' blocks out, as any other end does."""
    sys.exit(128 + number)


class Machine:
    """A running QEMU. Always used with 'with' or close()d; the process never outlives it, nor the thread that started it."""

    def __init__(self, config, incoming=None):
        self.config = config
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="enpu-guest."))
        self.process = None
        listeners = {name: self._listen(name) for name in ("qmp", "serial", "agent", "console")}
        try:
            self._start(incoming)
            self.qmp = self._checked(lambda: Qmp(listeners["qmp"]))
            self.serial, self.agent, self.console = (self._accept(listeners[n]) for n in ("serial", "agent", "console"))
        except BaseException:
            self.close()
            raise
        finally:
            for listener in listeners.values():
                listener.close()
        self.serial.setblocking(False)
        self.serial_log = b""

    def _listen(self, name):
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(self.dir / name))
        sock.listen(1)
        return sock

    def _start(self, incoming):
        args = [str(paths.qemu_binary()), *command_line(self.config, self.dir)]
        if incoming:
            args += ["-incoming", f"file:{incoming}"]
        if self.config.gdb:
            args += ["-s", "-S"]
        self.errors = open(self.dir / "stderr", "w+", encoding="utf-8", errors="replace")
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, end_by_exit)
        # The kernel ends QEMU where we are killed and can close nothing; a test of the guest lane sees it.
        self.process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *args], stdin=subprocess.DEVNULL,
                                        stdout=self.errors, stderr=self.errors, start_new_session=True)

    def _accept(self, listener):
        def accept():
            listener.settimeout(10)
            return listener.accept()[0]
        return self._checked(accept)

    def _checked(self, action):
        try:
            return action()
        except (GuestError, OSError) as e:
            time.sleep(0.1)
            code = self.process.poll()
            if code is None:
                raise
            raise GuestError(f"QEMU ended at once with code {code}: {self.stderr().strip()[-2000:]}") from e

    def stderr(self):
        self.errors.flush()
        return (self.dir / "stderr").read_text(encoding="utf-8", errors="replace")

    def drain_serial(self):
        """Collects what the kernel printed to the serial console; returns all of it so far."""
        try:
            while data := self.serial.recv(65536):
                self.serial_log += data
        except (BlockingIOError, OSError):
            pass
        return self.serial_log.decode(errors="replace")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def close(self):
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(5)
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
