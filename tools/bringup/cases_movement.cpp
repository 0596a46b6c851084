// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "operator_case.h"

namespace enpu::bringup {
namespace {

// y = x with its axes in another order, by strides.
OperatorCase transpose() {
    const Dims xd = {3, 4, 5}, yd = {5, 3, 4};
    OperatorCase test{"move: transposition", ENPU_OPCODE_MOVE, {}, {}, {}, 0, {}};
    test.operands = {numbers(xd, 300), output(yd)};
    for_each_index(yd, [&](const Dims& i) {
        test.expected.push_back(test.operands[0].at({i[1], i[2], i[0]}));
    });
    test.adjust = [yd](std::vector<enpu_tensor>& tensors) {
        const int32_t strides[3] = {1, 20, 5};
        for (unsigned axis = 0; axis < 3; ++axis) {
            tensors[0].dims[axis] = yd[axis];
            tensors[0].strides[axis] = strides[axis];
        }
    };
    return test;
}

// Every second row, from the last one back.
OperatorCase slice() {
    OperatorCase test{"move: slice with a negative step", ENPU_OPCODE_MOVE, {}, {}, {}, 0, {}};
    test.operands = {numbers({9, 7}, 301, -100, 100, ENPU_DTYPE_I8), output({5, 7}, ENPU_DTYPE_I8)};
    for_each_index({5, 7}, [&](const Dims& i) {
        test.expected.push_back(test.operands[0].at({8 - 2 * i[0], i[1]}));
    });
    test.adjust = [](std::vector<enpu_tensor>& tensors) {
        tensors[0].addr += 8 * 7;
        tensors[0].dims[0] = 5;
        tensors[0].strides[0] = -14;
    };
    return test;
}

OperatorCase pad(const std::string& name, uint32_t mode) {
    const Dims xd = {4, 6}, yd = {7, 9};
    OperatorCase test{"pad " + name, ENPU_OPCODE_PAD, {}, {}, {}, 0, {}};
    test.operands = {numbers(xd, 302), output(yd)};
    enpu_pad_params p{};
    p.mode = mode;
    p.before[0] = 2;
    p.before[1] = 1;
    const float value = 7.5f;
    std::memcpy(&p.value, &value, sizeof(value));
    for_each_index(yd, [&](const Dims& i) {
        int64_t at[2];
        bool inside = true;
        for (unsigned axis = 0; axis < 2; ++axis) {
            at[axis] = int64_t{i[axis]} - p.before[axis];
            const int64_t size = xd[axis];
            inside &= at[axis] >= 0 && at[axis] < size;
            if (mode == ENPU_PAD_MODE_EDGE) at[axis] = std::clamp<int64_t>(at[axis], 0, size - 1);
            if (mode == ENPU_PAD_MODE_REFLECT) {
                if (at[axis] < 0) at[axis] = -at[axis];
                if (at[axis] >= size) at[axis] = 2 * (size - 1) - at[axis];
            }
            if (mode == ENPU_PAD_MODE_WRAP) at[axis] = (at[axis] + size) % size;
        }
        test.expected.push_back(mode == ENPU_PAD_MODE_CONSTANT && !inside
                                    ? value
                                    : test.operands[0].at({uint32_t(at[0]), uint32_t(at[1])}));
    });
    return test.with(p);
}

OperatorCase take() {
    const Dims xd = {5, 8, 3}, yd = {5, 6, 3};
    OperatorCase test{"gather take", ENPU_OPCODE_GATHER, {}, {}, {}, 0, {}};
    test.operands = {numbers(xd, 303), numbers({6}, 304, -8, 7, ENPU_DTYPE_I64), output(yd)};
    for_each_index(yd, [&](const Dims& i) {
        const double index = test.operands[1].values[i[1]];
        const auto at = static_cast<uint32_t>(index < 0 ? index + 8 : index);
        test.expected.push_back(test.operands[0].at({i[0], at, i[2]}));
    });
    return test.with(enpu_gather_params{ENPU_GATHER_MODE_TAKE, 1});
}

OperatorCase elements() {
    const Dims xd = {6, 7}, yd = {4, 7};
    OperatorCase test{"gather elements", ENPU_OPCODE_GATHER, {}, {}, {}, 0, {}};
    test.operands = {numbers(xd, 305), numbers(yd, 306, 0, 5, ENPU_DTYPE_I32), output(yd)};
    for_each_index(yd, [&](const Dims& i) {
        test.expected.push_back(
            test.operands[0].at({static_cast<uint32_t>(test.operands[1].at(i)), i[1]}));
    });
    return test.with(enpu_gather_params{ENPU_GATHER_MODE_ELEMENTS, 0});
}

OperatorCase resize_nearest() {
    const Dims xd = {1, 2, 3, 4}, yd = {1, 2, 6, 8};
    OperatorCase test{"resize nearest", ENPU_OPCODE_RESIZE, {}, {}, {}, 0, {}};
    test.operands = {numbers(xd, 307), output(yd)};
    for_each_index(yd, [&](const Dims& i) {
        test.expected.push_back(test.operands[0].at({i[0], i[1], i[2] / 2, i[3] / 2}));
    });
    enpu_resize_params p{};
    p.mode = ENPU_RESIZE_MODE_NEAREST;
    p.coord = ENPU_RESIZE_COORD_ASYMMETRIC;
    p.round = ENPU_RESIZE_ROUND_FLOOR;
    return test.with(p);
}

OperatorCase resize_linear() {
    const Dims xd = {1, 2, 5, 6}, yd = {1, 2, 9, 16};
    OperatorCase test{"resize linear", ENPU_OPCODE_RESIZE, {}, {}, {}, 1e-5, {}};
    test.operands = {numbers(xd, 308), output(yd)};
    // Half-pixel centres: the position of an output in the input, and its two neighbours.
    struct Tap {
        uint32_t low, high;
        double part;
    };
    auto tap = [&](uint32_t out, unsigned axis) {
        const double at = (out + 0.5) * xd[axis] / yd[axis] - 0.5;
        const double base = std::floor(at), top = xd[axis] - 1.0;
        return Tap{static_cast<uint32_t>(std::clamp(base, 0.0, top)),
                   static_cast<uint32_t>(std::clamp(base + 1, 0.0, top)), at - base};
    };
    for_each_index(yd, [&](const Dims& i) {
        const Tap h = tap(i[2], 2), w = tap(i[3], 3);
        auto row = [&](uint32_t y) {
            return test.operands[0].at({i[0], i[1], y, w.low}) * (1 - w.part) +
                   test.operands[0].at({i[0], i[1], y, w.high}) * w.part;
        };
        test.expected.push_back(row(h.low) * (1 - h.part) + row(h.high) * h.part);
    });
    enpu_resize_params p{};
    p.mode = ENPU_RESIZE_MODE_LINEAR;
    p.coord = ENPU_RESIZE_COORD_HALF_PIXEL;
    return test.with(p);
}

}  // namespace

std::vector<OperatorCase> movement_cases() {
    return {transpose(),
            slice(),
            pad("constant", ENPU_PAD_MODE_CONSTANT),
            pad("edge", ENPU_PAD_MODE_EDGE),
            pad("reflect", ENPU_PAD_MODE_REFLECT),
            pad("wrap", ENPU_PAD_MODE_WRAP),
            take(),
            elements(),
            resize_nearest(),
            resize_linear()};
}

}  // namespace enpu::bringup
