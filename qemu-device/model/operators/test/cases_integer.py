# SPDX-License-Identifier: MIT
"""CONV2D and MATMUL of i8 and u8: exact sums and one rounding, against Python integers (int64) and float64."""
import itertools

import numpy as np

from cases_dense import CONVS, UNARY, conv_reference, empty_output, stored
from harness import STORAGE, Tensor
from numerics import broadcast, check_equal, generator, output, place, random_values
from packing import pack

# As many outputs and channels as tiles of a processor want, and a few more: whole blocks and rests of pixels, outputs and terms.
TILED = {
    "1x1 in whole blocks": (1, 64, 8, 8, 64, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "1x1, few pixels": (2, 48, 3, 5, 65, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "1x1, 20 pixels": (1, 128, 4, 5, 70, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "1x1 stride 2": (1, 64, 15, 14, 96, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "3x3 padded": (2, 64, 14, 14, 64, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "3x3 without padding": (1, 100, 9, 11, 130, (3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "3x3 stride 2": (1, 64, 17, 15, 72, (3, 3), (2, 2), (1, 0, 1, 2), (1, 1), 1),
    "strides and dilations that differ": (1, 60, 23, 19, 64, (3, 2), (2, 3), (2, 1, 0, 3), (2, 3), 1),
    "nothing but padding in places": (1, 64, 2, 2, 64, (2, 2), (2, 2), (6, 5, 7, 4), (1, 1), 1),
}
ZERO_POINTS = {"I8": (0, 5, -128, 127), "U8": (0, 128, 255)}


def requantised(dtype, sums, scale, zero_point, act="IDENTITY", alpha=0.0, beta=0.0):
    value = sums * scale
    if act == "RELU":
        value = np.maximum(value, 0)
    elif act == "LEAKY_RELU":
        value = np.where(value < 0, value * np.float64(np.float32(alpha)), value)
    elif act == "CLIP":
        value = np.clip(value, np.float64(np.float32(alpha)), np.float64(np.float32(beta)))
    info = np.iinfo(STORAGE[dtype])
    return np.clip(np.rint(value) + zero_point, info.min, info.max).astype(STORAGE[dtype])


def quantised(dtype, values, layout, zero_point):
    tensor = stored(dtype, values, layout)
    tensor.zero_point = zero_point
    return tensor


def conv_case(device, name, a, b, layout, zx, zw, packed=False):
    n, c, h, w, o, kernel, stride, pads, dilation, groups = {**CONVS, **TILED}[name]
    rng = generator("i8 conv", name, a, b, layout, zx, zw)
    x = random_values(rng, a, (n, c, h, w), -128, 255)
    weights = random_values(rng, b, (o, c // groups, *kernel), -128, 255)
    bias = rng.integers(-5000, 5000, o).astype(np.int32)
    sums = conv_reference(x.astype(np.int64) - zx, weights.astype(np.int64) - zw, stride, pads, dilation, groups) + bias[:, None, None]
    params = {"stride": stride, "pad": pads, "dilation": dilation, "groups": groups}
    w_operand = place(b, weights)
    w_operand.zero_point = zw
    if packed:
        w_operand = pack(device, "CONV2D", w_operand, groups)
    operands = [quantised(a, x, layout, zx), w_operand, Tensor("I32", bias), None]
    y = empty_output("I32", sums.shape, layout)
    assert device.run("CONV2D", [*operands, None, y], **params) == "done"
    note = f"{name} {a} {b} {layout} zero points {zx} {zw}"
    check_equal(y.data, sums, note)
    for out, scale in (("I8", rng.uniform(1e-5, 2e-3, o).astype(np.float32)), ("U8", np.full(1, 7e-4, np.float32))):
        zero_point = 3 if out == "I8" else 130
        y = empty_output(out, sums.shape, layout)
        y.zero_point = zero_point
        assert device.run("CONV2D", [*operands, Tensor("F32", scale), y], **params) == "done"
        column = np.broadcast_to(scale, (o,)).astype(np.float64)[:, None, None]
        check_equal(y.data, requantised(out, sums, column, zero_point), note + " to " + out)


def conv(device):
    for name, layout in itertools.product(CONVS, ("nhwc", "plain")):
        conv_case(device, name, "U8", "I8", layout, 128, 0)
    for name in ("3x3", "groups", "depthwise", "dilation", "pads larger than the window"):
        for a, b in itertools.product(("I8", "U8"), repeat=2):
            for zx, zw in itertools.product(ZERO_POINTS[a], ZERO_POINTS[b]):
                conv_case(device, name, a, b, "nhwc", zx, zw)
        conv_case(device, name, "I8", "I8", "nhwc", 1, 2, packed=True)


def packed_conv(device):
    """Weights that PACK has laid out: as the kernels of this processor for integers want them."""
    device.needs_model("PACK")
    for name in TILED:
        for a, b, layout, zx, zw in (("U8", "I8", "nhwc", 0, 0), ("U8", "I8", "nhwc", 7, 0), ("I8", "I8", "plain", -128, 0),
                                     ("I8", "I8", "nhwc", 5, 0), ("U8", "I8", "nhwc", 3, 2)):
            conv_case(device, name, a, b, layout, zx, zw, packed=True)
    for name in CONVS:
        conv_case(device, name, "U8", "I8", "nhwc", 128, 0, packed=True)


def conv_extremes(device):
    """The largest values there are, over more terms than f32 could sum exactly."""
    for a, b, va, vb, zx, zw in (("I8", "I8", 127, 127, 0, 0), ("I8", "I8", -128, -128, 0, 0), ("U8", "U8", 255, 255, 0, 0),
                                 ("I8", "I8", -128, 127, 127, -128), ("U8", "I8", 255, -128, 0, 127)):
        for c, k in ((512, 3), (64, 1), (3, 17), (1, 300)):
            x = np.full((1, c, 3, k + 2 if k > 3 else 5), va, STORAGE[a])
            kernel = (1, k) if k > 17 else (min(k, 3), k)
            weights = np.full((2, c, *kernel), vb, STORAGE[b])
            weights[1, :, :, ::2] = 0 if zw == 0 else zw
            sums = conv_reference(x.astype(np.int64) - zx, weights.astype(np.int64) - zw, (1, 1), (0,) * 4, (1, 1), 1)
            w_operand = place(b, weights)
            w_operand.zero_point = zw
            y = empty_output("I32", sums.shape, "nhwc")
            assert device.run("CONV2D", [quantised(a, x, "nhwc", zx), w_operand, None, None, None, y], stride=(1, 1), dilation=(1, 1),
                              groups=1) == "done"
            check_equal(y.data, sums, f"{a} {va} x {b} {vb}, {c} channels, kernel {kernel}")


def matmul(device):
    for number, (a, b, (m, k, n)) in enumerate(itertools.product(("I8", "U8"), ("I8", "U8"), ((5, 33, 7), (1, 300, 65), (40, 4096, 12)))):
        rng = generator("i8 matmul", number)
        zx, zw = ZERO_POINTS[a][number % 3], ZERO_POINTS[b][(number + 1) % 3]
        x, w = (random_values(rng, t, (2, *s), -128, 255) for t, s in ((a, (m, k)), (b, (k, n))))
        sums = np.matmul(x.astype(np.int64) - zx, w.astype(np.int64) - zw)
        bias = rng.integers(-9000, 9000, (2, 1, n)).astype(np.int32)
        for layout in ("plain", "transposed"):
            left, right = place(a, x, layout), place(b, w, layout)
            left.zero_point, right.zero_point = zx, zw
            y = output("I32", sums.shape, layout)
            assert device.run("MATMUL", [left, right, broadcast("I32", bias, sums.shape), None, None, y]) == "done"
            check_equal(y.data, sums + bias, f"{a} {b} {m} {k} {n} {layout}")
            scale = rng.uniform(1e-6, 2e-4, n).astype(np.float32)
            for act in ("IDENTITY", "RELU", "LEAKY_RELU", "CLIP"):
                y = output("I8", sums.shape, layout)
                y.zero_point = -7
                device.run("MATMUL", [left, right, broadcast("I32", bias, sums.shape), None, Tensor("F32", scale), y], act=UNARY[act],
                           alpha=0.1 if act == "LEAKY_RELU" else -20, beta=50)
                alpha = 0.1 if act == "LEAKY_RELU" else -20
                check_equal(y.data, requantised("I8", sums + bias, scale.astype(np.float64), -7, act, alpha, 50), f"{act} {layout}")


def matmul_extremes(device):
    for a, b, va, vb, zx, zw in (("I8", "I8", 127, 127, 0, 0), ("U8", "U8", 255, 255, 0, 0), ("U8", "U8", 0, 255, 255, 0),
                                 ("I8", "I8", -128, -128, 127, 127)):
        for k in (64, 256, 257, 4096, 20000):
            x, w = np.full((3, k), va, STORAGE[a]), np.full((k, 5), vb, STORAGE[b])
            w[1::3, 2] = zw
            left, right = Tensor(a, x, zero_point=zx), Tensor(b, w, zero_point=zw)
            y = output("I32", (3, 5))
            device.run("MATMUL", [left, right, None, None, None, y])
            check_equal(y.data, np.matmul(x.astype(np.int64) - zx, w.astype(np.int64) - zw), f"{a} {b} K={k}")
    # 2^31 wraps.
    k = 40000
    left, right = Tensor("U8", np.full((1, k), 255, np.uint8)), Tensor("U8", np.full((k, 1), 255, np.uint8))
    y = output("I32", (1, 1))
    device.run("MATMUL", [left, right, None, None, None, y])
    check_equal(y.data, np.array([[255 * 255 * k]]).astype(np.int32), "wraps")


def half_even(device):
    """Sums that scale to exactly one half."""
    values = np.arange(-9, 10, 2).astype(np.int8).reshape(-1, 1)
    y = output("I8", (10, 1))
    device.run("MATMUL", [Tensor("I8", values), Tensor("I8", np.ones((1, 1), np.int8)), None, None, Tensor("F32", np.full(1, 0.5, np.float32)), y])
    check_equal(y.data, np.rint(values / 2).astype(np.int8), "half to even")
    left, right = Tensor("I8", values, scale=0.25), Tensor("I8", np.ones((1, 1), np.int8), scale=0.5)
    y = output("I8", (10, 1))
    y.scale = 0.25
    device.run("MATMUL", [left, right, None, None, None, y])
    check_equal(y.data, np.rint(values / 2).astype(np.int8), "scale from the descriptors")


def packed_matmul(device):
    device.needs_model("PACK")
    rng = generator("i8 packed")
    x, w = random_values(rng, "U8", (4, 6, 90), 0, 255), random_values(rng, "I8", (90, 20), -128, 127)
    sums = np.matmul(x.astype(np.int64) - 9, w.astype(np.int64) - 4)
    for minimum in (False, True):
        packed = pack(device, "MATMUL", Tensor("I8", w, zero_point=4), minimum=minimum)
        y = output("I32", sums.shape)
        device.run("MATMUL", [Tensor("U8", x, zero_point=9), packed, None, None, None, y])
        check_equal(y.data, sums, "packed")
    packed.zero_point = 5
    assert device.run("MATMUL", [Tensor("U8", x, zero_point=9), packed, None, None, None, y]) == "bad operand"


def tiled_matmul(device):
    """Sizes that tiles of a processor are used for, and the rests they leave."""
    device.needs_model("PACK")
    for number, (m, k, n) in enumerate(((1, 64, 64), (15, 50, 65), (16, 128, 64), (17, 100, 130), (32, 64, 128), (33, 192, 70), (200, 64, 96))):
        rng = generator("i8 tiles", number)
        for a, b, zx, zw, layout in (("U8", "I8", 0, 0, "plain"), ("I8", "I8", 5, 0, "plain"), ("U8", "I8", 200, 0, "transposed"),
                                     ("U8", "I8", 1, 3, "plain")):
            x, w = random_values(rng, a, (2, m, k), -128, 255), random_values(rng, b, (k, n), -128, 255)
            sums = np.matmul(x.astype(np.int64) - zx, w.astype(np.int64) - zw)
            left = place(a, x, layout)
            left.zero_point = zx
            right = pack(device, "MATMUL", Tensor(b, w, zero_point=zw))
            note = f"{m} {k} {n} {a} {b} zero points {zx} {zw} {layout}"
            y = output("I32", sums.shape, layout)
            assert device.run("MATMUL", [left, right, None, None, None, y]) == "done"
            check_equal(y.data, sums, note)
            for shape in ((1, 1, n), (1, m, 1), (2, m, n)):
                bias = rng.integers(-9000, 9000, shape).astype(np.int32)
                operand = broadcast("I32", bias, sums.shape)
                y = output("I32", sums.shape, layout)
                assert device.run("MATMUL", [left, right, operand, None, None, y]) == "done"
                check_equal(y.data, sums + bias, f"{note} bias {shape}")
                scale = rng.uniform(1e-6, 2e-4, n).astype(np.float32)
                y = output("I8", sums.shape, layout)
                y.zero_point = 11
                assert device.run("MATMUL", [left, right, operand, None, Tensor("F32", scale), y], act=UNARY["RELU"]) == "done"
                check_equal(y.data, requantised("I8", sums + bias, scale.astype(np.float64), 11, "RELU"), f"{note} bias {shape} to I8")


def add(cases, device):
    for function in (conv, conv_extremes, matmul, matmul_extremes, half_even, packed_conv, packed_matmul, tiled_matmul):
        cases.case(function, device, name="integer " + function.__name__)
