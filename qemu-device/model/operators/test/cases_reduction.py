# SPDX-License-Identifier: MIT
"""SOFTMAX, NORM, REDUCE, ARG against float64 NumPy."""
import itertools
import math

import numpy as np

from cases_elementwise import UNARY, wrap
from harness import ENUM, FLOATS, STORAGE, Tensor, from_float, to_float
from numerics import (INTEGERS, LAYOUTS, broadcast, check_close, check_equal, generator, output, place, random_values, untouched)


def _softmax(x, axis, log):
    with np.errstate(all="ignore"):
        shifted = x - np.max(x, axis, keepdims=True)
        total = np.exp(shifted).sum(axis, keepdims=True)
        return shifted - np.log(total) if log else np.exp(shifted) / total


def softmax(device, dtype, log):
    rng = generator("softmax", dtype, log)
    for shape in ((3, 5, 37), (2, 1100, 3), (7,), (4, 2500), (2, 200, 5, 4), (6, 1)):
        values = random_values(rng, dtype, shape, -20, 20)
        for layout in LAYOUTS:
            for axis in range(len(shape)):
                y = output(dtype, shape, layout)
                device.run("SOFTMAX", [place(dtype, values, layout), y], axis=axis, log=log)
                want = _softmax(to_float(dtype, values), axis, log)
                # x - max is rounded in f32: up to 40, that is 2e-6 in the logarithm and relative to the result of exp.
                ulps, absolute = (2, 4e-6) if log else (45, 0)
                check_close(dtype, y.data, want, ulps, absolute, f"{shape} axis {axis} {layout}")
                untouched(y)


def softmax_masked(device):
    """-inf entries get 0; a row of nothing else is NaN, as 0 / 0."""
    x = np.array([[0, -np.inf, 1, -np.inf], [-np.inf] * 4, [1e30, -1e30, 1e30, 0], [np.nan, 0, 1, 2]], np.float32)
    for layout in ("plain", "transposed"):
        y = output("F32", x.shape)
        device.run("SOFTMAX", [place("F32", x, layout), y], axis=1)
        check_close("F32", y.data, _softmax(x.astype(np.float64), 1, 0), 4, 0, layout)


def _split(shape, groups):
    return (shape[0], groups, shape[1] // groups, *shape[2:])


def _norm(kind, x, axis, groups, epsilon):
    shape = x.shape
    if kind == "GROUP":
        x = x.reshape(_split(shape, groups))
    axes = tuple(range(axis, x.ndim)) if kind in ("LAYER", "RMS") else tuple(range(2, x.ndim))
    mean = 0 if kind == "RMS" else x.mean(axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axes, keepdims=True)
    return ((x - mean) / np.sqrt(variance + epsilon)).reshape(shape)


def norm(device, kind, dtype):
    rng = generator("norm", kind, dtype)
    epsilon = float(np.float32(1e-5))
    cases = [((4, 6, 50), 2), ((3, 700), 1), ((2, 3, 4, 5), 1), ((2, 8, 3, 3), 3), ((5, 12, 9, 7), 1), ((9,), 0), ((1, 4, 70, 80), 2)]
    for (shape, axis), layout, offset in itertools.product(cases, LAYOUTS, (0, 30)):
        trailing = kind in ("LAYER", "RMS")
        if not trailing and len(shape) < 3:
            continue
        groups = 2 if shape[1 if len(shape) > 1 else 0] % 2 == 0 else 1
        x = random_values(rng, dtype, shape, offset - 2, offset + 2)
        parameter = shape[axis:] if trailing else (shape[1],)
        scale, bias = (random_values(rng, "F32", parameter, -2, 2) for _ in range(2))
        y = output(dtype, shape, layout)
        if trailing:
            operands = [broadcast("F32", scale, shape), broadcast("F32", bias, shape)]
            stretch = lambda p: p
        else:
            operands = [Tensor("F32", scale), Tensor("F32", bias)]
            stretch = lambda p: p.reshape(-1, *[1] * (len(shape) - 2))
        params = {"kind": ENUM["norm"][kind], "epsilon": epsilon}
        params |= {"axis": axis} if trailing else {"groups": groups} if kind == "GROUP" else {}
        plain = _norm(kind, to_float(dtype, x), axis, groups, epsilon)
        for with_scale in (True, False):
            used = operands if with_scale else [None, None]
            device.run("NORM", [place(dtype, x, layout), *used, None, None, y], **params)
            want = plain * stretch(scale) + stretch(bias) if with_scale else plain
            check_close(dtype, y.data, want, 2, 6e-7 * (np.abs(plain) + 1).max() * 2, f"{kind} {shape} {layout} mean {offset}")
            untouched(y)


def norm_precision(device):
    """A mean of 10,000 deviations: nothing is lost beyond what f32 inputs have lost themselves."""
    x = (10000 + generator("precision").normal(0, 1, (6, 4000))).astype(np.float32)
    y = output("F32", x.shape)
    device.run("NORM", [Tensor("F32", x), None, None, None, None, y], kind=ENUM["norm"]["LAYER"], axis=1, epsilon=1e-5)
    check_close("F32", y.data, _norm("LAYER", x.astype(np.float64), 1, 1, float(np.float32(1e-5))), 4, 1e-6)


def too_many_groups(device):
    """Statistics need scratch, a number for each group; beyond 2^25 groups that is refused, not taken from the host."""
    device.needs_model("scratch that can run out")
    shape = (2 ** 25 + 1, 1)
    x, y = (np.broadcast_to(np.float16(1), shape) if i == 0 else np.full(shape, 7, np.float16) for i in range(2))
    assert device.run("SOFTMAX", [Tensor("F16", x), Tensor("F16", y)], axis=1) == "out of memory"
    assert device.run("NORM", [Tensor("F16", x), None, None, None, None, Tensor("F16", y)], kind=ENUM["norm"]["LAYER"], axis=1,
                      epsilon=1e-5) == "out of memory"
    assert (y[::4097] == 7).all()


def norm_batch(device, dtype):
    rng = generator("batch", dtype)
    epsilon = float(np.float32(1e-3))
    for shape, layout in itertools.product(((2, 5, 9, 11), (3, 16), (2, 40, 30)), LAYOUTS):
        x = random_values(rng, dtype, shape)
        scale, bias, mean = (random_values(rng, "F32", (shape[1],), -2, 2) for _ in range(3))
        variance = random_values(rng, "F32", (shape[1],), 0.1, 2)
        y = output(dtype, shape, layout)
        reference, alpha, beta, *_ = UNARY["LEAKY_RELU"]
        device.run("NORM", [place(dtype, x, layout), *(Tensor("F32", p) for p in (scale, bias, mean, variance)), y],
                   kind=ENUM["norm"]["BATCH"], epsilon=epsilon, act=ENUM["unary"]["LEAKY_RELU"], alpha=alpha)
        s, b, m, v = (p.astype(np.float64).reshape(-1, *[1] * (len(shape) - 2)) for p in (scale, bias, mean, variance))
        want = reference((to_float(dtype, x) - m) / np.sqrt(v + epsilon) * s + b, float(np.float32(alpha)), beta)
        check_close(dtype, y.data, want, 3, 6e-6, f"{shape} {layout}")
        untouched(y)


FLOAT_REDUCE = {
    "SUM": (lambda x, a: x.sum(a, keepdims=True), 1), "MEAN": (lambda x, a: x.mean(a, keepdims=True), 1),
    "MAX": (lambda x, a: x.max(a, keepdims=True), 0), "MIN": (lambda x, a: x.min(a, keepdims=True), 0),
    "PROD": (lambda x, a: x.prod(a, keepdims=True), 1), "L1": (lambda x, a: np.abs(x).sum(a, keepdims=True), 1),
    "L2": (lambda x, a: np.sqrt((x * x).sum(a, keepdims=True)), 1),
    "SUM_SQUARE": (lambda x, a: (x * x).sum(a, keepdims=True), 1),
    "LOG_SUM": (lambda x, a: np.log(x.sum(a, keepdims=True)), 1),
    "LOG_SUM_EXP": (lambda x, a: np.log(np.exp(x).sum(a, keepdims=True)), 2),
}
SHAPES = ((3, 5, 37), (2, 300, 7), (4, 3, 8, 10), (11,), (1, 6, 1, 5))


def _axis_sets(rank):
    return [axes for n in range(rank + 1) for axes in itertools.combinations(range(rank), n)]


def reduce_float(device, function, dtype):
    reference, ulps = FLOAT_REDUCE[function]
    rng = generator("reduce", function, dtype)
    for shape in SHAPES:
        x = random_values(rng, dtype, shape, 0.5 if function in ("LOG_SUM", "PROD") else -2, 1.6 if function == "PROD" else 2)
        for axes, layout in itertools.product(_axis_sets(len(shape)), LAYOUTS):
            kept = tuple(1 if a in axes else d for a, d in enumerate(shape))
            y = output(dtype, kept, layout)
            device.run("REDUCE", [place(dtype, x, layout), y], function=ENUM["reduce"][function],
                       axes=sum(1 << a for a in axes))
            with np.errstate(all="ignore"):
                want = reference(to_float(dtype, x), axes)
            absolute = 3e-7 if function == "LOG_SUM_EXP" else 1e-12
            check_close(dtype, y.data, want, ulps, absolute, f"{function} {shape} {axes} {layout}")
            untouched(y)


def reduce_special(device):
    inf, nan = np.inf, np.nan
    x = np.array([[1, nan, 3, 4], [inf, 1, 2, 3], [-inf, 1, 2, 3], [-inf] * 4, [1e30, 1e30, -1e30, 0], [inf, -inf, 0, 0],
                  [-1000, -1001, -1002, -inf], [3e38, 3e38, 0, 0]], np.float32)
    for function, (reference, ulps) in FLOAT_REDUCE.items():
        for layout in ("plain", "transposed"):
            y = output("F32", (8, 1))
            device.run("REDUCE", [place("F32", x, layout), y], function=ENUM["reduce"][function], axes=2)
            wide = x.astype(np.float64)
            with np.errstate(all="ignore"):
                want = reference(wide, 1) if function != "LOG_SUM_EXP" else np.logaddexp.reduce(wide, 1, keepdims=True)
            check_close("F32", y.data, want, max(ulps, 1), 1e-6, f"{function} {layout}")


def reduce_long(device):
    """Millions of elements: chunks, threads and a sum that f32 could not hold."""
    x = generator("long").uniform(0, 1, (3, 1_500_000)).astype(np.float32)
    for threads in (1, 2):
        device.threads = threads
        for axes, shape in ((3, (1, 1)), (2, (3, 1)), (1, (1, 1_500_000))):
            for function in ("SUM", "MAX", "LOG_SUM_EXP"):
                y = output("F32", shape)
                device.run("REDUCE", [Tensor("F32", x), y], function=ENUM["reduce"][function], axes=axes)
                where = tuple(a for a in range(2) if axes >> a & 1)
                check_close("F32", y.data, FLOAT_REDUCE[function][0](x.astype(np.float64), where), 2, 1e-6, f"{function} {axes}")
    tall = np.ascontiguousarray(x.T)
    y = output("F32", (1, 3))
    device.run("REDUCE", [Tensor("F32", tall), y], function=ENUM["reduce"]["MEAN"], axes=1)
    check_close("F32", y.data, tall.astype(np.float64).mean(0, keepdims=True), 1, 0, "columns in chunks")
    device.threads = 2


INTEGER_REDUCE = {
    "SUM": sum, "MEAN": lambda v: int(math.copysign(abs(sum(v)) // len(v), sum(v))), "MAX": max, "MIN": min, "PROD": math.prod,
    "L1": lambda v: sum(abs(e) for e in v), "L2": lambda v: math.isqrt(sum(e * e for e in v)),
    "SUM_SQUARE": lambda v: sum(e * e for e in v),
    "LOG_SUM": lambda v: 0 if sum(v) < 0 else -2 ** 63 if sum(v) == 0 else int(math.log(sum(v))),
    "LOG_SUM_EXP": lambda v: int(_log_sum_exp(v)),
}


def _log_sum_exp(v):
    return max(v) + math.log(sum(math.exp(e - max(v)) for e in v))


def reduce_integer(device, dtype):
    rng = generator("reduce", dtype)
    info = np.iinfo(STORAGE[dtype])
    for function, reference in INTEGER_REDUCE.items():
        bound = 100 if function.startswith("LOG") or function in ("L2", "MEAN") else info.max
        x = rng.integers(max(info.min, -bound), bound, (5, 40), STORAGE[dtype], endpoint=True)
        for axis, layout in itertools.product((0, 1), ("plain", "transposed", "reversed")):
            y = output(dtype, (1, 40) if axis == 0 else (5, 1), layout)
            device.run("REDUCE", [place(dtype, x, layout), y], function=ENUM["reduce"][function], axes=1 << axis)
            rows = (x.T if axis == 0 else x).tolist()
            want = wrap(dtype, [reference([int(e) for e in row]) for row in rows])
            got = y.data.ravel()
            if function == "LOG_SUM_EXP":  # computed in f32: next to a whole number it may be cut to either side
                exact = np.array([_log_sum_exp([int(e) for e in row]) for row in rows])
                got = np.where((np.abs(exact - np.rint(exact)) < 1e-5) & (np.abs(got - exact) < 1.00001), want, got)
            check_equal(got, want, f"{function} {dtype} axis {axis} {layout}")


def reduce_bool(device):
    x = np.array([[0, 0, 0], [0, 2, 0], [1, 1, 1]], np.uint8)
    for function, want in (("MAX", [0, 1, 1]), ("MIN", [0, 0, 1])):
        y = output("BOOL", (3, 1))
        device.run("REDUCE", [Tensor("BOOL", x), y], function=ENUM["reduce"][function], axes=2)
        check_equal(y.data.ravel(), np.array(want, np.uint8), function)


def arg(device, dtype):
    rng = generator("arg", dtype)
    for shape in ((3, 5, 37), (2, 300, 7), (11,)):
        x = random_values(rng, dtype, shape, -3, 3)  # small range: many ties
        x = x if dtype in INTEGERS else from_float(dtype, np.rint(to_float(dtype, x)))
        if dtype in FLOATS:
            x.ravel()[[3, 8]] = from_float(dtype, [np.nan, np.nan])
        key = to_float(dtype, x).astype(np.float64)
        for axis, layout, smallest, last, index in itertools.product(range(len(shape)), LAYOUTS, (0, 1), (0, 1), ("I32", "I64")):
            kept = tuple(1 if a == axis else d for a, d in enumerate(shape))
            y = output(index, kept, layout)
            device.run("ARG", [place(dtype, x, layout), y], axis=axis, smallest=smallest, last=last)
            ranked = np.where(np.isnan(key), np.inf, -key if smallest else key)
            ranked = np.flip(ranked, axis) if last else ranked
            want = np.argmax(ranked, axis)
            want = shape[axis] - 1 - want if last else want
            check_equal(y.data, np.expand_dims(want, axis).astype(STORAGE[index]), f"{shape} {axis} {layout} {smallest} {last}")
            untouched(y)


def add(cases, device):
    for dtype in FLOATS:
        for log in (0, 1):
            cases.case(softmax, device, dtype, log, name=f"softmax {dtype} log {log}")
        for kind in ("LAYER", "RMS", "INSTANCE", "GROUP"):
            cases.case(norm, device, kind, dtype, name=f"norm {kind} {dtype}")
        cases.case(norm_batch, device, dtype, name=f"norm BATCH {dtype}")
        for function in FLOAT_REDUCE:
            cases.case(reduce_float, device, function, dtype, name=f"reduce {function} {dtype}")
        cases.case(arg, device, dtype, name=f"arg {dtype}")
    for dtype in INTEGERS:
        cases.case(reduce_integer, device, dtype, name=f"reduce {dtype}")
        cases.case(arg, device, dtype, name=f"arg {dtype}")
    for function in (softmax_masked, norm_precision, too_many_groups, reduce_special, reduce_long, reduce_bool):
        cases.case(function, device)
