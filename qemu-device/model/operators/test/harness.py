# SPDX-License-Identifier: MIT
"""Runs operator packets on NumPy arrays through the probe library, and collects cases as TAP.

Packets are laid out from the hardware description (enpu.toml), so a test names operators, parameters and enums as the data sheet does.
Elements of bf16 are held as uint16; to_float() and from_float() convert.
"""
import ctypes
import os
import pathlib
import struct
import sys
import tomllib
import traceback

import numpy as np

_HERE = pathlib.Path(__file__).resolve().parent
_SHEET = tomllib.loads((_HERE.parents[2] / "hw" / "enpu.toml").read_text())
ENUM = {e["name"]: e["values"] for e in _SHEET["enum"]}
OPERATOR = {o["name"]: o for o in _SHEET["operator"]}
STORAGE = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I8": np.int8, "U8": np.uint8, "I32": np.int32,
           "I64": np.int64, "BOOL": np.uint8}
FLOATS = ("F32", "F16", "BF16")
OUTCOME = {0: "done", 1: "stopped", 2: "out of memory", 3: "bad operand"}
_FORMAT = {"u32": "I", "s32": "i", "f32": "f", "u64": "Q"}


class Refused(Exception):
    """The packet rules refused the packet."""


class Skip(Exception):
    """The case asks for something that the library under test does not have."""


class Tensor:
    """A strided array with the dtype of the device. `data` is a NumPy view; its strides go into the descriptor."""

    def __init__(self, dtype, data, scale=0.0, zero_point=0):
        self.dtype = dtype
        self.data = np.asarray(data)
        assert self.data.dtype == STORAGE[dtype], (dtype, self.data.dtype)
        self.scale, self.zero_point = scale, zero_point

    @property
    def shape(self):
        return self.data.shape

    def descriptor(self):
        size = self.data.dtype.itemsize
        rank = self.data.ndim
        dims = list(self.data.shape) + [0] * (8 - rank)
        strides = [s // size if d > 1 else 0 for s, d in zip(self.data.strides, self.data.shape)] + [0] * (8 - rank)
        # The rules want an address; any aligned one inside the VA range does, the probe passes the pointers separately.
        address = self.data.ctypes.data & ((1 << 47) - 1)
        return struct.pack("<QBBBBifIQ8I8i", address, ENUM["dtype"][self.dtype], rank, 0, 0, self.zero_point, self.scale, 0, 0,
                           *dims, *strides)

    def floats(self):
        return to_float(self.dtype, self.data)


def to_float(dtype, data):
    """The values of an array of a dtype, exactly, as float64 (integers as they are)."""
    if dtype == "BF16":
        return (np.ascontiguousarray(data).astype(np.uint32) << 16).view(np.float32).astype(np.float64).reshape(data.shape)
    if dtype in FLOATS:
        return data.astype(np.float64)
    return data.astype(bool) if dtype == "BOOL" else data


def _round_mantissa(values, bits):
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)


def from_float(dtype, values):
    """Rounds float64 values once, half to even, to a float dtype."""
    values = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        if dtype == "F32":
            return values.astype(np.float32)
        if dtype == "F16":
            return values.astype(np.float16)
        # bf16 has the exponents of f32: below the smallest normal number the step is fixed.
        step = 2.0 ** -133
        tiny = np.abs(values) < 2.0 ** -126
        rounded = np.where(tiny, np.rint(values / step) * step, _round_mantissa(values, 8))
        return (np.ascontiguousarray(rounded.astype(np.float32)).view(np.uint32) >> 16).astype(np.uint16).reshape(values.shape)


def packet(name, params, tensors):
    operator = OPERATOR[name]
    body = b""
    known = set()
    for p in operator["params"]:
        code, count = _FORMAT[p["type"]], p.get("count", 1)
        size = struct.calcsize("<" + code)
        body += b"\0" * (-len(body) % size)
        value = params.get(p["name"], [0] * count if count > 1 else 0)
        values = list(value) if count > 1 else [value]
        values += [0] * (count - len(values))
        body += struct.pack(f"<{count}{code}", *values)
        known.add(p["name"])
    assert set(params) <= known, (name, set(params) - known)
    body += b"\0" * (112 - len(body))
    operands = b"".join(t.descriptor() if t is not None else b"\0" * 96 for t in tensors)
    size = 128 + len(operands)
    return struct.pack("<HHIQ", operator["opcode"], 0, size, 0) + body + operands


class Device:
    """The operators of the probe library. `pairs` records what ran as (operator, dtype of any operand)."""

    def __init__(self, library):
        self._probe = ctypes.CDLL(library)
        # A backend with kernels of its own computes the same, but has neither tiles to stop at, nor PACK, nor scratch that runs out.
        self.is_model = not hasattr(self._probe, "enpu_probe_is_backend")
        self.pairs = set()
        self.threads = 2

    def needs_model(self, what):
        if not self.is_model:
            raise Skip(f"unsupported: {what}")

    def run(self, name, tensors, tiles=-1, **params):
        """Runs an operator; the last outcome is in .outcome, and for a bad operand (operand, value) in .detail."""
        assert len(tensors) == len(OPERATOR[name]["operands"]), name
        raw = packet(name, params, tensors)
        aligned = (ctypes.c_uint64 * (len(raw) // 8)).from_buffer_copy(raw)
        pointers = (ctypes.c_void_p * len(tensors))(*[t.data.ctypes.data if t is not None else None for t in tensors])
        detail = (ctypes.c_int64 * 2)()
        message = ctypes.create_string_buffer(512)
        code = self._probe.enpu_probe_run(aligned, ctypes.c_size_t(len(raw)), pointers, len(tensors), self.threads,
                                          ctypes.c_int64(tiles), detail, message, ctypes.c_size_t(len(message)))
        if code < 0:
            raise Refused(message.value.decode())
        self.outcome, self.detail = OUTCOME[code], (detail[0], detail[1])
        self.pairs |= {(name, t.dtype) for t in tensors if t is not None}
        return self.outcome


class Cases:
    """Collects test functions and runs them as TAP."""

    def __init__(self):
        self._cases = []

    def case(self, function, *args, name=None):
        self._cases.append((name or function.__name__, function, args))

    def main(self):
        print(f"1..{len(self._cases)}")
        failed = 0
        for number, (name, function, args) in enumerate(self._cases, 1):
            try:
                function(*args)
                print(f"ok {number} - {name}")
            except Skip as reason:
                print(f"ok {number} - {name} # SKIP {reason}")
            except Exception:  # a test that raises has failed, whatever it raised
                failed += 1
                print(f"not ok {number} - {name}")
                for line in traceback.format_exc().strip().splitlines()[-12:]:
                    print(f"# {line}")
            sys.stdout.flush()
        return 1 if failed else 0


def open_device():
    library = sys.argv[1] if len(sys.argv) > 1 else os.environ["ENPU_PROBE"]
    return Device(library)
