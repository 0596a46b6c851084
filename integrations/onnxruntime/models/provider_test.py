#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the execution provider offers beside operators, through ONNX Runtime's Python API: device memory, contexts, threads,
changing shapes, bad models, failures of the device. TAP on stdout.

usage: provider_test.py EP
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import provider

DEVICE = os.environ.setdefault("ENPU_DEVICE", "sim")
VENDOR = 0x1234
RNG = np.random.default_rng(1)
WEIGHTS = RNG.normal(size=(8, 8)).astype(np.float32)


def model(nodes, inputs, outputs, constants=(), domains=()):
    def info(entry):
        name, dtype, dims = entry
        return helper.make_tensor_value_info(name, dtype, dims)
    graph = helper.make_graph(nodes, "test", [info(i) for i in inputs], [info(o) for o in outputs],
                              [numpy_helper.from_array(a, n) for n, a in constants])
    imports = [helper.make_opsetid("", 17)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def mlp():
    """tanh(x w) w + x, of any number of rows."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Tanh", ["a"], ["b"]),
             helper.make_node("MatMul", ["b", "w"], ["c"]), helper.make_node("Add", ["c", "x"], ["y"])]
    return model(nodes, [("x", TensorProto.FLOAT, ["n", 8])], [("y", TensorProto.FLOAT, ["n", 8])], [("w", WEIGHTS)])


def mlp_result(x):
    return np.tanh(x @ WEIGHTS) @ WEIGHTS + x


def rows(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)


def close(got, want):
    assert got.shape == want.shape, (got.shape, want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def fails(action, *words):
    try:
        action()
    except Exception as error:  # pylint: disable=broad-exception-caught
        missing = [w for w in words if w.lower() not in str(error).lower()]
        assert not missing, f"the error does not say {missing}: {error}"
        return
    raise AssertionError("it did not fail")


# ---- the device's memory
def operands_in_device_memory(ep, _):
    session = ep.session(mlp(), strict=True, memory="device")
    for count in (3, 5, 3):
        close(session.run(None, {"x": rows(count)})[0], mlp_result(rows(count)))


def device_memory_copies_operands_only_once(ep, _):
    session = ep.session(mlp(), strict=True, memory="device")
    for seed in range(3):
        close(session.run(None, {"x": rows(6, seed)})[0], mlp_result(rows(6, seed)))
        last = session.report()["last_run"]
        assert last["jobs_failed"] == 0 and last["ops"].get("matmul_fwd") == 2, last
        # The first run uploads the weights as well.
        assert seed == 0 or last["bytes_h2d"] == last["bytes_d2h"] == 6 * 8 * 4, last


def a_model_taken_in_part_works_in_both_memories(ep, _):
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("NonZero", ["a"], ["y"])]
    source = model(nodes, [("x", TensorProto.FLOAT, ["n", 8])], [("y", TensorProto.INT64, [2, "m"])], [("w", WEIGHTS)])
    fails(lambda: ep.session(source, strict=True, memory="device"), "CPU EP")
    session, want = ep.session(source, memory="device"), np.stack(np.nonzero(rows(4) @ WEIGHTS))
    for _ in range(3):
        assert np.array_equal(session.run(None, {"x": rows(4)})[0], want)
    report = session.report()
    assert report["nodes_npu"] == 1 and [n["op"] for n in report["left_out"]] == ["NonZero"], report


def another_device_for_the_shared_memory_is_refused(ep, _):
    fails(lambda: ep.session(mlp(), memory="device", device="cpu"), "device is 'cpu'", DEVICE)


# ---- contexts
def contexts(ep, work, embedded):
    source, written = pathlib.Path(work, "mlp.onnx"), pathlib.Path(work, f"mlp_{embedded}_ctx.onnx")
    source.write_bytes(mlp())
    config = {"ep.context_enable": "1", "ep.context_file_path": str(written), "ep.context_embed_mode": embedded}
    close(ep.session(str(source), config=config).run(None, {"x": rows(3)})[0], mlp_result(rows(3)))
    assert [n.op_type for n in onnx.load(written).graph.node] == ["EPContext"]
    session = ep.session(str(written), strict=True)
    close(session.run(None, {"x": rows(5)})[0], mlp_result(rows(5)))
    return written


def an_embedded_context_is_saved_and_loaded(ep, work):
    contexts(ep, work, "1")


def a_context_beside_the_model_is_saved_and_loaded(ep, work):
    written = contexts(ep, work, "0")
    beside, = pathlib.Path(work).glob("mlp_0_ctx_*.bin")
    whole = beside.read_bytes()
    for damaged in (whole[:len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1]), b"", b"ENPUGRF1" + bytes(40)):
        beside.write_bytes(damaged)
        fails(lambda: ep.session(str(written), strict=True), "saved graph")
    beside.unlink()
    fails(lambda: ep.session(str(written), strict=True), "the context", "No such file")


# ---- many at once
def sessions_in_threads(ep, _):
    sessions = [ep.session(mlp()) for _ in range(2)] + [ep.session(mlp(), memory="device") for _ in range(2)]
    faults = []

    def work(session, seed):
        try:
            for i in range(12):
                x = rows(1 + (seed + i) % 5, seed * 100 + i)
                close(session.run(None, {"x": x})[0], mlp_result(x))
        except Exception as error:  # pylint: disable=broad-exception-caught
            faults.append(error)

    threads = [threading.Thread(target=work, args=(s, 2 * i + j)) for i, s in enumerate(sessions) for j in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    assert not faults, faults[0]


def changing_shapes_stay_within_bounds(ep, _):
    session = ep.session(mlp(), strict=True, max_programs="4")
    for count in list(range(1, 13)) + [12, 11, 1]:
        close(session.run(None, {"x": rows(count)})[0], mlp_result(rows(count)))
    program, = session.report()["programs"]
    assert program["misses"] == 13 and program["hits"] == 2 and program["evictions"] == 9, program


# ---- bad models
def truncated_models(ep, work):
    whole, path = mlp(), pathlib.Path(work, "cut.onnx")
    for size in range(0, len(whole) - 1, 37):
        path.write_bytes(whole[:size])
        try:
            ep.session(str(path)).run(None, {"x": rows(2)})
        except Exception:  # pylint: disable=broad-exception-caught
            continue
        assert size > len(whole) // 2, f"a model cut at {size} of {len(whole)} bytes ran"


def wrong_types_and_shapes(ep, _):
    session = ep.session(mlp())
    fails(lambda: session.run(None, {"x": rows(2).astype(np.float64)}), "double")
    fails(lambda: session.run(None, {"x": np.zeros((2, 7), np.float32)}), "x")
    close(session.run(None, {"x": rows(2)})[0], mlp_result(rows(2)))
    mixed = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", TensorProto.INT32, ["n", 8])], [("y", TensorProto.FLOAT, ["n", 8])],
                  [("w", WEIGHTS)])
    fails(lambda: ep.session(mixed), "type")


def huge_shapes(ep, _):
    nodes = [helper.make_node("Expand", ["x", "shape"], ["a"]), helper.make_node("Exp", ["a"], ["y"])]
    for dims in ([1 << 40, 1 << 20], [1 << 31, 1 << 31, 4], [1 << 30, 8]):
        source = model(nodes, [("x", TensorProto.FLOAT, [1])], [("y", TensorProto.FLOAT, None)], [("shape", np.array(dims, np.int64))])
        fails(lambda s=source: ep.session(s, strict=True).run(None, {"x": np.ones(1, np.float32)}))
    tall = ep.session(model([helper.make_node("Tile", ["x", "r"], ["y"])], [("x", TensorProto.FLOAT, [1]), ("r", TensorProto.INT64, [1])],
                            [("y", TensorProto.FLOAT, ["m"])]))
    fails(lambda: tall.run(None, {"x": np.ones(1, np.float32), "r": np.array([1 << 45], np.int64)}))
    assert tall.run(None, {"x": np.ones(1, np.float32), "r": np.array([3], np.int64)})[0].tolist() == [1, 1, 1]


def unknown_operators(ep, _):
    source = model([helper.make_node("Frobnicate", ["x"], ["y"], domain="nowhere")], [("x", TensorProto.FLOAT, [2])],
                   [("y", TensorProto.FLOAT, [2])], domains=["nowhere"])
    fails(lambda: ep.session(source), "Frobnicate")


def missing_external_data(ep, work):
    path = pathlib.Path(work, "external.onnx")
    onnx.save(onnx.load_from_string(mlp()), path, save_as_external_data=True, location="external.bin", size_threshold=0)
    data = pathlib.Path(work, "external.bin")
    close(ep.session(str(path), strict=True).run(None, {"x": rows(2)})[0], mlp_result(rows(2)))
    data.write_bytes(data.read_bytes()[:16])
    fails(lambda: ep.session(str(path)))
    data.unlink()
    fails(lambda: ep.session(str(path)), "external")


# ---- failures of the device, in a process of its own: faults are ordered by the environment
CHILD = """
import sys
sys.path.insert(0, sys.argv[1])
import provider, provider_test as t
ep = provider.Provider(sys.argv[2], t.DEVICE)
session = ep.session(t.mlp(), strict=True, on_failure=sys.argv[3])
for seed in range(4):
    try:
        t.close(session.run(None, {"x": t.rows(4, seed)})[0], t.mlp_result(t.rows(4, seed)))
        print("right")
    except AssertionError:
        raise
    except Exception as error:
        print("failed:", error)
print(session.report()["on_failure"])
"""


def with_faults(order, policy):
    library = sys.argv[1]
    done = subprocess.run([sys.executable, "-c", CHILD, str(pathlib.Path(__file__).parent), library, policy],
                          env=dict(os.environ, ENPU_HAL_LAYERS="fault", ENPU_HAL_FAULTS=order), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def a_device_failure_is_an_error_of_the_run(_, __):
    lines = with_faults("submit:after=4,count=1", "error")
    assert lines[0].startswith("failed:") and "injected" in lines[0] and lines[1:4] == ["right"] * 3, lines


def a_lost_device_is_an_error_of_every_run(_, __):
    lines = with_faults("lost:after=10", "error")
    assert lines[0] == "right" and all("lost" in line for line in lines[1:4]), lines


def with_the_policy_a_failure_is_repaired(_, __):
    lines = with_faults("wait:after=6,count=1", "cpu")
    assert lines[:4] == ["right"] * 4 and "'repaired': 1" in lines[-1], lines


def with_the_policy_a_run_finishes_on_the_cpu(_, __):
    lines = with_faults("lost:after=40", "cpu")
    assert lines[:4] == ["right"] * 4, lines
    assert "'device_lost': 1" in lines[-1] and "'on_fallback': 0" not in lines[-1] and "'refused': 0" in lines[-1], lines


TESTS = [operands_in_device_memory, device_memory_copies_operands_only_once, a_model_taken_in_part_works_in_both_memories,
         another_device_for_the_shared_memory_is_refused, an_embedded_context_is_saved_and_loaded, a_context_beside_the_model_is_saved_and_loaded,
         sessions_in_threads, changing_shapes_stay_within_bounds, truncated_models, wrong_types_and_shapes, huge_shapes, unknown_operators,
         missing_external_data, a_device_failure_is_an_error_of_the_run, a_lost_device_is_an_error_of_every_run,
         with_the_policy_a_failure_is_repaired, with_the_policy_a_run_finishes_on_the_cpu]


def main():
    ep, failed = provider.Provider(sys.argv[1], DEVICE), False
    wanted = sys.argv[2:]
    tests = [t for t in TESTS if not wanted or t.__name__ in wanted]
    print(f"1..{len(tests)}", flush=True)
    for number, test in enumerate(tests, 1):
        name = test.__name__.replace("_", " ")
        with tempfile.TemporaryDirectory() as work:
            try:
                test(ep, work)
                print(f"ok {number} - {name}", flush=True)
            except Exception as error:  # pylint: disable=broad-exception-caught
                failed = True
                print(f"not ok {number} - {name}", flush=True)
                print("\n".join("# " + line for line in f"{type(error).__name__}: {error}".splitlines()[:12]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
