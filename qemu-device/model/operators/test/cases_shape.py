# SPDX-License-Identifier: MIT
"""MOVE, PAD, GATHER, RESIZE: moves are exact; interpolation against formulas in float64."""
import itertools
import math

import numpy as np

from harness import ENUM, FLOATS, STORAGE, Tensor, from_float, to_float
from numerics import LAYOUTS, broadcast, check_close, check_equal, generator, output, place, random_values, untouched


def move(device, dtype):
    rng = generator("move", dtype)
    for shape in ((3, 5, 37), (2, 70, 90), (7,), (), (2, 3, 4, 5, 6), (1, 130, 1, 67), (200, 3), (3, 200)):
        x = random_values(rng, dtype, shape, -100, 100)
        for source, target in itertools.product(LAYOUTS, LAYOUTS):
            y = output(dtype, shape, target)
            device.run("MOVE", [place(dtype, x, source), y])
            check_equal(y.data, x, f"{shape} {source} to {target}")
            untouched(y)
    for order in itertools.permutations(range(4)):
        x = random_values(rng, dtype, (3, 9, 17, 34), -100, 100)
        want = x.transpose(order)
        y = output(dtype, want.shape)
        device.run("MOVE", [Tensor(dtype, want), y])
        check_equal(y.data, want, f"transpose {order}")


def move_parts(device):
    """Slices with negative steps, concat, expand."""
    x = np.arange(6 * 40 * 5, dtype=np.float32).reshape(6, 40, 5)
    part = x[::-2, 3:37:4, ::-1]
    y = output("F32", part.shape)
    device.run("MOVE", [Tensor("F32", part), y])
    check_equal(y.data, part, "slice")
    whole = np.zeros((6, 52, 5), np.float32)
    device.run("MOVE", [Tensor("F32", x), Tensor("F32", whole[:, 12:])])
    device.run("MOVE", [Tensor("F32", x[:, :12]), Tensor("F32", whole[:, :12])])
    check_equal(whole, np.concatenate([x[:, :12], x], 1), "concat")
    row = np.arange(5, dtype=np.float32)
    for shape, values in (((8, 5), row), ((5, 300), row[:, None]), ((4, 7, 9), np.float32(3))):
        y = output("F32", shape)
        device.run("MOVE", [broadcast("F32", values, shape), y])
        check_equal(y.data, np.broadcast_to(values, shape), "expand")


_NUMPY_PAD = {"CONSTANT": "constant", "EDGE": "edge", "REFLECT": "reflect", "WRAP": "wrap"}


def pad(device, dtype):
    rng = generator("pad", dtype)
    constant = random_values(rng, dtype, (), 1, 100)
    bits = int(np.asarray(constant).reshape(1).view(f"u{constant.dtype.itemsize}")[0])
    for mode, layout in itertools.product(_NUMPY_PAD, LAYOUTS):
        for shape, before, after in (((4, 5, 9), (1, 2, 3), (2, 0, 4)), ((7,), (5,), (6,)), ((3, 40, 2, 6), (0, 1, 1, 2), (0, 7, 0, 0)),
                                     ((3, 5), (0, 0), (0, 0)), ((1, 3), (4, 9), (3, 7))):
            if dtype == "BOOL" and mode != "CONSTANT":
                continue
            x = random_values(rng, dtype, shape, -100, 100)
            extra = {"constant_values": constant} if mode == "CONSTANT" else {}
            want = np.pad(x, list(zip(before, after)), _NUMPY_PAD[mode], **extra)
            y = output(dtype, want.shape, layout)
            device.run("PAD", [place(dtype, x, layout), y], mode=ENUM["pad_mode"][mode], before=before,
                       value=bits if mode == "CONSTANT" else 0)
            check_equal(y.data, want, f"{mode} {shape} {layout}")
            untouched(y)


def pad_negative(device):
    x = np.arange(60, dtype=np.int32).reshape(5, 12)
    for before, after in (((-2, 3), (1, -4)), ((1, -12), (-3, 2)), ((-6, 0), (3, 0))):
        want = np.full((5 + before[0] + after[0], 12 + before[1] + after[1]), 9, np.int32)
        for i, j in itertools.product(*map(range, want.shape)):
            r, c = i - before[0], j - before[1]
            if 0 <= r < 5 and 0 <= c < 12:
                want[i, j] = x[r, c]
        y = output("I32", want.shape)
        device.run("PAD", [Tensor("I32", x), y], mode=ENUM["pad_mode"]["CONSTANT"], before=before, value=9)
        check_equal(y.data, want, f"{before} {after}")


def gather(device, dtype):
    rng = generator("gather", dtype)
    x = random_values(rng, dtype, (6, 11, 40), -100, 100)
    for axis, index, shape, layout in itertools.product(range(3), ("I32", "I64"), ((), (3,), (2, 5), (1, 2, 2)), LAYOUTS):
        indices = rng.integers(-x.shape[axis], x.shape[axis], shape).astype(STORAGE[index])
        want = np.take(x, indices, axis)
        y = output(dtype, want.shape, layout)
        device.run("GATHER", [place(dtype, x, layout), place(index, indices, layout), y], axis=axis,
                   mode=ENUM["gather_mode"]["TAKE"])
        check_equal(y.data, want, f"take {axis} {shape} {layout}")
        untouched(y)
    for axis, index, layout in itertools.product(range(3), ("I32", "I64"), LAYOUTS):
        shape = [4, 9, 30]
        shape[axis] += 7
        indices = rng.integers(-x.shape[axis], x.shape[axis], shape).astype(STORAGE[index])
        cut = tuple(slice(None) if a == axis else slice(n) for a, n in enumerate(shape))
        want = np.take_along_axis(x[cut], indices.astype(np.int64), axis)
        y = output(dtype, want.shape, layout)
        device.run("GATHER", [place(dtype, x, layout), place(index, indices, layout), y], axis=axis,
                   mode=ENUM["gather_mode"]["ELEMENTS"])
        check_equal(y.data, want, f"elements {axis} {layout}")
        untouched(y)


def gather_out_of_range(device):
    x = np.arange(50, dtype=np.float32).reshape(10, 5)
    for bad in (10, -11, 2 ** 40, -2 ** 63, 2 ** 63 - 1):
        for mode, axis in itertools.product(("TAKE", "ELEMENTS"), (0, 1)):
            shape = (3,) if mode == "TAKE" else (3, 5)
            indices = np.zeros(shape, np.int64)
            indices.ravel()[-1] = bad
            result = {"TAKE": {0: (3, 5), 1: (10, 3)}[axis], "ELEMENTS": (3, 5)}[mode]
            y = output("F32", result)
            outcome = device.run("GATHER", [Tensor("F32", x), Tensor("I64", indices), y], axis=axis, mode=ENUM["gather_mode"][mode])
            assert outcome == "bad operand" and device.detail == (1, bad), (outcome, device.detail, bad)


# ---------------------------------------------------------------- resize, axis by axis with a matrix of weights
def _position(coord, i, n_in, n_out, scale, roi):
    if coord == "HALF_PIXEL" or (coord == "PYTORCH_HALF_PIXEL" and n_out > 1):
        return (i + 0.5) / scale - 0.5
    if coord == "PYTORCH_HALF_PIXEL":
        return 0.0
    if coord == "ALIGN_CORNERS":
        return i * (n_in - 1) / (n_out - 1) if n_out > 1 else 0.0
    if coord == "ASYMMETRIC":
        return i / scale
    if coord == "HALF_PIXEL_SYMMETRIC":
        return n_in / 2 * (1 - n_out / (scale * n_in)) + (i + 0.5) / scale - 0.5
    start, end = roi
    return start * (n_in - 1) + i * (end - start) * (n_in - 1) / (n_out - 1) if n_out > 1 else 0.5 * (start + end) * (n_in - 1)


def _nearest(rule, x):
    fraction = x - math.floor(x)
    if rule == "FLOOR" or (rule == "ROUND_PREFER_FLOOR" and fraction <= 0.5) or (rule == "ROUND_PREFER_CEIL" and fraction < 0.5):
        return math.floor(x)
    return math.ceil(x)


def _cubic(a, t):
    t = abs(t)
    if t <= 1:
        return (a + 2) * t ** 3 - (a + 3) * t ** 2 + 1
    return a * t ** 3 - 5 * a * t ** 2 + 8 * a * t - 4 * a if t < 2 else 0.0


def _matrix(mode, coord, rule, n_in, n_out, scale, roi=(0, 1), cubic_a=-0.75, exclude=False):
    """Row i holds the weights of output i, None where the extrapolation value is taken."""
    matrix, outside = np.zeros((n_out, n_in)), np.zeros(n_out, bool)
    for i in range(n_out):
        x = _position(coord, i, n_in, n_out, scale, roi)
        outside[i] = coord == "TF_CROP_AND_RESIZE" and not 0 <= x <= n_in - 1
        if mode == "NEAREST":
            taps = [(_nearest(rule, x), 1.0)]
        else:
            base = math.floor(x)
            reach = range(base, base + 2) if mode == "LINEAR" else range(base - 1, base + 3)
            taps = [(k, max(1 - abs(x - k), 0) if mode == "LINEAR" else _cubic(cubic_a, x - k)) for k in reach]
            if exclude:
                taps = [(k, w if 0 <= k < n_in else 0.0) for k, w in taps]
                total = sum(w for _, w in taps)
                taps = [(k, w / total) for k, w in taps]
        for k, w in taps:
            matrix[i, min(max(k, 0), n_in - 1)] += w
    return matrix, outside


def _resize(x, matrices, extrapolation):
    y, out = x, np.zeros((), bool)
    for axis, (matrix, outside) in enumerate(matrices):
        y = np.moveaxis(np.tensordot(matrix, y, (1, axis)), 0, axis)
        out = out | outside.reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    return np.where(out, extrapolation, y)


def _store(dtype, values):
    if dtype in FLOATS:
        return values
    info = np.iinfo(STORAGE[dtype])
    return np.clip(np.rint(values), info.min, info.max)


def resize_case(device, dtype, mode, coord, rule, shape, size, layout, scales=None, roi=None, exclude=False, cubic_a=-0.75):
    rng = generator("resize", dtype, mode, coord, rule, shape, size)
    x = random_values(rng, dtype, shape, -100, 100)
    rank = len(shape)
    used = [np.float32(s) for s in scales] if scales else [0] * rank
    exact = [float(s) if s else n / m for s, n, m in zip(used, size, shape)]
    roi = roi or [(0.0, 1.0)] * rank
    matrices = [_matrix(mode, coord, rule, shape[a], size[a], exact[a], roi[a], float(np.float32(cubic_a)), exclude) for a in range(rank)]
    y = output(dtype, size, layout)
    last = [(0.0, 1.0)] * (4 - rank) + list(roi)[-4:]
    device.run("RESIZE", [place(dtype, x, layout), y], mode=ENUM["resize_mode"][mode], coord=ENUM["resize_coord"][coord],
               round=ENUM["resize_round"][rule], cubic_a=cubic_a, exclude_outside=int(exclude), extrapolation=7.0,
               scale=[float(s) for s in used], roi_start=[r[0] for r in last], roi_end=[r[1] for r in last])
    want = _resize(to_float(dtype, x).astype(np.float64), matrices, 7.0)
    note = f"{mode} {coord} {rule} {shape} to {size} {layout}"
    if dtype in FLOATS:
        check_close(dtype, y.data, want, 2, 0 if mode == "NEAREST" else 1.5e-4, note)
    else:
        # At an exact half the two float formulas may fall to either side.
        near_half = np.abs(np.abs(want - np.trunc(want)) - 0.5) < 1e-3
        difference = np.abs(y.data.astype(np.float64) - _store(dtype, want))
        assert (difference <= near_half).all(), (note, difference.max())
    untouched(y)


COORDS = ("HALF_PIXEL", "PYTORCH_HALF_PIXEL", "ALIGN_CORNERS", "ASYMMETRIC", "HALF_PIXEL_SYMMETRIC")
ROUNDS = ("ROUND_PREFER_FLOOR", "ROUND_PREFER_CEIL", "FLOOR", "CEIL")
SIZES = (((2, 3, 6, 8), (2, 3, 12, 16)), ((1, 5, 9, 7), (1, 5, 4, 11)), ((1, 2, 7, 5), (1, 2, 1, 3)), ((4, 9), (8, 5)), ((6,), (13,)),
         ((1, 16, 5, 5), (1, 16, 9, 10)), ((2, 3, 4), (3, 6, 5)))


def resize(device, dtype, mode):
    for coord, (shape, size), layout in itertools.product(COORDS, SIZES, LAYOUTS):
        for rule in ROUNDS if mode == "NEAREST" and layout == "plain" else ROUNDS[:1]:
            resize_case(device, dtype, mode, coord, rule, shape, size, layout)


def resize_options(device):
    for mode in ("NEAREST", "LINEAR", "CUBIC"):
        for scales in ((1, 1, 2.5, 1.7), (1, 1, 0.6, 0.45)):
            shape = (1, 3, 7, 9)
            size = tuple(int(n * s) for n, s in zip(shape, scales))
            for coord in COORDS:
                resize_case(device, "F32", mode, coord, "FLOOR", shape, size, "plain", scales=scales)
        for a, exclude in ((-0.5, True), (-0.75, True), (-0.5, False)):
            resize_case(device, "F32", mode, "HALF_PIXEL", "FLOOR", (1, 2, 5, 6), (1, 2, 11, 4), "plain", exclude=exclude, cubic_a=a)
        for roi in (((0, 1), (0, 1), (0.25, 0.75), (0.1, 0.9)), ((0, 1), (0, 1), (-0.5, 1.5), (0.3, 0.6))):
            roi = [tuple(map(lambda v: float(np.float32(v)), r)) for r in roi]
            for layout in ("plain", "transposed"):
                resize_case(device, "F32", mode, "TF_CROP_AND_RESIZE", "ROUND_PREFER_FLOOR", (1, 2, 6, 7), (1, 2, 5, 4), layout, roi=roi)


def resize_channels_last(device):
    """The layout of images: channels contiguous."""
    x = random_values(generator("nhwc"), "F32", (1, 9, 13, 24))
    for mode in ("NEAREST", "LINEAR"):
        stored = Tensor("F32", x.transpose(0, 3, 1, 2))
        y = Tensor("F32", np.zeros((1, 18, 26, 24), np.float32).transpose(0, 3, 1, 2))
        device.run("RESIZE", [stored, y], mode=ENUM["resize_mode"][mode], coord=ENUM["resize_coord"]["ASYMMETRIC"],
                   round=ENUM["resize_round"]["FLOOR"])
        matrices = [_matrix(mode, "ASYMMETRIC", "FLOOR", n, m, m / n) for n, m in zip(stored.shape, y.shape)]
        check_close("F32", y.data, _resize(stored.data.astype(np.float64), matrices, 0), 2, 1e-6, mode)


def _onnx_resize(x, size, mode, coord, rule, **extra):
    """What ONNX's reference evaluator makes of a Resize node with sizes."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator
    inputs = ["x", "roi", "", "sizes"]
    node = helper.make_node("Resize", inputs, ["y"], mode=mode.lower(), coordinate_transformation_mode=coord.lower(),
                            nearest_mode=rule.lower(), **extra)
    values = [helper.make_tensor_value_info(n, t, None) for n, t in (("x", TensorProto.FLOAT), ("roi", TensorProto.FLOAT),
                                                                    ("sizes", TensorProto.INT64))]
    graph = helper.make_graph([node], "resize", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    roi = np.array([0] * x.ndim + [1] * x.ndim, np.float32)
    return ReferenceEvaluator(model).run(None, {"x": x, "roi": roi, "sizes": np.array(size, np.int64)})[0]


def resize_as_onnx(device):
    x = random_values(generator("onnx resize"), "F32", (1, 2, 5, 6), -10, 10)
    for mode, coord, size in itertools.product(("NEAREST", "LINEAR", "CUBIC"), ("HALF_PIXEL", "ALIGN_CORNERS", "ASYMMETRIC"),
                                               ((1, 2, 10, 12), (1, 2, 3, 4), (1, 2, 7, 6))):
        for rule in ROUNDS if mode == "NEAREST" else ("FLOOR",):
            for exclude in (0, 1) if mode == "CUBIC" else (0,):
                want = _onnx_resize(x, size, mode, coord, rule, cubic_coeff_a=-0.75, exclude_outside=exclude)
                y = output("F32", size)
                device.run("RESIZE", [Tensor("F32", x), y], mode=ENUM["resize_mode"][mode], coord=ENUM["resize_coord"][coord],
                           round=ENUM["resize_round"][rule], cubic_a=-0.75, exclude_outside=exclude)
                check_close("F32", y.data, want.astype(np.float64), 2, 1e-5, f"{mode} {coord} {rule} to {size}, exclude {exclude}")


def resize_too_long(device):
    """Tables of taps are bounded: an axis of more than 2^24 cannot be resized, but can be copied."""
    device.needs_model("tables of taps")
    n = 2 ** 24 + 1
    x = np.zeros((2, n), np.uint8)
    y = output("U8", (3, n))
    assert device.run("RESIZE", [Tensor("U8", x), y]) == "done" and not y.data.any()
    y = output("U8", (2, n + 1))
    assert device.run("RESIZE", [Tensor("U8", x), y]) == "out of memory"


def add(cases, device):
    for dtype in STORAGE:
        cases.case(move, device, dtype, name=f"move {dtype}")
        cases.case(pad, device, dtype, name=f"pad {dtype}")
        cases.case(gather, device, dtype, name=f"gather {dtype}")
    for dtype in ("F32", "F16", "BF16", "I8", "U8"):
        for mode in ("NEAREST", "LINEAR", "CUBIC"):
            cases.case(resize, device, dtype, mode, name=f"resize {mode} {dtype}")
    for function in (move_parts, pad_negative, gather_out_of_range, resize_options, resize_channels_last, resize_as_onnx,
                     resize_too_long):
        cases.case(function, device)
