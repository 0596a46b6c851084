#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs into an empty folder, moves that elsewhere, and uses it from there: the tool, a C program by pkg-config, a C++ program by
CMake. Then makes the packages and looks into them. Prints TAP."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["ENPU_BUILD"])
LIB = "lib/x86_64-linux-gnu"
FOREIGN = pathlib.Path(os.environ.get("ENPU_CACHE") or pathlib.Path.home() / ".cache" / "enpu") / "foreign/usr" / LIB

C_PROGRAM = r"""
#include <stdio.h>
#include <enpu/enpu.h>
#include <rt.h>
int main(void) {
    struct enpu_device* device = NULL;
    struct enpu_error error;
    if (enpu_device_open("sim:local-mem=16M", &device, &error) != 0) return fprintf(stderr, "%s\n", error.message), 1;
    enpu_device_release(device);
    rt_device runtime = NULL;
    rt_status status = rt_device_open("sim", &runtime);
    if (status) return fprintf(stderr, "%s\n", rt_status_message(status)), 1;
    puts("both opened");
    return 0;
}
"""
CMAKE_LISTS = """
cmake_minimum_required(VERSION 3.25)
project(user CXX)
find_package(enpu 0.1 REQUIRED)
add_executable(user user.cpp)
target_compile_features(user PRIVATE cxx_std_20)
target_link_libraries(user PRIVATE enpu::enpu enpu::rt)
"""
CXX_PROGRAM = """
#include <enpu/enpu.hpp>
#include <cstdio>
int main() { std::printf("%u engines\\n", enpu::Device::open("sim:cores=3").info().compute_engines); }
"""


def run(command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, check=False, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}: {done.stdout[-1500:]}"
    return done.stdout


class Installed:
    """make install into a folder, which is then moved: nothing may hang on where it was."""

    def __init__(self, work):
        run(["make", "-s", "-C", ROOT, "-o", "cpp", "install", f"DESTDIR={work}/first", "PREFIX=/usr"], env=dict(os.environ, ENPU_BUILD=str(BUILD)))
        (work / "first").rename(work / "moved")
        self.work, self.usr = work, work / "moved/usr"
        # libdrm is the only library that may come from somewhere else.
        self.env = {"PATH": os.environ["PATH"], "HOME": str(work), "LD_LIBRARY_PATH": str(FOREIGN)}

    def files(self):
        for name in ("bin/enpu", f"{LIB}/libenpu.so", f"{LIB}/libenpu.so.1", f"{LIB}/libenpu-rt.so.1", f"{LIB}/libenpu-hal-npu.so",
                     f"{LIB}/enpu/libenpu-model.so", f"{LIB}/pkgconfig/enpu.pc", f"{LIB}/cmake/enpu/enpuConfig.cmake", "share/man/man1/enpu-smi.1",
                     "share/bash-completion/completions/enpu", "src/enpu-0.1.0/dkms.conf", "src/enpu-0.1.0/kmod/Kbuild",
                     "src/enpu-0.1.0/qemu-device/hw/include/enpu_hw.h", "lib/udev/rules.d/60-enpu.rules", "bin/enpu-build-qemu",
                     "share/enpu/qemu/scripts/qemu"):
            assert (self.usr / name).exists(), f"{name} is not installed"

    def no_path_of_the_build(self):
        for path in self.usr.rglob("*"):
            if path.is_file() and path.suffix in (".pc", ".cmake", ".conf", ".1", ""):
                assert str(BUILD).encode() not in path.read_bytes() or b"\x7fELF" == path.read_bytes()[:4], f"{path} names the build folder"
        dynamic = run(["readelf", "-d", self.usr / "bin/enpu", *(self.usr / LIB).glob("libenpu*.so"), *(self.usr / LIB / "enpu").glob("lib*.so")])
        paths = [line for line in dynamic.splitlines() if "RUNPATH" in line or "RPATH" in line]
        assert paths and not any("[/" in line or ":/" in line for line in paths), f"a library looks in a fixed folder: {paths}"

    def tool(self):
        assert "compute" in run([self.usr / "bin/enpu", "info", "-d", "sim"], env=self.env)
        assert "passed" in run([self.usr / "bin/enpu", "validate", "-r", "gemm", "-d", "sim"], env=self.env)
        # No device is needed to find what was installed beside the tool.
        done = subprocess.run([self.usr / "bin/enpu", "doctor", "--json"], env=self.env, stdout=subprocess.PIPE, timeout=60, check=False)
        states = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        wanted = ["hal backends"] + (["onnxruntime"] if (BUILD / "lib/libenpu-ort-ep.so").exists() else [])
        for name in wanted:
            assert states[name]["state"] == "ok", states[name]

    def completion(self):
        script = (f". {self.usr}/share/bash-completion/completions/enpu; COMP_WORDS=(enpu smi --j); COMP_CWORD=2; _enpu enpu --j smi; "
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        assert run(["bash", "-c", script]).split() == ["--json"]

    def pkg_config(self):
        (self.work / "user.c").write_text(C_PROGRAM, encoding="utf-8")
        flags = run(["pkg-config", "--cflags", "--libs", "enpu", "enpu-rt"], env={**self.env, "PKG_CONFIG_PATH": str(self.usr / LIB / "pkgconfig")})
        run(["gcc", "-Wall", "-Werror", self.work / "user.c", "-o", self.work / "user", *flags.split(), f"-Wl,-rpath-link,{self.usr / LIB / 'enpu'}",
             f"-Wl,-rpath-link,{FOREIGN}"])
        env = {**self.env, "LD_LIBRARY_PATH": f"{self.usr / LIB}:{FOREIGN}"}
        assert "both opened" in run([self.work / "user"], env=env)

    def cmake(self):
        folder = self.work / "cmake"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(CMAKE_LISTS, encoding="utf-8")
        (folder / "user.cpp").write_text(CXX_PROGRAM, encoding="utf-8")
        run(["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.usr}", f"-DCMAKE_LIBRARY_ARCHITECTURE={LIB[4:]}",
             f"-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,{FOREIGN}"])
        run(["cmake", "--build", folder / "build"])
        assert "3 engines" in run([folder / "build/user"], env=self.env)

    def module(self):
        """The sources that DKMS gets are all that the module needs."""
        headers = run([ROOT / "scripts/kernel", "env"]).split("KERNEL_HEADERS=")[1].split()[0]
        tree = self.work / "dkms"
        shutil.copytree(self.usr / "src/enpu-0.1.0", tree)
        run(["make", "-s", "-C", headers, f"M={tree}/kmod", "modules"])
        assert (tree / "kmod/enpu.ko").exists()


def packages(_work):
    run([ROOT / "scripts/package"])
    made = {p.name.split("_")[0]: p for p in (BUILD / "packages").glob("*.deb")}
    assert sorted(made) == ["enpu-dkms", "enpu-qemu-builder", "enpu-sim", "enpu-tools", "libenpu-dev", "libenpu-rt1", "libenpu1"], sorted(made)
    expected = {"enpu-dkms": ["./usr/src/enpu-0.1.0/dkms.conf", "./lib/udev/rules.d/60-enpu.rules"], "enpu-tools": ["./usr/bin/enpu", "man1/enpu.1.gz"],
                "libenpu1": ["libenpu.so.1"], "libenpu-dev": ["enpu/enpu.h", "pkgconfig/enpu-rt.pc"], "libenpu-rt1": ["libenpu-hal-npu.so"],
                "enpu-sim": ["enpu/libenpu-model.so"], "enpu-qemu-builder": ["enpu-build-qemu"]}
    seen = {}
    for name, words in expected.items():
        listed = run(["dpkg-deb", "-c", made[name]])
        for word in [*words, f"doc/{name}/copyright"]:
            assert word in listed, f"{made[name].name} holds no {word}"
        assert "qemu-system" not in listed, f"{made[name].name} holds a QEMU binary"
        for line in listed.splitlines():
            path = line.split()[5]
            if not path.endswith("/"):
                assert seen.setdefault(path, name) == name, f"{path} is in {seen[path]} and in {name}"
        assert run(["dpkg-deb", "-f", made[name], "Version"]).strip() == "0.1.0"


def wheel(work):
    wheels = list((BUILD / "packages").glob("*.whl"))
    if not (BUILD / "lib/libenpu-ort-ep.so").exists():
        return "SKIP the ONNX Runtime plug-in is not built"
    assert len(wheels) == 1
    with zipfile.ZipFile(wheels[0]) as z:
        z.extractall(work / "wheel")
    # All that the plug-in needs but libdrm lies beside it.
    needed = run(["ldd", work / "wheel/enpu_onnxruntime/libenpu-ort-ep.so"], env={"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": str(FOREIGN)})
    assert "not found" not in needed, needed
    assert str(work / "wheel/enpu_onnxruntime") in needed, needed
    return None


def main():
    if not re.search(r"^ENPU_SANITIZE:STRING=$", (BUILD / "CMakeCache.txt").read_text(encoding="utf-8"), re.M):
        print("1..0 # SKIP what a sanitizer is built into is not for programs of others")
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        try:
            installed = Installed(work)
        except (AssertionError, OSError, subprocess.SubprocessError) as e:
            print(f"1..1\nnot ok 1 - make install: {e}")
            return 1
        checks = [installed.files, installed.no_path_of_the_build, installed.tool, installed.completion, installed.pkg_config, installed.cmake,
                  installed.module, lambda: packages(work), lambda: wheel(work)]
        names = ["what is installed", "no path of the build", "the tool", "bash completion", "a C program by pkg-config", "a C++ program by CMake",
                 "the module from its DKMS sources", "Debian packages", "the wheel"]
        print(f"1..{len(checks)}", flush=True)
        for number, (name, check) in enumerate(zip(names, checks), 1):
            try:
                skipped = check()
                print(f"ok {number} - {name}{f' # {skipped}' if skipped else ''}", flush=True)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"not ok {number} - {name}\n# " + traceback.format_exc().strip().replace("\n", "\n# "), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
