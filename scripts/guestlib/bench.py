# SPDX-License-Identifier: MIT
"""make bench: the runtime beside PoCL, the serving case, and the detection model on a 320x320 picture, on the NPU and on ONNX Runtime's
own CPU provider, side by side."""
import json
import shutil
import statistics
import struct
import subprocess
import sys
import time
import zlib

from . import bench_runtime, paths
from .cli import ENVIRONMENT
from .ocr import MODELS, stage_inputs
from .paths import GuestError, say
from .session import Session, make_config
from .stage import module_path, stage

# (name, lower bound of peer/ours)
GUEST_TARGET = 50.0
NATIVE_TARGET = 1 / 1.5
SIDE = 320
# enpu-ocr runs the CPU provider with one thread, so a core of the device has one too.
THREADS = 1


def picture(folder):
    """A plain picture: the model computes the same whatever it shows, and no text means that nothing else runs."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = b"\0" + bytes(range(128, 192)) * (SIDE * 3 // 64)
    path = folder / "plain.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(row * SIDE)) + chunk(b"IEND", b""))
    return path


def detection_ms(text):
    """Time of one run of the detection model, from the program's own JSON."""
    return json.loads(text)["pictures"][0]["ms"]["detection"]


def native(image, device, runs, folder):
    times = []
    for _ in range(runs):
        report = folder / "native.json"
        command = [paths.BUILD / "bin" / "enpu-ocr", MODELS, image, "--device", device, "--repeat", "4", "--json", report]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        if done.returncode:
            raise GuestError(f"enpu-ocr --device {device} failed: {done.stdout.strip()[-500:]}")
        times.append(detection_ms(report.read_text(encoding="utf-8")))
    return times


def in_guest(session, image, device, runs, repeat):
    times = []
    for _ in range(runs):
        status, output = session.run(f"{ENVIRONMENT}/enpu/bin/enpu-ocr /enpu/share/models {image} --device {device} "
                                     f"--repeat {repeat} --json /tmp/bench.json >/tmp/bench.log 2>&1 && cat /tmp/bench.json || "
                                     "{ cat /tmp/bench.log; exit 1; }", 900)
        if status:
            raise GuestError(f"enpu-ocr --device {device} failed in the guest: {output.strip()[-500:]}")
        times.append(detection_ms(output))
    return times


def row(name, ours, peer, target, where):
    best, other = statistics.median(ours), statistics.median(peer)
    spread = (max(ours) - min(ours)) / best
    ratio = other / best
    say(f"{name}: {best:.2f} ms, peer {other:.2f} ms, ratio {ratio:.2f} (target {target:.2f})")
    return {"name": name, "ours": best, "peer": other, "unit": "ms", "ratio": round(ratio, 3), "target": round(target, 3),
            "ok": ratio >= target, "where": where, "runs": len(ours), "spread": round(spread, 3)}


def model_rows():
    folder = paths.BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    if not (paths.BUILD / "bin" / "enpu-ocr").exists() or not module_path().exists():
        raise GuestError("enpu-ocr or enpu.ko is not built; run 'make all'")
    image = picture(folder)
    rows = [row("detection on enpu-sim, native", native(image, f"sim:cores=1,threads={THREADS}", 5, folder),
                native(image, "ort-cpu", 5, folder), NATIVE_TARGET, "native")]
    config = make_config(memory="2G")
    stage(config)
    inside = stage_inputs(config, [image])[0]
    with Session(config, [f"enpu,cores=1,threads={THREADS},local-mem=512M"], "enpu.ko") as session:
        npu = in_guest(session, inside, "npu", 5, 4)
        say("now ONNX Runtime's CPU provider in the guest (minutes without KVM)")
        cpu = in_guest(session, inside, "ort-cpu", 1, 1)
        rows.append(row("detection on the NPU, guest", npu, cpu, GUEST_TARGET, config.accel))
        problems = session.problems()
    shutil.rmtree(folder, ignore_errors=True)
    return rows, problems


PARTS = {
    "runtime": lambda: (bench_runtime.micro_rows(), []),
    "serving": lambda: (bench_runtime.serving_native(), []),
    "serving-guest": bench_runtime.serving_guest,
    "model": model_rows,
}


def main():
    """Runs the parts named on the command line, all by default; rows of parts that did not run stay in the file."""
    wanted = sys.argv[1:] or list(PARTS)
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        raise GuestError(f"no benchmark '{unknown[0]}'; there are: {' '.join(PARTS)}")
    out = paths.BUILD / "results" / "bench.json"
    before = json.loads(out.read_text(encoding="utf-8"))["rows"] if out.exists() else []
    rows, problems = [], []
    for name in wanted:
        part_rows, part_problems = PARTS[name]()
        rows += part_rows
        problems += part_problems
    names = {entry["name"] for entry in rows}
    rows = [entry for entry in before if entry["name"] not in names] + rows
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), "rows": rows, "kernel_log": problems}, indent=1) + "\n",
                   encoding="utf-8")
    say(f"results are in {out}")
    return 0
