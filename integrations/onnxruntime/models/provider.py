# SPDX-License-Identifier: MIT
"""ONNX Runtime's Python API with the execution provider: sessions, and what the provider reports of them."""
import json
import os
import pathlib
import tempfile

import onnxruntime as ort

# Nodes that do the work of a model; the others are arithmetic between them.
HEAVY = {"Conv", "ConvTranspose", "MatMul", "Gemm", "LSTM", "GRU", "RNN", "Attention", "ConvInteger", "MatMulInteger", "QLinearConv",
         "QLinearMatMul", "Einsum"}
# Kernels of the device that stand for them.
HEAVY_KERNELS = ("conv2d_fwd", "conv_transpose2d_fwd", "matmul_fwd")

ort.set_default_logger_severity(4)


class Provider:
    """The registered library; `device` is a device spec of the runtime."""

    def __init__(self, library, device):
        self.device = device
        self.library = str(pathlib.Path(library).resolve())
        ort.register_execution_provider_library("enpu", self.library)
        self.work = tempfile.TemporaryDirectory()

    def close(self):
        ort.unregister_execution_provider_library("enpu")
        self.work.cleanup()

    def offered(self, memory="host"):
        return [d for d in ort.get_ep_devices() if d.ep_name == "EnpuExecutionProvider" and d.ep_metadata.get("memory") == memory]

    def session(self, model, strict=False, memory="host", config=(), **options):
        """`model`: a path or bytes. Options of the provider as keywords; what it reports is in session.report()."""
        settings = ort.SessionOptions()
        settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        settings.intra_op_num_threads = 1
        if strict:
            settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        for key, value in dict(config).items():
            settings.add_session_config_entry(key, value)
        handle, path = tempfile.mkstemp(suffix=".json", dir=self.work.name)
        os.close(handle)
        values = {"report": path, **options}
        if memory == "host":
            values.setdefault("device", self.device)
        settings.add_provider_for_devices(self.offered(memory)[:1], values)
        return Session(model, settings, path)


class Session(ort.InferenceSession):
    def __init__(self, model, settings, report_path):
        super().__init__(model, settings, enable_fallback=0)
        self.report_path = report_path

    def report(self):
        """What the provider said after the last run."""
        return json.loads(pathlib.Path(self.report_path).read_text(encoding="utf-8"))


def cpu_session(model):
    """ONNX Runtime's CPU provider, node by node as the model has them."""
    settings = ort.SessionOptions()
    settings.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads = 1
    return ort.InferenceSession(model, settings, providers=["CPUExecutionProvider"])
