#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One language model on the NPUs of two guests, which a wire joins: llama.cpp runs in the first, on its own NPU and on that of ggml's RPC
server in the second. The same text as on one; then the second guest dies. TAP on stdout.

usage: two_guests_test.py RESULT.json [TEST…]
"""
import json
import pathlib
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "integrations")]
import results  # noqa: E402
import tap  # noqa: E402
from guestlib import kernel_log, language, paths  # noqa: E402
from guestlib.network import Wire  # noqa: E402
from guestlib.paths import GuestError, say  # noqa: E402
from guestlib.session import SLOWER, Session, make_config  # noqa: E402
from guestlib.stage import Stage  # noqa: E402

PROMPT, WORDS = "The capital of France is", 4
LAYERS, PRODUCTS = 30, 9  # of the model; of each layer: seven of weights, two of attention
PORT = 50052
SILENCE_S = 20  # after which the relay gives a machine up
DEADLINE_S = 60 * SLOWER  # from the death of a guest to the end of the program that used it
RUN_S = 580 * SLOWER
# ggml sets no limit to its waiting, and the kernel tells nobody of a machine that is gone. A relay on loopback watches the connection:
# it asks after silence, waits so long (TCP_USER_TIMEOUT, option 18 of level 6) for what was sent to be taken, and closes both ends.
RELAY = ("socat", f"TCP-LISTEN:{PORT},bind=127.0.0.1,reuseaddr,fork,nodelay",
         "TCP:{server}:{port},nodelay,keepalive,keepidle=5,keepintvl=5,keepcnt=3,setsockopt-int=6:18:{silence}")


class Pair:
    """Both guests, ready: the server listens in the second, the relay in the first."""

    def __init__(self, folder):
        program = shutil.which("socat")
        if not program:
            raise GuestError("socat is missing; run 'scripts/setup two-guests'")
        self.row, self.first, self.second = {}, None, None
        configs = [make_config(memory=memory, out=str(paths.BUILD / "guest" / f"two-guests-{name}")) for name, memory in (("a", "2G"), ("b", "1G"))]
        self.out = [pathlib.Path(config.out) for config in configs]
        language.stage_llama(configs[0])
        Stage(configs[0].share).add(program)
        wires = [Wire(end, f"{folder}/wire") for end in ("listen", "connect")]
        self.first = Session(configs[0], [language.DEVICE], "enpu.ko", wire=wires[0])
        try:
            self.second = Session(configs[1], [language.DEVICE], "enpu.ko", wire=wires[1])
            self._serve(wires[1].address)
        except BaseException:
            self.close()
            raise
        say(f"two guests, ready in {self.first.seconds:.1f} s and {self.second.seconds:.1f} s, {wires[0].address} and {wires[1].address}")

    def _serve(self, server):
        command = language.in_guest([language.llm.RPC_SERVER, "-d", "NPU0", "-H", server, "-p", str(PORT)], GGML_BACKEND_PATH=language.BACKEND,
                                    ENPU_GGML_REPORT="/out/report.json")
        relay = [part.format(server=server, port=PORT, silence=SILENCE_S * 1000) for part in RELAY]
        for session, program in ((self.second, command), (self.first, f"{language.ENVIRONMENT}/enpu/bin/" + " ".join(relay))):
            listening = f"n=0; until grep -q ':{PORT:04X} .* 0A ' /proc/net/tcp; do n=$((n+1)); [ $n -lt {100 * SLOWER} ] || "
            session.agent.check(f"rm -f /out/*\n(trap '' PIPE; {program}) </dev/null >/out/log 2>&1 &\n"
                                + listening + "{ cat /out/log; echo 'nothing listens'; exit 1; }; sleep 0.2; done", 60 * SLOWER)

    def complete(self, words, devices, on_output=None):
        """(status, text, errors, counters) of the model in the first guest."""
        servers = [f"127.0.0.1:{PORT}"] if "RPC0" in devices else []
        command = language.in_guest(language.completion(PROMPT, words, devices, servers), GGML_BACKEND_PATH=language.BACKEND,
                                    ENPU_GGML_REPORT="/out/report.json")
        report = self.out[0] / "report.json"
        report.unlink(missing_ok=True)
        # A write to a connection that the relay has closed shall be an error that ggml tells, not the end by a signal.
        status, text = self.first.run(f"trap '' PIPE; {command} 2>/out/errors", RUN_S, on_output)
        errors = (self.out[0] / "errors").read_text(encoding="utf-8", errors="replace")
        return status, text, errors, json.loads(report.read_text(encoding="utf-8")) if report.exists() else None

    def served(self):
        """What the device of the second guest has counted, a second ago at most."""
        time.sleep(1)
        return json.loads((self.out[1] / "report.json").read_text(encoding="utf-8"))

    def close(self):
        for session in (self.first, self.second):
            if session:
                session.close()


def one_model_on_the_npus_of_two_guests(pair):
    started = time.monotonic()
    status, want, errors, alone = pair.complete(WORDS, ["NPU0"])
    assert status == 0 and want.startswith(PROMPT), f"one guest: status {status}, '{want}': {errors[-1500:]}"
    between = time.monotonic()
    status, got, errors, first = pair.complete(WORDS, ["NPU0", "RPC0"])
    assert status == 0, f"two guests: status {status}: {errors[-1500:]}"
    pair.row.update(text=got, seconds_on_one=round(between - started, 1), seconds_on_two=round(time.monotonic() - between, 1))
    assert got == want, f"'{got}' on two is not '{want}' on one"
    second = pair.served()
    pair.row.update(matmuls_on_one=alone["device_matmuls"], matmuls_first=first["device_matmuls"], matmuls_second=second["device_matmuls"])
    assert not any(counted["device_jobs_failed"] for counted in (alone, first, second)), (alone, first, second)
    # A layer less than half for each; the report of the second may lack what ran within a second, which is a pass at most.
    fair = (LAYERS // 2 - 1) * PRODUCTS * (WORDS - 1)
    both = first["device_matmuls"] + second["device_matmuls"]
    assert min(first["device_matmuls"], second["device_matmuls"]) >= fair, (first, second)
    assert alone["device_matmuls"] * (WORDS - 1) // WORDS <= both <= alone["device_matmuls"], (alone, first, second)
    problems = pair.first.problems() + pair.second.problems()
    assert not problems, problems


def the_death_of_a_guest_is_an_error_within_the_deadline(pair):
    died = []

    def kill_in_the_middle(data):
        seen.extend(data)
        if not died and len(seen) > len(PROMPT) + 1:
            pair.second.machine.process.kill()
            died.append(time.monotonic())

    seen = bytearray()
    status, text, errors, _ = pair.complete(200, ["NPU0", "RPC0"], kill_in_the_middle)
    assert died, f"it ended before the guest was killed, with {status}: {errors[-1500:]}"
    seconds = time.monotonic() - died[0]
    pair.row.update(error_after_s=round(seconds, 1), deadline_s=DEADLINE_S, error=next((line for line in errors.splitlines() if "RPC" in line), ""))
    assert status != 0 and pair.row["error"], f"status {status}, '{text}': {errors[-1500:]}"
    assert seconds < DEADLINE_S, f"the error came {seconds:.0f} s after the death"
    problems = pair.first.problems() + kernel_log.findings(pair.second.machine.drain_serial())
    assert not problems, problems


TESTS = [one_model_on_the_npus_of_two_guests, the_death_of_a_guest_is_an_error_within_the_deadline]


def main():
    with tempfile.TemporaryDirectory(prefix="enpu-two-guests.") as folder:
        try:
            pair = Pair(folder)
        except GuestError as e:
            say(str(e))
            return 1
        try:
            failed = tap.run(TESTS, sys.argv[2:], pair)
        finally:
            pair.close()
    print(f"# {json.dumps(pair.row)}", flush=True)
    if not sys.argv[2:]:
        results.update(sys.argv[1], "ggml", {"two_guests": {"model": "SmolLM2-135M-Instruct, q4_1", "words": WORDS, "failed": failed, **pair.row}})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
