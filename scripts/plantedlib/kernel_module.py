# SPDX-License-Identifier: MIT
"""The kernel module with one source exchanged, in a guest of its own."""
import json
import os
import pathlib
import shutil
import subprocess
import time

from guestlib import paths
from guestlib.session import Session, make_config
from guestlib.stage import module_path, stage

WHAT = "module"
BUILD_DEADLINE = 900  # seconds
RUN_DEADLINE = 420
# Hangs are injected, so that the stage of resets has something to find.
DEVICE = "enpu,cores=2,threads=1,local-mem=256M,fault-injection=on"
Error = subprocess.SubprocessError
TREE = paths.BUILD / "planted" / "module"


def link_sources():
    """A tree of links to the sources, built once; a mistake exchanges one link for a file."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "kmod"], cwd=paths.ROOT, check=True, text=True,
                            stdout=subprocess.PIPE).stdout.split()
    TREE.mkdir(parents=True, exist_ok=True)
    for name in [*listed, "qemu-device"]:
        link = TREE / name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.unlink(missing_ok=True)
            link.symlink_to(paths.ROOT / name)


def make():
    headers = paths.guest_kernel()["KERNEL_HEADERS"]
    done = subprocess.run(["make", "-s", "-C", headers, f"M={TREE / 'kmod'}", f"-j{os.cpu_count()}", "modules"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BUILD_DEADLINE, check=False)
    if done.returncode:
        raise ValueError(done.stdout[-1500:])


def build(name, file, text):
    """Path of an enpu.ko made with `text` in the place of the source `file`."""
    link_sources()
    make()  # what is not planted is up to date
    began = time.time() - 1
    planted, kept = TREE / file, paths.BUILD / "planted" / f"{name}.ko"
    try:
        planted.unlink()
        planted.write_text(text, encoding="utf-8")
        make()
        shutil.copyfile(TREE / "kmod" / "enpu.ko", kept)
    finally:
        link_sources()
        # What was made of the mistake is newer than the source that comes back.
        for made in (TREE / "kmod").rglob("*.o"):
            if made.stat().st_mtime >= began:
                made.unlink()
    return kept


def harness(module):
    config = make_config()
    stage(config, module=False)
    shared = pathlib.Path(config.share) / "planted.ko"
    shutil.copyfile(module, shared)
    report = pathlib.Path(config.out) / "planted-bringup.json"
    report.unlink(missing_ok=True)
    try:
        with Session(config, [DEVICE], shared.name) as session:
            _, output = session.run("export LD_LIBRARY_PATH=/enpu/lib; cd /tmp\n"
                                    f"/enpu/bin/enpu bringup --lane driver -d npu --no-results --output /out/{report.name}", RUN_DEADLINE)
    finally:
        shared.unlink()
    if not report.exists():
        raise ValueError(f"the harness left no report: {output[-600:]}")
    return json.loads(report.read_text(encoding="utf-8"))


def run(name, file, text):
    return harness(build(name, file, text))


def run_unmodified():
    return harness(module_path())
