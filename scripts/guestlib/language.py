# SPDX-License-Identifier: MIT
"""make run PROMPT=…: a small language model goes on with a text, through llama.cpp on the NPU in the guest; then on the host's CPU."""
import pathlib
import shlex
import shutil
import subprocess
import sys
import time

from . import paths
from .cli import ENVIRONMENT
from .ocr import show
from .paths import GuestError, say
from .session import Session, make_config
from .stage import Stage, module_path, stage

sys.path.insert(0, str(paths.ROOT / "integrations/ggml"))
import language as llm  # noqa: E402  pylint: disable=wrong-import-position

DEVICE = "enpu,cores=2,threads=1,local-mem=512M"
WORDS, RUN_S = 12, 580
HERE = "/enpu/share/llama"
BACKEND = "/enpu/lib/libenpu-ggml.so"  # in the guest
FRAMEWORKS = paths.CACHE / "frameworks"
PROGRAMS = ("/usr/bin/llama-completion", llm.RPC_SERVER)
BACKENDS = "/usr/lib/x86_64-linux-gnu/ggml/backends0"
LOADER = "/lib64/ld-linux-x86-64.so.2"


def needed(program):
    """The libraries of a program of the frameworks' root: {name: path inside the root}."""
    done = subprocess.run([llm.FRAMEWORKS, "run", LOADER, "--list", program], stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    rows = [line.split() for line in done.stdout.splitlines()]
    return {row[0]: row[2] for row in rows if len(row) >= 3 and row[1] == "=>"}


def put(target, inside, name):
    """A file of the root, whose links are those of another root."""
    path = FRAMEWORKS / inside.lstrip("/")
    while path.is_symlink():
        link = pathlib.Path(path.readlink())
        path = FRAMEWORKS / str(link).lstrip("/") if link.is_absolute() else path.parent / link
    target.put(path, f"share/llama/{name}")


def stage_llama(config):
    """llama.cpp with the C library and the backends that it was built with, and the model: all in one folder, from where it runs."""
    if not llm.MODEL.exists():
        raise GuestError("the language model is missing; run 'scripts/wheels language'")
    library = paths.BUILD / "lib" / "libenpu-ggml.so"
    for built, command in ((library, "make test-frameworks"), (module_path(), "make kmod")):
        if not built.exists():
            raise GuestError(f"{built.name} is not built; run '{command}'")
    stage(config, tests=[])
    target = Stage(config.share)
    target.add(library)
    put(target, LOADER, "ld-linux-x86-64.so.2")
    backends = [f"{BACKENDS}/{p.name}" for p in (FRAMEWORKS / BACKENDS.lstrip("/")).glob("*.so")]
    for file in (*PROGRAMS, *backends):
        put(target, file, pathlib.Path(file).name)
        for name, inside in needed(file).items():
            put(target, inside, name)
    target.put(llm.MODEL, f"share/llama/{llm.MODEL.name}")


def in_guest(arguments, **variables):
    """A command line of the guest's shell; the loader of llama.cpp's own C library starts it."""
    words = [f"{HERE}/ld-linux-x86-64.so.2", "--library-path", f"{HERE}:/enpu/lib", f"{HERE}/{pathlib.Path(arguments[0]).name}", *arguments[1:]]
    settings = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    return f"{ENVIRONMENT}unset LD_LIBRARY_PATH\n{settings}cd {HERE} && {shlex.join(words)}"


def completion(prompt, words, devices, servers=()):
    return llm.completion(prompt, words, devices, f"{HERE}/{llm.MODEL.name}", servers)


def main(prompt):
    subprocess.run([llm.FRAMEWORKS, "get"], check=True, timeout=1800)
    config = make_config(memory="2G")
    stage_llama(config)
    out = pathlib.Path(config.out) / "language"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    command = in_guest(completion(prompt, WORDS, ["NPU0"]), GGML_BACKEND_PATH=BACKEND,
                       ENPU_GGML_REPORT=f"/out/{out.name}/report.json")
    with Session(config, [DEVICE], "enpu.ko") as session:
        say(f"guest ready in {session.seconds:.1f} s ({config.accel}), enpu.ko is loaded")
        started = time.monotonic()
        status, _ = session.run(command + " 2>/out/language/log", RUN_S, show)
        say(f"{WORDS} words in {time.monotonic() - started:.0f} s, model loaded and prompt read with them")
        problems = session.problems()
    for line in problems:
        say(f"the kernel log holds what it must not: {line}")
    if status:
        say((out / "log").read_text(encoding="utf-8", errors="replace")[-2000:])
        return status
    say(f"the device counted: {(out / 'report.json').read_text(encoding='utf-8').strip()}")
    say("the same on the host with ggml's CPU backend:")
    status, text, errors = llm.run(llm.completion(prompt, WORDS, []), llm.environment(), RUN_S)
    print(text if status == 0 else errors[-1000:], flush=True)
    return 1 if problems else status
