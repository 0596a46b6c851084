# SPDX-License-Identifier: MIT
"""UNARY, BINARY, SELECT, CAST, QUANTIZE, DEQUANTIZE against float64 NumPy."""
import math

import numpy as np

from harness import ENUM, FLOATS, STORAGE, Tensor, from_float, to_float
from numerics import (INTEGERS, LAYOUTS, broadcast, check_close, check_equal, empty, generator, output, place, random_values,
                      untouched)

SPECIALS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0 ** -149, -2.0 ** -127, 2.0 ** -126, 3.4e38, -3.4e38, 0.5, 1.5, 2.5,
            -0.5, -1.5, 88.0, 89.0, -87.0, -100.0, -104.0, 20.0, -20.0, 1e-4, -1e-4]
_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])


def _sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def _gelu(x):
    return np.where(np.isneginf(x), 0, x * 0.5 * _erfc(-x / math.sqrt(2)))


def _limit0(x, value):
    """-inf times a gate that goes to 0 faster."""
    return np.where(np.isneginf(x), 0, value)


def _gelu_tanh(x):
    return _limit0(x, x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


# function: (reference(x, a, b), alpha, beta, ulps, low, high)
UNARY = {
    "IDENTITY": (lambda x, a, b: x, 0, 0, 0, -4, 4),
    "RELU": (lambda x, a, b: np.where(x < 0, 0, x), 0, 0, 0, -4, 4),
    "LEAKY_RELU": (lambda x, a, b: np.where(x < 0, a * x, x), 0.1, 0, 1, -4, 4),
    "CLIP": (lambda x, a, b: np.where(np.isnan(x), x, np.clip(x, a, b)), -1.5, 2.25, 0, -4, 4),
    "SIGMOID": (lambda x, a, b: _sigmoid(x), 0, 0, 4, -80, 80),
    "TANH": (lambda x, a, b: np.tanh(x), 0, 0, 4, -8, 8),
    "GELU": (lambda x, a, b: _gelu(x), 0, 0, 12, -6, 6),
    "GELU_TANH": (lambda x, a, b: _gelu_tanh(x), 0, 0, 40, -6, 6),
    "SILU": (lambda x, a, b: _limit0(x, x * _sigmoid(x)), 0, 0, 5, -40, 40),
    "QUICK_GELU": (lambda x, a, b: _limit0(x, x * _sigmoid(a * x)), 1.702, 0, 40, -20, 20),
    "HARD_SIGMOID": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5, 2, -4, 4),
    "HARD_SWISH": (lambda x, a, b: _limit0(x, x * np.clip(x / 6 + 0.5, 0, 1)), 0, 0, 3, -4, 4),
    "ELU": (lambda x, a, b: np.where(x < 0, a * np.expm1(x), x), 0.7, 0, 4, -20, 4),
    "SELU": (lambda x, a, b: b * np.where(x < 0, a * np.expm1(x), x), 1.6732632, 1.0507010, 4, -20, 4),
    "CELU": (lambda x, a, b: np.where(x < 0, a * np.expm1(x / a), x), 0.6, 0, 5, -10, 4),
    "SOFTPLUS": (lambda x, a, b: np.logaddexp(x, 0), 0, 0, 4, -80, 80),
    "SOFTSIGN": (lambda x, a, b: x / (1 + np.abs(x)), 0, 0, 2, -40, 40),
    "MISH": (lambda x, a, b: _limit0(x, x * np.tanh(np.logaddexp(x, 0))), 0, 0, 8, -40, 40),
    "THRESHOLDED_RELU": (lambda x, a, b: np.where(x <= a, 0, x), 0.75, 0, 0, -4, 4),
    "EXP": (lambda x, a, b: np.exp(x), 0, 0, 2, -100, 88),
    "LOG": (lambda x, a, b: np.log(x), 0, 0, 2, -0.5, 9),
    "SQRT": (lambda x, a, b: np.sqrt(x), 0, 0, 0.5, -0.5, 9),
    "RSQRT": (lambda x, a, b: 1 / np.sqrt(x), 0, 0, 1.5, -0.5, 9),
    "RECIPROCAL": (lambda x, a, b: 1 / x, 0, 0, 0.5, -9, 9),
    "ABS": (lambda x, a, b: np.abs(x), 0, 0, 0, -4, 4),
    "NEG": (lambda x, a, b: -x, 0, 0, 0, -4, 4),
    "SIGN": (lambda x, a, b: np.sign(x), 0, 0, 0, -4, 4),
    "FLOOR": (lambda x, a, b: np.floor(x), 0, 0, 0, -9, 9),
    "CEIL": (lambda x, a, b: np.ceil(x), 0, 0, 0, -9, 9),
    "ROUND": (lambda x, a, b: np.rint(x), 0, 0, 0, -9, 9),
    "ERF": (lambda x, a, b: _erf(x), 0, 0, 8, -5, 5),
    "SIN": (lambda x, a, b: np.sin(x), 0, 0, 2, -40, 40),
    "COS": (lambda x, a, b: np.cos(x), 0, 0, 2, -40, 40),
    "TAN": (lambda x, a, b: np.tan(x), 0, 0, 2, -40, 40),
    "ASIN": (lambda x, a, b: np.arcsin(x), 0, 0, 2, -1.2, 1.2),
    "ACOS": (lambda x, a, b: np.arccos(x), 0, 0, 2, -1.2, 1.2),
    "ATAN": (lambda x, a, b: np.arctan(x), 0, 0, 2, -9, 9),
    "SINH": (lambda x, a, b: np.sinh(x), 0, 0, 3, -20, 20),
    "COSH": (lambda x, a, b: np.cosh(x), 0, 0, 3, -20, 20),
    "ASINH": (lambda x, a, b: np.arcsinh(x), 0, 0, 3, -20, 20),
    "ACOSH": (lambda x, a, b: np.arccosh(x), 0, 0, 3, 0.5, 20),
    "ATANH": (lambda x, a, b: np.arctanh(x), 0, 0, 3, -1.2, 1.2),
    "SQUARE": (lambda x, a, b: x * x, 0, 0, 0.5, -4, 4),
    "SCALE": (lambda x, a, b: a * x + b, 1.7, -0.3, 2, -4, 4),
    "SHRINK": (lambda x, a, b: np.where(x < -a, x + b, np.where(x > a, x - b, np.where(np.isnan(x), x, 0))), 0.7, 0.3, 1, -4, 4),
}
# Terms that cancel: the error is that of the terms.
ABSOLUTE = {"HARD_SWISH": 2e-7, "HARD_SIGMOID": 1e-7, "SCALE": 8e-7, "SHRINK": 1e-7, "LOG": 1e-10}
INTEGER_UNARY = {
    "IDENTITY": lambda x: x, "RELU": lambda x: max(x, 0), "CLIP": lambda x: min(max(x, -2), 3), "ABS": abs, "NEG": lambda x: -x,
    "SIGN": lambda x: (x > 0) - (x < 0), "SQUARE": lambda x: x * x, "BIT_NOT": lambda x: ~x, "FLOOR": lambda x: x,
    "CEIL": lambda x: x, "ROUND": lambda x: x,
}


def wrap(dtype, values):
    """Python integers modulo the width of a dtype."""
    info = np.iinfo(STORAGE[dtype])
    span = info.max - info.min + 1
    flat = [(int(v) - info.min) % span + info.min for v in np.ravel(np.array(values, object))]
    return np.array(flat, STORAGE[dtype]).reshape(np.shape(values))


def unary_float(device, function, dtype):
    reference, alpha, beta, ulps, low, high = UNARY[function]
    a, b = float(np.float32(alpha)), float(np.float32(beta))
    rng = generator("unary", function, dtype)
    for shape, layout in (((3, 700), "plain"), ((5, 3, 37), "transposed"), ((), "plain"), ((1,), "plain"), ((2, 9, 5), "gaps"),
                          ((7, 130), "reversed")):
        values = random_values(rng, dtype, shape, low, high)
        if shape == (3, 700):
            special = from_float(dtype, SPECIALS)
            values[0, :len(SPECIALS)] = special
        x = place(dtype, values, layout)
        y = output(dtype, shape, layout)
        assert device.run("UNARY", [x, y], function=ENUM["unary"][function], alpha=alpha, beta=beta) == "done"
        with np.errstate(all="ignore"):
            want = np.asarray(reference(to_float(dtype, values), a, b), np.float64)
        # Below the normal range and where 1/e^x overflows, results may be flushed by a step of the formula.
        check_close(dtype, y.data, want, ulps, ABSOLUTE.get(function, 0) + 2.0 ** -126, f"{function} {layout}")
        untouched(y)


def unary_integer(device, dtype):
    info = np.iinfo(STORAGE[dtype])
    rng = generator("unary", dtype)
    values = rng.integers(info.min, info.max, (6, 50), STORAGE[dtype], endpoint=True)
    values[0, :7] = [info.min, info.max, 0, 1, 2, 3, info.max - 1]
    for function, reference in INTEGER_UNARY.items():
        y = output(dtype, values.shape, "transposed")
        device.run("UNARY", [place(dtype, values), y], function=ENUM["unary"][function], alpha=-2.5, beta=3.5)
        check_equal(y.data, wrap(dtype, [[reference(int(v)) for v in row] for row in values]), f"{function} {dtype}")


def unary_bool(device):
    x = np.array([[0, 1, 1], [1, 0, 2]], np.uint8)
    for function, want in (("NOT", x == 0), ("IDENTITY", x != 0)):
        y = output("BOOL", x.shape)
        device.run("UNARY", [Tensor("BOOL", x), y], function=ENUM["unary"][function])
        check_equal(y.data, want.astype(np.uint8), function)
    for dtype in FLOATS:
        values = from_float(dtype, SPECIALS)
        exact = to_float(dtype, values)
        wants = (("ISNAN", 0, np.isnan(exact)), ("ISINF", 0, np.isinf(exact)), ("ISINF", 1, np.isposinf(exact)),
                 ("ISINF", -1, np.isneginf(exact)))
        for function, alpha, want in wants:
            y = output("BOOL", values.shape)
            device.run("UNARY", [Tensor(dtype, values), y], function=ENUM["unary"][function], alpha=alpha)
            check_equal(y.data, want.astype(np.uint8), f"{function} {alpha} {dtype}")


def _truncated_divide(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _integer_power(a, b, bits):
    if b < 0:
        return 1 if a == 1 else (1 if b % 2 == 0 else -1) if a == -1 else 0
    return pow(a, b, 2 ** bits)


def _shift(a, b, bits, left):
    outside = b < 0 or b >= bits
    if left:
        return 0 if outside else a << b
    return (-1 if a < 0 else 0) if outside else a >> b


def integer_binary(function, bits):
    return {
        "ADD": lambda a, b: a + b, "SUB": lambda a, b: a - b, "MUL": lambda a, b: a * b, "DIV": _truncated_divide,
        "MIN": min, "MAX": max, "POW": lambda a, b: _integer_power(a, b, bits), "MOD": lambda a, b: a % b if b else 0,
        "FMOD": lambda a, b: a - b * _truncated_divide(a, b) if b else 0, "PRELU": lambda a, b: a * b if a < 0 else a,
        "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b,
        "GT": lambda a, b: a > b, "GE": lambda a, b: a >= b, "BIT_AND": lambda a, b: a & b, "BIT_OR": lambda a, b: a | b,
        "BIT_XOR": lambda a, b: a ^ b, "SHIFT_LEFT": lambda a, b: _shift(a, b, bits, True),
        "SHIFT_RIGHT": lambda a, b: _shift(a, b, bits, False),
    }[function]


COMPARISONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
INTEGER_BINARY = ("ADD", "SUB", "MUL", "DIV", "MIN", "MAX", "POW", "MOD", "FMOD", "PRELU", *COMPARISONS, "BIT_AND", "BIT_OR", "BIT_XOR",
                  "SHIFT_LEFT", "SHIFT_RIGHT")
FLOAT_BINARY = {
    "ADD": (np.add, 0.5), "SUB": (np.subtract, 0.5), "MUL": (np.multiply, 0.5), "DIV": (np.divide, 0.5), "MIN": (np.minimum, 0),
    "MAX": (np.maximum, 0), "POW": (np.power, 1), "MOD": (np.mod, 1), "FMOD": (np.fmod, 0),
    "PRELU": (lambda a, b: np.where(a < 0, a * b, a), 0.5), "EQ": (np.equal, 0), "NE": (np.not_equal, 0), "LT": (np.less, 0),
    "LE": (np.less_equal, 0), "GT": (np.greater, 0), "GE": (np.greater_equal, 0),
}


def binary_float(device, function, dtype):
    reference, ulps = FLOAT_BINARY[function]
    rng = generator("binary", function, dtype)
    out = "BOOL" if function in COMPARISONS else dtype
    specials = np.array(np.meshgrid(SPECIALS, SPECIALS)).reshape(2, -1)
    for case in ("special", *LAYOUTS, "row", "column", "scalar"):
        shape = {"special": (len(SPECIALS) ** 2,), "row": (33, 17), "column": (12, 200)}.get(case, (3, 4, 65))
        a = random_values(rng, dtype, shape)
        b = random_values(rng, dtype, {"row": (17,), "column": (12, 1), "scalar": ()}.get(case, shape))
        if case == "special":
            a, b = from_float(dtype, specials[0]), from_float(dtype, specials[1])
        layout = case if case in LAYOUTS else "plain"
        left = place(dtype, a, layout)
        right = place(dtype, b, layout) if b.shape == shape else broadcast(dtype, b, shape)
        y = output(out, shape, "plain" if case == "transposed" else layout)
        device.run("BINARY", [left, right, y], function=ENUM["binary"][function])
        with np.errstate(all="ignore"):
            want = reference(to_float(dtype, a), to_float(dtype, b))
        if out == "BOOL":
            check_equal(y.data, np.asarray(want, np.uint8), f"{function} {case}")
        elif case == "special" and function == "MOD":
            _check_mod(dtype, to_float(dtype, a), to_float(dtype, b), y)
        else:
            check_close(dtype, y.data, want, ulps, 2.0 ** -149 if ulps else 0, f"{function} {case}")
        untouched(y)


def _check_mod(dtype, a, b, y):
    """At the extremes: NaN where fmod is, the sign of the divisor, and smaller than it."""
    got = to_float(dtype, y.data)
    with np.errstate(all="ignore"):
        nan = np.isnan(np.fmod(a, b))
    assert (np.isnan(got) == nan).all()
    ok = nan | (got == 0) | ((np.sign(got) == np.sign(b)) & (np.abs(got) <= np.abs(b)))
    assert ok.all(), (a[~ok], b[~ok], got[~ok])


def binary_integer(device, dtype):
    info = np.iinfo(STORAGE[dtype])
    edges = [info.min, info.min + 1, -1, 0, 1, 2, 3, 7, 31, 33, 63, 100, info.max - 1, info.max]
    edges = [e for e in edges if info.min <= e <= info.max]
    pairs = np.array([(a, b) for a in edges for b in edges], STORAGE[dtype]).T
    bits = 8 * STORAGE[dtype]().itemsize
    for function in INTEGER_BINARY:
        reference = integer_binary(function, bits)
        want = np.array([int(reference(int(a), int(b))) for a, b in pairs.T], object)
        out = "BOOL" if function in COMPARISONS else dtype
        y = output(out, want.shape)
        device.run("BINARY", [Tensor(dtype, np.ascontiguousarray(pairs[0])), Tensor(dtype, np.ascontiguousarray(pairs[1])), y],
                   function=ENUM["binary"][function])
        check_equal(y.data, want.astype(np.uint8) if out == "BOOL" else wrap(dtype, want), f"{function} {dtype}")


def binary_bool(device):
    a, b = np.array([0, 0, 1, 1], np.uint8), np.array([0, 1, 0, 1], np.uint8)
    for function, want in (("AND", a & b), ("OR", a | b), ("XOR", a ^ b), ("EQ", a == b), ("NE", a != b)):
        y = output("BOOL", a.shape)
        device.run("BINARY", [Tensor("BOOL", a), Tensor("BOOL", b), y], function=ENUM["binary"][function])
        check_equal(y.data, np.asarray(want, np.uint8), function)


def binary_activation(device):
    rng = generator("activation")
    a, b = (random_values(rng, "F32", (40, 33)) for _ in range(2))
    for act in ("RELU", "CLIP", "SIGMOID", "SILU", "GELU", "HARD_SWISH", "LEAKY_RELU"):
        reference, alpha, beta, _, _, _ = UNARY[act]
        y = output("F32", a.shape)
        device.run("BINARY", [Tensor("F32", a), Tensor("F32", b), y], function=ENUM["binary"]["ADD"], act=ENUM["unary"][act],
                   alpha=alpha, beta=beta)
        want = reference((a + b).astype(np.float64), float(np.float32(alpha)), float(np.float32(beta)))
        check_close("F32", y.data, want, 12, 1e-7, act)


def in_place(device):
    for dtype in ("F32", "F16", "I64", "U8"):
        values = random_values(generator("in place", dtype), dtype, (17, 90), 0, 4)
        x = place(dtype, values, "gaps")
        device.run("BINARY", [x, x, x], function=ENUM["binary"]["ADD"])
        if dtype in FLOATS:
            check_close(dtype, x.data, 2 * to_float(dtype, values), 0, 0, "x + x over x")
        else:
            check_equal(x.data, 2 * values, "x + x over x")
        device.run("UNARY", [x, x], function=ENUM["unary"]["NEG"])
        twice = -2 * to_float(dtype, values).astype(np.float64)
        if dtype == "F32":
            check_equal(x.data, twice.astype(np.float32), "-x over x")


def select(device, dtype):
    rng = generator("select", dtype)
    shape = (5, 6, 70)
    for layout in LAYOUTS:
        a, b = (random_values(rng, dtype, shape, -100, 100) for _ in range(2))
        condition = rng.integers(0, 3, shape).astype(np.uint8)
        y = output(dtype, shape, layout)
        device.run("SELECT", [place("BOOL", condition, layout), place(dtype, a, layout), place(dtype, b), y])
        check_equal(y.data, np.where(condition != 0, a, b), layout)
        untouched(y)
    y = output(dtype, shape)
    row, scalar = condition[0, 0], b[0, 0, 0]
    device.run("SELECT", [broadcast("BOOL", row, shape), Tensor(dtype, a), broadcast(dtype, scalar, shape), y])
    check_equal(y.data, np.where(np.broadcast_to(row, shape) != 0, a, scalar), "broadcast")


def _cast_reference(source, target, values):
    """float64 or Python integers to the elements of the target dtype, by the rule of the data sheet."""
    if target == "BOOL":
        return (values != 0).astype(np.uint8)
    if target in FLOATS:
        return [_round_exact(target, v) for v in values] if source in ("I32", "I64") else from_float(target, values.astype(np.float64))
    whole = []
    for v in values:
        if source in FLOATS:
            v = 0 if np.isnan(v) else 2 ** 63 - 1 if v >= 2.0 ** 63 else -2 ** 63 if v < -2.0 ** 63 else int(v)
        whole.append(int(v))
    return wrap(target, whole)


def _round_exact(target, value):
    """An integer rounded once, half to even; float64 itself would round first."""
    value = int(value)
    bits = {"F32": 24, "F16": 11, "BF16": 8}[target]
    shift = max(abs(value).bit_length() - bits, 0)
    kept, rest = abs(value) >> shift, abs(value) & ((1 << shift) - 1)
    half = 1 << shift >> 1
    if shift and (rest > half or (rest == half and kept & 1)):
        kept += 1
    return from_float(target, math.copysign(float(kept) * 2.0 ** shift, value))


def cast(device, source, target):
    rng = generator("cast", source, target)
    if source in FLOATS:
        scale = np.exp(rng.uniform(-3, 45, 500))
        values = from_float(source, np.concatenate([SPECIALS, rng.uniform(-300, 300, 500), rng.uniform(-1, 1, 500) * scale]))
    elif source == "BOOL":
        values = np.array([0, 1, 2, 255], np.uint8)
    else:
        info = np.iinfo(STORAGE[source])
        shifts = rng.integers(0, 8 * STORAGE[source]().itemsize, 400)
        values = rng.integers(info.min, info.max, 400, STORAGE[source], endpoint=True) >> shifts.astype(STORAGE[source])
        values[:6] = [info.min, info.max, 0, 1, info.max // 2, info.max - 1]
    exact = to_float(source, values)
    if source == "BOOL":
        exact = exact.astype(np.int64)
    want = np.asarray(_cast_reference(source, target, exact), STORAGE[target])
    for layout in ("plain", "gaps", "reversed"):
        y = output(target, values.shape, layout)
        device.run("CAST", [place(source, values, layout), y])
        if target in FLOATS:
            got, expected = to_float(target, y.data), to_float(target, want)
            same = (got == expected) | (np.isnan(got) & np.isnan(expected))
            assert same.all(), (exact[~same][:4], got[~same][:4], expected[~same][:4])
        else:
            check_equal(y.data, want, f"{source} to {target} {layout}")
        untouched(y)


def quantize(device, source, target):
    rng = generator("quantize", source, target)
    shape = (4, 6, 33)
    info = np.iinfo(STORAGE[target])
    x = random_values(rng, source, shape, -40, 40)
    x[0, 0, :4] = from_float(source, [np.inf, -np.inf, np.nan, 0.0])
    for per_channel in (False, True):
        parameter = (1, 6, 1) if per_channel else ()
        scale = from_float(source, rng.uniform(0.1, 0.3, parameter))
        zero = rng.integers(info.min, info.max, parameter, endpoint=True).astype(STORAGE[target])
        for with_zero in (False, True):
            y = output(target, shape, "transposed")
            device.run("QUANTIZE", [place(source, x, "transposed"), broadcast(source, scale, shape),
                                    broadcast(target, zero, shape) if with_zero else None, y])
            quotient = to_float(source, x).astype(np.float32) / to_float(source, scale).astype(np.float32)
            quotient = np.where(np.isnan(quotient), 0, quotient)
            want = np.clip(np.rint(quotient).astype(np.float64) + (zero.astype(np.float64) if with_zero else 0), info.min, info.max)
            check_equal(y.data, want.astype(STORAGE[target]), f"per channel {per_channel}, zero point {with_zero}")


def dequantize(device, source, target):
    rng = generator("dequantize", source, target)
    shape = (4, 6, 33)
    info = np.iinfo(STORAGE[source])
    x = rng.integers(info.min, info.max, shape, STORAGE[source], endpoint=True)
    for per_channel in (False, True):
        parameter = (1, 6, 1) if per_channel else ()
        scale = from_float(target, rng.uniform(0.1, 0.3, parameter))
        zero = rng.integers(info.min, info.max, parameter, STORAGE[source], endpoint=True)
        for with_zero in (False, True):
            y = output(target, shape)
            device.run("DEQUANTIZE", [place(source, x, "transposed"), broadcast(target, scale, shape),
                                      broadcast(source, np.asarray(zero, STORAGE[source]), shape) if with_zero else None, y])
            difference = x.astype(np.int64) - (np.asarray(zero).astype(np.int64) if with_zero else 0)
            want = difference.astype(np.float64) * to_float(target, scale)
            check_close(target, y.data, want, 1.5, 0, f"per channel {per_channel}, zero point {with_zero}")


def threads_and_stop(device):
    """Large enough for several tiles: the same bits with one thread and four; a stop leaves the rest unwritten."""
    device.needs_model("tiles to stop at")
    values = random_values(generator("tiles"), "F32", (1500, 1000))
    results = []
    for threads in (1, 4):
        device.threads = threads
        y = output("F32", values.shape)
        device.run("UNARY", [Tensor("F32", values), y], function=ENUM["unary"]["TANH"])
        results.append(y.data)
    device.threads = 1
    check_equal(results[0], results[1], "threads")
    y = output("F32", values.shape)
    assert device.run("UNARY", [Tensor("F32", values), y], tiles=1, function=ENUM["unary"]["TANH"]) == "stopped"
    device.threads = 2
    written = int((y.data.ravel() == results[0].ravel()).sum())
    assert 0 < written < values.size and (y.data.ravel()[written:] == 77).all(), written


def add(cases, device):
    for dtype in FLOATS:
        for function in UNARY:
            cases.case(unary_float, device, function, dtype, name=f"unary {function} {dtype}")
        for function in FLOAT_BINARY:
            cases.case(binary_float, device, function, dtype, name=f"binary {function} {dtype}")
        for target in ("I8", "U8"):
            cases.case(quantize, device, dtype, target, name=f"quantize {dtype} {target}")
        for source in ("I8", "U8", "I32"):
            cases.case(dequantize, device, source, dtype, name=f"dequantize {source} {dtype}")
    for dtype in INTEGERS:
        cases.case(unary_integer, device, dtype, name=f"unary {dtype}")
        cases.case(binary_integer, device, dtype, name=f"binary {dtype}")
    cases.case(unary_bool, device)
    cases.case(binary_bool, device)
    cases.case(binary_activation, device)
    cases.case(in_place, device)
    cases.case(threads_and_stop, device)
    for dtype in STORAGE:
        cases.case(select, device, dtype, name=f"select {dtype}")
        for target in STORAGE:
            cases.case(cast, device, dtype, target, name=f"cast {dtype} {target}")
