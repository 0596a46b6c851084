# SPDX-License-Identifier: MIT
"""Where things lie: checkout, cache, build products, kernel."""
import hashlib
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("ENPU_CACHE") or
                     pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "enpu")
BUILD = pathlib.Path(os.environ.get("ENPU_BUILD") or ROOT / "build")


# Which kernel the guest boots (scripts/kernel): stock, debug, next, or dir, which is the one in the folder that ENPU_KERNEL names.
VARIANT = os.environ.get("ENPU_KERNEL") or "stock"
if "/" in VARIANT:
    VARIANT = "dir"


class GuestError(Exception):
    """Something a person must read: one clear sentence."""


def say(text):
    print(f"guest: {text}", file=sys.stderr, flush=True)


def shell_variables(script, *args):
    """Runs a script of ours that prints NAME=VALUE lines."""
    done = subprocess.run([ROOT / "scripts" / script, *args], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise GuestError(f"scripts/{script} {' '.join(args)} failed; its message is above")
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def qemu_binary():
    forced = os.environ.get("ENPU_QEMU")
    places = [pathlib.Path(forced)] if forced else [b / "bin" / "qemu-system-x86_64" for b in (BUILD, ROOT / "build")]
    for path in places:
        if path.exists():
            return path
    raise GuestError(f"QEMU with the device is not built ({places[0]}); run 'make device'")


def file_hash(path):
    """Hash of a file's content, remembered by size and time so that large files are read once."""
    path = pathlib.Path(path).resolve()
    stat = path.stat()
    memo = CACHE / "hashes" / hashlib.sha256(f"{path}:{stat.st_size}:{stat.st_mtime_ns}".encode()).hexdigest()[:24]
    if memo.exists():
        return memo.read_text()
    with open(path, "rb") as f:
        digest = hashlib.file_digest(f, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else \
            hashlib.sha256(f.read()).hexdigest()
    memo.parent.mkdir(parents=True, exist_ok=True)
    memo.write_text(digest)
    return digest


def guest_kernel():
    """KERNEL_DIR, KERNEL_RELEASE, KERNEL_VMLINUX, KERNEL_HEADERS."""
    return shell_variables("kernel", "env")


def results():
    """Folder of results: each kernel but the stock one has its own."""
    return BUILD / "results" if VARIANT == "stock" else BUILD / "results" / f"kernel-{VARIANT}"


def of_variant(name):
    """A name of a folder of which each kernel has its own."""
    return name if VARIANT == "stock" else f"{name}-{VARIANT}"


def initramfs(kernel):
    """Path of the initramfs, made anew when one of its inputs changed."""
    inputs = sorted((ROOT / "scripts" / "image.d").iterdir()) + [ROOT / "scripts" / "image"]
    key = hashlib.sha256(f"{kernel['KERNEL_DIR']} {kernel['KERNEL_RELEASE']}".encode())
    for path in inputs:
        key.update(path.read_bytes())
    out = CACHE / "image" / f"{key.hexdigest()[:16]}.cpio"
    if not out.exists():
        say("making the guest's initramfs")
        subprocess.run([ROOT / "scripts" / "image", out], check=True)
    return out
