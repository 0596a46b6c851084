# SPDX-License-Identifier: MIT
"""Rows of the benchmark: how they are made from interleaved samples, printed, kept and drawn."""
import json
import os
import shutil
import statistics
import subprocess
import time

from . import paths
from .paths import GuestError, say


def quick():
    """QUICK=1: fewer repetitions and sizes, five minutes for all parts."""
    return os.environ.get("QUICK", "0") not in ("", "0")


def native_only():
    """NATIVE=1: the simulator's rows alone, without a guest."""
    return os.environ.get("NATIVE", "0") not in ("", "0")


QUIET = 0.15  # of a processor: more than that is somebody else's work


def processor_ticks():
    """(busy, all) ticks of all processors since the start of the machine."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def other_load(seconds=0.5):
    """How many processors are busy though nothing is measured yet."""
    busy, total = processor_ticks()
    time.sleep(seconds)
    later_busy, later_total = processor_ticks()
    return round((later_busy - busy) / max(later_total - total, 1) * os.cpu_count(), 2)


def spread(samples):
    """Distance of the quartiles relative to the median: what half of the samples lie within."""
    if len(samples) < 4:
        return (max(samples) - min(samples)) / statistics.median(samples)
    low, _, high = statistics.quantiles(samples, n=4)
    return (high - low) / statistics.median(samples)


def row(name, ours, peer, unit, target, where, higher_is_better=False, **more):
    """A row. ours, peer: samples that were taken in turns. ratio: how many times better ours is, the median of the ratios of each
    pair (both halves of a pair saw the same load); ok: it reaches the target; target None: reported only."""
    ours, peer = list(ours), list(peer)
    if not ours or not peer:
        raise GuestError(f"benchmark '{name}': no sample")
    pairs = list(zip(ours, peer)) if len(ours) == len(peer) else [(statistics.median(ours), statistics.median(peer))]
    ratio = statistics.median((a / b if higher_is_better else b / a) for a, b in pairs if a > 0 and b > 0)
    return {"name": name, "ours": statistics.median(ours), "peer": statistics.median(peer), "unit": unit, "ratio": round(ratio, 3),
            "target": target, "ok": target is None or ratio >= target, "where": where, "runs": len(ours), "spread": round(spread(ours), 3),
            **more}


def value(name, ours, unit, limit, where, lower_is_better=True, **more):
    """A row without a peer: ours against a limit. ratio is limit / ours (or ours / limit), so that 1 and more is good."""
    ours = list(ours)
    middle = statistics.median(ours)
    ratio = None
    if limit is not None:
        ratio = (limit / middle if middle else float("inf")) if lower_is_better else middle / limit
        ratio = round(min(ratio, 1e6), 3)
    return {"name": name, "ours": middle, "peer": limit, "unit": unit, "ratio": ratio, "target": None if limit is None else 1,
            "ok": limit is None or ratio >= 1, "where": where, "runs": len(ours), "spread": round(spread(ours) if middle else 0, 3), **more}


def geometric_mean(rows, name, target, where):
    """The geometric mean of rows' ratios as a row of its own."""
    ratios = [entry["ratio"] for entry in rows]
    mean = round(statistics.geometric_mean(ratios), 3)
    return {"name": name, "ours": mean, "peer": 1, "unit": "ratio", "ratio": mean, "target": target, "ok": mean >= target, "where": where,
            "runs": len(rows), "spread": 0}


def number(x):
    if x is None:
        return "-"
    if not isinstance(x, (int, float)):
        return str(x)
    if x == 0 or abs(x) >= 1000:
        return f"{x:.0f}"
    return f"{x:.3g}"


def show(rows):
    """The table: one line a row, those that miss their target marked."""
    lines = [("what", "this", "peer", "unit", "ratio", "target", "spread", "where", "")]
    for r in rows:
        lines.append((r["name"], number(r["ours"]), number(r["peer"]), r["unit"], number(r["ratio"]), number(r["target"]),
                      f"{100 * r['spread']:.0f}%", r["where"], "" if r["ok"] else "MISSED"))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) if i in (0, 3, 7) else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(line, widths))).rstrip(), flush=True)


def run_json(program, *arguments, timeout=600, environment=None):
    """Runs a measuring program of the build folder; what it wrote to stdout, as JSON."""
    path = paths.BUILD / "bin" / program
    if not path.exists():
        raise GuestError(f"{program} is not built; run 'make cpp'")
    done = subprocess.run([path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, check=False,
                          env={**os.environ, **(environment or {})})
    if done.returncode:
        raise GuestError(f"{program} {' '.join(map(str, arguments))} failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def keep(rows, problems, seconds, loads):
    """Merges rows into build/results/bench.json (those of parts that did not run stay) and draws the plots. loads: other_load() when each
    part began."""
    out = paths.BUILD / "results" / "bench.json"
    before = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"rows": []}
    names = {(entry["name"], entry["where"]) for entry in rows}
    merged = [entry for entry in before["rows"] if (entry["name"], entry["where"]) not in names] + rows
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), "quick": quick(), "seconds": round(seconds, 1), "rows": merged,
                               "kernel_log": problems, "loads": {**before.get("loads", {}), **loads}}, indent=1) + "\n", encoding="utf-8")
    draw(out)
    say(f"results are in {out}, plots in {out.parent / 'plots'}")
    return merged


BEGIN, END = "<!-- begin: table -->", "<!-- end: table -->"


def markdown(rows):
    lines = ["| what | this | peer | unit | ratio | target | spread | where |", "| --- | ---: | ---: | --- | ---: | ---: | ---: | --- |"]
    for r in rows:
        ratio = number(r["ratio"]) if r["ok"] else f"**{number(r['ratio'])}**"
        lines.append(f"| {r['name']} | {number(r['ours'])} | {number(r['peer'])} | {r['unit']} | {ratio} | {number(r['target'])} | "
                     f"{100 * r['spread']:.0f} % | {r['where']} |")
    return "\n".join(lines)


def remark(loads):
    """The line under the table that says which figures not to trust."""
    busy = {name: load for name, load in loads.items() if load > QUIET}
    if not loads:
        return "Whether anything else ran on the machine is not known."
    if not busy:
        return "Nothing else ran on the machine."
    parts = ", ".join(f"{name} ({load:.1f})" for name, load in busy.items())
    return f"Measured beside other work, which kept so many processors busy when the part began: {parts}."


def write_docs():
    """Puts the table of the last run into docs/performance.md, and its plots beside it."""
    results = paths.BUILD / "results" / "bench.json"
    if not results.exists():
        raise GuestError("there are no results; run 'make bench' first")
    run = json.loads(results.read_text(encoding="utf-8"))
    page = paths.ROOT / "docs" / "performance.md"
    text = page.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    page.write_text(f"{head}{BEGIN}\n{markdown(run['rows'])}\n\n{remark(run.get('loads', {}))}\n{END}{tail}", encoding="utf-8")
    folder = paths.ROOT / "docs" / "performance"
    folder.mkdir(exist_ok=True)
    for plot in (results.parent / "plots").glob("*.svg"):
        shutil.copy(plot, folder / plot.name)
    say(f"{page} has the table of {run['date']}")


def draw(results):
    python = paths.CACHE / "venv" / "bin" / "python3"
    script = paths.ROOT / "scripts" / "guestlib" / "bench_plot.py"
    done = subprocess.run([python, script, results, results.parent / "plots"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, check=False)
    if done.returncode:
        raise GuestError(f"the plots could not be drawn: {done.stdout.strip()[-300:]}; 'scripts/venv' gets what is needed")
