#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare_docs.py EXAMPLE DOCS: the chain in the documentation is the code that the example compiles, and names each call of it. TAP."""
import pathlib
import re
import sys

CALLS = ["rt_stream_create", "rt_tensor_alloc", "rt_memcpy_h2d", 'rt_kernel_lookup(device, "conv2d_fwd"', "rt_kernel_launch", "rt_stream_sync",
         "rt_memcpy_d2h"]


def main():
    example, docs = (pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[1:3])
    compiled = re.search(r"/\* \[chain\] \*/\n(.*?)/\* \[end of the chain\] \*/", example, re.S)
    blocks = re.findall(r"^```c\n(.*?)^```", docs, re.S | re.M)
    checks = [("the example has a chain", compiled is not None),
              ("the documentation has the block of the example, word for word", compiled is not None and compiled.group(1) in blocks)]
    places = [compiled.group(1).find(call) if compiled else -1 for call in CALLS]
    checks.append(("the chain makes every call, in order", -1 not in places and places == sorted(places)))
    print(f"1..{len(checks)}")
    for number, (name, right) in enumerate(checks, 1):
        print(f"{'ok' if right else 'not ok'} {number} - {name}")
    return 0 if all(right for _, right in checks) else 1


sys.exit(main())
