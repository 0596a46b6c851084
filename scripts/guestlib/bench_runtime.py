# SPDX-License-Identifier: MIT
"""The runtime's benchmarks: what it costs on the cpu backend beside PoCL, and the serving case on the NPU and the simulator."""
import json
import os
import statistics
import subprocess

from . import paths
from .paths import GuestError, say
from .session import Session, make_config
from .stage import stage

REPETITIONS = 9
# Nanoseconds that a case may take at most, whatever the peer takes.
LIMITS_NS = {"enqueue": 1000, "event_record": 200, "pool_alloc_free": 100, "dag_schedule": 200}
REPLAY_SHARE = 1 / 5
SERVING_GAIN = 2.3
BUSY_SHARE = 0.9
KERNEL_SHARE = (0.2, 0.3)


def host_environment():
    return {**os.environ, "ENPU_HAL_PATH": str(paths.BUILD / "lib")}


def micro_times():
    """{case: {side: [ns, …]}} of one run in which the cases take turns; each number is the median of many batches."""
    program = paths.BUILD / "bin" / "rt-bench"
    if not program.exists():
        raise GuestError("rt-bench is not built: it needs the packages libbenchmark-dev, ocl-icd-opencl-dev and pocl-opencl-icd")
    done = subprocess.run([program, f"--benchmark_repetitions={REPETITIONS}", "--benchmark_enable_random_interleaving=true",
                           "--benchmark_format=json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600,
                          check=False, env=host_environment())
    if done.returncode:
        raise GuestError(f"rt-bench failed: {done.stderr.strip()[-500:]}")
    times = {}
    for entry in json.loads(done.stdout)["benchmarks"]:
        if entry["run_type"] != "iteration":
            continue
        case, side = entry["name"].split("/")[:2]
        times.setdefault(case, {}).setdefault(side, []).append(entry["median_ns"])
    return times


def micro_row(case, ours, peer):
    best, other = statistics.median(ours), statistics.median(peer)
    limit = LIMITS_NS.get(case)
    ratio = other / best
    ok = ratio >= 1 and (limit is None or best <= limit)
    say(f"runtime {case}: {best:.0f} ns, PoCL {other:.0f} ns, ratio {ratio:.2f}" +
        (f", at most {limit} ns" if limit else "") + ("" if ok else "  <-- MISSED"))
    row = {"name": f"runtime {case}", "ours": round(best, 2), "peer": round(other, 2), "unit": "ns", "ratio": round(ratio, 3), "target": 1.0,
           "ok": ok, "where": "native, cpu backend; peer PoCL", "runs": len(ours), "spread": round((max(ours) - min(ours)) / best, 3)}
    if limit:
        row["limit"] = limit
    return row


def micro_rows():
    times = micro_times()
    rows = [micro_row(case, sides["ours"], sides["pocl"]) for case, sides in sorted(times.items())]
    eager, replay = (statistics.median(times[case]["ours"]) for case in ("enqueue", "graph_replay"))
    say(f"runtime graph replay: {replay:.1f} ns a node, {replay / eager:.3f} of eager submission (at most {REPLAY_SHARE})")
    rows.append({"name": "runtime graph replay against eager submission, a node", "ours": round(replay, 2), "peer": round(eager, 2), "unit": "ns",
                 "ratio": round(eager / replay, 3), "target": 1 / REPLAY_SHARE, "ok": replay <= eager * REPLAY_SHARE,
                 "where": "native, cpu backend", "runs": REPETITIONS, "spread": 0})
    return rows


def serving_rows(report, where, required):
    """Rows of what rt-serve measured. Only the NPU in the guest has targets."""
    naive, proper = report["naive"], report["proper"]
    gain = naive["latency_us"] / proper["latency_us"]
    share = naive["kernel_us"] / naive["latency_us"]
    busy = report["asynchronous_busy"]
    chosen = KERNEL_SHARE[0] <= share <= KERNEL_SHARE[1]
    say(f"serving on {where}: naive {naive['latency_us']:.0f} us ({100 * share:.0f}% kernels), proper {proper['latency_us']:.0f} us, "
        f"{gain:.2f} times; busy one at a time {100 * report['one_at_a_time_busy']:.0f}%, asynchronous {100 * busy:.0f}%")
    common = {"where": where, "runs": 1, "spread": 0, "detail": report}
    return [
        {"name": f"serving, proper against naive, {where}", "ours": proper["latency_us"], "peer": naive["latency_us"], "unit": "us",
         "ratio": round(gain, 3), "target": SERVING_GAIN if required else 0,
         "ok": report["same"] and (not required or (gain >= SERVING_GAIN and chosen)), **common},
        {"name": f"device busy, asynchronous against one at a time, {where}", "ours": busy, "peer": report["one_at_a_time_busy"], "unit": "share",
         "ratio": round(busy / max(report["one_at_a_time_busy"], 1e-9), 3), "target": BUSY_SHARE if required else 0,
         "ok": not required or busy >= BUSY_SHARE, **common}]


def serving_native():
    report = paths.BUILD / "bench" / "serve.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([paths.BUILD / "bin" / "rt-serve", "--device", "sim:cores=1,threads=1", "--json", report], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, check=False, env=host_environment())
    if done.returncode:
        raise GuestError(f"rt-serve --device sim failed: {done.stdout.strip()[-500:]}")
    return serving_rows(json.loads(report.read_text(encoding="utf-8")), "enpu-sim, native", False)


def serving_guest():
    config = make_config(memory="1G")
    stage(config)
    with Session(config, ["enpu,cores=1,threads=1"], "enpu.ko") as session:
        status, output = session.run("ENPU_HAL_PATH=/enpu/lib LD_LIBRARY_PATH=/enpu/lib /enpu/bin/rt-serve --device npu --json /tmp/serve.json "
                                     ">/tmp/serve.log 2>&1 && cat /tmp/serve.json || { cat /tmp/serve.log; exit 1; }", 600)
        if status:
            raise GuestError(f"rt-serve failed in the guest: {output.strip()[-500:]}")
        problems = session.problems()
    return serving_rows(json.loads(output), f"NPU, guest ({config.accel})", True), problems
