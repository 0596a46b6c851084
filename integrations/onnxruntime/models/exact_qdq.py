# SPDX-License-Identifier: MIT
"""Reference for quantised models: what QuantizeLinear and DequantizeLinear mean, computed without the roundings of f32.

Every float of the model, scales too, becomes the f64 of the same value, and onnx's reference evaluator runs the nodes one by one,
none joined with another. A sum of products of 8-bit integers and their scales is then known to about 1e-12 of a step of its
quantisation. `closest_tie` is how near a value came to half way between two steps: as long as that is more than the error of f64,
every rounding of the run is the one of exact arithmetic. What is given to the model is f32: it is divided by its scale in f32, as
ONNX has it (pictures whose range is twice 127.5 steps lie half way between two of them, all of them).
"""
import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

F64_ERROR = 1e-10  # of a step; what f64 may be wrong by, with room


def along(values, x, axis):
    """A scale or zero point, one or one for each place of an axis, as something that x broadcasts with."""
    if values is None:
        return 0
    return values if values.size == 1 else values.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])


class DequantizeLinear(OpRun):
    op_domain = ""

    def _run(self, x, scale, zero=None, axis=None, block_size=None, **_):
        assert not block_size and scale.dtype == np.float64
        zeros = along(zero, x, axis)
        return ((x.astype(np.int64) - np.asarray(zeros, np.int64)) * along(scale, x, axis),)


class QuantizeLinear(OpRun):
    op_domain = ""
    closest_tie = 0.5

    def _run(self, x, scale, zero=None, axis=None, block_size=None, **_):
        assert not block_size and scale.dtype == np.float64
        dtype = np.uint8 if zero is None else zero.dtype
        limits = np.iinfo(dtype)
        scales, zeros = along(scale, x, axis), np.asarray(along(zero, x, axis), np.int64)
        if x.dtype == np.float32:  # an input of the model
            return self.rounded(x / scales.astype(np.float32), zeros, dtype)
        steps = x / scales
        inside = steps[(steps > limits.min - 1 - zeros) & (steps < limits.max + 1 - zeros)]
        if inside.size:
            QuantizeLinear.closest_tie = min(QuantizeLinear.closest_tie, np.abs(np.abs(inside - np.floor(inside)) - 0.5).min())
        return self.rounded(steps, zeros, dtype)

    @staticmethod
    def rounded(steps, zeros, dtype):
        limits = np.iinfo(dtype)
        return (np.clip(np.rint(steps).astype(np.int64) + zeros, limits.min, limits.max).astype(dtype),)


class Conv(OpRun):
    """Two spatial dims; onnx's own is a loop over the kernel in Python, and its sums are of the inputs' type as well."""
    op_domain = ""

    def _run(self, x, w, bias=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        assert x.ndim == 4 and x.dtype == w.dtype == np.float64 and auto_pad in (None, b"NOTSET", "NOTSET")
        top, left, bottom, right = pads or (0, 0, 0, 0)
        step, spread = strides or (1, 1), dilations or (1, 1)
        size = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], spread)]
        padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
        windows = sliding_window_view(padded, size, axis=(2, 3))[:, :, ::step[0], ::step[1], ::spread[0], ::spread[1]]
        groups = group or 1
        n, channels, height, width = windows.shape[:4]
        windows = windows.reshape(n, groups, channels // groups, height, width, *w.shape[2:])
        filters = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        y = np.einsum("ngchwij,gfcij->ngfhw", windows, filters, optimize=True).reshape(n, w.shape[0], height, width)
        return (y if bias is None else y + bias.reshape(1, -1, 1, 1),)


class BatchNormalization(OpRun):
    """With the statistics that it is given: onnx's own, of opset 9 to 13, takes any momentum as an order to train."""
    op_domain = ""

    def _run(self, x, scale, bias, mean, variance, epsilon=None, **_):
        scale, bias, mean, variance = (along(v, x, 1) for v in (scale, bias, mean, variance))
        return (scale * (x - mean) / np.sqrt(variance + epsilon) + bias,)


def widened(tensor):
    return numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name) if tensor.data_type == TensorProto.FLOAT else tensor


def widen(model):
    """The model with f64 where it has f32. Its schemas do not allow that; the evaluator does not ask them."""
    for tensor in model.graph.initializer:
        tensor.CopyFrom(widened(tensor))
    for node in model.graph.node:
        for attribute in node.attribute:
            assert attribute.type not in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS), "bodies are not widened"
            if attribute.type == onnx.AttributeProto.TENSOR:
                attribute.t.CopyFrom(widened(attribute.t))
            if node.op_type == "Cast" and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
    for value in (*model.graph.output, *model.graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return model


class ExactSession:
    """run() as that of an ONNX Runtime session; outputs are rounded once, to f32."""

    def __init__(self, source):
        QuantizeLinear.closest_tie = 0.5
        self.evaluator = ReferenceEvaluator(widen(onnx.load_from_string(source)), new_ops=[BatchNormalization, Conv, DequantizeLinear, QuantizeLinear])

    def run(self, names, feed):
        with np.errstate(all="raise", under="ignore"):
            found = self.evaluator.run(names, feed)
        return [y.astype(np.float32) if y.dtype == np.float64 else y for y in found]

    @staticmethod
    def problem():
        """Why the roundings are not known to be exact, or None."""
        near = QuantizeLinear.closest_tie
        return None if near > F64_ERROR else f"a value is {near:.1e} of a step from half way between two: f64 does not tell how it is rounded"
