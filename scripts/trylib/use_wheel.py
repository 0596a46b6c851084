# SPDX-License-Identifier: MIT
"""MODEL: one run of an ONNX model by the installed wheels, on the NPU and on ONNX Runtime's CPU provider; both must agree."""
import json
import sys

import enpu_onnxruntime
import numpy
import onnxruntime

REPORT = "/tmp/use_wheel.json"


def shape_of(value):
    return [d if isinstance(d, int) else fallback for d, fallback in zip(value.shape, (1, 3, 48, 192))]


def main(model):
    name = enpu_onnxruntime.register()
    devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == "EnpuExecutionProvider"]
    assert devices, f"{name} offers no device"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_provider_for_devices(devices[:1], {"device": "npu", "report": REPORT})
    on_npu = onnxruntime.InferenceSession(model, options)
    on_cpu = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    value = on_cpu.get_inputs()[0]
    data = {value.name: numpy.random.default_rng(1).standard_normal(shape_of(value)).astype(numpy.float32)}
    got, wanted = on_npu.run(None, data)[0], on_cpu.run(None, data)[0]
    error = float(numpy.abs(got - wanted).max() / numpy.abs(wanted).max())
    with open(REPORT, encoding="utf-8") as f:
        report = json.load(f)
    print(json.dumps({"error": error, "report": {k: report[k] for k in report if isinstance(report[k], (int, str, bool))}}))
    assert error < 1e-3, f"the NPU's result is off by {error}"


main(sys.argv[1])
