# SPDX-License-Identifier: MIT
"""make run MODEL=… INPUT=…: any ONNX model on the NPU in the guest; its outputs are compared on the host."""
import pathlib
import shutil
import subprocess
import time

from . import paths
from .cli import ENVIRONMENT
from .ocr import DEVICE, RUN_S, quote, show
from .paths import GuestError, say
from .session import Session, make_config
from .stage import Stage, module_path, stage


def stage_files(config, model, inputs):
    """The model with what lies beside it (external data), and the inputs; their paths in the guest."""
    target = Stage(config.share)
    shutil.rmtree(target.root / "share" / "run", ignore_errors=True)
    target.put(model, f"share/run/model/{model.name}")
    for beside in model.parent.glob(f"{model.stem}*"):
        if beside.is_file() and beside != model:
            target.put(beside, f"share/run/model/{beside.name}")
    names = []
    for n, path in enumerate(inputs):
        names.append(f"/enpu/share/run/{n}/{path.name}")
        target.put(path, names[-1].removeprefix("/enpu/"))
    return f"/enpu/share/run/model/{model.name}", names


def main(model, inputs):
    started = time.monotonic()
    files = [pathlib.Path(f) for f in (model, *inputs)]
    for path in files:
        if not path.is_file():
            raise GuestError(f"there is no file '{path}'")
    program = paths.BUILD / "bin" / "enpu-onnx"
    for built, command in ((program, "make all"), (module_path(), "make kmod")):
        if not built.exists():
            raise GuestError(f"{built.name} is not built; run '{command}'")
    config = make_config(memory="2G")
    stage(config, tests=[])
    inside, names = stage_files(config, files[0], files[1:])
    out = pathlib.Path(config.out) / "run"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = f"/enpu/bin/enpu-onnx {quote(inside)} {' '.join(map(quote, names))} --device npu --ep /enpu/lib/libenpu-ort-ep.so " \
              f"--report /out/{out.name}/report.json --save /out/{out.name}"
    with Session(config, [DEVICE], "enpu.ko") as session:
        say(f"guest ready in {session.seconds:.1f} s ({config.accel}), enpu.ko is loaded")
        status, _ = session.run(ENVIRONMENT + command, RUN_S, show)
        problems = session.problems()
    for line in problems:
        say(f"the kernel log holds what it must not: {line}")
    if status:
        return status
    say("the same on the host with ONNX Runtime's CPU provider:")
    done = subprocess.run([program, *files, "--device", "ort-cpu", "--compare", out], timeout=RUN_S, check=False)
    say(f"{time.monotonic() - started:.0f} s, {config.accel}")
    return 1 if problems else done.returncode
