# SPDX-License-Identifier: MIT
"""What tracing costs: the same model with 'enpu trace record' around the program and without, in turns."""
import statistics

from . import paths
from .bench_device import NATIVE
from .bench_models import OCR, guest_model, stage_models
from .bench_table import native_only, quick, row, run_json
from .session import Session, make_config
from .stage import stage

MODEL = ("PP-OCR detection 320x320", OCR / "ch_PP-OCRv4_det_infer.onnx", ["x=1,3,320,320"], 2.1)
# A run may take 5 % longer with the trace on.
TARGET = round(1 / 1.05, 3)
PAIRS = 7


def pairs():
    return 3 if quick() else PAIRS


def native_ms(*before):
    """Median ms of a run on the simulator; before: what stands before the program."""
    _, model, dims, _ = MODEL
    program = [paths.BUILD / "bin" / "model-bench", model, "--ep", paths.BUILD / "lib" / "libenpu-ort-ep.so", "--side", "ours",
               "--device", "sim:cores=1,threads=1,local-mem=512M", "--runs", "9", "--dims", dims[0]]
    command = [*before, *program] if before else program
    found = run_json(*map(str, command), environment={"ENPU_HAL_PATH": str(paths.BUILD / "lib")})
    return statistics.median(found["ours"])


def recorder(root, output):
    return [f"{root}/bin/enpu", "trace", "record", "-o", output, "--"]


def in_turns(measure, recording):
    """Samples of both, (plain, traced); measure takes what stands before the program. Neither is always the first of a pair: the machine
    warms up."""
    plain, traced = [], []
    for n in range(pairs()):
        turns = [(plain, []), (traced, recording)]
        for samples, before in turns if n % 2 == 0 else reversed(turns):
            samples.append(measure(*before))
    return plain, traced


def native_rows():
    plain, traced = in_turns(native_ms, recorder(paths.BUILD, paths.BUILD / "results" / "bench.pftrace"))
    return [cost(traced, plain, NATIVE)]


def cost(traced, plain, where):
    return row(f"{MODEL[0]} with the trace on, beside off", traced, plain, "ms", TARGET, where)


def guest_rows():
    _, model, dims, _ = MODEL
    config = make_config(memory="2G")
    stage(config, tests=[])
    stage_models(config, [MODEL])
    with Session(config, ["enpu,cores=1,threads=1,local-mem=512M"], "enpu.ko") as session:
        def measure(*before):
            return statistics.median(guest_model(session, model, dims, "--side", "ours", "--runs", "9", before=" ".join(before))["ours"])

        plain, traced = in_turns(measure, recorder("/enpu", "/tmp/bench.pftrace"))
        problems = session.problems()
    return [cost(traced, plain, config.accel)], problems


def tracing():
    rows = native_rows()
    if native_only():
        return rows, []
    inside, problems = guest_rows()
    return rows + inside, problems
