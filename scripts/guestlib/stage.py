# SPDX-License-Identifier: MIT
"""Fills the folder that the guest sees at /enpu: bin/, lib/ (everything ldd names), share/NAME/ (test files), enpu.ko."""
import json
import os
import pathlib
import shutil
import subprocess

from . import paths
from .paths import GuestError, say

INTERPRETER = "/lib64/ld-linux-x86-64.so.2"


def read_list():
    """tests.json as CMake writes it."""
    path = paths.BUILD / "guest" / "tests.json"
    if not path.exists():
        return {"tests": [], "programs": []}
    return json.loads(path.read_text(encoding="utf-8"))


class Stage:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.memo_path = self.root.parent / "ldd.json"
        try:
            self.memo = json.loads(self.memo_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self.memo = {}
        for name in ("bin", "lib", "share"):
            (self.root / name).mkdir(parents=True, exist_ok=True)

    def put(self, source, target):
        """Copies when size or time differ; by rename, because the guest may run the old file."""
        source, target = pathlib.Path(source).resolve(), self.root / target
        have, want = (target.stat() if target.exists() else None), source.stat()
        if have and have.st_size == want.st_size and have.st_mtime_ns == want.st_mtime_ns:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        shutil.copy2(source, part)
        part.rename(target)

    def put_tree(self, source, target):
        source = pathlib.Path(source)
        if not source.is_dir():
            return self.put(source, f"{target}/{source.name}")
        for path in source.rglob("*"):
            if path.is_file():
                self.put(path, f"{target}/{source.name}/{path.relative_to(source)}")

    def libraries(self, path):
        """What the dynamic linker would load for a file: {soname: path}."""
        stat = path.stat()
        key = f"{path}:{stat.st_size}:{stat.st_mtime_ns}"
        if key not in self.memo:
            # Where the program itself looks: what QEMU is to load, from a build with sanitizers, is not for the guest.
            own = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
            done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, env=own)
            found = {}
            for line in done.stdout.splitlines():
                words = line.split()
                if "not found" in line:
                    raise GuestError(f"{path} needs {words[0]}, which is not on this machine")
                if len(words) >= 3 and words[1] == "=>" and words[2].startswith("/"):
                    found[words[0]] = words[2]
            self.memo[key] = found
        return self.memo[key]

    def add(self, path):
        """A program goes to bin/, a library to lib/, each with the libraries it needs."""
        path = pathlib.Path(path)
        if not path.exists():
            raise GuestError(f"{path} is not built; run 'make all' first")
        self.put(path, f"lib/{path.name}" if ".so" in path.name else f"bin/{path.name}")
        for name, library in self.libraries(path.resolve()).items():
            self.put(library, f"lib/{name}")

    def finish(self):
        self.put(INTERPRETER, "lib/ld-linux-x86-64.so.2")
        self.memo_path.write_text(json.dumps(self.memo), encoding="utf-8")


def stage(config, module=True, tests=None):
    """Stages everything that the guest's share holds: the programs that are built, and of the tests those named, which must be
    there. Without names, what is built will do, and what is not is said."""
    listed = read_list()
    target = Stage(config.share)
    missing = [p for p in listed["programs"] if not pathlib.Path(p).exists()]
    for program in listed["programs"]:
        if program not in missing:
            target.add(program)
    for test in listed["tests"]:
        if tests is None and not pathlib.Path(test["binary"]).exists():
            missing.append(test["binary"])
        elif tests is None or test["name"] in tests:
            target.add(test["binary"])
            for file in test["files"]:
                target.put_tree(file, f"share/{test['name']}")
    if module and (ko := module_path()).exists():
        target.put(ko, "enpu.ko")
        if (kunit := ko.with_name("enpu_kunit.ko")).exists():
            target.put(kunit, "enpu_kunit.ko")
    target.finish()
    if missing and tests is None:
        say(f"not built, so not in the guest: {', '.join(pathlib.Path(m).name for m in missing)}")


def stage_module():
    """Only the module, into the share of a guest that runs."""
    Stage(paths.BUILD / "guest" / paths.of_variant("root")).put(module_path(), "enpu.ko")


def module_path():
    """The newest enpu.ko: of this build folder, of the checkout's, or (stock kernel) made by hand in kmod/."""
    places = [build / paths.of_variant("kmod") / "enpu.ko" for build in (paths.BUILD, paths.ROOT / "build")]
    if paths.VARIANT == "stock":
        places.append(paths.ROOT / "kmod" / "enpu.ko")
    built = [p for p in places if p.exists()]
    return max(built, key=lambda p: p.stat().st_mtime) if built else places[0]
