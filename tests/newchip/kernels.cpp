// SPDX-License-Identifier: MIT
#include "kernels.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace chip {
namespace {

uint32_t function_of(const enpu_hal_dispatch& dispatch) {
    uint32_t function = 0;
    if (dispatch.params) std::memcpy(&function, dispatch.params, sizeof(function));
    return function;
}

bool knows(const enpu_hal_dispatch& d, uint32_t& operands, size_t& params) {
    const uint32_t function = function_of(d);
    switch (d.op) {
        case ENPU_OP_MOVE:
            operands = ENPU_OP_MOVE_OPERANDS, params = 0;
            return true;
        case ENPU_OP_UNARY:
            operands = ENPU_OP_UNARY_OPERANDS, params = sizeof(enpu_op_unary_params);
            return function == ENPU_OP_UNARY_RELU || function == ENPU_OP_UNARY_NEG ||
                   function == ENPU_OP_UNARY_ABS || function == ENPU_OP_UNARY_SQUARE;
        case ENPU_OP_BINARY:
            operands = ENPU_OP_BINARY_OPERANDS, params = sizeof(enpu_op_binary_params);
            return function == ENPU_OP_BINARY_ADD || function == ENPU_OP_BINARY_SUB ||
                   function == ENPU_OP_BINARY_MUL;
    }
    return false;
}

bool same_shape(const enpu_op_tensor& a, const enpu_op_tensor& b) {
    return a.dtype == b.dtype && a.rank == b.rank &&
           std::memcmp(a.dims, b.dims, a.rank * sizeof(a.dims[0])) == 0;
}

template <typename T>
T compute(const enpu_hal_dispatch& d, T a, T b) {
    const uint32_t function = function_of(d);
    if (d.op == ENPU_OP_MOVE) return a;
    if (d.op == ENPU_OP_BINARY)
        return function == ENPU_OP_BINARY_ADD   ? a + b
               : function == ENPU_OP_BINARY_SUB ? a - b
                                                : a * b;
    switch (function) {
        case ENPU_OP_UNARY_RELU:
            return a < 0 ? T(0) : a;
        case ENPU_OP_UNARY_NEG:
            return -a;
        case ENPU_OP_UNARY_ABS:
            return std::signbit(double(a)) ? -a : a;
    }
    return a * a;
}

// Sums and products of i32 wrap.
int32_t element(const enpu_hal_dispatch& d, const char* a, const char* b, int32_t) {
    uint32_t x, y;
    std::memcpy(&x, a, 4), std::memcpy(&y, b, 4);
    if (d.op == ENPU_OP_BINARY) return int32_t(compute(d, x, y));
    return int32_t(compute<int64_t>(d, int32_t(x), 0));
}

float element(const enpu_hal_dispatch& d, const char* a, const char* b, float) {
    float x, y;
    std::memcpy(&x, a, 4), std::memcpy(&y, b, 4);
    return compute(d, x, y);
}

template <typename T>
void run_typed(const enpu_hal_dispatch& d, char* const* addresses) {
    const uint32_t last = d.operand_count - 1;
    const enpu_op_tensor& y = d.operands[last].tensor;
    int64_t index[ENPU_OP_MAX_RANK] = {};
    for (;;) {
        char* at[ENPU_OP_MAX_OPERANDS];
        for (uint32_t i = 0; i <= last; ++i) {
            at[i] = addresses[i];
            for (uint32_t k = 0; k < y.rank; ++k)
                at[i] += index[k] * d.operands[i].tensor.strides[k] * 4;
        }
        const T value = element(d, at[0], at[last == 2 ? 1 : 0], T());
        std::memcpy(at[last], &value, 4);
        uint32_t axis = y.rank;
        while (axis > 0 && ++index[axis - 1] == y.dims[axis - 1]) index[--axis] = 0;
        if (axis == 0) return;
    }
}

}  // namespace

uint32_t refuse(enpu_hal_status* status, uint32_t code, const char* sentence) {
    if (status) {
        *status = {};
        status->code = code;
        std::snprintf(status->message, sizeof(status->message), "%s", sentence);
    }
    return code;
}

bool reach(const enpu_op_tensor& tensor, uint64_t& before, uint64_t& after) {
    before = 0, after = 4;
    for (uint32_t i = 0; i < tensor.rank; ++i) {
        // Dims and strides within 2^24, so that the products stay in 64 bits.
        constexpr int64_t kMost = 1 << 24;
        if (tensor.dims[i] < 1 || tensor.dims[i] > kMost || tensor.strides[i] > kMost ||
            tensor.strides[i] < -kMost)
            return false;
        const int64_t bytes = (tensor.dims[i] - 1) * tensor.strides[i] * 4;
        (bytes < 0 ? before : after) += uint64_t(bytes < 0 ? -bytes : bytes);
    }
    return true;
}

uint32_t check(const enpu_hal_dispatch* d, enpu_hal_status* status) {
    const auto bad = [status](const char* why) {
        return refuse(status, ENPU_HAL_INVALID_ARGUMENT, why);
    };
    if (!d || d->header.type != ENPU_HAL_TYPE_DISPATCH || d->header.size < sizeof(*d))
        return bad("dispatch: no structure");
    uint32_t operands = 0;
    size_t params = 0;
    if (d->op == ENPU_OP_UNARY || d->op == ENPU_OP_BINARY)
        if (!d->params || d->params_bytes < sizeof(uint32_t))
            return bad("dispatch: the parameters are not there");
    if (!knows(*d, operands, params))
        return refuse(status, ENPU_HAL_UNSUPPORTED, "dispatch: the chip has no such kernel");
    if (d->operand_count != operands || !d->operands || d->params_bytes != params)
        return bad("dispatch: the operands or parameters are not those of the kernel");
    if (d->op == ENPU_OP_BINARY &&
        static_cast<const enpu_op_binary_params*>(d->params)->act != ENPU_OP_UNARY_IDENTITY)
        return refuse(status, ENPU_HAL_UNSUPPORTED, "binary: the chip fuses no activation");
    const enpu_op_tensor& y = d->operands[operands - 1].tensor;
    for (uint32_t i = 0; i < operands; ++i) {
        const enpu_op_tensor& tensor = d->operands[i].tensor;
        uint64_t before = 0, after = 0;
        if (tensor.dtype != ENPU_OP_F32 && tensor.dtype != ENPU_OP_I32)
            return refuse(status, ENPU_HAL_UNSUPPORTED, "dispatch: f32 and i32 only");
        if (tensor.rank > ENPU_OP_MAX_RANK || tensor.format != ENPU_OP_PLAIN ||
            !reach(tensor, before, after) || !same_shape(tensor, y))
            return bad("dispatch: the shape of an operand is illegal, or not that of the output");
    }
    for (uint32_t i = 0; i < y.rank; ++i)
        if (y.strides[i] == 0 && y.dims[i] > 1) return bad("dispatch: an output repeats elements");
    return ENPU_HAL_OK;
}

void run(const enpu_hal_dispatch& dispatch, char* const* addresses) {
    if (dispatch.operands[0].tensor.dtype == ENPU_OP_F32)
        run_typed<float>(dispatch, addresses);
    else
        run_typed<int32_t>(dispatch, addresses);
}

}  // namespace chip
