#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench_plot.py RESULTS.json FOLDER: SVG plots of the benchmark. One of all ratios against their targets, and one for each series
(rows with `series` and `x`)."""
import json
import pathlib
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402

pyplot.rcParams.update({"svg.hashsalt": "enpu", "font.size": 8, "svg.fonttype": "none"})
GOOD, BAD, PLAIN = "#2a7f62", "#b8432f", "#8a8f98"


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def ratios(rows, path):
    """Ratio over target of every row that has one, on a logarithmic axis: right of 1 the target is met."""
    shown = [r for r in rows if r["target"] and r["ratio"]]
    if not shown:
        return
    figure, axes = pyplot.subplots(figsize=(8, 1 + 0.17 * len(shown)))
    scores = [r["ratio"] / r["target"] for r in shown]
    axes.barh(range(len(shown)), [s - 1 for s in scores], left=1, color=[GOOD if r["ok"] else BAD for r in shown])
    axes.set_yticks(range(len(shown)), [f"{r['name']} ({r['where'].split(',')[0]})" for r in shown], fontsize=6)
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xlabel("ratio to the peer, divided by the target (1 and more: met)")
    save(figure, path)


def series(name, rows, path):
    """Ours and the peer over x, one pair of lines for each place."""
    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    for n, label in enumerate(sorted({r.get("line", r["where"]) for r in rows})):
        points = sorted((r for r in rows if r.get("line", r["where"]) == label), key=lambda r: r["x"])
        colour = f"C{n}"
        axes.plot([r["x"] for r in points], [r["ours"] for r in points], "o-", color=colour, markersize=3, label=label)
        if all(r["peer"] for r in points):
            axes.plot([r["x"] for r in points], [r["peer"] for r in points], "--", color=colour, linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(rows[0].get("x_name", "x"))
    axes.set_ylabel(rows[0]["unit"])
    axes.set_title(f"{name} (dashed: peer)")
    axes.grid(color=PLAIN, linewidth=0.2)
    axes.legend(fontsize=6)
    save(figure, path)


def main(results, folder):
    rows = json.loads(pathlib.Path(results).read_text(encoding="utf-8"))["rows"]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ratios(rows, folder / "ratios.svg")
    for name in sorted({r["series"] for r in rows if "series" in r}):
        members = [r for r in rows if r.get("series") == name]
        series(name, members, folder / (name.replace(" ", "-") + ".svg"))


if __name__ == "__main__":
    main(*sys.argv[1:])
