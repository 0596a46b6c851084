#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A real language model through llama.cpp on the backend, against ggml's CPU backend with the same weights in f32 (with quantised
ones it rounds activations to 8 bits too): sentences, perplexity, damaged files, one model on two devices in two processes by ggml's
RPC backend. TAP on stdout.

usage: language_test.py LIBRARY PROGRAM RESULT.json    on $ENPU_DEVICE; PROGRAM is the example (enpu-ggml-nearest)
"""
import json
import os
import pathlib
import sys
import tempfile
import threading
import time

import language as llm

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import results  # noqa: E402
import tap  # noqa: E402

PROMPTS = ["The capital of France is", "Question: What is the opposite of hot? Answer:", "Once upon a time there was a little girl who"]
ANSWERS = {"The capital of France is": "Paris", "Question: What is the opposite of hot? Answer:": "cold"}
WORDS = 12
TEXT = llm.ROOT / "docs/design.md"
TEXT_BYTES = 2400
DEADLINE_S = 120  # for the end of a program whose server is gone
os.environ.setdefault("ENPU_DEVICE", "sim:local-mem=1G")


class Bench:
    def __init__(self, library, program, folder):
        self.library, self.program, self.folder = library, program, pathlib.Path(folder)
        self.row = {}
        self._reference = None

    def reference(self):
        """The same weights as f32."""
        if not self._reference:
            path = self.folder / "f32.gguf"
            checked(llm.run(["llama-quantize", "--allow-requantize", str(llm.MODEL), str(path), "F32"], llm.environment()), "llama-quantize")
            self._reference = path
        return self._reference

    def npu(self, **more):
        return llm.environment(self.library, ENPU_GGML_REPORT=str(self.folder / "report.json"), **more)

    def counted(self):
        return json.loads((self.folder / "report.json").read_text(encoding="utf-8"))


def checked(result, what):
    status, out, err = result
    assert status == 0, f"{what} ended with {status}: {err[-1500:]}"
    return out


def the_example_finds_the_same_words(bench):
    for word in ("king", "water", "seven"):
        command = [bench.program, str(llm.MODEL), word]
        want = checked(llm.run([*command, "CPU"], llm.environment()), "the CPU").splitlines()
        got = checked(llm.run(command, bench.npu()), "the NPU").splitlines()
        assert len(got) == 10 and [line.split()[1:] for line in got] == [line.split()[1:] for line in want], (got, want)
        apart = max(abs(float(a.split()[0]) - float(b.split()[0])) for a, b in zip(got, want))
        assert apart < 5e-3, f"the numbers are {apart} apart"


def sentences_are_those_of_the_cpu(bench):
    equal = 0
    for prompt in PROMPTS:
        want = checked(llm.run(llm.completion(prompt, WORDS, [], bench.reference()), llm.environment()), "the CPU")
        got = checked(llm.run(llm.completion(prompt, WORDS, ["NPU0"]), bench.npu()), "the NPU")
        assert got.startswith(prompt) and ANSWERS.get(prompt, "") in got, got
        equal += got == want
        assert got == want, f"'{got}' is not '{want}'"
    device = bench.counted()
    # Each layer has seven products of weights, two of attention; each word passes all of them.
    assert device["device_matmuls"] >= 30 * 9 * WORDS and device["device_jobs_failed"] == 0, device
    bench.row.update(prompts=len(PROMPTS), words=WORDS, same_text=equal)


def perplexity_is_that_of_the_cpu(bench):
    text = bench.folder / "text.txt"
    text.write_text(TEXT.read_text(encoding="utf-8")[:TEXT_BYTES], encoding="utf-8")
    found = {}
    for name, devices, model, environment in (("cpu_f32", [], bench.reference(), llm.environment()), ("npu", ["NPU0"], llm.MODEL, bench.npu())):
        done = llm.run(["llama-perplexity", *llm.model_arguments(devices, model), "-f", str(text)], environment)
        found[name] = llm.perplexity(checked(done, name) + done[2])
        assert found[name], done[2][-1500:]
    difference = abs(found["npu"] / found["cpu_f32"] - 1)
    bench.row.update(perplexity=found, perplexity_differs=round(difference, 5))
    assert difference < 0.002, found


def damaged_files_end_with_an_error(bench):
    whole = llm.MODEL.read_bytes()
    cases = {f"cut at {size}": whole[:size] for size in (0, 3, 40, 5000, 1 << 20, len(whole) // 2, len(whole) - 1)}
    cases["magic"] = b"GGML" + whole[4:4096]
    cases["tensors"] = whole[:8] + (1 << 60).to_bytes(8, "little") + whole[16:4096]
    cases["version"] = whole[:4] + (99).to_bytes(4, "little") + whole[8:4096]
    for name, content in cases.items():
        path = bench.folder / "damaged.gguf"
        path.write_bytes(content)
        for command in ([bench.program, str(path), "king"], llm.completion("x", 2, ["NPU0"], path)):
            status, out, err = llm.run(command, bench.npu(), 120)
            # The example reads the table at the start of the file only, and may find it whole.
            whole_table = command[0] == bench.program and len(content) > len(whole) // 3 and len(out.splitlines()) == 10
            assert (status == 0 if whole_table else 0 < status < 128 and err.strip()), \
                f"{pathlib.Path(command[0]).name}, {name}: status {status}, {err[-500:]}"


def on_servers(servers, prompt, words):
    names = [f"RPC{n}" for n in range(len(servers))]
    return llm.completion(prompt, words, names, servers=[s.address for s in servers])


def one_model_on_two_devices(bench):
    want = checked(llm.run(llm.completion(PROMPTS[0], WORDS, ["NPU0"]), bench.npu()), "one device")
    with llm.Server("NPU0", llm.environment(bench.library)) as one, llm.Server("NPU0", llm.environment(bench.library)) as two:
        got = checked(llm.run(on_servers([one, two], PROMPTS[0], WORDS), llm.environment()), "two devices")
    assert got == want, f"'{got}' is not '{want}'"
    bench.row.update(rpc_processes=2, rpc_same_text=True)


def the_death_of_one_is_an_error_within_the_deadline(bench):
    with llm.Server("NPU0", llm.environment(bench.library)) as one, llm.Server("NPU0", llm.environment(bench.library)) as two:
        done = []
        worker = threading.Thread(target=lambda: done.append(llm.run(on_servers([one, two], PROMPTS[2], 200), llm.environment())))
        worker.start()
        time.sleep(8)
        assert worker.is_alive(), f"it ended before the server was killed: {done}"
        killed = time.monotonic()
        two.kill()
        worker.join(DEADLINE_S)
        assert not worker.is_alive(), f"the program still runs {DEADLINE_S} s after a server died"
    status, _, err = done[0]
    assert status != 0 and "RPC" in err, (status, err[-500:])
    bench.row.update(rpc_error_after_s=round(time.monotonic() - killed, 1))


TESTS = [the_example_finds_the_same_words, sentences_are_those_of_the_cpu, perplexity_is_that_of_the_cpu, damaged_files_end_with_an_error,
         one_model_on_two_devices, the_death_of_one_is_an_error_within_the_deadline]


def main():
    library, program, result = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:4])
    wanted = sys.argv[4:]
    # The frameworks' root has a /tmp of its own.
    with tempfile.TemporaryDirectory(dir=pathlib.Path(library).parent) as folder:
        bench = Bench(library, program, folder)
        failed = tap.run(TESTS, wanted, bench)
    print(f"# {json.dumps(bench.row)}", flush=True)
    if not wanted:
        results.update(result, "ggml", {"language_model": {"name": "SmolLM2-135M-Instruct, q4_1", "device": os.environ["ENPU_DEVICE"], **bench.row}})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
