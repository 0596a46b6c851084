#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""enpu fault against a file and a monitor that this test plays. fault_test.py ENPU, prints TAP."""
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading

TOOL = sys.argv[1]
number = 0


def run(*arguments):
    done = subprocess.run([TOOL, "fault", *arguments], capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout, done.stderr


def check(name, good, seen=""):
    global number
    number += 1
    print(f"{'ok' if good else 'not ok'} {number} {name}")
    if not good:
        print(f"# {seen}")


class Monitor(threading.Thread):
    """Answers one connection as QEMU's monitor does, an event in between."""

    def __init__(self, path, answer):
        super().__init__(daemon=True)
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen(1)
        self.answer, self.requests = answer, []
        self.start()

    def run(self):
        peer = self.server.accept()[0].makefile("rw")
        print(json.dumps({"QMP": {}}), file=peer, flush=True)
        for line in peer:
            request = json.loads(line)
            self.requests.append(request)
            print(json.dumps({"event": "RTC_CHANGE"}), file=peer, flush=True)
            answer = {"return": {}} if request["execute"] == "qmp_capabilities" else self.answer
            print(json.dumps(answer), file=peer, flush=True)


def test_texts():
    code, out, _ = run("list", "--json")
    kinds = {row["kind"]: row for row in json.loads(out)["kinds"]}
    check("list has every kind with its target", code == 0 and kinds["irq-lost"]["target"] == "vector" and len(kinds) >= 21, out)
    check("a sound text", run("check", "engine-hang:engine=0:after=3;dma-read:every=50:seed=7")[0] == 0)
    code, _, err = run("check", "engine-hang:queue=0")
    check("an unsound one is shown where it breaks", code == 2 and "at 'queue=0'" in err, err)


def test_file(folder):
    file = folder / "inject_fault"
    file.write_text("")
    code, _, err = run("arm", "irq-lost:times=always", "--file", str(file))
    check("arm writes the text", code == 0 and file.read_text() == "irq-lost:times=always", err)
    code, _, err = run("arm", "irq-lots", "--file", str(file))
    check("nothing unsound is written", code == 2 and file.read_text() == "irq-lost:times=always", err)
    run("clear", "--file", str(file))
    check("clear", file.read_text() == "none")
    file.write_text("now 99\nirq-lost 3 4567\nmmu-fault 0 0\n")
    code, out, _ = run("show", "--json", "--file", str(file))
    check("show", json.loads(out)["fired"] == [{"kind": "irq-lost", "count": 3, "last_ns": 4567}], out)
    code, _, err = run("show", "--file", str(folder / "none"))
    check("a file that is not there", code == 3 and "none" in err, err)


def test_monitor(folder):
    monitor = Monitor(folder / "a", {"return": {}})
    code, _, err = run("arm", "removed:arg=5", "--qmp", str(folder / "a"), "--object", "/machine/x")
    set_request = monitor.requests[-1]
    check("arm over QMP", code == 0 and set_request["execute"] == "qom-set" and set_request["arguments"] == {
        "path": "/machine/x", "property": "inject-fault", "value": "removed:arg=5"}, err)
    Monitor(folder / "b", {"return": "removed 1 5\n"})
    code, out, err = run("show", "--qmp", str(folder / "b"))
    check("show over QMP", code == 0 and "removed" in out, out + err)
    Monitor(folder / "c", {"error": {"class": "GenericError", "desc": "enpu: fault refused"}})
    code, _, err = run("arm", "removed", "--qmp", str(folder / "c"))
    check("a refusal is QEMU's own sentence", code == 2 and "fault refused" in err, err)
    code, _, err = run("show", "--qmp", str(folder / "d"))
    check("no monitor there", code == 3, err)


with tempfile.TemporaryDirectory() as name:
    test_texts()
    test_file(pathlib.Path(name))
    test_monitor(pathlib.Path(name))
print(f"1..{number}")
