#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""page_test TOOL PROGRAM: a page of `enpu trace report` in headless Chromium, which must draw it without a network. Prints TAP."""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pixels(png):
    """Rows of bytes of an 8-bit RGB or RGBA picture without interlace, and bytes a pixel; filters undone."""
    at, data, width, height, kind = 8, b"", 0, 0, 0
    while at < len(png):
        size, name = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + size]
        if name == b"IHDR":
            width, height, _, kind = struct.unpack(">IIBB", body[:10])
        if name == b"IDAT":
            data += body
        at += 12 + size
    step = {2: 3, 6: 4}[kind]
    raw, rows, before = zlib.decompress(data), [], bytearray(width * step)
    for y in range(height):
        row = bytearray(raw[y * (width * step + 1) + 1:(y + 1) * (width * step + 1)])
        method = raw[y * (width * step + 1)]
        for i in range(len(row)):
            left, up, corner = row[i - step] if i >= step else 0, before[i], before[i - step] if i >= step else 0
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda v, g=guess: abs(g - v))
            row[i] = (row[i] + (0, left, up, (left + up) // 2, paeth)[method]) & 255
        rows.append(row)
        before = row
    return rows, step


def main():
    tool, program = sys.argv[1:3]
    found = subprocess.run([ROOT / "scripts/chromium", "find"], text=True, stdout=subprocess.PIPE, check=False)
    if found.returncode:
        print("1..0 # SKIP no Chromium here; 'make test-browser' fetches one and runs this")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        env = dict(os.environ, ENPU_HAL_PATH=str(pathlib.Path(tool).resolve().parent.parent / "lib"))
        subprocess.run([tool, "trace", "record", "-o", work / "t", "--", program, "sim"], check=True, env=env, timeout=100, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        subprocess.run([tool, "trace", "report", work / "t", "-o", work / "t.html"], check=True, timeout=60, stdout=subprocess.DEVNULL)
        picture = work / "page.png"
        browser = dict(os.environ, HOME=folder)
        browser.pop("LD_PRELOAD", None)  # a sanitizer's library, for programs of ours
        shown = subprocess.run([found.stdout.strip(), "--no-sandbox", "--disable-gpu", "--no-zygote", f"--user-data-dir={work}/profile",
                                "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=5000", "--window-size=1300,900",
                                f"--screenshot={picture}", "--dump-dom", f"file://{work}/t.html"], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, timeout=200, check=False, env=browser)
        drawn = re.search(r'data-drawn="(\d+)"', shown.stdout)
        rows, step = pixels(picture.read_bytes()) if picture.exists() else ([], 3)
        green = sum(tuple(row[i:i + 3]) == (0x2a, 0x8a, 0x66) for row in rows for i in range(0, len(row), step))
    checks = [("the page draws what was recorded", drawn and int(drawn[1]) > 10), ("work is to be seen in the picture", green > 500),
              ("nothing is wrong in its script", "Uncaught" not in shown.stderr)]
    print(f"1..{len(checks)}")
    for number, (name, well) in enumerate(checks, 1):
        print(f"{'ok' if well else 'not ok'} {number} - {name}")
    return 0 if all(well for _, well in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
