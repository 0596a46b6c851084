// SPDX-License-Identifier: MIT
// Convolutions and what surrounds them: images are [W, H, C, N].
#include "lower.h"

namespace enpu::ggml {
namespace {

using lowering::fail;

enpu_op_conv_params conv_params(const ggml_tensor* node, int64_t groups) {
    const auto at = [&](int i) { return static_cast<uint32_t>(param_i32(node, i)); };
    enpu_op_conv_params p{};
    p.stride[0] = at(1), p.stride[1] = at(0);
    p.pad[0] = p.pad[2] = at(3);
    p.pad[1] = p.pad[3] = at(2);
    p.dilation[0] = at(5), p.dilation[1] = at(4);
    p.groups = static_cast<uint32_t>(groups);
    return p;
}

}  // namespace

void Lowering::conv_2d(const ggml_tensor* node) {
    const View weights = as_f32(tensor(node->src[0])), x = as_f32(tensor(node->src[1]));
    const View y = tensor(node), result = result_f32(y);
    const int64_t groups = node->op == GGML_OP_CONV_2D_DW ? x.dims[1] : 1;
    add(ENPU_OP_CONV2D_FWD, conv_params(node, groups),
        {x, weights, View{}, View{}, View{}, result});
    finish(result, y);
}

// Each window of the image as a row: another view of the padded image, copied.
void Lowering::im2col(const ggml_tensor* node) {
    const bool flat = param_i32(node, 6) == 0;  // one spatial dim: [W, C, N]
    View x = tensor(node->src[1]);
    const View y = tensor(node);
    int64_t stride[2] = {flat ? 1 : param_i32(node, 1), param_i32(node, 0)};
    const int32_t pad[2] = {flat ? 0 : param_i32(node, 3), param_i32(node, 2)};
    const int64_t dilation[2] = {flat ? 1 : param_i32(node, 5), param_i32(node, 4)};
    const int64_t kernel[2] = {flat ? 1 : node->src[0]->ne[1], node->src[0]->ne[0]};
    if (flat) {  // [1, N, C, W] as [N, C, 1, W]
        x.dims = {x.dims[1], x.dims[2], 1, x.dims[3]};
        x.strides = {x.strides[1], x.strides[2], x.strides[2], x.strides[3]};
    }
    for (int i : {0, 1}) {
        if (stride[i] < 1 || dilation[i] < 1 || pad[i] < 0) fail("a parameter is out of range");
    }
    if (pad[0] || pad[1]) {
        enpu_op_pad_params p{};
        p.before[2] = pad[0];
        p.before[3] = pad[1];
        const View wide = temporary(
            x.dtype, {x.dims[0], x.dims[1], x.dims[2] + 2 * pad[0], x.dims[3] + 2 * pad[1]});
        add(ENPU_OP_PAD, p, {x, wide});
        x = wide;
    }
    const int64_t height = flat ? 1 : y.dims[1], width = y.dims[2];
    if ((height - 1) * stride[0] + (kernel[0] - 1) * dilation[0] >= x.dims[2] ||
        (width - 1) * stride[1] + (kernel[1] - 1) * dilation[1] >= x.dims[3]) {
        fail("the windows pass the end of the padded image");
    }
    View windows = x;
    windows.dims = {x.dims[0], height, width, x.dims[1], kernel[0], kernel[1]};
    windows.strides = {x.strides[0], x.strides[2] * stride[0],   x.strides[3] * stride[1],
                       x.strides[1], x.strides[2] * dilation[0], x.strides[3] * dilation[1]};
    const auto target = lowering::reshape_view(y, windows.dims);
    if (!target) fail("the result has gaps");
    store(windows, *target);
}

void Lowering::upscale(const ggml_tensor* node) {
    constexpr int32_t kAlignCorners = 1 << 8;
    const int32_t mode = param_i32(node, 0) & 0xff, flags = param_i32(node, 0) & ~0xff;
    enpu_op_resize_params p{};
    if (mode == GGML_SCALE_MODE_NEAREST && flags == 0) {
        p.mode = ENPU_OP_RESIZE_MODE_NEAREST;
        p.coord = ENPU_OP_RESIZE_COORD_ASYMMETRIC;
        p.round = ENPU_OP_RESIZE_ROUND_FLOOR;
    } else if (mode == GGML_SCALE_MODE_BILINEAR && (flags == 0 || flags == kAlignCorners)) {
        p.mode = ENPU_OP_RESIZE_MODE_LINEAR;
        p.coord = flags ? ENPU_OP_RESIZE_COORD_ALIGN_CORNERS : ENPU_OP_RESIZE_COORD_HALF_PIXEL;
    } else {
        fail("this kind of interpolation is unsupported");
    }
    const View x = tensor(node->src[0]), y = tensor(node);
    if (p.mode == ENPU_OP_RESIZE_MODE_LINEAR &&
        (x.dims[0] != y.dims[0] || x.dims[1] != y.dims[1])) {
        fail("bilinear interpolation is for the first two dims");
    }
    add(ENPU_OP_RESIZE, p, {x, y});
}

}  // namespace enpu::ggml
