# SPDX-License-Identifier: MIT
"""What an empty job costs in the guest: by ioctl, through a user-mode queue, and beside a 4 KiB read of an NVMe device that QEMU backs with
nothing (null-co). The cases take turns inside one program; the device counts kicks and interrupts."""
import json

from . import paths
from .bench_table import quick, row, value
from .paths import GuestError
from .session import Session, make_config
from .stage import stage

NVME_NODE = "bench-null"
NVME = ["-blockdev", f"null-co,node-name={NVME_NODE},size=67108864,read-zeroes=on"]
# How many times better ours is to be: at most 1.5 and 0.3 times the latency.
IOCTL_LATENCY = round(1 / 1.5, 3)
QUEUE_LATENCY = round(1 / 0.3, 3)
IOCTL_RATE = 0.5
QUEUE_RATE = 3.0
EXITS = 1 / 16
ROUNDS = 9
JOBS = 2000


def measure(session, rounds, jobs):
    script = f"""
export LD_LIBRARY_PATH=/enpu/lib ENPU_DEVICE=/dev/accel/accel0
[ -d /sys/kernel/debug/tracing ] || mount -t debugfs none /sys/kernel/debug
n=0; until [ -e /dev/nvme0n1 ]; do n=$((n+1)); [ $n -lt 200 ] || {{ echo 'no /dev/nvme0n1'; exit 1; }}; sleep 0.05; done
exec /enpu/bin/enpu-queue-bench --nvme /dev/nvme0n1 --registers $(ls /sys/kernel/debug/accel/*/registers | head -n 1) --rounds {rounds} --jobs {jobs}
"""
    status, output = session.run(script, 900)
    if status:
        raise GuestError(f"enpu-queue-bench failed in the guest: {output.strip()[-500:]}")
    return json.loads(output)


def rows_of(times, where):
    nvme = f"{where}; peer NVMe on null-co by io_uring"
    return [
        row("empty job by ioctl, latency", times["ioctl_ns"], times["nvme_ns"], "ns", IOCTL_LATENCY, f"{nvme}, depth 1"),
        row("empty job by user-mode queue, latency", times["queue_ns"], times["ioctl_ns"], "ns", QUEUE_LATENCY, f"{where}; peer the ioctl path"),
        row("empty jobs by ioctl, 64 deep", times["ioctl_rate"], times["nvme_rate"], "1/s", IOCTL_RATE, f"{nvme}, 32 deep", True),
        row("empty jobs by user-mode queue, 64 deep", times["queue_rate"], times["nvme_rate"], "1/s", QUEUE_RATE, f"{nvme}, 32 deep", True),
        value("kicks a job by user-mode queue, 64 deep", times["queue_kicks"], "kicks", EXITS, where),
        value("interrupts a job by user-mode queue, 64 deep", times["queue_irqs"], "interrupts", EXITS, where)]


def rows():
    if not (paths.BUILD / "bin" / "enpu-queue-bench").exists():
        raise GuestError("enpu-queue-bench is not built; run 'make all'")
    config = make_config(qemu_args=NVME)
    stage(config)
    devices = ["enpu,cores=1,threads=1", f"nvme,serial=bench,drive={NVME_NODE}"]
    with Session(config, devices, "enpu.ko") as session:
        times = measure(session, 3 if quick() else ROUNDS, JOBS // 4 if quick() else JOBS)
        problems = session.problems()
    return rows_of(times, f"guest ({config.accel})"), problems
