# SPDX-License-Identifier: MIT
"""scripts/guest: the command line."""
import argparse
import os
import pathlib
import shlex
import subprocess
import sys

from . import console, debug, paths
from .network import Wire, address
from .paths import GuestError, say
from .session import DEFAULT_DEVICE, DEVICE_ENVIRONMENT, Session, make_config
from .stage import module_path, stage, stage_module

LOG_PROBLEM = 70
HANG = 124


def wire(text):
    try:
        return Wire.parse(text)
    except GuestError as e:
        raise argparse.ArgumentTypeError(str(e)) from e


def parser():
    top = argparse.ArgumentParser(prog="scripts/guest", description="Boots a QEMU guest with the NPU and runs things in it.")
    commands = top.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--device", action="append", help=f"a -device argument, repeatable; default {DEFAULT_DEVICE}, 'none' for none")
    common.add_argument("--qemu-arg", action="append", default=[], help="one more QEMU argument, repeatable: --qemu-arg=-trace --qemu-arg=enpu*")
    common.add_argument("--append", default="", help="more kernel command line")
    common.add_argument("--memory", default="1G")
    common.add_argument("--smp", type=int, default=2)
    common.add_argument("--network", type=wire, metavar="END=PATH",
                        help=f"a network card, joined to that of another guest by a socket at PATH: listen=PATH is {address('listen')}, "
                        f"connect=PATH {address('connect')}")
    common.add_argument("--no-module", action="store_true", help="do not insmod enpu.ko")
    common.add_argument("--cold", action="store_true", help="boot, without a snapshot")
    run = commands.add_parser("run", parents=[common], help="run a command; its output and exit status come back")
    run.add_argument("--timeout", type=float, default=60, help="seconds the command may take")
    run.add_argument("--allow-log", action="append", default=[], help="a kernel message that is expected, a regular expression")
    run.add_argument("script", nargs="+", help="-- COMMAND ARGS… (one argument is taken as a shell script)")
    shell = commands.add_parser("shell", parents=[common], help="an interactive shell; Ctrl-] leaves")
    shell.add_argument("--gdb", action="store_true", help="wait for gdb on port 1234 before the shell runs")
    execute = commands.add_parser("exec", help="run a command in the guest that 'shell' has open")
    execute.add_argument("--timeout", type=float, default=60)
    execute.add_argument("script", nargs="+")
    commands.add_parser("reload", help="rebuild enpu.ko and load it into the guest that 'shell' has open")
    commands.add_parser("stage", help="fill the guest's share only")
    return top


def joined(words):
    return words[0] if len(words) == 1 else shlex.join(words)


def open_session(args, module):
    config = make_config(memory=args.memory, smp=args.smp, append=args.append, qemu_args=args.qemu_arg)
    stage(config)
    devices = [d for d in (args.device or [default_device()]) if d != "none"]
    wants_module = module and not args.no_module and any(d.split(",")[0] == "enpu" for d in devices)
    if wants_module and not module_path().exists():
        raise GuestError("enpu.ko is not built; run 'make kmod', or use --no-module")
    session = Session(config, devices, "enpu.ko" if wants_module else None, not args.cold, args.network)
    say(f"{'restored' if session.from_snapshot else 'booted'} in {session.seconds:.1f} s ({config.accel})")
    return session


def default_device():
    """The NPU, or none when this QEMU was built before the device's glue."""
    listed = subprocess.run([paths.qemu_binary(), "-device", "help"], stdout=subprocess.PIPE, text=True, check=False).stdout
    return DEFAULT_DEVICE if 'name "enpu"' in listed else "none"


def command_run(args):
    def show(data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    with open_session(args, module=True) as session:
        status, _ = session.run(ENVIRONMENT + joined(args.script), args.timeout, show)
        problems = session.problems(args.allow_log)
    keep_report(session.config)
    if problems:
        say("the kernel log holds what it must not:")
        for line in problems:
            print("    " + line, file=sys.stderr)
        return status or LOG_PROBLEM
    return status


def keep_report(config):
    """A bring-up leaves its report where the host looks for it."""
    report = pathlib.Path(config.out) / "bringup.json"
    if report.exists():
        paths.results().mkdir(parents=True, exist_ok=True)
        report.replace(paths.results() / report.name)


ENVIRONMENT = DEVICE_ENVIRONMENT + " ENPU_RESULTS=/out; cd /tmp\n"


def command_shell(args):
    args.cold = args.cold and not args.gdb
    if args.gdb:
        debug.write_symbols(args, open_session)
    with open_session(args, module=False) as session:
        session.agent.check("echo 'export LD_LIBRARY_PATH=/enpu/lib ENPU_DEVICE=/dev/accel/accel0' >/etc/profile")
        if args.gdb:
            debug.wait_for_gdb(session)
        say("programs are in /enpu/bin, the module is /enpu/enpu.ko (insmod /enpu/enpu.ko); Ctrl-] leaves")
        console.attach(session)
    return 0


def command_exec(args):
    status, output = console.execute(ENVIRONMENT + joined(args.script), args.timeout)
    sys.stdout.write(output)
    return status


def command_reload(_args):
    build = subprocess.run([paths.ROOT / "scripts" / "kernel", "module"], check=False)
    if build.returncode:
        raise GuestError("the module does not build; its messages are above")
    stage_module()
    status, output = console.execute("if [ -d /sys/module/enpu ]; then rmmod enpu || exit 1; fi\n"
                                     "insmod /enpu/enpu.ko && dmesg | tail -n 5", 30)
    sys.stdout.write(output)
    if status:
        raise GuestError("the module could not be exchanged; is the device still in use in the guest?")
    say("the new enpu.ko is loaded")
    return 0


def main():
    args = parser().parse_args()
    try:
        if args.command == "stage":
            stage(make_config())
            return 0
        return {"run": command_run, "shell": command_shell, "exec": command_exec, "reload": command_reload}[args.command](args)
    except GuestError as e:
        say(str(e))
        return HANG if "in time" in str(e) else 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
