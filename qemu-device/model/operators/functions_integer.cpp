// SPDX-License-Identifier: MIT
// Integer functions in 64 bits. Sums and products wrap: the low bits of a 64-bit result are those
// of the narrower one.
#include <algorithm>

#include "element.h"
#include "formulas.h"
#include "functions.h"

namespace enpu::ops {
namespace {

template <class Function>
inline void map(const int64_t* x, int64_t* y, int64_t count, Function function) {
    for (int64_t i = 0; i < count; ++i) y[i] = function(x[i]);
}
template <class Function>
inline void map2(const int64_t* a, const int64_t* b, int64_t* y, int64_t count, Function function) {
    for (int64_t i = 0; i < count; ++i) y[i] = function(a[i], b[i]);
}

int64_t bits_of(uint32_t dtype) {
    return with_dtype(dtype,
                      [](auto tag) { return int64_t(8 * sizeof(typename decltype(tag)::Type)); });
}

}  // namespace

void apply_unary(const Activation& f, const int64_t* x, int64_t* y, int64_t n) {
    switch (f.function) {
        case ENPU_UNARY_RELU:
            return map(x, y, n, [](int64_t v) { return v < 0 ? 0 : v; });
        case ENPU_UNARY_CLIP: {
            const int64_t low = saturate_i64(std::ceil(double(f.alpha)));
            const int64_t high = saturate_i64(std::floor(double(f.beta)));
            return map(x, y, n, [=](int64_t v) { return std::min(std::max(v, low), high); });
        }
        case ENPU_UNARY_ABS:
            return map(x, y, n, [](int64_t v) { return v < 0 ? subtract(0, v) : v; });
        case ENPU_UNARY_NEG:
            return map(x, y, n, [](int64_t v) { return subtract(0, v); });
        case ENPU_UNARY_SIGN:
            return map(x, y, n, [](int64_t v) { return int64_t(v > 0) - int64_t(v < 0); });
        case ENPU_UNARY_SQUARE:
            return map(x, y, n, [](int64_t v) { return multiply(v, v); });
        case ENPU_UNARY_NOT:
            return map(x, y, n, [](int64_t v) { return int64_t(v == 0); });
        case ENPU_UNARY_BIT_NOT:
            return map(x, y, n, [](int64_t v) { return ~v; });
        case ENPU_UNARY_SCALE:
            return map(x, y, n, [&](int64_t v) {
                return saturate_i64(double(v) * double(f.alpha) + double(f.beta));
            });
        default:  // IDENTITY, and the roundings, which change no integer
            if (x != y) std::copy_n(x, n, y);
    }
}

void apply_binary(uint32_t function, uint32_t dtype, const int64_t* a, const int64_t* b, int64_t* y,
                  int64_t n) {
    const int64_t bits = bits_of(dtype);
    const auto with = [&](auto op) { map2(a, b, y, n, op); };
    switch (function) {
        case ENPU_BINARY_ADD:
            return with(add);
        case ENPU_BINARY_SUB:
            return with(subtract);
        case ENPU_BINARY_MUL:
            return with(multiply);
        case ENPU_BINARY_DIV:
            return with(divide);
        case ENPU_BINARY_MIN:
            return with([](int64_t p, int64_t q) { return std::min(p, q); });
        case ENPU_BINARY_MAX:
            return with([](int64_t p, int64_t q) { return std::max(p, q); });
        case ENPU_BINARY_POW:
            return with(power);
        case ENPU_BINARY_MOD:
            return with(modulo);
        case ENPU_BINARY_FMOD:
            return with(remainder);
        case ENPU_BINARY_PRELU:
            return with([](int64_t p, int64_t q) { return p < 0 ? multiply(p, q) : p; });
        case ENPU_BINARY_EQ:
            return with([](int64_t p, int64_t q) { return int64_t(p == q); });
        case ENPU_BINARY_NE:
            return with([](int64_t p, int64_t q) { return int64_t(p != q); });
        case ENPU_BINARY_LT:
            return with([](int64_t p, int64_t q) { return int64_t(p < q); });
        case ENPU_BINARY_LE:
            return with([](int64_t p, int64_t q) { return int64_t(p <= q); });
        case ENPU_BINARY_GT:
            return with([](int64_t p, int64_t q) { return int64_t(p > q); });
        case ENPU_BINARY_GE:
            return with([](int64_t p, int64_t q) { return int64_t(p >= q); });
        case ENPU_BINARY_AND:
            return with([](int64_t p, int64_t q) { return int64_t(p && q); });
        case ENPU_BINARY_OR:
            return with([](int64_t p, int64_t q) { return int64_t(p || q); });
        case ENPU_BINARY_XOR:
            return with([](int64_t p, int64_t q) { return int64_t(!p != !q); });
        case ENPU_BINARY_BIT_AND:
            return with([](int64_t p, int64_t q) { return p & q; });
        case ENPU_BINARY_BIT_OR:
            return with([](int64_t p, int64_t q) { return p | q; });
        case ENPU_BINARY_BIT_XOR:
            return with([](int64_t p, int64_t q) { return p ^ q; });
        case ENPU_BINARY_SHIFT_LEFT:
            return with([=](int64_t p, int64_t q) { return shift_left(p, q, bits); });
        default:
            return with([=](int64_t p, int64_t q) { return shift_right(p, q, bits); });
    }
}

}  // namespace enpu::ops
