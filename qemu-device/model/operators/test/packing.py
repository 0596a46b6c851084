# SPDX-License-Identifier: MIT
"""Packed weights: buffers for PACK and the operators that take them."""
import struct

import numpy as np

from harness import ENUM, Tensor

HEADER_BYTES = 256


class Packed(Tensor):
    """A packed buffer (uint8) with the logical dims of the weights."""

    def __init__(self, dtype, data, dims, zero_point=0):
        self.dtype, self.data, self.dims = dtype, data, dims
        self.scale, self.zero_point = 0.0, zero_point

    def copy(self):
        return Packed(self.dtype, self.data.copy(), self.dims, self.zero_point)

    def descriptor(self):
        address = self.data.ctypes.data & ((1 << 47) - 1) & ~7
        dims = list(self.dims) + [0] * (8 - len(self.dims))
        return struct.pack("<QBBBBifIQ8I8i", address, ENUM["dtype"][self.dtype], len(self.dims), ENUM["format"]["PACKED"], 0,
                           self.zero_point, self.scale, 0, self.data.nbytes, *dims, *([0] * 8))


def preferred_bytes(kind, dims, groups):
    """The formula of the data sheet."""
    def up(value, multiple):
        return -(-value // multiple) * multiple

    if kind == "MATMUL":
        return HEADER_BYTES + 4 * up(dims[0], 32) * up(dims[1], 64)
    first, second = dims[0] // groups, dims[1]
    g, channels = (up(groups, 32), 1) if first == second == 1 else (groups, up(first, 32) * up(second, 32))
    return HEADER_BYTES + 4 * g * channels * dims[2] * dims[3]


def pack(device, kind, weights, groups=1, minimum=False):
    """PACK into a buffer of the preferred size, or the smallest one that is allowed."""
    dims = weights.shape
    size = HEADER_BYTES + weights.data.size * weights.data.itemsize if minimum else preferred_bytes(kind, dims, groups)
    if not device.is_model:  # takes weights as they are
        return weights
    packed = Packed(weights.dtype, np.full(size, 77, np.uint8), dims, weights.zero_point)
    outcome = device.run("PACK", [weights, packed], kind=ENUM["pack_kind"][kind], groups=groups)
    assert outcome == "done", outcome
    return packed
