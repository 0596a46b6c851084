#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every function of the C headers has its place in the C++ ones: wrappers_test.py FOLDER."""
import pathlib
import re
import sys

folder = pathlib.Path(sys.argv[1])
calls = set()
for header in folder.glob("*.h"):
    calls |= set(re.findall(r"RT_API[^;]*?\b(rt_\w+)\(", header.read_text(encoding="utf-8")))
wrappers = "".join(header.read_text(encoding="utf-8") for header in folder.glob("*.hpp"))
missing = sorted(call for call in calls if not re.search(rf"\b{call}\b", wrappers))
good = not missing and len(calls) >= 100
print("1..1")
print(f"{'ok' if good else 'not ok'} 1 - {len(calls)} functions, {len(missing)} without a wrapper: {' '.join(missing)}")
sys.exit(0 if good else 1)
