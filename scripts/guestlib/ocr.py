# SPDX-License-Identifier: MIT
"""make run: a real OCR model reads a picture on the NPU in the guest; its numbers are compared on the host."""
import json
import pathlib
import shutil
import subprocess
import sys
import time

from . import paths
from .cli import ENVIRONMENT
from .paths import GuestError, say
from .session import Session, make_config
from .stage import Stage, module_path, stage

DEVICE = "enpu,cores=2,threads=1,local-mem=512M"
MODELS = paths.CACHE / "wheels" / "rapidocr-onnxruntime" / "rapidocr_onnxruntime" / "models"
SAMPLES = [paths.CACHE / "wheels" / "scikit-image" / "skimage" / "data" / "page.png",
           paths.CACHE / "wheels" / "ocrmypdf" / "tests" / "resources" / "typewriter.png"]
RUN_S = 600


def pictures(names):
    chosen = [pathlib.Path(n) for n in names] or SAMPLES
    for path in chosen:
        if not path.is_file():
            raise GuestError(f"there is no picture '{path}'")
    return chosen


def stage_inputs(config, chosen):
    """The models that read, and the pictures under their own names (numbered, because two may share one)."""
    target = Stage(config.share)
    for model in sorted(MODELS.glob("*.onnx")):
        if "_cls_" not in model.name:
            target.put(model, f"share/models/{model.name}")
    shutil.rmtree(target.root / "share" / "pictures", ignore_errors=True)
    names = []
    for n, path in enumerate(chosen):
        names.append(f"share/pictures/{n}/{path.name}")
        target.put(path, names[-1])
    return [f"/enpu/{name}" for name in names]


def check_on_host(dumps):
    """Largest relative error against ONNX Runtime's own CPU provider, run here (never in the guest: far too slow there)."""
    report = dumps.parent / "check.json"
    done = subprocess.run([paths.BUILD / "bin" / "enpu-ocr", MODELS, "--check", dumps, "--json", report],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_S, check=False)
    print(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "the comparison said nothing", flush=True)
    error = json.loads(report.read_text(encoding="utf-8"))["max_rel_err"] if report.exists() else None
    return error, done.returncode == 0


def show(data):
    """What a program in the guest prints, as it comes."""
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def read_in_guest(config, inputs, out):
    """Runs the program in the guest; (status, what the kernel log must not hold, seconds, snapshot used)."""
    with Session(config, [DEVICE], "enpu.ko") as session:
        say(f"guest ready in {session.seconds:.1f} s ({config.accel}), enpu.ko is loaded")
        command = f"/enpu/bin/enpu-ocr /enpu/share/models {' '.join(map(quote, inputs))} --device npu --report " \
                  f"--json /out/{out.name}/ocr.json --dump /out/{out.name}/dumps"
        status, _ = session.run(ENVIRONMENT + command, RUN_S, show)
        return status, session.problems()


def quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def write_results(out, config, seconds, error):
    """build/results/run.json: what was read, where it ran, how exact and how fast it was."""
    ran = json.loads((out / "ocr.json").read_text(encoding="utf-8"))
    stages = dict(ran["load_ms"])
    for picture in ran["pictures"]:
        name = picture["image"].rsplit("/", 1)[1]
        stages.update({f"{name}: {stage}": ms for stage, ms in picture["ms"].items()})
    result = {"text": [line for picture in ran["pictures"] for line in picture["text"]], "pictures": ran["pictures"],
              "nodes_total": ran["nodes_total"], "nodes_npu": ran["nodes_npu"], "models": ran["models"], "max_rel_err": error,
              "ms": stages, "accelerator": config.accel, "seconds": round(seconds, 1)}
    folder = paths.BUILD / "results"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(names):
    started = time.monotonic()
    chosen = pictures(names)
    if not (paths.BUILD / "bin" / "enpu-ocr").exists():
        raise GuestError("enpu-ocr is not built; run 'make all' and look for the reason that CMake gives")
    if not module_path().exists():
        raise GuestError("enpu.ko is not built; run 'make kmod'")
    config = make_config(memory="2G")
    stage(config, tests=[])
    inputs = stage_inputs(config, chosen)
    out = pathlib.Path(config.out) / "run"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    status, problems = read_in_guest(config, inputs, out)
    for line in problems:
        say(f"the kernel log holds what it must not: {line}")
    if status:
        return status
    error, close = check_on_host(out / "dumps")
    write_results(out, config, time.monotonic() - started, error)
    say(f"results are in {paths.BUILD / 'results' / 'run.json'} ({time.monotonic() - started:.0f} s, {config.accel})")
    return 0 if close and not problems else 1
