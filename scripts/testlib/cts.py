# SPDX-License-Identifier: MIT
"""Results of the HAL's conformance suite: one file for each run of hal-cts, and build/results/cts.json of all of them."""
import json
import shutil

from guestlib import paths

from .results import FAILED, PASSED, SKIPPED, Case

FOLDER = paths.BUILD / "results" / "cts"
COUNTS = ("passed", "failed", "unsupported", "expected_failure")
# What a device can never do, and what is known to be wrong, are told apart by their reasons.
STATUS = {"passed": PASSED, "failed": FAILED, "unsupported": SKIPPED, "expected_failure": SKIPPED}


def forget(lane):
    """Results of an earlier run of the lane, so that a run that dies leaves none."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in FOLDER.glob("*.json"):
        if (lane == "guest") == path.name.endswith(".guest.json"):
            path.unlink()


def take(path, name, lane, level):
    """Cases of a result that lies elsewhere, which is kept; [] when there is none."""
    if not path.exists():
        return []
    FOLDER.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, FOLDER / f"{name}.guest.json")
    return cases(f"{name}.guest", lane, level, name)


def cases(stem, lane, level, suite=None):
    try:
        document = json.loads((FOLDER / f"{stem}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [Case(lane, level, suite or stem, c["name"], STATUS[c["status"]], 0,
                 f"expected failure: {c['reason']}" if c["status"] == "expected_failure" else c["reason"])
            for c in document["cases"]]


def write():
    """build/results/cts.json: {backend: {passed, failed, unsupported, expected_failure}}."""
    summary = {}
    for path in sorted(FOLDER.glob("*.json")) if FOLDER.exists() else []:
        document = json.loads(path.read_text(encoding="utf-8"))
        summary[document["backend"]] = {count: document[count] for count in COUNTS}
    if summary:
        (paths.results() / "cts.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
