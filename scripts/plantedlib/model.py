# SPDX-License-Identifier: MIT
"""The functional model with one source exchanged, below any driver, natively."""
import json
import os
import pathlib
import shlex
import subprocess

from guestlib.paths import BUILD, ROOT

WHAT = "model"
DEADLINE = 300  # seconds a step may take
Error = subprocess.SubprocessError


def commands():
    """How the model is compiled and linked: {source: command}, the link command."""
    listed = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "enpu-model"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.splitlines()
    compiles = {shlex.split(c)[-1]: shlex.split(c) for c in listed if " -c " in c}
    link = shlex.split(next(c for c in reversed(listed) if "-o lib/libenpu-model.so" in c).removeprefix(": && ").removesuffix(" && :"))
    return compiles, link


def build(name, file, text):
    """The folder of a library made with `text` in the place of the source `file`."""
    compiles, link = commands()
    source = ROOT / file
    folder = BUILD / "planted" / name
    folder.mkdir(parents=True, exist_ok=True)
    copy, made = folder / source.name, folder / (source.name + ".o")
    copy.write_text(text, encoding="utf-8")
    compile_it = list(compiles[str(source)])
    object_file = compile_it[compile_it.index("-o") + 1]
    compile_it[-1] = str(copy)
    for option, value in (("-o", str(made)), ("-MF", f"{made}.d"), ("-MT", str(made))):
        compile_it[compile_it.index(option) + 1] = value
    compile_it[-2:-2] = [f"-I{source.parent}"]
    call(compile_it)
    # The object comes first: a member of a library with the same symbols is then not taken.
    link_it = [w for w in link if w != object_file]
    at = link_it.index("-o")
    link_it[at + 1] = str(folder / "libenpu-model.so")
    link_it[at + 2:at + 2] = [str(made)]
    call(link_it)
    return folder


def call(command):
    done = subprocess.run(command, cwd=BUILD, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=DEADLINE, check=False)
    if done.returncode:
        raise ValueError(done.stdout[-1500:])


def harness(folder):
    env = dict(os.environ, LD_LIBRARY_PATH=f"{folder}:{BUILD / 'lib'}")
    tool = [BUILD / "bin" / "enpu", "bringup", "--lane", "bare", "--json", "--no-results", "-d", "sim:cores=2,local-mem=32M"]
    done = subprocess.run(tool, env=env, text=True, stdout=subprocess.PIPE, timeout=DEADLINE, check=False)
    return json.loads(done.stdout)


def run(name, file, text):
    return harness(build(name, file, text))


def run_unmodified():
    return harness(pathlib.Path(BUILD) / "lib")
