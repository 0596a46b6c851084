#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lines of the kernel module that the fuzzer of its interface runs through: kernel_coverage.py [SECONDS], on the debug kernel, whose
gcov counts them in a module that is built for it."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

if __name__ == "__main__":
    os.environ["ENPU_KERNEL"] = "debug"
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from guestlib import paths  # noqa: E402
from guestlib.paths import GuestError  # noqa: E402

BUILD = paths.BUILD / "fuzz"
SAVED = BUILD / "kernel-coverage.json"
FILES = re.compile(r"/kmod/(enpu_(?:bo|ctx|doorbell|local|local_mm|prime|query|queue|submit|uqueue|uqueue_ioctl|userptr|vm)\.c)$")
COLLECT = """
[ -d /sys/kernel/debug/gcov ] || mount -t debugfs none /sys/kernel/debug
rm -rf /out/gcov && mkdir -p /out/gcov
for f in $(find /sys/kernel/debug/gcov -name '*.gcda' | grep /kmod/); do cat "$f" >"/out/gcov/${f##*/}"; done
ls /out/gcov | wc -l
"""


def saved():
    """{file: [covered, lines]} of the last measurement, or nothing."""
    return json.loads(SAVED.read_text(encoding="utf-8")) if SAVED.exists() else {}


def measure(seconds):
    from guestlib.session import SLOWER, Session, make_config
    from guestlib.stage import Stage, stage
    env = dict(os.environ, ENPU_BUILD=str(BUILD))
    if subprocess.run([paths.ROOT / "scripts" / "kernel", "module", "GCOV_PROFILE=y"], env=env, check=False).returncode:
        raise GuestError("the module does not build with counters; its messages are above")
    module = BUILD / "kmod-debug" / "enpu.ko"
    config = make_config()
    stage(config, module=False, tests=["kmod-fuzz"])
    Stage(config.share).put(module, "enpu-gcov.ko")
    with Session(config, ["enpu,cores=2,threads=1,local-mem=64M"] * 2, "enpu-gcov.ko") as session:
        status, output = session.run("export LD_LIBRARY_PATH=/enpu/lib ENPU_DEVICE=/dev/accel/accel0\n"
                                     f"ENPU_FUZZ_SECONDS={seconds} /enpu/bin/kmod_fuzz_test", seconds + 120 * SLOWER)
        print(output)
        problems = session.problems()
        if status or problems:
            raise GuestError("the fuzzer found something: " + "\n".join(problems))
        session.agent.check(COLLECT, 120)
    return read(pathlib.Path(config.out) / "gcov", BUILD / "kmod-debug" / "tree" / "kmod")


def read(counted, objects):
    lines = {}
    for data in sorted(counted.glob("*.gcda")):
        shutil.copy(data, objects / data.name)
        done = subprocess.run(["gcov", "-n", data.name], cwd=objects, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        for name, percent, count in re.findall(r"File '([^']+)'\nLines executed:([\d.]+)% of (\d+)", done.stdout):
            if match := FILES.search(name):
                lines[f"kmod/{match.group(1)}"] = (round(float(percent) * int(count) / 100), int(count))
    if not lines:
        raise GuestError(f"gcov told nothing about the files in {counted}")
    return lines


def main():
    try:
        lines = measure(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
    except GuestError as e:
        print(f"fuzz: {e}", file=sys.stderr)
        return 1
    SAVED.parent.mkdir(parents=True, exist_ok=True)
    SAVED.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    for file, (covered, count) in sorted(lines.items()):
        print(f"{100 * covered / count:5.1f} %  {covered:5d}/{count:<5d}  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
