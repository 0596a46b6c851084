# SPDX-License-Identifier: MIT
"""Rows that tests in the guest print as "@FILE.json {…}": all rows of a file of one run go to build/results/FILE.json. Printing
works where the guest has lost its shares, and what was printed before a crash counts."""
import json
import re

from guestlib import paths

ROW = re.compile(r"^@([a-z-]+\.json) (\{.*\})\s*$")


class Rows:
    def __init__(self):
        self.files = {}

    def take(self, output):
        """Notes the rows of an output; returns the rest of it."""
        rest = []
        for line in output.splitlines(keepends=True):
            match = ROW.match(line)
            if match:
                self.files.setdefault(match.group(1), []).append(json.loads(match.group(2)))
            else:
                rest.append(line)
        return "".join(rest)

    def write(self):
        for name, rows in self.files.items():
            lines = ",\n ".join(json.dumps(row) for row in rows)
            (paths.results() / name).write_text(f"[\n {lines}\n]\n", encoding="utf-8")
        if "faults.json" in self.files:
            print(fault_table(self.files["faults.json"]), flush=True)


def cell_text(row):
    """The time until the fault was noticed, or which promises were broken."""
    broken = [key for key, value in row.items() if value is False]
    if broken:
        return "NOT " + ",".join(broken)
    return "ok" if row["detected_ms"] is None else f"{row['detected_ms']:.0f} ms"


def fault_table(rows):
    """Faults downwards, workloads across."""
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    cells = {(row["fault"], row["workload"]): cell_text(row) for row in rows}
    lines = [["fault", *workloads]]
    lines += [[fault, *(cells.get((fault, w), "-") for w in workloads)] for fault in dict.fromkeys(row["fault"] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    good = sum(not cell.startswith("NOT") for cell in cells.values())
    table = "\n".join("  " + "  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines)
    return f"{table}\n  {good} of {len(cells)} combinations as promised"
