#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Data-parallel training by torch.distributed over TCP: two processes, each with its own device, end where one alone ends; when one
dies or stands still, the other ends with a clear error within the deadline.

distributed_test.py RESULT.json     runs where PyTorch is (scripts/frameworks pytorch run), on $ENPU_DEVICE
"""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
from results import update  # noqa: E402

PROGRAM = [sys.executable, str(HERE.parent / "examples/digits.py"), "--no-norm"]
EPOCHS = 2
DEADLINE = 20  # seconds that a process waits for the others; what the example is told
SLACK = 40  # to notice, and to end, on a busy machine
START = 300  # seconds for a process to come up and train its first epoch
TOLERANCE = 1e-4  # relative: sums over the halves of a batch round in another order


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(world, epochs, out, log):
    """Processes of one training, rank 0 first."""
    port, processes = free_port(), []
    for rank in range(world):
        environment = dict(os.environ, WORLD_SIZE=str(world), RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                           GLOO_SOCKET_IFNAME="lo", USE_LIBUV="0", ENPU_DISTRIBUTED_TIMEOUT=str(DEADLINE), ENPU_TORCH_FALLBACK="forbid",
                           OMP_NUM_THREADS="1")
        with open(f"{log}.{rank}", "w", encoding="utf-8") as file:
            processes.append(subprocess.Popen([*PROGRAM, "--epochs", str(epochs), "--result", str(out)], env=environment, stdout=file,
                                              stderr=subprocess.STDOUT))
    return processes


def stop(processes):
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()


def train(world, folder):
    out, log = folder / f"{world}.json", folder / f"{world}.log"
    processes = start(world, EPOCHS, out, log)
    try:
        codes = [process.wait(timeout=START * EPOCHS) for process in processes]
    finally:
        stop(processes)
    if any(codes):
        raise RuntimeError(f"{world} processes ended with {codes}: {pathlib.Path(f'{log}.0').read_text(encoding='utf-8')[-800:]}")
    return json.loads(out.read_text(encoding="utf-8"))


def wait_for_epoch(log, process):
    end = time.monotonic() + START
    while "epoch 0" not in pathlib.Path(log).read_text(encoding="utf-8"):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the first epoch did not end: {pathlib.Path(log).read_text(encoding='utf-8')[-800:]}")
        time.sleep(0.2)


def lose_one(folder, how):
    """(seconds until rank 0 ended, what it said), after rank 1 got the signal."""
    log = folder / f"lost-{how}.log"
    processes = start(2, 1000, folder / "lost.json", log)
    try:
        wait_for_epoch(f"{log}.0", processes[0])
        processes[1].send_signal(how)
        begin = time.monotonic()
        code = processes[0].wait(timeout=DEADLINE + SLACK)
        seconds = time.monotonic() - begin
    finally:
        stop(processes)
    text = pathlib.Path(f"{log}.0").read_text(encoding="utf-8")
    if code == 0 or "another process of the training" not in text:
        raise RuntimeError(f"rank 0 ended with {code} and said: {text[-800:]}")
    return seconds, text.strip().splitlines()[-1]


def main():
    result = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        one, two = train(1, folder), train(2, folder)
        worst = max(abs(a - b) / a for a, b in zip(one["losses"], two["losses"]))
        print(f"losses of one process {one['losses']}, of two {two['losses']}: differ by {worst:.1e}")
        killed, said = lose_one(folder, signal.SIGKILL)
        print(f"rank 1 killed: after {killed:.1f} s rank 0 said: {said}")
        stopped, said = lose_one(folder, signal.SIGSTOP)
        print(f"rank 1 stopped: after {stopped:.1f} s rank 0 said: {said}")
    update(result, "pytorch", {"data_parallel": {
        "processes": 2, "losses": two["losses"], "losses_of_one": one["losses"], "max_rel_err": worst, "accuracy": two["accuracy"],
        "seconds_to_error_killed": round(killed, 1), "seconds_to_error_stopped": round(stopped, 1), "deadline_seconds": DEADLINE}})
    problems = []
    if worst > TOLERANCE or two["accuracy"] != one["accuracy"]:
        problems.append(f"two processes end elsewhere than one: accuracy {two['accuracy']} and {one['accuracy']}")
    if two["world"] != 2 or two["counters"]["work"] >= one["counters"]["work"] * 0.75:
        problems.append(f"two processes did not share the work: {two['counters']} against {one['counters']} of one alone")
    for report in (one, two):
        if report["fallbacks"] or not report["counters"]["conv2d_fwd"]:
            problems.append(f"{report['world']} processes did not train on the device: {report}")
    for problem in problems:
        print(f"failed: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
