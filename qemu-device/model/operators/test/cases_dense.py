# SPDX-License-Identifier: MIT
"""CONV2D, CONV_TRANSPOSE2D, MATMUL and POOL of floats against sums in float64."""
import itertools

import numpy as np

from harness import ENUM, FLOATS, Refused, Tensor, from_float, to_float
from numerics import broadcast, generator, output, place, random_values, untouched
from packing import pack

UNARY = ENUM["unary"]


def activation(name, x, alpha, beta):
    if name == "RELU":
        return np.maximum(x, 0)
    if name == "LEAKY_RELU":
        return np.where(x < 0, alpha * x, x)
    if name == "CLIP":
        return np.clip(x, alpha, beta)
    if name == "HARD_SIGMOID":
        return np.clip(alpha * x + beta, 0, 1)
    if name == "HARD_SWISH":
        return x * np.clip(x / 6 + 0.5, 0, 1)
    if name == "SIGMOID":
        return 1 / (1 + np.exp(-x))
    if name == "SILU":
        return x / (1 + np.exp(-x))
    assert name == "IDENTITY", name
    return x


ACTIVATIONS = ("IDENTITY", "RELU", "LEAKY_RELU", "CLIP", "HARD_SIGMOID", "HARD_SWISH", "SIGMOID", "SILU")


def check_sum(dtype, got, want, magnitude, terms, note):
    """Sums of `terms` products may be off by terms * 2^-24 of the sum of magnitudes, the order being free, and 16 units of the result for what
    follows; f16 and bf16 by half a unit more."""
    value = to_float(dtype, got)
    limit = (terms + 16) * 2.0 ** -24 * magnitude + 16 * 2.0 ** -24 * np.abs(want) + 2.0 ** -126
    if dtype != "F32":
        limit = limit + np.maximum(np.abs(want), 2.0 ** -14) * (2.0 ** -11 if dtype == "F16" else 2.0 ** -8) * 1.01
    error = np.abs(value - want)
    assert value.shape == want.shape, note
    if (error <= limit).all():
        return
    at = np.unravel_index(int(np.argmax(error / limit)), error.shape)
    raise AssertionError(f"{note} {dtype}: {int((~(error <= limit)).sum())} of {error.size} wrong, worst at {at}: got {value[at]!r}, "
                         f"want {want[at]!r}, allowed {limit[at]!r}")


def windows(x, kernel, stride, pads, dilation, out):
    """[N,C,KH,KW,OH,OW] of a padded float64 array."""
    n, c, h, w = x.shape
    top, left, bottom, right = pads
    span = [dilation[i] * (kernel[i] - 1) + stride[i] * (out[i] - 1) + 1 for i in range(2)]
    padded = np.zeros((n, c, max(h + top + bottom, span[0]), max(w + left + right, span[1])), x.dtype)
    padded[:, :, top:top + h, left:left + w] = x
    result = np.empty((n, c, kernel[0], kernel[1], out[0], out[1]), x.dtype)
    for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
        rows, cols = i * dilation[0], j * dilation[1]
        result[:, :, i, j] = padded[:, :, rows:rows + stride[0] * (out[0] - 1) + 1:stride[0], cols:cols + stride[1] * (out[1] - 1) + 1:stride[1]]
    return result


def conv_out(size, kernel, stride, pads, dilation):
    return tuple((size[i] + pads[i] + pads[i + 2] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1 for i in range(2))


def conv_reference(x, w, stride, pads, dilation, groups):
    n, c = x.shape[:2]
    o, _, kh, kw = w.shape
    out = conv_out(x.shape[2:], (kh, kw), stride, pads, dilation)
    cols = windows(x, (kh, kw), stride, pads, dilation, out).reshape(n, groups, -1, out[0] * out[1])
    y = np.matmul(w.reshape(1, groups, o // groups, -1), cols)
    return y.reshape(n, o, *out)


def channels_last(dtype, values):
    """[N,C,H,W] stored as [N,H,W,C]."""
    data = np.ascontiguousarray(np.moveaxis(values, 1, -1))
    return Tensor(dtype, np.moveaxis(data, -1, 1))


def stored(dtype, values, layout):
    return channels_last(dtype, values) if layout == "nhwc" else place(dtype, values, layout)


def empty_output(dtype, shape, layout):
    like = output(dtype, shape) if layout == "nhwc" else output(dtype, shape, layout)
    return channels_last(dtype, like.data) if layout == "nhwc" else like


# n, c, h, w, o, kernel, stride, pads (t,l,b,r), dilation, groups
CONVS = {
    "3x3": (1, 16, 19, 23, 24, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    "3x3 stride 2, few channels": (2, 3, 33, 31, 16, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1),
    "1x1": (3, 40, 9, 7, 33, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    "1x1 stride 2": (1, 17, 14, 15, 8, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
    "one channel, one output": (1, 1, 11, 13, 1, (5, 3), (1, 1), (2, 0, 1, 1), (1, 1), 1),
    "asymmetric pads, strides, kernel": (1, 10, 17, 21, 12, (5, 2), (3, 2), (0, 2, 3, 1), (1, 1), 1),
    "dilation": (1, 8, 30, 26, 9, (3, 3), (1, 2), (2, 3, 4, 3), (2, 3), 1),
    "groups": (2, 24, 12, 11, 36, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4),
    "groups of one output": (1, 6, 9, 9, 3, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 3),
    "depthwise": (1, 40, 15, 18, 40, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 40),
    "depthwise 5x5 stride 2": (2, 13, 21, 20, 13, (5, 5), (2, 2), (2, 2, 2, 2), (1, 1), 13),
    "depthwise multiplier": (1, 6, 10, 12, 18, (3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 6),
    "1-d": (1, 12, 1, 60, 20, (1, 7), (1, 3), (0, 3, 0, 3), (1, 1), 1),
    "window larger than the picture": (1, 5, 3, 2, 7, (5, 5), (1, 1), (2, 2, 2, 2), (1, 1), 1),
    "pads larger than the window": (1, 4, 5, 5, 6, (2, 2), (2, 2), (6, 5, 7, 4), (1, 1), 1),
    "many pads and rows of nothing": (1, 3, 2, 2, 2, (1, 1), (5, 5), (7, 9, 11, 8), (1, 1), 1),
}


def conv_case(device, name, dtype, layout="nhwc", packed=False, act="IDENTITY", bias=True, residual=None, out_dtype=None):
    n, c, h, w, o, kernel, stride, pads, dilation, groups = CONVS[name]
    rng = generator("conv", name, dtype, layout, packed, act)
    out_dtype = out_dtype or dtype
    x = random_values(rng, dtype, (n, c, h, w), -2, 2)
    weights = random_values(rng, dtype, (o, c // groups, *kernel), -1, 1)
    b = random_values(rng, "F32", (o,), -3, 3)
    xf, wf = to_float(dtype, x), to_float(dtype, weights)
    want = conv_reference(xf, wf, stride, pads, dilation, groups)
    magnitude = conv_reference(np.abs(xf), np.abs(wf), stride, pads, dilation, groups)
    y = empty_output(out_dtype, want.shape, layout)
    r = None
    if bias:
        want = want + b.astype(np.float64)[:, None, None]
    if residual:
        values = random_values(rng, out_dtype, want.shape, -3, 3)
        if residual == "in place":
            y.data[...] = values
            r = y
        else:
            r = stored(out_dtype, values, layout)
        want = want + to_float(out_dtype, values)
    magnitude = magnitude + 6
    alpha, beta = (0.2, 0.5) if act == "HARD_SIGMOID" else (0.01, 1.5)
    want = activation(act, want, np.float64(np.float32(alpha)), np.float64(np.float32(beta)))
    plain = place(dtype, weights, "plain")
    w_operand = pack(device, "CONV2D", plain, groups) if packed else plain
    outcome = device.run("CONV2D", [stored(dtype, x, layout), w_operand, Tensor("F32", b) if bias else None, r, None, y],
                         stride=stride, pad=pads, dilation=dilation, groups=groups, act=UNARY[act], alpha=alpha, beta=beta)
    assert outcome == "done", outcome
    terms = (c // groups) * kernel[0] * kernel[1]
    check_sum(out_dtype, y.data, want, magnitude, terms, f"{name} {layout} packed={packed} {act}")
    untouched(y)


def conv(device, dtype):
    for name, layout in itertools.product(CONVS, ("nhwc", "plain", "gaps") if dtype == "F32" else ("nhwc", "plain")):
        conv_case(device, name, dtype, layout)
    for name in CONVS:
        conv_case(device, name, dtype, packed=True)


def conv_fused(device, dtype):
    for act in ACTIVATIONS:
        for name in ("3x3", "depthwise", "groups", "1x1"):
            conv_case(device, name, dtype, act=act, residual="separate", packed=True)
            conv_case(device, name, dtype, act=act, residual="in place", bias=False)
            conv_case(device, name, dtype, layout="plain", act=act, residual="in place")
    if dtype != "F32":
        conv_case(device, "3x3", dtype, out_dtype="F32", residual="separate", act="RELU")


def conv_weights(device):
    """Weights in every memory layout, and a forged packed buffer."""
    n, c, h, w, o, kernel, stride, pads, dilation, groups = CONVS["groups"]
    rng = generator("conv weights")
    x, values = (random_values(rng, "F32", s, -1, 1) for s in ((n, c, h, w), (o, c // groups, *kernel)))
    want = conv_reference(x.astype(np.float64), values.astype(np.float64), stride, pads, dilation, groups)
    params = {"stride": stride, "pad": pads, "dilation": dilation, "groups": groups}
    for layout in ("plain", "transposed", "reversed", "gaps"):
        y = output("F32", want.shape)
        device.run("CONV2D", [place("F32", x), place("F32", values, layout), None, None, None, y], **params)
        check_sum("F32", y.data, want, np.abs(want) + 10, c * 9, layout)
    if not device.is_model:
        return
    packed = pack(device, "CONV2D", place("F32", values), groups)
    for word in (0, 1, 2, 3, 4, 5, 6, 8, 20, 63):
        forged = packed.copy()
        forged.data.view(np.uint32)[word] ^= 1
        y = output("F32", want.shape)
        outcome = device.run("CONV2D", [place("F32", x), forged, None, None, None, y], **params)
        assert outcome == "bad operand" and device.detail[0] == 1, (word, outcome, device.detail)
    small = pack(device, "CONV2D", place("F32", values), groups, minimum=True)
    y = output("F32", want.shape)
    device.run("CONV2D", [place("F32", x), small, None, None, None, y], **params)
    check_sum("F32", y.data, want, np.abs(want) + 10, c * 9, "plain layout in a small buffer")


def conv_tiles(device):
    """Large enough for several tiles, in each direction; the threads must not matter beyond rounding."""
    rng = generator("conv tiles")
    for n, c, h, w, o, k in ((1, 128, 90, 80, 160, 3), (1, 4, 700, 640, 8, 7), (9, 64, 48, 40, 64, 3)):
        x = random_values(rng, "F32", (n, c, h, w), -1, 1)
        weights = random_values(rng, "F32", (o, c, k, k), -1, 1)
        pad = (k // 2,) * 4
        y = empty_output("F32", (n, o, h, w), "nhwc")
        device.run("CONV2D", [channels_last("F32", x), Tensor("F32", weights), None, None, None, y], stride=(1, 1), pad=pad,
                   dilation=(1, 1), groups=1)
        rows = sorted(set(int(v) for v in np.linspace(0, h - 1, 12)))
        for image, row in itertools.product((0, n - 1), rows):
            lines = np.zeros((1, c, k, w), np.float64)
            low, high = row - k // 2, row + k // 2 + 1
            lines[:, :, max(-low, 0):k - max(high - h, 0)] = x[image:image + 1, :, max(low, 0):min(high, h)]
            want = conv_reference(lines, weights.astype(np.float64), (1, 1), (0, k // 2, 0, k // 2), (1, 1), 1)[0, :, 0]
            check_sum("F32", y.data[image, :, row], want, np.full(want.shape, c * k * k / 4.0), c * k * k, f"row {row} of image {image}")


def transposed_reference(x, w, stride, pads, dilation, groups, out):
    n, c, h, width = x.shape
    _, per_group, kh, kw = w.shape
    full = np.zeros((n, per_group * groups, max((h - 1) * stride[0] + dilation[0] * (kh - 1) + 1, out[0] + pads[0]),
                     max((width - 1) * stride[1] + dilation[1] * (kw - 1) + 1, out[1] + pads[1])))
    for g, i, j in itertools.product(range(groups), range(kh), range(kw)):
        xs, ws = (a[..., g * (c // groups):(g + 1) * (c // groups), :, :] if a is x else a[g * (c // groups):(g + 1) * (c // groups)]
                  for a in (x, w))
        part = np.einsum("nchw,co->nohw", xs, ws[:, :, i, j])
        top, left = i * dilation[0], j * dilation[1]
        full[:, g * per_group:(g + 1) * per_group, top:top + (h - 1) * stride[0] + 1:stride[0],
             left:left + (width - 1) * stride[1] + 1:stride[1]] += part
    return full[:, :, pads[0]:pads[0] + out[0], pads[1]:pads[1] + out[1]]


# n, c, h, w, outputs of a group, kernel, stride, pads, dilation, groups, output padding
TRANSPOSED = (
    (1, 24, 12, 13, 10, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), 1, (0, 0)),
    (2, 6, 7, 5, 5, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 1, (1, 1)),
    (1, 8, 6, 9, 3, (4, 3), (3, 2), (1, 0, 2, 1), (1, 2), 2, (2, 1)),
    (1, 5, 8, 8, 1, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 5, (0, 0)),
    (1, 3, 4, 4, 2, (2, 2), (1, 1), (0, 0, 0, 0), (4, 3), 1, (3, 2)),
    (1, 2, 3, 3, 2, (1, 1), (5, 4), (0, 0, 0, 0), (1, 1), 1, (4, 3)),
)


def transposed_conv(device, dtype):
    for number, (case, layout, packed) in enumerate(itertools.product(TRANSPOSED, ("nhwc", "plain"), (False, True))):
        n, c, h, w, per_group, kernel, stride, pads, dilation, groups, extra = case
        rng = generator("transposed", number, dtype)
        x = random_values(rng, dtype, (n, c, h, w), -2, 2)
        weights = random_values(rng, dtype, (c, per_group, *kernel), -1, 1)
        out = tuple((s - 1) * stride[i] - pads[i] - pads[i + 2] + dilation[i] * (kernel[i] - 1) + 1 + extra[i] for i, s in enumerate((h, w)))
        bias = random_values(rng, "F32", (per_group * groups,), -1, 1)
        xf, wf = to_float(dtype, x), to_float(dtype, weights)
        want = transposed_reference(xf, wf, stride, pads, dilation, groups, out) + bias.astype(np.float64)[:, None, None]
        magnitude = transposed_reference(np.abs(xf), np.abs(wf), stride, pads, dilation, groups, out) + 1
        act = ACTIVATIONS[number % 3]
        want = activation(act, want, np.float64(np.float32(0.1)), 0)
        w_operand = place(dtype, weights)
        if packed:
            w_operand = pack(device, "CONV_TRANSPOSE2D", w_operand, groups)
        y = empty_output(dtype, want.shape, layout)
        outcome = device.run("CONV_TRANSPOSE2D", [stored(dtype, x, layout), w_operand, Tensor("F32", bias), y], stride=stride, pad=pads,
                             dilation=dilation, groups=groups, act=UNARY[act], alpha=0.1)
        assert outcome == "done", outcome
        check_sum(dtype, y.data, want, magnitude, c * kernel[0] * kernel[1], f"case {number}")


def matmul_case(device, dtype, a, b, y, bias=None, residual=None, act="IDENTITY", scale=0.0, note=""):
    af, bf = a.floats(), b.floats()
    factor = np.float64(np.float32(scale)) if scale else 1.0
    want, magnitude = factor * np.matmul(af, bf), abs(factor) * np.matmul(np.abs(af), np.abs(bf))
    for extra in (bias, residual):
        if extra is not None:
            want, magnitude = want + extra.floats(), magnitude + np.abs(extra.floats())
    want = activation(act, want, np.float64(np.float32(0.01)), np.float64(np.float32(1.5)))
    outcome = device.run("MATMUL", [a, b, bias, residual, None, y], act=UNARY[act], alpha=0.01, beta=1.5, scale=scale)
    assert outcome == "done", outcome
    check_sum(y.dtype, y.data, want, magnitude + np.abs(want), af.shape[-1], note or f"{af.shape} x {bf.shape} {act}")
    untouched(y)


def matmul(device, dtype):
    shapes = (((5, 7), (7, 9)), ((1, 33), (33, 65)), ((64, 1), (1, 17)), ((37, 19), (19, 1)), ((3, 4, 11), (3, 11, 6)),
              ((2, 3, 1, 8), (2, 3, 8, 1)), ((2, 3, 20, 16), (2, 3, 16, 20)), ((1, 1), (1, 1)))
    for (sa, sb), la, lb, ly in itertools.product(shapes, ("plain", "transposed"), ("plain", "transposed", "reversed"),
                                                  ("plain", "transposed", "gaps")):
        rng = generator("matmul", dtype, sa, sb)
        a, b = (place(dtype, random_values(rng, dtype, s, -1, 1), layout) for s, layout in ((sa, la), (sb, lb)))
        matmul_case(device, dtype, a, b, output(dtype, (*sa[:-1], sb[-1]), ly), note=f"{sa} {la} x {sb} {lb} to {ly}")


def matmul_fused(device, dtype):
    rng = generator("matmul fused", dtype)
    m, k, n, batch = 21, 18, 35, (2, 3)
    a = place(dtype, random_values(rng, dtype, (*batch, m, k), -1, 1))
    b = place(dtype, random_values(rng, dtype, (*batch, k, n), -1, 1))
    shape = (*batch, m, n)
    for act, scale in itertools.product(ACTIVATIONS, (0.0, 0.125)):
        row = broadcast("F32", random_values(rng, "F32", (n,), -1, 1), shape)
        column = broadcast("F32", random_values(rng, "F32", (m, 1), -1, 1), shape)
        mask = broadcast(dtype, random_values(rng, dtype, (2, 1, m, n), -1, 1), shape)
        if act == "HARD_SIGMOID":
            continue
        matmul_case(device, dtype, a, b, output(dtype, shape), row, None, act, scale)
        matmul_case(device, dtype, a, b, output(dtype, shape), column, mask, act, scale)
        y = output(dtype, shape)
        y.data[...] = random_values(rng, dtype, shape, -1, 1)
        residual = place(dtype, y.data.copy())
        want = residual.floats()
        total = (np.float64(np.float32(scale)) if scale else 1.0) * np.matmul(a.floats(), b.floats()) + want
        device.run("MATMUL", [a, b, None, y, None, y], act=UNARY["IDENTITY"], scale=scale)
        check_sum(dtype, y.data, total, np.abs(total) + k, k, "residual in place")


def matmul_batches(device, dtype):
    """Broadcast batches, heads as slices of one buffer, packed b."""
    rng = generator("matmul batches", dtype)
    heads = random_values(rng, dtype, (2, 10, 3, 8), -1, 1)  # [batch, sequence, heads, size]
    q = Tensor(dtype, heads.transpose(0, 2, 1, 3))
    keys = Tensor(dtype, random_values(rng, dtype, (2, 10, 3, 8), -1, 1).transpose(0, 2, 3, 1))
    matmul_case(device, dtype, q, keys, output(dtype, (2, 3, 10, 10)), note="heads")
    values = Tensor(dtype, random_values(rng, dtype, (2, 10, 3, 8), -1, 1).transpose(0, 2, 1, 3))
    scores = place(dtype, random_values(rng, dtype, (2, 3, 10, 10), -1, 1))
    target = np.zeros((2, 10, 3, 8), heads.dtype)
    matmul_case(device, dtype, scores, values, Tensor(dtype, target.transpose(0, 2, 1, 3)), note="heads back")
    for sa, sb in (((4, 5, 6, 7), (7, 9)), ((4, 5, 1, 7), (7, 9)), ((1, 5, 6, 7), (4, 1, 7, 3)), ((4, 1, 1, 7), (1, 5, 7, 3))):
        batch = np.broadcast_shapes(sa[:-2], sb[:-2])
        a = broadcast(dtype, random_values(rng, dtype, sa, -1, 1), (*batch, *sa[-2:]))
        values = random_values(rng, dtype, sb, -1, 1)
        b = broadcast(dtype, values, (*batch, *sb[-2:]))
        matmul_case(device, dtype, a, b, output(dtype, (*batch, sa[-2], sb[-1])), note=f"{sa} x {sb}")
        if len(sb) == 2 and device.is_model:
            packed = pack(device, "MATMUL", Tensor(dtype, values))
            y = output(dtype, (*batch, sa[-2], sb[-1]))
            device.run("MATMUL", [a, packed, None, None, None, y])
            want = np.matmul(a.floats(), to_float(dtype, values))
            check_sum(dtype, y.data, want, np.abs(want) + 7, 7, "packed")
            small = pack(device, "MATMUL", Tensor(dtype, values), minimum=True)
            device.run("MATMUL", [a, small, None, None, None, y])
            check_sum(dtype, y.data, want, np.abs(want) + 7, 7, "packed, small buffer")
    if not device.is_model:
        return
    forged = pack(device, "MATMUL", Tensor(dtype, random_values(rng, dtype, (7, 9), -1, 1))).copy()
    forged.data.view(np.uint32)[3] ^= 4
    a = place(dtype, random_values(rng, dtype, (6, 7), -1, 1))
    assert device.run("MATMUL", [a, forged, None, None, None, output(dtype, (6, 9))]) == "bad operand"
    assert device.detail[0] == 1, device.detail


def matmul_tiles(device):
    rng = generator("matmul tiles")
    for m, k, n in ((700, 512, 900), (3, 16000, 9000)):
        a = place("F32", random_values(rng, "F32", (m, k), -1, 1))
        b = place("F32", random_values(rng, "F32", (k, n), -1, 1))
        bias = broadcast("F32", random_values(rng, "F32", (n,), -1, 1), (m, n))
        y = output("F32", (m, n))
        assert device.run("MATMUL", [a, b, bias, None, None, y]) == "done"
        want = np.matmul(a.floats(), b.floats()) + bias.floats()
        check_sum("F32", y.data, want, np.full(want.shape, k / 4.0), k, f"{m} {k} {n}")


def pool_reference(function, x, kernel, stride, pads, dilation, out):
    size = x.shape[2:]
    y = np.zeros((*x.shape[:2], *out))
    index = [[np.arange(kernel[a]) * dilation[a] + o * stride[a] - pads[a] for o in range(out[a])] for a in range(2)]
    for i, j in itertools.product(range(out[0]), range(out[1])):
        inside = [idx[(idx >= 0) & (idx < size[a])] for a, idx in enumerate((index[0][i], index[1][j]))]
        padded = [int(((idx >= -pads[a]) & (idx < size[a] + pads[a + 2])).sum()) for a, idx in enumerate((index[0][i], index[1][j]))]
        part = x[:, :, inside[0]][:, :, :, inside[1]]
        if function == "MAX":
            y[:, :, i, j] = part.max((2, 3)) if part.size else -np.inf
        elif part.size:
            divisor = part.shape[2] * part.shape[3] if function == "AVERAGE" else padded[0] * padded[1]
            y[:, :, i, j] = part.sum((2, 3)) / divisor
    return y


# n, c, h, w, kernel, stride, pads, dilation, ceil
POOLS = (
    (1, 7, 12, 13, (2, 2), (2, 2), (0, 0, 0, 0), (1, 1), False),
    (2, 40, 11, 9, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), False),
    (1, 300, 8, 8, (3, 3), (2, 2), (0, 0, 0, 0), (1, 1), True),
    (1, 5, 9, 10, (3, 2), (2, 3), (2, 0, 1, 1), (1, 1), True),
    (1, 6, 13, 13, (3, 3), (1, 2), (2, 1, 3, 0), (2, 3), False),
    (2, 65, 7, 5, (7, 5), (1, 1), (0, 0, 0, 0), (1, 1), False),
    (1, 3, 4, 4, (1, 1), (3, 3), (0, 0, 0, 0), (1, 1), False),
)


def pool(device, dtype):
    for function, case, layout in itertools.product(ENUM["pool"], POOLS, ("nhwc", "plain", "gaps")):
        n, c, h, w, kernel, stride, pads, dilation, ceil = case
        rng = generator("pool", function, case, dtype)
        x = random_values(rng, dtype, (n, c, h, w), -100, 100)
        spare = [(h, w)[i] + pads[i] + pads[i + 2] - dilation[i] * (kernel[i] - 1) - 1 for i in range(2)]
        out = tuple((s + (t - 1 if ceil else 0)) // t + 1 for s, t in zip(spare, stride))
        if ceil:  # the last window starts inside the padded input
            out = tuple(min(o, ((h, w)[i] + pads[i] + pads[i + 2] - 1) // stride[i] + 1) for i, o in enumerate(out))
        want = pool_reference(function, to_float(dtype, x).astype(np.float64), kernel, stride, pads, dilation, out)
        y = empty_output(dtype, want.shape, layout)
        assert device.run("POOL", [stored(dtype, x, layout), y], function=ENUM["pool"][function], kernel=kernel, stride=stride, pad=pads,
                          dilation=dilation) == "done"
        note = f"{function} {case} {layout}"
        if dtype in FLOATS:
            check_sum(dtype, y.data, want, np.abs(want) + (0 if function == "MAX" else 100), 0 if function == "MAX" else kernel[0] * kernel[1], note)
        else:
            assert (y.data == np.rint(want)).all(), note
        untouched(y)


def pool_special(device):
    x = np.array([[np.nan, 1, 2, 3], [-np.inf, 5, -1, -2]], np.float32).reshape(1, 1, 2, 4)
    y = output("F32", (1, 1, 1, 2))
    device.run("POOL", [Tensor("F32", x), y], function=ENUM["pool"]["MAX"], kernel=(2, 2), stride=(2, 2), pad=(0,) * 4, dilation=(1, 1))
    assert np.isnan(y.data[0, 0, 0, 0]) and y.data[0, 0, 0, 1] == 3, y.data
    # A window whose dilated taps all miss the input.
    x = np.full((1, 1, 1, 1), 9, np.int8)
    y = output("I8", (1, 1, 2, 2))
    device.run("POOL", [Tensor("I8", x), y], function=ENUM["pool"]["MAX"], kernel=(2, 2), stride=(1, 1), pad=(1, 1, 2, 2), dilation=(2, 2))
    assert sorted(y.data.reshape(-1)) == [-128, -128, -128, -128] or 9 in y.data, y.data


def stops(device):
    """proceed() is asked, and a stop is reported, in the middle of each kind of work."""
    device.needs_model("tiles to stop at")
    rng = generator("stops")
    x = channels_last("F32", random_values(rng, "F32", (1, 128, 90, 80), -1, 1))
    weights = place("F32", random_values(rng, "F32", (160, 128, 3, 3), -1, 1))
    y = empty_output("F32", (1, 160, 90, 80), "nhwc")
    params = {"stride": (1, 1), "pad": (1,) * 4, "dilation": (1, 1), "groups": 1}
    for tiles in range(3):
        assert device.run("CONV2D", [x, weights, None, None, None, y], tiles=tiles, **params) == "stopped", tiles
    a, b = (place("F32", random_values(rng, "F32", s, -1, 1)) for s in ((900, 700), (700, 800)))
    for tiles in range(3):
        assert device.run("MATMUL", [a, b, None, None, None, output("F32", (900, 800))], tiles=tiles) == "stopped", tiles


def refusals(device):
    """A sentence names operator, operand and rule."""
    x, w, y = output("F32", (1, 4, 5, 5)), output("F32", (6, 3, 3, 3)), output("F32", (1, 6, 3, 3))
    try:
        device.run("CONV2D", [x, w, None, None, None, y], stride=(1, 1), dilation=(1, 1), groups=1)
    except Refused as refused:
        assert str(refused) == "conv2d: operand 'weights': dims do not fit: dims[1] is 3, must be C/groups = 4", refused
    else:
        raise AssertionError("not refused")


def add(cases, device):
    for dtype in FLOATS:
        for function in (conv, conv_fused, transposed_conv, matmul, matmul_fused, matmul_batches):
            cases.case(function, device, dtype, name=f"{function.__name__} {dtype}")
    for dtype in (*FLOATS, "I8", "U8"):
        cases.case(pool, device, dtype, name=f"pool {dtype}")
    for function in (conv_weights, conv_tiles, matmul_tiles, pool_special, stops, refusals):
        cases.case(function, device)
