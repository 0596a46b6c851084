# SPDX-License-Identifier: MIT
"""build/results/frameworks.json: one entry a framework, written by several test programs."""
import fcntl
import json
import pathlib


def update(path, framework, entries):
    """Replaces `entries` of one framework and keeps what else the file says. Waits for other writers."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            document = {}
        document.setdefault(framework, {}).update(entries)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        part.replace(path)
