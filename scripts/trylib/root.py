# SPDX-License-Identifier: MIT
"""A minimal Debian root of the host's suite, with the guest's kernel installed as a user would have it."""
import pathlib
import shutil
import subprocess

from guestlib import paths
from guestlib.paths import GuestError, say

CACHE = paths.CACHE / "try-packages"
DEBS = CACHE / "debs"  # apt's downloads, kept from run to run
SCRIPTS = paths.ROOT / "scripts"
NONINTERACTIVE = "export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8; "
APT = f"apt-get -q -y --no-install-recommends -o Dir::Cache::archives={DEBS} "
DEADLINE = 1500  # seconds a step may take


def call(command, what, deadline=DEADLINE):
    """Both streams of a command; an error that ends with its last lines."""
    try:
        done = subprocess.run(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=deadline, check=False)
    except subprocess.TimeoutExpired as e:
        raise GuestError(f"{what} did not end in {deadline} s") from e
    if done.returncode:
        raise GuestError(f"{what} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def library(function, *arguments):
    """A function of scripts/lib.sh."""
    words = [str(a) for a in arguments]
    return call(["bash", "-c", 'source "${0%/*}/lib.sh"; "$@"', SCRIPTS / "try-packages", function, *words], f"{function} {' '.join(words)[:300]}")


class Root:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def inside(self, command):
        """A shell command line in the root, where /dev, /proc and apt's downloads are the host's."""
        return library("in_private_root", self.folder, NONINTERACTIVE + command, DEBS)

    def path(self, name):
        return self.folder / name.lstrip("/")


def suite():
    with open("/etc/os-release", encoding="utf-8") as f:
        return dict(line.strip().split("=", 1) for line in f if "=" in line)["VERSION_CODENAME"]


def write_sources(root, mirror):
    kernel_suite = library("debian_kernel_suite").strip()
    suites = " ".join(dict.fromkeys([suite(), kernel_suite]))
    root.path("etc/apt/sources.list").unlink(missing_ok=True)
    root.path("etc/apt/sources.list.d/debian.sources").write_text(
        f"Types: deb\nURIs: {mirror}\nSuites: {suites}\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n", encoding="utf-8")
    shutil.copyfile("/etc/resolv.conf", root.path("etc/resolv.conf"))


def base(release):
    """The root before anything of ours is in it: made once per suite and kernel, and kept."""
    folder = CACHE / f"{suite()}-{release}"
    if folder.exists():
        return folder
    DEBS.joinpath("partial").mkdir(parents=True, exist_ok=True)
    part = Root(folder.with_name(folder.name + ".part"))
    shutil.rmtree(part.folder, ignore_errors=True)
    mirror = call([SCRIPTS / "apt-root", "mirror"], "apt-root mirror").strip()
    say(f"making a minimal root of {suite()} (once)")
    call(["debootstrap", "--variant=minbase", "--include=ca-certificates,python3-venv", f"--cache-dir={DEBS}", suite(), part.folder, mirror], "debootstrap")
    write_sources(part, mirror)
    say(f"installing linux-image-{release} and its headers in it (once)")
    # The guest boots the kernel without a disk: no initial ramdisk is made here.
    part.inside(f"export INITRD=No; {APT} update && {APT} install linux-image-{release} linux-headers-{release}")
    part.folder.rename(folder)
    return folder


def fresh(release, folder):
    """A copy of that root to work in."""
    folder = pathlib.Path(folder)
    source = base(release)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    call(["cp", "-a", "--reflink=auto", source, folder], "the copy of the root")
    return Root(folder)
