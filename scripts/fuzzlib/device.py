# SPDX-License-Identifier: MIT
"""QEMU's own generic fuzzer on the device: registers, doorbells, config space, and memory that the device reads by DMA."""
import os
import subprocess
import time

from guestlib import paths
from guestlib.paths import GuestError

from . import libfuzzer

# In sync mode one thread does everything, so that an input does the same each time.
MACHINE = "-M q35 -nodefaults -device enpu,id=npu,local-mem=4M,sync=on,fault-injection=on"


def build_qemu():
    """QEMU with sanitizers and fuzzers, in build/fuzz/bin; its tree is kept in the cache."""
    libfuzzer.build("enpu-model")
    env = dict(os.environ, ENPU_BUILD=str(libfuzzer.BUILD), ENPU_QEMU_KIND="fuzz")
    if subprocess.run([paths.ROOT / "scripts" / "qemu", "build"], env=env, check=False).returncode:
        raise GuestError("QEMU with sanitizers does not build; its messages are above")


def run(target, options):
    build_qemu()
    found, crashes = libfuzzer.folders(target)
    seed = options.seed or int(time.time())
    env = dict(libfuzzer.environment(), QEMU_FUZZ_ARGS=MACHINE, QEMU_FUZZ_OBJECTS="enpu*", QEMU_FUZZ_TIMEOUT="0")
    command = [str(libfuzzer.BUILD / "bin" / "qemu-fuzz-x86_64"), "--fuzz-target=generic-fuzz", f"-max_total_time={options.time}",
               f"-seed={seed}", "-print_final_stats=1", "-max_len=4096", "-use_value_profile=1", *libfuzzer.LIMITS,
               f"-artifact_prefix={crashes}/", str(found)]
    own = libfuzzer.CORPUS / target
    if own.exists():
        command.append(str(own))
    return libfuzzer.follow(target, command, env, crashes, seed, options.time)
