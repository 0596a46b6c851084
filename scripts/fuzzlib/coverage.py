# SPDX-License-Identifier: MIT
"""Line coverage of the corpus in the tree: libFuzzer targets by clang's counters, the kernel module by the debug kernel's."""
import json
import os
import pathlib
import shutil
import subprocess

from guestlib import paths
from guestlib.paths import GuestError

from . import kernel_coverage, libfuzzer

LIMIT = 85.0
# Name, target whose corpus counts, files; the limit holds for each.
GROUPS = (
    ("packet decoder", "model", ("qemu-device/hw/rules/check", "qemu-device/hw/rules/common", "qemu-device/hw/rules/control",
                                 "qemu-device/hw/rules/dense", "qemu-device/hw/rules/descriptor", "qemu-device/hw/rules/elementwise",
                                 "qemu-device/hw/rules/indexing", "qemu-device/hw/rules/reduction", "qemu-device/hw/rules/span",
                                 "qemu-device/model/processor", "qemu-device/model/operands", "qemu-device/model/control")),
    ("MMU", "model", ("qemu-device/model/mmu", "qemu-device/model/memory")),
    ("rings, registers, state", "model", ("qemu-device/model/ring", "qemu-device/model/serve", "qemu-device/model/registers",
                                          "qemu-device/model/snapshot", "qemu-device/model/irq", "qemu-device/model/faults")),
    ("command builder", "builder", ("umd/command/builder", "umd/command/check", "umd/command/control", "umd/command/operator",
                                    "umd/command/tensor", "umd/command/command")),
    ("model input", "lowering", ("integrations/lowering/",)),
)


def tool(name):
    """clang's own: of the same version as the compiler that wrote the counters."""
    done = subprocess.run(["clang", f"--print-prog-name={name}"], stdout=subprocess.PIPE, text=True, check=False)
    path = shutil.which(done.stdout.strip() or name)
    if not path:
        raise GuestError(f"the program {name} is missing: scripts/setup fuzz")
    return path


def measure(target):
    """{file: (lines covered, lines)} of the sources that a replay of the corpus in the tree runs through."""
    program = libfuzzer.BUILD / "bin" / f"enpu-fuzz-{target}"
    data = libfuzzer.BUILD / f"{target}.profdata"
    env = dict(libfuzzer.environment(), LLVM_PROFILE_FILE=str(libfuzzer.BUILD / f"{target}-%m.profraw"))
    for old in libfuzzer.BUILD.glob(f"{target}-*.profraw"):
        old.unlink()
    done = subprocess.run([program, "-runs=0", *libfuzzer.LIMITS, libfuzzer.CORPUS / target], env=env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise GuestError(f"the corpus of {target} fails: {done.stderr[-2000:]}")
    parts = list(libfuzzer.BUILD.glob(f"{target}-*.profraw"))
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-o", data, *parts], check=True)
    objects = [f"--object={p}" for p in (libfuzzer.BUILD / "lib").glob("*.so")]
    out = subprocess.run([tool("llvm-cov"), "export", "-summary-only", f"-instr-profile={data}", program, *objects], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    lines = {}
    for entry in json.loads(out.stdout)["data"][0]["files"]:
        path = pathlib.Path(os.path.normpath(entry["filename"]))  # the compiler is called with paths relative to its folder
        if path.is_relative_to(paths.ROOT):
            count = entry["summary"]["lines"]
            lines[str(path.relative_to(paths.ROOT))] = (count["covered"], count["count"])
    return lines


def report():
    """Prints the table and writes it; 1 when a group is below the limit."""
    rows, measured = [], {}
    for name, target, prefixes in GROUPS:
        if target not in measured:
            measured[target] = measure(target)
        files = {f: c for f, c in measured[target].items() if f.endswith(".cpp") and f.startswith(prefixes) and "_test" not in f}
        rows.append({"group": name, "files": files})
    kernel = kernel_coverage.saved()
    if kernel:
        rows.append({"group": "ioctls of the kernel module", "files": kernel})
    low = False
    for row in rows:
        covered, count = (sum(c[i] for c in row["files"].values()) for i in (0, 1))
        row["percent"] = round(100 * covered / max(count, 1), 1)
        below = row["percent"] < LIMIT
        low = low or below
        print(f"{row['group']}: {row['percent']} % of {count} lines{f', below {LIMIT:.0f} %' if below else ''}")
        for file, (part, whole) in sorted(row["files"].items()):
            print(f"    {100 * part / max(whole, 1):5.1f} %  {part:5d}/{whole:<5d}  {file}")
    if not kernel:
        print("ioctls of the kernel module: not measured yet: scripts/fuzzlib/kernel_coverage.py (debug kernel)")
    path = paths.BUILD / "results" / "fuzz-coverage.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 1 if low else 0
