# SPDX-License-Identifier: MIT
"""A float model made into one of 8-bit integers by ONNX Runtime's own quantiser (QDQ, by channel)."""
import pathlib
import tempfile

import onnx
from onnx import version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static


class Reader(CalibrationDataReader):
    def __init__(self, name, inputs):
        self.feeds = iter([{name: x} for x in inputs])

    def get_next(self):
        return next(self.feeds, None)


def quantise(source, input_name, inputs):
    """Bytes of the quantised model; `inputs` calibrate it."""
    with tempfile.TemporaryDirectory() as work:
        newer, out = pathlib.Path(work, "newer.onnx"), pathlib.Path(work, "int8.onnx")
        onnx.save(version_converter.convert_version(onnx.load(source), 13), newer)
        quantize_static(newer, out, Reader(input_name, inputs), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, op_types_to_quantize=["Conv", "MatMul", "Gemm"])
        return out.read_bytes()
