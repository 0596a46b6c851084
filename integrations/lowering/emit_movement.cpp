// SPDX-License-Identifier: MIT
// What only moves elements. Most of it is another view of the same memory and costs nothing.
#include <algorithm>

#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

// A tensor without elements needs no memory on the device.
void define_empty(Emitter& e, int value, uint32_t dtype, const Dims& dims) {
    e.define(value, std::make_shared<const HostTensor>(make_host_tensor(dtype, dims)));
}

void emit_identity(Emitter& e, const Node& node) {
    if (node.outputs.size() > 1 && node.outputs[1] >= 0)
        fail("the mask as an output is unsupported");
    e.define(node.outputs[0], e.device(node.input(0)));
}

void emit_reshape(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const auto wanted =
        node.has("shape") ? node.integers("shape") : e.integers(node.input(1), "the shape");
    e.define(node.outputs[0],
             e.reshape(x, reshape_dims(x.dims, wanted, node.integer("allowzero", 0) != 0)));
}

void emit_flatten(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    int64_t axis = node.integer("axis", 1);
    const auto rank = static_cast<int64_t>(x.dims.size());
    if (axis < -rank || axis > rank) fail("axis is out of range");
    if (axis < 0) axis += rank;
    const auto split = x.dims.begin() + axis;
    e.define(node.outputs[0], e.reshape(x, {element_count(Dims(x.dims.begin(), split)),
                                            element_count(Dims(split, x.dims.end()))}));
}

std::vector<int64_t> axes_of(Emitter& e, const Node& node) {
    return node.has("axes") ? node.integers("axes") : e.integers(node.input(1), "axes");
}

void emit_squeeze(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const bool given = node.has("axes") || node.input(1) >= 0;
    e.define(node.outputs[0], e.reshape(x, squeeze_dims(x.dims, axes_of(e, node), !given)));
}

void emit_unsqueeze(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    e.define(node.outputs[0], e.reshape(x, unsqueeze_dims(x.dims, axes_of(e, node))));
}

void emit_transpose(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    auto permutation = node.integers("perm");
    if (permutation.empty()) permutation = default_permutation(x.dims.size());
    for (int64_t& axis : permutation) axis = normalise_axis(axis, x.dims.size());
    e.define(node.outputs[0], transpose_view(x, permutation));
}

void emit_slice(Emitter& e, const Node& node) {
    View x = e.device(node.input(0));
    const bool attributes = node.has("starts");
    const auto axes = slice_axes(
        x.dims, attributes ? node.integers("starts") : e.integers(node.input(1), "starts"),
        attributes ? node.integers("ends") : e.integers(node.input(2), "ends"),
        attributes ? node.integers("axes") : e.integers(node.input(3), "axes"),
        attributes ? std::vector<int64_t>{} : e.integers(node.input(4), "steps"));
    Dims dims;
    for (const SliceAxis& axis : axes) dims.push_back(axis.count);
    if (element_count(dims) == 0) {
        define_empty(e, node.outputs[0], x.dtype, dims);
        return;
    }
    for (size_t i = 0; i < axes.size(); ++i) {
        x.offset += axes[i].start * x.strides[i];
        x.strides[i] *= axes[i].step;
        x.dims[i] = axes[i].count;
    }
    e.define(node.outputs[0], x);
}

void emit_split(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const auto axis = static_cast<size_t>(normalise_axis(node.integer("axis", 0), x.dims.size()));
    auto sizes = node.has("split") ? node.integers("split") : e.integers(node.input(1), "split");
    const auto parts = static_cast<int64_t>(node.outputs.size());
    if (sizes.empty()) {
        const int64_t each = (x.dims[axis] + parts - 1) / parts;
        sizes.assign(static_cast<size_t>(parts), each);
        sizes.back() = x.dims[axis] - each * (parts - 1);
    }
    if (sizes.size() != node.outputs.size()) fail("split and the number of outputs differ");
    int64_t at = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] < 0 || sizes[i] > x.dims[axis] - at) fail("split does not add up");
        View part = x;
        if (sizes[i] == 0) {
            part.dims[axis] = 0;
            define_empty(e, node.outputs[i], x.dtype, part.dims);
            continue;
        }
        part.offset += at * x.strides[axis];
        part.dims[axis] = sizes[i];
        e.define(node.outputs[i], part);
        at += sizes[i];
    }
}

void emit_concat(Emitter& e, const Node& node) {
    std::vector<View> parts;
    for (int v : node.inputs) {
        if (element_count(e.dims(v)) > 0) parts.push_back(e.device(v));
    }
    if (parts.empty()) fail("all operands are without elements");
    const auto axis =
        static_cast<size_t>(normalise_axis(node.integer("axis", 0), parts[0].dims.size()));
    e.define(node.outputs[0], join(e, parts, axis));
}

void emit_expand(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const Dims wanted = e.integers(node.input(1), "the shape");
    e.define(node.outputs[0], e.broadcast(x, broadcast_dims(x.dims, wanted)));
}

// [d0, d1] repeated [r0, r1] times is [r0, d0, r1, d1] with stride 0 on the r axes.
void emit_tile(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const auto repeats = e.integers(node.input(1), "repeats");
    if (repeats.size() != x.dims.size()) fail("repeats has the wrong length");
    View wide{x.buffer, x.offset, x.dtype, {}, {}};
    for (size_t i = 0; i < repeats.size(); ++i) {
        if (repeats[i] < 1) fail("a tile without elements is unsupported");
        if (repeats[i] > 1) {
            wide.dims.push_back(repeats[i]);
            wide.strides.push_back(0);
        }
        wide.dims.push_back(x.dims[i]);
        wide.strides.push_back(x.strides[i]);
    }
    element_count(wide.dims);  // fails where a product below could overflow
    Dims dims;
    for (size_t i = 0; i < repeats.size(); ++i) dims.push_back(repeats[i] * x.dims[i]);
    if (dims == x.dims) {
        e.define(node.outputs[0], x);
        return;
    }
    const View y = e.temporary(x.dtype, wide.dims);
    e.move(wide, y);
    e.define(node.outputs[0], e.reshape(y, dims));
}

uint64_t constant_bits(const HostTensorPtr& value, uint32_t dtype) {
    uint64_t bits = 0;
    if (!value) return bits;
    if (value->size() != 1 || value->dtype != dtype)
        fail("the constant is not one of the input's type");
    std::memcpy(&bits, value->bytes.data(), value->bytes.size());
    return bits;
}

void emit_pad(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const bool attributes = node.has("pads");
    const auto pads = attributes ? node.integers("pads") : e.integers(node.input(1), "pads");
    auto axes = attributes ? std::vector<int64_t>{} : e.integers(node.input(3), "axes");
    if (axes.empty()) {
        for (size_t i = 0; i < x.dims.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    }
    if (pads.size() != 2 * axes.size()) fail("pads has the wrong length");
    enpu_op_pad_params p{};
    const std::string mode = node.text("mode", "constant");
    if (mode == "constant") {
        p.mode = ENPU_OP_PAD_MODE_CONSTANT;
    } else if (mode == "edge") {
        p.mode = ENPU_OP_PAD_MODE_EDGE;
    } else if (mode == "reflect") {
        p.mode = ENPU_OP_PAD_MODE_REFLECT;
    } else if (mode == "wrap") {
        p.mode = ENPU_OP_PAD_MODE_WRAP;
    } else {
        fail("mode '" + mode + "' is unknown");
    }
    if (attributes && x.dtype == ENPU_OP_F32) {
        const float value = node.real("value", 0);
        std::memcpy(&p.value, &value, sizeof(value));
    } else if (!attributes && node.input(2) >= 0) {
        if (!e.host(node.inputs[2])) fail("the constant is computed on the device");
        p.value = constant_bits(e.host(node.inputs[2]), x.dtype);
    }
    Dims dims = x.dims;
    for (size_t i = 0; i < axes.size(); ++i) {
        const auto axis = static_cast<size_t>(normalise_axis(axes[i], x.dims.size()));
        const int64_t before = pads[i], after = pads[axes.size() + i];
        constexpr int64_t kLimit = 1 << 30;
        if (before < -kLimit || before > kLimit || after < -kLimit || after > kLimit) {
            fail("pads is out of range");
        }
        p.before[axis] = static_cast<int32_t>(before);
        dims[axis] += before + after;
        if (dims[axis] < 1) fail("a result without elements is unsupported");
    }
    const View y = e.temporary(x.dtype, dims, strides_like(x, dims));
    e.add(ENPU_OP_PAD, p, {x, y});
    e.define(node.outputs[0], y);
}

void emit_gather(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const View indices = e.device(node.input(1));
    const auto axis = static_cast<size_t>(normalise_axis(node.integer("axis", 0), x.dims.size()));
    e.define(node.outputs[0], node.op == "GatherElements" ? gather_elements(e, x, indices, axis)
                                                          : take(e, x, indices, axis));
}

// Blocks of channels to pixels and back: a transpose of rank 6.
void emit_depth_to_space(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    if (x.dims.size() != 4) fail("the input must have rank 4");
    const int64_t b = node.integer("blocksize", 0);
    const Dims& d = x.dims;
    if (b < 1 || b > 4096 || d[1] % (b * b) != 0) fail("blocksize does not divide the channels");
    const bool crd = node.text("mode", "DCR") == "CRD";
    const int64_t c = d[1] / (b * b);
    const View wide =
        e.reshape(x, crd ? Dims{d[0], c, b, b, d[2], d[3]} : Dims{d[0], b, b, c, d[2], d[3]});
    const View mixed = transpose_view(wide, crd ? std::vector<int64_t>{0, 1, 4, 2, 5, 3}
                                                : std::vector<int64_t>{0, 3, 4, 1, 5, 2});
    e.define(node.outputs[0], e.reshape(e.dense(mixed), {d[0], c, d[2] * b, d[3] * b}));
}

void emit_space_to_depth(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    if (x.dims.size() != 4) fail("the input must have rank 4");
    const int64_t b = node.integer("blocksize", 0);
    const Dims& d = x.dims;
    if (b < 1 || d[2] % b != 0 || d[3] % b != 0) fail("blocksize does not divide the image");
    const View wide = e.reshape(x, {d[0], d[1], d[2] / b, b, d[3] / b, b});
    const View mixed = transpose_view(wide, {0, 3, 5, 1, 2, 4});
    e.define(node.outputs[0], e.reshape(e.dense(mixed), {d[0], d[1] * b * b, d[2] / b, d[3] / b}));
}

}  // namespace

const EmitTable& movement_emitters() {
    static const EmitTable kTable = {
        {"Identity", emit_identity},
        {"Dropout", emit_identity},
        {"Reshape", emit_reshape},
        {"Flatten", emit_flatten},
        {"Squeeze", emit_squeeze},
        {"Unsqueeze", emit_unsqueeze},
        {"Transpose", emit_transpose},
        {"Slice", emit_slice},
        {"Split", emit_split},
        {"Concat", emit_concat},
        {"Expand", emit_expand},
        {"Tile", emit_tile},
        {"Pad", emit_pad},
        {"Gather", emit_gather},
        {"GatherElements", emit_gather},
        {"DepthToSpace", emit_depth_to_space},
        {"SpaceToDepth", emit_space_to_depth},
    };
    return kTable;
}

}  // namespace enpu::lowering
