# SPDX-License-Identifier: MIT
"""The life of the packages in a root, up to their end: installed, looked at, removed."""
import pathlib
import re
import shutil

from guestlib import ocr, paths
from guestlib.paths import GuestError

from .root import APT, CACHE, DEBS, SCRIPTS, call

PACKAGES = paths.BUILD / "packages"
VENV = "/opt/try/venv"
OURS = "/opt/try"  # what a user brings: venv, example, models. Nothing of the packages is there.
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_27_x86_64", "manylinux_2_28_x86_64")


def onnxruntime():
    """The version that the project is built and tested with."""
    text = (SCRIPTS / "wheels").read_text(encoding="utf-8")
    return re.search(r"^onnxruntime (onnxruntime==\S+)", text, re.MULTILINE).group(1)


class Trial:
    def __init__(self, folder, release):
        self.folder, self.release = folder, release
        self.root = None
        self.names, self.files = [], []

    def make(self, roots):
        self.root = roots.fresh(self.release, self.folder)
        if found := self.named_like_ours():
            raise GuestError(f"the root is not clean: {found}")
        return f"{roots.suite()}, Linux {self.release}"

    def named_like_ours(self):
        """Files and folders of the root whose name is ours, apart from what a user brought, apt's downloads and logs."""
        pruned = f"-path /proc -o -path /dev -o -path {OURS} -o -path /var/tmp -o -path {DEBS.parent.parent} -o -path /var/log"
        return self.root.inside(f"find / \\( {pruned} \\) -prune -o -iname '*enpu*' -print").split()

    def apt(self):
        debs = sorted(PACKAGES.glob("*.deb"))
        self.names = [d.name.split("_")[0] for d in debs]
        target = self.root.path("var/tmp/packages")
        target.mkdir(parents=True)
        for deb in debs:
            shutil.copy2(deb, target)
        log = self.root.inside(f"{APT} update && {APT} install /var/tmp/packages/*.deb")
        (self.folder.parents[1] / "apt.log").write_text(log, encoding="utf-8")
        listed = set(self.root.inside(f"dpkg -L {' '.join(self.names)}").splitlines())
        self.files = sorted(f for f in listed if f.startswith("/") and not self.root.path(f).is_dir())
        if broken := self.root.inside("dpkg --audit").strip():
            raise GuestError(f"dpkg --audit says: {broken}")
        return f"{len(debs)} packages, {len(self.files)} files"

    def dkms(self):
        status = self.root.inside("dkms status -m enpu")
        done = next((line for line in status.splitlines() if f"{self.release}, x86_64: installed" in line), None)
        if not done:
            logs = [p.read_text(encoding="utf-8", errors="replace")[-3000:] for p in self.root.path("var/lib/dkms/enpu").rglob("make.log")]
            raise GuestError(f"dkms status says '{status}'\n" + "\n".join(logs))
        return f"{done}; {self.root.inside(f'modinfo -k {self.release} -n enpu').strip()}"

    def pip(self):
        python = self.root.inside("python3 -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'").strip()
        store = CACHE / f"wheels-{python}"
        if not list(store.glob("onnxruntime-*")):
            platforms = [word for name in PLATFORMS for word in ("--platform", name)]
            call(["python3", "-m", "pip", "download", "-q", "--only-binary=:all:", "--python-version", python, *platforms, "-d", store, onnxruntime()], "pip download")
        wheels = self.root.path("var/tmp/wheels")
        shutil.copytree(store, wheels)
        for wheel in PACKAGES.glob("*.whl"):
            shutil.copy2(wheel, wheels)
        self.root.inside(f"python3 -m venv {VENV} && {VENV}/bin/pip install -q --no-index --find-links /var/tmp/wheels enpu-onnxruntime {onnxruntime()}")
        return self.root.inside(f"{VENV}/bin/pip list --format freeze | grep -i onnxruntime").strip().replace("\n", ", ")

    def simulator(self):
        said = self.root.inside("enpu validate -d sim -r gemm && enpu info -d sim | head -n 1")
        return said.strip().splitlines()[0]

    def bring_example(self):
        """The OCR program, its models and pictures, as a user would copy them there."""
        place = self.root.path(OURS) / "ocr"
        (place / "models").mkdir(parents=True, exist_ok=True)
        example = paths.ROOT / "integrations/onnxruntime/examples/ocr"
        shutil.copy2(paths.BUILD / "bin" / "enpu-ocr", place / "enpu-ocr")
        for model in ocr.MODELS.glob("*.onnx"):
            shutil.copy2(model, place / "models" / model.name)
        pictures = [*ocr.SAMPLES, example / "pictures" / "notice.jpg"]
        for path in [*pictures, example / "pictures" / "expected.txt"]:
            shutil.copy2(path, place / path.name)
        shutil.copy2(pathlib.Path(__file__).with_name("use_wheel.py"), place / "use_wheel.py")
        # The wheel has the library under its full version only; the loader looks for its SONAME, and the library for the other beside it.
        self.root.inside(f"cd {OURS}/ocr && capi=$(echo {VENV}/lib/python3*/site-packages/onnxruntime/capi) && "
                         "ln -sf $capi/libonnxruntime.so.* libonnxruntime.so.1 && ln -sf $capi/libonnxruntime_providers_shared.so .")
        return [p.name for p in pictures]

    def remove(self):
        self.root.inside(f"{APT} purge {' '.join(self.names)} && {APT} autoremove --purge && {VENV}/bin/pip uninstall -q -y enpu-onnxruntime")
        left = [f for f in self.files if self.root.path(f).exists() or self.root.path(f).is_symlink()]
        left += self.named_like_ours()
        left += [line for line in self.root.inside("dpkg-query -W -f '${db:Status-Abbrev} ${Package}\\n'").splitlines() if "enpu" in line]
        left += [str(p) for p in self.root.path(f"{VENV}/lib").glob("python3*/site-packages/enpu*")]
        left += self.root.inside(f"! modinfo -k {self.release} -n enpu 2>/dev/null").split()
        left += self.root.inside("if command -v dkms >/dev/null; then dkms status; fi").split("\n")[:-1]
        if left:
            raise GuestError("left behind: " + ", ".join(left))
        return f"{len(self.names)} packages and {len(self.files)} files are gone"
