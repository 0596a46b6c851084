# SPDX-License-Identifier: MIT
"""Benchmarks of the device: copies, operators, cores, growth, idling; natively on the simulator and in the guest."""
import json
import pathlib
import time

from .bench_table import GuestError, native_only, quick, row, run_json, value
from .cli import ENVIRONMENT
from .session import Session, make_config
from .stage import stage

NATIVE = "native"
# Of oneDNN's speed.
OPERATOR_SHARE, GUEST_SHARE = 0.95, 0.85
COPY_SHARE = 0.9
MIB = 1 << 20


def native(what, device, runs):
    arguments = [what, "--device", device, "--runs", str(runs)] + (["--quick"] if quick() else [])
    return run_json("device-bench", *arguments, timeout=1800)


def guest(session, what, runs):
    """The device's side of a benchmark, in the guest; a guest has no use for the peers' speed."""
    options = f"--device /dev/accel/accel0 --runs {runs} --no-peer" + (" --quick" if quick() else "")
    status, output = session.run(f"{ENVIRONMENT}/enpu/bin/device-bench {what} {options} >/tmp/bench.json 2>/tmp/bench.log && "
                                 "cat /tmp/bench.json || { cat /tmp/bench.log; exit 1; }", 1200)
    if status:
        raise GuestError(f"device-bench {what} failed in the guest: {output.strip()[-500:]}")
    return json.loads(output)


def in_guest(body, device="enpu,cores=1,threads=1", memory="1G"):
    """body(session, name of the accelerator) in a guest with a device; rows and what the kernel log must not hold."""
    if native_only():
        return [], []
    config = make_config(memory=memory)
    stage(config)
    with Session(config, [device], "enpu.ko") as session:
        rows = body(session, config.accel)
        return rows, session.problems()


def size_name(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // 1024} KiB"


def copy_row(entry, where, peer=None):
    size = int(entry["x"])
    whole = "end to end" in entry["name"]
    peer = peer if peer is not None else entry["peer"]
    wanted = size >= (4 * MIB if whole else MIB) and not (whole and where != NATIVE)
    more = {"series": f"{'copies end to end' if whole else 'copy engine'}", "x": size, "x_name": "bytes",
            "line": f"{entry['name'].rsplit(' ', 1)[1]} {where}"}
    return row(f"{entry['name']} {size_name(size)}", entry["ours"], peer, "ns", COPY_SHARE if wanted else None, where, **more)


def copies():
    runs = 7 if quick() else 21
    natively = native("copies", "sim:cores=1,threads=1,local-mem=512M", runs)
    rows = [copy_row(entry, NATIVE) for entry in natively]
    peers = {(entry["name"], entry["x"]): entry["peer"] for entry in natively}
    inside, problems = in_guest(lambda session, accel: [
        copy_row(entry, accel, peers[entry["name"], entry["x"]]) for entry in guest(session, "copies", runs)],
        "enpu,cores=1,threads=1,local-mem=512M")
    return rows + inside, problems


def operators():
    runs = 5 if quick() else 15
    natively = native("operators", "sim:cores=1,threads=1,local-mem=512M", runs)
    rows = [row(entry["name"], entry["ours"], entry["peer"], "ns", OPERATOR_SHARE, NATIVE, peer_kind=entry["note"]) for entry in natively]
    peers = {entry["name"]: entry for entry in natively}
    inside, problems = in_guest(lambda session, accel: [
        row(entry["name"], entry["ours"], peers[entry["name"]]["peer"], "ns", GUEST_SHARE, accel, peer_kind=peers[entry["name"]]["note"])
        for entry in guest(session, "operators", runs)], "enpu,cores=1,threads=1,local-mem=512M")
    return rows + inside, problems


def cores():
    runs = 5 if quick() else 11

    def rows_of(entries, where, scaling):
        return [row(e["name"], e["ours"], e["peer"], "ns", scaling, where) for e in entries]

    rows = rows_of(native("cores", "sim:cores=2,threads=1", runs), NATIVE, 1.8)

    def body(session, accel):
        status, output = session.run(f"{ENVIRONMENT}/enpu/bin/device-bench cores --device /dev/accel/accel0 --runs {runs} 2>&1", 600)
        if status:
            raise GuestError(f"device-bench cores failed in the guest: {output.strip()[-300:]}")
        return rows_of(json.loads(output), accel, 1.5)

    inside, problems = in_guest(body, "enpu,cores=2,threads=1")
    return rows + inside, problems


def fairness():
    def rows_of(entries, where):
        return [value(f"{e['name']}, {int(e['x'])} contexts", e["ours"], "index", 0.95, where, lower_is_better=False) for e in entries]

    rows = rows_of(native("fairness", "sim:cores=1,threads=1", 3), NATIVE)
    inside, problems = in_guest(lambda session, accel: rows_of(guest(session, "fairness", 3), accel))
    return rows + inside, problems


def growth():
    def rows_of(entries, where):
        # The end of a series may cost a tenth more than its beginning.
        return [row(f"{e['name']} ({int(e['x'])})", [middle(e["ours"])], [middle(e["peer"])], e["unit"], 0.9, where) for e in entries]

    def middle(samples):
        return sorted(samples)[len(samples) // 2]

    rows = rows_of(native("growth", "sim:cores=1,threads=1", 9), NATIVE)
    inside, problems = in_guest(lambda session, accel: rows_of(guest(session, "growth", 9), accel))
    return rows + inside, problems


def process_counts(pid):
    """(name, wake-ups, ns of processor time) of each thread of a process."""
    counts = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text(encoding="ascii").strip()
            status = (task / "status").read_text(encoding="ascii")
            nanoseconds = int((task / "schedstat").read_text(encoding="ascii").split()[0])
        except OSError:
            continue
        wakeups = int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])
        counts[task.name] = (name, wakeups, nanoseconds)
    return counts


def idle_guest_sample(session, seconds):
    """Wake-ups and processor time a second of the whole of QEMU, a guest that has nothing to do in it."""
    before = process_counts(session.machine.process.pid)
    time.sleep(seconds)
    after = process_counts(session.machine.process.pid)
    wakeups = sum(after[t][1] - before[t][1] for t in after if t in before)
    nanoseconds = sum(after[t][2] - before[t][2] for t in after if t in before)
    device = sum(after[t][1] - before[t][1] for t in after if t in before and "enpu" in after[t][0])
    return wakeups / seconds, nanoseconds / seconds / 1e3, device / seconds


def wait_for_sleep(session):
    """Until the driver has put the idle device to sleep, two seconds after its last job: that wakes every engine once, and is not rest."""
    status, output = session.run("s=/sys/class/accel/accel0/device/power/runtime_status; for i in $(seq 100); do "
                                 "[ \"$(cat $s)\" = suspended ] && exit 0; sleep 0.1; done; cat $s; exit 1", 60)
    if status:
        raise GuestError(f"the idle device does not go to sleep, it is {output.strip()[-100:]}")


def idle():
    """What the device's own threads do at rest (nothing), and QEMU's processor time with a device beside without one: a guest's own
    timers tick either way."""
    rows = [value(e["name"], e["ours"], e["unit"], 0.5 if "wake" in e["name"] else 1000, NATIVE)
            for e in native("idle", "sim:cores=2,threads=1", 3)]
    if native_only():
        return rows, []
    seconds, rounds = (3, 1) if quick() else (5, 3)
    config = make_config()
    stage(config)
    samples, problems = {}, []
    for name, devices, module in (("with", ["enpu,cores=2,threads=1"], "enpu.ko"), ("without", [], None)):
        with Session(config, devices, module) as session:
            if module:
                status, output = session.run(f"{ENVIRONMENT}/enpu/bin/enpu-copy", 60)
                if status:
                    raise GuestError(f"enpu-copy failed: {output.strip()[-200:]}")
                wait_for_sleep(session)
            time.sleep(1)
            samples[name] = [idle_guest_sample(session, seconds) for _ in range(rounds)]
            problems += session.problems()
    with_device, without = samples["with"], samples["without"]
    rows.append(value("idle: wake-ups of the device's threads in QEMU", [s[2] for s in with_device], "1/s", 0.5, config.accel))
    rows.append(row("idle: processor time of QEMU, with a device beside without", [s[1] + 1e3 for s in with_device],
                    [s[1] + 1e3 for s in without], "us/s", 0.5, config.accel))
    return rows, problems
