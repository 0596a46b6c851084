# SPDX-License-Identifier: MIT
"""Benchmarks of whole models: beside ONNX Runtime's CPU provider natively and in the guest, how busy the device is, and cold start."""
import json
import os
import re
import time

from . import paths
from .bench_device import NATIVE, in_guest
from .bench_table import GuestError, geometric_mean, native_only, quick, row, run_json, say, value
from .cli import ENVIRONMENT
from .session import Session, make_config
from .stage import Stage, module_path, stage

WHEELS = paths.CACHE / "wheels"
OCR = WHEELS / "rapidocr-onnxruntime" / "rapidocr_onnxruntime" / "models"
# (name, file, dims of inputs, GFLOP: those of at least 0.2 count in the guest)
MODELS = [
    ("PP-OCR detection 320x320", OCR / "ch_PP-OCRv4_det_infer.onnx", ["x=1,3,320,320"], 2.1),
    ("PP-OCR detection 640x640", OCR / "ch_PP-OCRv4_det_infer.onnx", ["x=1,3,640,640"], 8.4),
    ("PP-OCR recognition 48x320", OCR / "ch_PP-OCRv4_rec_infer.onnx", ["x=1,3,48,320"], 1.4),
    ("PP-OCR recognition 6 x 48x320", OCR / "ch_PP-OCRv4_rec_infer.onnx", ["x=6,3,48,320"], 8.4),
    ("PP-OCR direction 48x192", OCR / "ch_ppocr_mobile_v2.0_cls_infer.onnx", ["x=1,3,48,192"], 0.05),
]
MODEL_SHARE, MEAN_SHARE = 1 / 1.15, 1.0
GUEST_TARGET = 50.0
BUSY_SHARE = 0.6
LARGEST_ERROR = 1e-3
# A step of a start that takes more of it than this must have a reason.
LARGEST_STEP = 0.2


def chosen():
    """All models that are at hand, or those whose name holds ONLY_MODELS; QUICK takes two."""
    wanted = os.environ.get("ONLY_MODELS", "")
    found = [m for m in MODELS if m[1].exists()]
    if not found:
        raise GuestError("no model is at hand; scripts/wheels gets them")
    if wanted:
        found = [m for m in found if wanted in m[0]]
        if not found:
            raise GuestError(f"ONLY_MODELS: no model's name holds '{wanted}'; there are: {', '.join(m[0] for m in MODELS)}")
        return found
    return [m for m in found if m[0] in ("PP-OCR detection 320x320", "PP-OCR recognition 48x320")] if quick() else found


def model_bench(model, dims, *options):
    arguments = [str(model), "--ep", str(paths.BUILD / "lib" / "libenpu-ort-ep.so"), *options]
    for text in dims:
        arguments += ["--dims", text]
    return run_json("model-bench", *arguments, timeout=900, environment={"ENPU_HAL_PATH": str(paths.BUILD / "lib")})


def native_rows():
    rows = []
    for name, model, dims, _ in chosen():
        found = model_bench(model, dims, "--device", "sim:cores=1,threads=1,local-mem=512M", "--runs", "7" if quick() else "21")
        right = found["error"] <= LARGEST_ERROR
        entry = row(f"{name} on enpu-sim", found["ours"], found["peer"], "ms", round(MODEL_SHARE, 3), NATIVE, error=found["error"],
                    load_ms=found["load_ms"], first_ms=found["first_ms"])
        entry["ok"] = entry["ok"] and right
        if not right:
            say(f"{name}: outputs differ by {found['error']:.2g} of the largest value")
        rows.append(entry)
    return rows + [geometric_mean(rows, "models on enpu-sim, geometric mean", MEAN_SHARE, NATIVE)]


def guest_model(session, model, dims, *options, before=""):
    """What model-bench says; before: a command that runs it."""
    text = " ".join(f"--dims {d}" for d in dims)
    status, output = session.run(
        f"{ENVIRONMENT}export ENPU_HAL_PATH=/enpu/lib\n{before} /enpu/bin/model-bench /enpu/share/models/{model.name} --ep "
        f"/enpu/lib/libenpu-ort-ep.so --device npu:/dev/accel/accel0 {text} {' '.join(options)} >/tmp/bench.json 2>/tmp/bench.log && "
        "cat /tmp/bench.json || { cat /tmp/bench.log; exit 1; }", 900)
    if status:
        raise GuestError(f"model-bench failed in the guest: {output.strip()[-500:]}")
    return json.loads(output)


def stage_models(config, models):
    target = Stage(config.share)
    for _, model, _, _ in models:
        target.put(model, f"share/models/{model.name}")


def busy_row(name, found, accel):
    """Device time of the last run over its wall time. Short runs are reported only."""
    last = found["report"]["last_run"]
    if not last["counted_by_device"]:
        raise GuestError(f"{name}: the provider's report does not say how long the device was busy")
    busy_ms = last["busy_compute_ns"] / 1e6
    share = busy_ms / found["last_ms"]
    return value(f"{name}: device busy over wall time of Run", [share], "share", BUSY_SHARE if found["last_ms"] >= 50 else None, accel,
                 lower_is_better=False, busy_ms=round(busy_ms, 2))


def guest_rows():
    """On the NPU in the guest; ONNX Runtime's CPU provider there takes seconds to minutes, so QUICK leaves it out."""
    if native_only():
        return [], []
    models = chosen()
    config = make_config(memory="2G")
    stage(config)
    stage_models(config, models)
    rows, ratios = [], []
    with Session(config, ["enpu,cores=1,threads=1,local-mem=512M"], "enpu.ko") as session:
        for name, model, dims, gflop in models:
            found = guest_model(session, model, dims, "--side", "ours", "--runs", "5")
            rows.append(busy_row(name, found, config.accel))
            if quick():
                continue
            say(f"{name}: now ONNX Runtime's CPU provider in the guest (seconds to minutes without KVM)")
            peer = guest_model(session, model, dims, "--side", "peer", "--runs", "1")["peer"]
            entry = row(f"{name} in the guest", found["ours"], peer, "ms", None, config.accel)
            rows.append(entry)
            if gflop >= 0.2:
                ratios.append(entry)
        problems = session.problems()
    if ratios:
        rows.append(geometric_mean(ratios, "models in the guest, geometric mean", GUEST_TARGET, config.accel))
    return rows, problems


def models():
    rows = native_rows()
    inside, problems = guest_rows()
    return rows + inside, problems


def shares(name, steps, where, reasons):
    """One row a step: its share of the whole, and whether one over the limit has its reason."""
    whole = sum(steps.values())
    rows = []
    for step, ms in steps.items():
        share = ms / whole
        reason = reasons.get(step)
        entry = value(f"{name}: {step}", [ms], "ms", None, where, share=round(share, 3), whole_ms=round(whole, 1))
        entry["ratio"], entry["target"] = round(LARGEST_STEP / max(share, 1e-6), 3), 1
        entry["ok"] = share <= LARGEST_STEP or reason is not None
        if reason and share > LARGEST_STEP:
            entry["reason"] = reason
        rows.append(entry)
    return rows


def boot_steps(config):
    """A boot without a snapshot, and a start from one: ms of each step."""
    started = time.monotonic()
    with Session(config, ["enpu,cores=1,threads=1"], None, use_snapshot=False) as session:
        cold_ready = time.monotonic() - started
        found = re.search(r"\[\s*([\d.]+)\].*Run /init", session.agent.check("dmesg"))
        kernel = float(found.group(1)) if found else 0.0
    started = time.monotonic()
    with Session(config, ["enpu,cores=1,threads=1"], None) as session:
        restored = time.monotonic() - started
        begin = time.monotonic()
        session.load_module("enpu.ko")
        module = time.monotonic() - begin
        problems = session.problems()
    return {"boot to a shell": cold_ready * 1e3, "of it kernel": kernel * 1e3, "restore to a shell": restored * 1e3,
            "module load": module * 1e3}, problems


REASONS = {
    "guest from the snapshot": "the snapshot is what is cached of a boot; what is left is QEMU's start and reading it",
    "first inference, model load": "weights go to the device and are packed there once a session",
    "first inference, first run": "a program is compiled and its kernels are made once for each set of input shapes",
}


def cold():
    """From nothing to the first result in the guest."""
    if native_only():
        return [], []
    if not module_path().exists():
        raise GuestError("enpu.ko is not built; run 'make kmod'")
    config = make_config(memory="2G")
    stage(config)
    name, model, dims, _ = MODELS[0]
    stage_models(config, MODELS[:1])
    boot, problems = boot_steps(config)
    inside, more = in_guest(lambda session, accel: guest_model(session, model, dims, "--side", "ours", "--runs", "3"),
                            "enpu,cores=1,threads=1,local-mem=512M", "2G")
    steps = {"guest from the snapshot": boot["restore to a shell"], "module load": boot["module load"],
             "first inference, model load": inside["load_ms"], "first inference, first run": inside["first_ms"]}
    rows = shares(f"cold start ({name})", steps, config.accel, REASONS)
    rows.append(row("cold start: guest from a snapshot beside a boot", [boot["restore to a shell"]], [boot["boot to a shell"]], "ms", 2.0,
                    config.accel, kernel_ms=round(boot["of it kernel"], 1)))
    rows.append(row("cold start: later runs beside the first", inside["ours"], [inside["first_ms"]] * len(inside["ours"]), "ms", None, config.accel))
    return rows, problems + more
