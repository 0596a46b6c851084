# SPDX-License-Identifier: MIT
"""Random inputs, memory layouts and comparisons for the operator tests."""
import zlib

import numpy as np

from harness import FLOATS, STORAGE, Tensor, from_float, to_float

INTEGERS = ("I8", "U8", "I32", "I64")
# Layouts an operand is tried in: as NumPy makes it, axes stored in reverse order, every axis reversed, gaps between elements.
LAYOUTS = ("plain", "transposed", "reversed", "gaps")


def generator(*seed):
    """A generator whose stream is fixed by what is tested."""
    return np.random.default_rng(zlib.crc32(repr(seed).encode()))


def random_values(rng, dtype, shape, low=-4.0, high=4.0):
    """Random elements of a dtype in its storage type."""
    if dtype in FLOATS:
        return from_float(dtype, rng.uniform(low, high, shape))
    if dtype == "BOOL":
        return rng.integers(0, 2, shape).astype(np.uint8)
    info = np.iinfo(STORAGE[dtype])
    low, high = max(int(low), info.min), min(int(high), info.max)
    return rng.integers(low, high, shape, endpoint=True).astype(STORAGE[dtype])


def empty(storage, shape, layout, fill=0):
    """An array of a shape whose memory is laid out as named. The memory around it can be checked with untouched()."""
    rank = len(shape)
    if layout == "transposed":
        return np.full(shape[::-1], fill, storage).transpose(range(rank)[::-1])
    if layout == "reversed":
        return np.full(shape, fill, storage)[(..., *(slice(None, None, -1) for _ in shape))]
    if layout == "gaps":
        return np.full(tuple(2 * n for n in shape), fill, storage)[(..., *(slice(None, None, 2) for _ in shape))]
    return np.full(shape, fill, storage)


def place(dtype, values, layout="plain"):
    data = empty(values.dtype, values.shape, layout)
    data[...] = values
    return Tensor(dtype, data)


def output(dtype, shape, layout="plain"):
    return Tensor(dtype, empty(STORAGE[dtype], shape, layout, fill=77))


def untouched(tensor):
    """Elements in the gaps of an output made by output(…, "gaps") still hold the fill value."""
    base = tensor.data.base
    if base is None or base.size == tensor.data.size:
        return
    mask = np.ones(base.shape, bool)
    mask[tuple(slice(None, None, 2) for _ in base.shape)] = False
    assert (base[mask] == 77).all(), "elements outside the output were written"


def broadcast(dtype, values, shape):
    return Tensor(dtype, np.broadcast_to(values, shape))


def _ulp(dtype, values):
    magnitude = np.maximum(np.abs(values), {"F32": 2.0 ** -126, "F16": 2.0 ** -14, "BF16": 2.0 ** -126}[dtype])
    bits = {"F32": 23, "F16": 10, "BF16": 7}[dtype]
    return np.ldexp(1.0, np.frexp(magnitude)[1] - 1 - bits)


def check_close(dtype, got, want, ulps=1.0, absolute=0.0, note=""):
    """`want` is float64. f32 may differ by `ulps` units in its last place (and `absolute`); f16 and bf16 by half a unit more."""
    with np.errstate(all="ignore"):
        value = to_float(dtype, got)
        rounded = to_float(dtype, from_float(dtype, want))
        limit = ulps * _ulp("F32", np.where(np.isfinite(want), want, 0)) + absolute
        if dtype != "F32":
            limit = limit + 0.5 * _ulp(dtype, np.where(np.isfinite(want), want, 0))
        same = (value == rounded) | (np.isnan(value) & np.isnan(want))
        error = np.abs(value - want)
        good = same | (error <= limit)
    if good.all():
        return
    at = np.unravel_index(int(np.argmin(good)), good.shape)
    raise AssertionError(f"{note} {dtype}: {int((~good).sum())} of {good.size} wrong, first at {at}: got {value[at]!r}, "
                         f"want {want[at]!r}, allowed {limit[at] if np.ndim(limit) else limit!r}")


def check_equal(got, want, note=""):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{note}: shape {got.shape} is not {want.shape}"
    if (got == want).all():
        return
    at = np.unravel_index(int(np.argmax(got != want)), got.shape)
    raise AssertionError(f"{note}: {int((got != want).sum())} of {got.size} wrong, first at {at}: got {got[at]!r}, want {want[at]!r}")
