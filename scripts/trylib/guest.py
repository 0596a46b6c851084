# SPDX-License-Identifier: MIT
"""The guest whose share holds the root: commands run there by chroot, on the module and the programs that were installed."""
import json
import pathlib
import shlex

from guestlib.paths import GuestError
from guestlib.session import Session, make_config

from .install import OURS, VENV

DEVICE = "enpu,cores=2,threads=1,local-mem=512M"
PLACE = "/enpu/debian"
MOUNTS = "\n".join([*(f"mount -o bind /{name} {PLACE}/{name}" for name in ("proc", "sys", "dev")),
                    *(f"mount -t tmpfs tmpfs {PLACE}/{name}" for name in ("tmp", "run"))])


class Guest:
    def __init__(self, work, trial):
        self.work, self.trial = work, trial
        self.session = None
        self.pictures = []

    def close(self):
        if self.session:
            self.session.close()
            self.session = None

    def boot(self):
        self.pictures = self.trial.bring_example()
        out = pathlib.Path(self.work) / "out"
        config = make_config(memory="2G", share=str(self.work / "share"), out=str(out))
        self.session = Session(config, [DEVICE])
        self.session.agent.check(MOUNTS)
        return f"ready in {self.session.seconds:.0f} s ({config.accel})"

    def inside(self, command, deadline=60):
        """A command line in the root; its output."""
        inner = f"chroot {PLACE} /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C.UTF-8 bash -c {shlex.quote('cd /tmp; ' + command)} 2>&1"
        status, output = self.session.run(inner, deadline)
        if status:
            raise GuestError(f"'{command}' ended with {status}:\n{output[-3000:]}")
        return output

    def modprobe(self):
        self.inside("modprobe enpu && n=0; until [ -e /dev/accel/accel0 ]; do n=$((n+1)); [ $n -lt 100 ] || { dmesg | tail; exit 1; }; sleep 0.1; done", 90)
        return self.inside("modinfo -n enpu").strip()

    def udev(self):
        # No udev daemon runs here: the rule is tried on the device as it would.
        said = [line.strip() for line in self.inside("udevadm test /sys/class/accel/accel0", 60).splitlines()]
        ours = [line.split("60-enpu.rules:")[1] for line in said if "60-enpu.rules:" in line]
        if not any("GROUP" in line for line in ours) or not any("MODE 0660" in line for line in ours):
            raise GuestError("udev does not take the rule:\n" + "\n".join(said)[-2000:])
        return "; ".join(ours)

    def doctor(self):
        checks = json.loads(self.inside("enpu doctor --json", 90))["checks"]
        # ONNX Runtime's plug-in is in the wheel, not beside the tool.
        if bad := [c for c in checks if c["state"] != "ok" and c["check"] != "onnxruntime"]:
            raise GuestError("\n".join(f"{c['check']}: {c['state']}: {c['found']}" for c in bad))
        return f"{sum(c['state'] == 'ok' for c in checks)} of {len(checks)} checks ok, the plug-in is in the wheel"

    def ocr(self):
        command = (f"ep=$(echo {VENV}/lib/python3*/site-packages/enpu_onnxruntime/libenpu-ort-ep.so); cd {OURS}/ocr; export LD_LIBRARY_PATH=$PWD; "
                   f"./enpu-ocr models {' '.join(self.pictures)} --device npu --ep $ep --expect expected.txt --json /tmp/ocr.json && cat /tmp/ocr.json")
        output = self.inside(command, 420)
        ran = json.loads(output[output.index("\n{") :])
        lines = sum(len(p["text"]) for p in ran["pictures"])
        return f"{lines} lines of {len(self.pictures)} pictures, {ran['nodes_npu']} of {ran['nodes_total']} nodes on the NPU"

    def python(self):
        said = self.inside(f"cd {OURS}/ocr; {VENV}/bin/python3 use_wheel.py models/*_cls_*.onnx", 300)
        return said.strip().splitlines()[-1][:200]

    def end(self):
        self.inside("modprobe -r enpu", 60)
        problems = self.session.problems()
        self.close()
        if problems:
            raise GuestError("\n".join(problems))
