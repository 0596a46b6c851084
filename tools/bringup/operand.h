// SPDX-License-Identifier: MIT
// Tensors of the operator stages: numbers as double, put into memory and taken out in their dtype.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "enpu_hw.h"
#include "machine.h"

namespace enpu::bringup {

using Dims = std::vector<uint32_t>;

size_t count_of(const Dims& dims);
// Calls f with each index, the last axis fastest.
void for_each_index(const Dims& dims, const std::function<void(const Dims&)>& f);
// Position of an index in a dense row-major tensor.
size_t position(const Dims& dims, const Dims& index);

struct Operand {
    Dims dims;
    uint32_t dtype = ENPU_DTYPE_F32;  // NONE: left out
    std::vector<double> values;       // empty for outputs
    bool output = false;
    float scale = 0;  // of I8 and U8
    int32_t zero_point = 0;
    double at(const Dims& index) const { return values[position(dims, index)]; }
};

// Numbers in [low, high] that depend on the seed only, exact in the dtype.
Operand numbers(const Dims& dims, uint32_t seed, double low = -2, double high = 2,
                uint32_t dtype = ENPU_DTYPE_F32);
Operand output(const Dims& dims, uint32_t dtype = ENPU_DTYPE_F32);
Operand none();

size_t bytes_of(uint32_t dtype);
void store(uint32_t dtype, void* memory, double value);
double load(uint32_t dtype, const void* memory);

enpu_tensor tensor_of(const Operand& operand, uint64_t va);

}  // namespace enpu::bringup
