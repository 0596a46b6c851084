#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""guard_test.py HOT_PATHS BOUNDS.json [--update]: instructions and allocations of what every job goes through, against bounds that allow
for twice as many. A change that makes a path several times longer shows here, whatever the machine is busy with. TAP."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

COUNT = 200
# Instructions are counted inside these functions of libenpu's interface; not of a wait, which looks again and again.
FUNCTIONS = {"submit": "enpu_submit", "build": "enpu_build_binary", "patch": "enpu_command_patch"}
SLACK = 2


def allocations(program):
    done = subprocess.run([program, str(COUNT)], stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    return {name: float(count) for name, count in (line.split() for line in done.stdout.splitlines())}


def instructions(program, function):
    """Instructions a call, all threads taken together, only while a thread is inside the function."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect={function}",
                               "--separate-threads=no", program, str(COUNT)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=240, check=False)
        if done.returncode:
            raise RuntimeError(f"callgrind failed: {done.stderr.strip()[-300:]}")
        text = out.read_text(encoding="utf-8", errors="replace")
        total = int(re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE).group(1))
        calls = [int(n) for n in re.findall(rf"^cfn=.*?\b{function}\b.*\n(?:cfi=.*\n|cob=.*\n)*calls=(\d+)", text, re.MULTILINE)]
        return total / max(sum(calls), COUNT)


def main():
    program, path = sys.argv[1], pathlib.Path(sys.argv[2])
    found = {f"allocations of {name}": count for name, count in allocations(program).items()}
    try:
        subprocess.run(["valgrind", "--version"], stdout=subprocess.DEVNULL, check=True)
        found.update({f"instructions of {name}": instructions(program, function) for name, function in FUNCTIONS.items()})
    except FileNotFoundError:
        print("# valgrind is missing: instructions are not counted")
    if "--update" in sys.argv:
        path.write_text(json.dumps({name: round(count, 1) for name, count in found.items()}, indent=1) + "\n", encoding="utf-8")
        return 0
    bounds = json.loads(path.read_text(encoding="utf-8"))
    print(f"1..{len(bounds)}")
    failed = 0
    for n, (name, bound) in enumerate(bounds.items(), 1):
        if name not in found:
            print(f"ok {n} - {name} # SKIP not counted here")
            continue
        limit = bound * SLACK + 0.5
        good = found[name] <= limit
        failed += not good
        print(f"{'ok' if good else 'not ok'} {n} - {name}: {found[name]:.1f} a call, at most {limit:.1f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
