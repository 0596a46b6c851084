#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""enpu-ocr on the simulator, against ONNX Runtime's CPU provider, and with bad input. TAP on stdout.

usage: ocr_test.py ENPU_OCR EP MODELS EXPECTED PICTURE..."""
import json
import pathlib
import subprocess
import sys
import tempfile

PROGRAM, EP, MODELS, EXPECTED, *PICTURES = sys.argv[1:]
# Convolutions of the two models, by run of a model.
CONVOLUTIONS = {"detection": 62, "recognition": 38}


def run(*arguments):
    done = subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240,
                          check=False)
    return done.returncode, done.stdout


def reads_the_pictures(work):
    code, text = run(MODELS, *PICTURES, "--device", "sim", "--ep", EP, "--json", f"{work}/run.json", "--dump", f"{work}/dump",
                     "--expect", EXPECTED)
    assert code == 0, text


def every_node_is_on_the_npu(work):
    result = json.loads(pathlib.Path(work, "run.json").read_text(encoding="utf-8"))
    assert result["nodes_npu"] == result["nodes_total"] > 700, result
    runs = {name: len(list(pathlib.Path(work, "dump").glob(f"*-{name}.run"))) for name in CONVOLUTIONS}
    for name, model in result["models"].items():
        counted = model["device_ops"]
        assert model["left_out"] == [], model
        assert counted["conv2d_fwd"] == CONVOLUTIONS[name] * runs[name], (name, runs, counted)
    assert result["models"]["recognition"]["device_ops"]["matmul_fwd"] == 13 * runs["recognition"]
    assert result["models"]["recognition"]["device_ops"]["norm_fwd"] == 5 * runs["recognition"]
    assert result["models"]["recognition"]["device_ops"]["softmax_fwd"] == 3 * runs["recognition"]


def numbers_agree_with_the_cpu_provider(work):
    code, text = run(MODELS, "--check", f"{work}/dump")
    assert code == 0, text


def memory_is_planned_near_the_bound(work):
    result = json.loads(pathlib.Path(work, "run.json").read_text(encoding="utf-8"))
    for name, model in result["models"].items():
        assert model["programs"], model
        for program in model["programs"]:
            assert 0 < program["arena_bytes"] <= 1.1 * program["lower_bound_bytes"], (name, program)


def damaged_results_are_noticed(work):
    dump = next(pathlib.Path(work, "dump").glob("*-detection.run"))
    data = bytearray(dump.read_bytes())
    data[-1] ^= 0x40
    dump.write_bytes(data)
    code, text = run(MODELS, "--check", f"{work}/dump")
    assert code == 1 and "max_rel_err" in text, text


def a_file_that_is_no_picture(work):
    path = pathlib.Path(work, "notes.png")
    path.write_text("not a picture", encoding="utf-8")
    code, text = run(MODELS, str(path), "--device", "sim", "--ep", EP)
    assert code == 1 and "notes.png' is no PNG or JPEG" in text, text


def a_truncated_picture(work):
    path = pathlib.Path(work, "half.png")
    path.write_bytes(pathlib.Path(PICTURES[0]).read_bytes()[:1000])
    code, text = run(MODELS, str(path), "--device", "sim", "--ep", EP)
    assert code == 1 and "half.png' is no PNG or JPEG" in text, text


def a_truncated_model(work):
    models = pathlib.Path(work, "models")
    models.mkdir()
    for model in pathlib.Path(MODELS).glob("*.onnx"):
        data = model.read_bytes()
        (models / model.name).write_bytes(data[:len(data) // 2] if "_det_" in model.name else data)
    code, text = run(str(models), PICTURES[0], "--device", "sim", "--ep", EP)
    assert code == 1 and "_det_" in text, text


def too_little_device_memory(work):
    code, text = run(MODELS, PICTURES[0], "--device", "sim:local-mem=4M", "--ep", EP)
    assert code == 1 and "resource-exhausted" in text, text


def an_unknown_device(work):
    code, text = run(MODELS, PICTURES[0], "--device", "toaster", "--ep", EP)
    assert code == 1 and "toaster" in text, text


TESTS = [reads_the_pictures, every_node_is_on_the_npu, numbers_agree_with_the_cpu_provider, memory_is_planned_near_the_bound,
         damaged_results_are_noticed, a_file_that_is_no_picture, a_truncated_picture, a_truncated_model, too_little_device_memory, an_unknown_device]


def main():
    print(f"1..{len(TESTS)}")
    failed = False
    with tempfile.TemporaryDirectory() as work:
        for number, test in enumerate(TESTS, 1):
            name = test.__name__.replace("_", " ")
            try:
                test(work)
                print(f"ok {number} - {name}", flush=True)
            except (AssertionError, OSError, subprocess.TimeoutExpired, KeyError) as error:
                failed = True
                print(f"not ok {number} - {name}", flush=True)
                print("\n".join("# " + line for line in str(error).splitlines()), flush=True)
    return 1 if failed else 0


sys.exit(main())
