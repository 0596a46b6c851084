// SPDX-License-Identifier: MIT
// The kernels whose blocks work together: reductions, products and convolutions.
#include <algorithm>
#include <cstdlib>

#include "plan.h"

namespace enpu::hal::cuda {
namespace {

template <unsigned N>
using Views = ops::View[N];

// The axes of the mask (or all others) as a walk over N tensors with the dims of the first.
template <unsigned N>
bool part_walk(const Views<N>& views, uint32_t axes, bool inside, unsigned sort_by, Walk<N>& walk) {
    ops::Loop loop;
    loop.streams = N;
    for (unsigned axis = 0; axis < views[0].rank; ++axis) {
        if (((axes >> axis & 1) != 0) != inside) continue;
        loop.dims[loop.rank] = views[0].dims[axis];
        for (unsigned k = 0; k < N; ++k) loop.strides[k][loop.rank] = views[k].strides[axis];
        ++loop.rank;
    }
    // The reduced axes keep their order: the positions of ARG count in it.
    if (!inside) ops::sort_axes(loop, sort_by);
    ops::merge_axes(loop);
    return to_walk(loop, walk);
}

uint32_t power_of_two(uint32_t at_least) {
    uint32_t value = 1;
    while (value < at_least && value < kGroupThreads) value *= 2;
    return value;
}

// Threads for an output: neighbours should read what lies next to each other.
template <unsigned N>
uint32_t lanes_for(const Walk<N>& kept, int32_t reduced_stride, uint32_t reduced_count) {
    const bool rows = std::abs(reduced_stride) <= std::abs(kept.strides[0][kept.rank - 1]);
    const bool plenty = kept.count >= 16384;
    return plenty && (!rows || reduced_count < 32) ? 1 : power_of_two(reduced_count);
}

uint32_t group_blocks(uint32_t outputs, uint32_t lanes) {
    const uint32_t each = kGroupThreads / lanes;
    return (outputs + each - 1) / each;
}

uint32_t plan_reduce(const Plan& plan, bool arg) {
    const auto& params = plan.packet.params;
    const uint32_t axes = arg ? 1u << params.arg.axis : params.reduce.axes;
    const ops::View views[2] = {plan.view(0), plan.view(1)};
    const ops::View only[1] = {views[0]};
    Walk<2> kept{};
    Walk<1> reduced{};
    if (!part_walk<2>(views, axes, false, 0, kept) || !part_walk<1>(only, axes, true, 0, reduced))
        return too_large(plan);
    const uint32_t lanes = lanes_for(kept, reduced.strides[0][reduced.rank - 1], reduced.count);
    auto& args = plan.call.set<ReduceArgs>(KernelId::kReduce, group_blocks(kept.count, lanes),
                                           kGroupThreads);
    args.kept = kept;
    args.reduced = reduced;
    args.x = plan.ref(0);
    args.y = plan.ref(1);
    args.function = arg ? kArgFunction : params.reduce.function;
    args.smallest = arg ? params.arg.smallest : 0;
    args.last = arg ? params.arg.last : 0;
    args.lanes = lanes;
    return ENPU_HAL_OK;
}

uint32_t plan_softmax(const Plan& plan) {
    const auto& p = plan.packet.params.softmax;
    const ops::View views[2] = {plan.view(0), plan.view(1)};
    Walk<2> kept{}, reduced{};
    if (!part_walk<2>(views, 1u << p.axis, false, 0, kept) ||
        !part_walk<2>(views, 1u << p.axis, true, 0, reduced))
        return too_large(plan);
    const uint32_t lanes = lanes_for(kept, reduced.strides[0][reduced.rank - 1], reduced.count);
    auto& args = plan.call.set<SoftmaxArgs>(KernelId::kSoftmax, group_blocks(kept.count, lanes),
                                            kGroupThreads);
    args = {kept, reduced, plan.ref(0), plan.ref(1), p.log, lanes};
    return ENPU_HAL_OK;
}

// [N, C, …] seen as [N, G, C/G, …].
ops::View split_channels(const ops::View& view, int64_t groups) {
    ops::View split = view;
    split.rank = view.rank + 1;
    for (unsigned axis = view.rank; axis > 2; --axis) {
        split.dims[axis] = view.dims[axis - 1];
        split.strides[axis] = view.strides[axis - 1];
    }
    split.dims[1] = groups;
    split.dims[2] = view.dims[1] / groups;
    split.strides[2] = view.strides[1];
    split.strides[1] = view.strides[1] * split.dims[2];
    return split;
}

// An operand broadcast to x: [C] along axis 1, or with the dims of x and strides of 0.
ops::View parameter_view(const Plan& plan, unsigned operand, const ops::View& x, bool by_channel) {
    ops::View view = x;
    view.strides = {};
    const enpu_tensor& desc = plan.operand(operand);
    if (desc.dtype == ENPU_DTYPE_NONE) return view;
    if (by_channel) {
        view.strides[1] = desc.strides[0];
        return view;
    }
    for (unsigned axis = 0; axis < x.rank; ++axis) view.strides[axis] = desc.strides[axis];
    return view;
}

uint32_t reduced_axes(const enpu_norm_params& params, unsigned rank) {
    const uint32_t all = (1u << rank) - 1;
    switch (params.kind) {
        case ENPU_NORM_BATCH:
            return all & ~2u;
        case ENPU_NORM_INSTANCE:
        case ENPU_NORM_GROUP:
            return all & ~3u;
        default:
            return all & ~((1u << params.axis) - 1);
    }
}

uint32_t plan_norm(const Plan& plan) {
    const auto& p = plan.packet.params.norm;
    const bool by_channel = p.kind >= ENPU_NORM_BATCH;
    const ops::View x = plan.view(ENPU_NORM_OPERAND_X);
    ops::View views[kNormStreams] = {x,
                                     parameter_view(plan, ENPU_NORM_OPERAND_SCALE, x, by_channel),
                                     parameter_view(plan, ENPU_NORM_OPERAND_BIAS, x, by_channel),
                                     parameter_view(plan, ENPU_NORM_OPERAND_MEAN, x, true),
                                     parameter_view(plan, ENPU_NORM_OPERAND_VARIANCE, x, true),
                                     plan.view(ENPU_NORM_OPERAND_Y)};
    if (p.kind == ENPU_NORM_GROUP)
        for (ops::View& view : views) view = split_channels(view, p.groups);
    const uint32_t axes = reduced_axes(p, views[0].rank);
    Walk<kNormStreams> kept{}, reduced{};
    if (!part_walk<kNormStreams>(views, axes, false, 0, kept) ||
        !part_walk<kNormStreams>(views, axes, true, 0, reduced))
        return too_large(plan);
    const uint32_t lanes = lanes_for(kept, reduced.strides[0][reduced.rank - 1], reduced.count);
    auto& args =
        plan.call.set<NormArgs>(KernelId::kNorm, group_blocks(kept.count, lanes), kGroupThreads);
    args.kept = kept;
    args.reduced = reduced;
    for (unsigned k = 0; k < kNormStreams; ++k) args.refs[k] = plan.ref(k);
    args.kind = p.kind;
    args.epsilon = p.epsilon;
    args.act = {p.act, p.alpha, p.beta};
    args.lanes = lanes;
    return ENPU_HAL_OK;
}

// ---- products --------------------------------------------------------------------------------

float scale_of(const enpu_tensor& tensor) {
    return tensor.scale == 0 ? 1.0f : tensor.scale;
}

uint32_t tiles_of(uint64_t size) {
    return static_cast<uint32_t>((size + kTile - 1) / kTile);
}

// `scales` is the operand of that name, or the output where there is none.
Finish finish_of(const Plan& plan, const Act& act, float scale, unsigned scales, unsigned y) {
    Finish finish{act, scale, 1, 0, {}};
    finish.quant_scale =
        scale_of(plan.operand(0)) * scale_of(plan.operand(1)) / scale_of(plan.operand(y));
    if (scales == y || plan.operand(scales).dtype == ENPU_DTYPE_NONE) return finish;
    finish.scales = plan.ref(scales);
    finish.scale_step = plan.operand(scales).dims[0] == 1 ? 0 : plan.operand(scales).strides[0];
    return finish;
}

bool grid_of(uint64_t batches, uint64_t tiles_m, uint64_t tiles_n, uint32_t& grid) {
    uint64_t blocks = 0;
    if (__builtin_mul_overflow(batches, tiles_m, &blocks) ||
        __builtin_mul_overflow(blocks, tiles_n, &blocks) || blocks > INT32_MAX)
        return false;
    grid = static_cast<uint32_t>(blocks);
    return true;
}

constexpr unsigned kMatmulOperands[kMatmulStreams] = {
    ENPU_MATMUL_OPERAND_A, ENPU_MATMUL_OPERAND_B, ENPU_MATMUL_OPERAND_Y, ENPU_MATMUL_OPERAND_BIAS,
    ENPU_MATMUL_OPERAND_RESIDUAL};

uint32_t plan_matmul(const Plan& plan) {
    const auto& p = plan.packet.params.matmul;
    const MatmulGeometry geometry = matmul_geometry(plan.packet);
    MatmulArgs args{};
    for (unsigned k = 0; k < kMatmulStreams; ++k) {
        args.refs[k] = plan.ref(kMatmulOperands[k]);
        args.row[k] = static_cast<int32_t>(geometry.row[k]);
        args.col[k] = static_cast<int32_t>(geometry.col[k]);
    }
    args.m = static_cast<uint32_t>(geometry.m);
    args.n = static_cast<uint32_t>(geometry.n);
    args.k = static_cast<uint32_t>(geometry.k);
    args.tiles_m = tiles_of(args.m);
    args.tiles_n = tiles_of(args.n);
    uint32_t grid = 0;
    if (!to_walk(geometry.batches, args.batches) || args.k > INT32_MAX - kTileDepth ||
        !grid_of(args.batches.count, args.tiles_m, args.tiles_n, grid))
        return too_large(plan);
    args.finish = finish_of(plan, {p.act, p.alpha, p.beta}, p.scale == 0 ? 1.0f : p.scale,
                            ENPU_MATMUL_OPERAND_SCALE, ENPU_MATMUL_OPERAND_Y);
    const uint32_t dtype = plan.operand(ENPU_MATMUL_OPERAND_A).dtype;
    const bool integer = dtype == ENPU_DTYPE_I8 || dtype == ENPU_DTYPE_U8;
    plan.call.set<MatmulArgs>(integer ? KernelId::kMatmulInteger : KernelId::kMatmulFloat, grid,
                              kTileThreads) = args;
    return ENPU_HAL_OK;
}

// Operands of both convolutions, by stream; ~0u: there is no such operand.
struct ConvOperands {
    unsigned of[kConvStreams];
    unsigned scale;
};

bool fill_conv(const Plan& plan, const enpu_conv2d_params& p, const ConvOperands& operands,
               bool transposed, ConvArgs& args, uint32_t& grid) {
    for (unsigned k = 0; k < kConvStreams; ++k) {
        if (operands.of[k] == ~0u) continue;
        args.refs[k] = plan.ref(operands.of[k]);
        const ops::View view = plan.view(operands.of[k]);
        for (unsigned axis = 0; axis < view.rank && axis < 4; ++axis)
            args.strides[k][axis] = static_cast<int32_t>(view.strides[axis]);
    }
    const auto& x = plan.operand(operands.of[kConvX]).dims;
    const auto& w = plan.operand(operands.of[kConvWeights]).dims;
    const auto& y = plan.operand(operands.of[kConvY]).dims;
    args.groups = p.groups;
    args.images = x[0];
    args.height = x[2];
    args.width = x[3];
    args.group_in = x[1] / p.groups;
    args.group_out = y[1] / p.groups;
    for (unsigned i = 0; i < 2; ++i) {
        args.kernel[i] = w[2 + i];
        args.stride[i] = p.stride[i];
        args.dilation[i] = p.dilation[i];
        args.pad[i] = p.pad[i];
        args.out[i] = y[2 + i];
    }
    const uint64_t pixels = uint64_t{y[0]} * y[2] * y[3];
    const uint64_t depth = uint64_t{args.group_in} * w[2] * w[3];
    args.tiles_m = tiles_of(pixels);
    args.tiles_n = tiles_of(args.group_out);
    // Positions of a window that reaches past the input are computed in 32 bits too.
    const auto reach = [&](unsigned i) {
        const uint64_t span =
            transposed ? uint64_t{y[2 + i]} + p.pad[i] : uint64_t{y[2 + i]} * p.stride[i];
        return span + uint64_t{w[2 + i]} * p.dilation[i] + p.pad[i];
    };
    return pixels <= INT32_MAX && depth <= INT32_MAX - kTileDepth && reach(0) <= INT32_MAX &&
           reach(1) <= INT32_MAX && grid_of(args.groups, args.tiles_m, args.tiles_n, grid);
}

uint32_t plan_conv(const Plan& plan) {
    constexpr ConvOperands kOperands = {
        {ENPU_CONV2D_OPERAND_X, ENPU_CONV2D_OPERAND_WEIGHTS, ENPU_CONV2D_OPERAND_Y,
         ENPU_CONV2D_OPERAND_BIAS, ENPU_CONV2D_OPERAND_RESIDUAL},
        ENPU_CONV2D_OPERAND_SCALE};
    const auto& p = plan.packet.params.conv2d;
    ConvArgs args{};
    uint32_t grid = 0;
    if (!fill_conv(plan, p, kOperands, false, args, grid)) return too_large(plan);
    args.finish =
        finish_of(plan, {p.act, p.alpha, p.beta}, 1, kOperands.scale, ENPU_CONV2D_OPERAND_Y);
    const uint32_t dtype = plan.operand(ENPU_CONV2D_OPERAND_X).dtype;
    const bool integer = dtype == ENPU_DTYPE_I8 || dtype == ENPU_DTYPE_U8;
    plan.call.set<ConvArgs>(integer ? KernelId::kConvInteger : KernelId::kConvFloat, grid,
                            kTileThreads) = args;
    return ENPU_HAL_OK;
}

uint32_t plan_conv_transpose(const Plan& plan) {
    constexpr ConvOperands kOperands = {
        {ENPU_CONV_TRANSPOSE2D_OPERAND_X, ENPU_CONV_TRANSPOSE2D_OPERAND_WEIGHTS,
         ENPU_CONV_TRANSPOSE2D_OPERAND_Y, ENPU_CONV_TRANSPOSE2D_OPERAND_BIAS, ~0u},
        ~0u};
    const auto& p = plan.packet.params.conv_transpose2d;
    static_assert(sizeof(enpu_conv2d_params) == sizeof(enpu_conv_transpose2d_params));
    ConvArgs args{};
    uint32_t grid = 0;
    if (!fill_conv(plan, plan.packet.params.conv2d, kOperands, true, args, grid))
        return too_large(plan);
    args.finish = finish_of(plan, {p.act, p.alpha, p.beta}, 1, ENPU_CONV_TRANSPOSE2D_OPERAND_Y,
                            ENPU_CONV_TRANSPOSE2D_OPERAND_Y);
    plan.call.set<ConvArgs>(KernelId::kConvTransposeFloat, grid, kTileThreads) = args;
    return ENPU_HAL_OK;
}

}  // namespace

MatmulGeometry matmul_geometry(const enpu_operator_packet& packet) {
    const ops::View y = view_of_operand(packet, ENPU_MATMUL_OPERAND_Y);
    const ops::View a = view_of_operand(packet, ENPU_MATMUL_OPERAND_A);
    const unsigned batch_axes = y.rank - 2;
    MatmulGeometry g;
    g.batches.streams = kMatmulStreams;
    g.batches.rank = batch_axes;
    for (unsigned k = 0; k < kMatmulStreams; ++k) {
        const ops::View view = view_of_operand(packet, kMatmulOperands[k]);
        if (view.rank == 0) continue;
        const auto stride = [&](unsigned axis) {  // dims of 1 are broadcast
            return view.dims[axis] == 1 ? 0 : view.strides[axis];
        };
        for (unsigned axis = 0; axis < batch_axes; ++axis)
            g.batches.strides[k][axis] = stride(axis);
        g.row[k] = stride(batch_axes);
        g.col[k] = stride(batch_axes + 1);
    }
    for (unsigned axis = 0; axis < batch_axes; ++axis) g.batches.dims[axis] = y.dims[axis];
    ops::merge_axes(g.batches);
    g.m = y.dims[batch_axes];
    g.n = y.dims[batch_axes + 1];
    g.k = a.dims[batch_axes + 1];
    return g;
}

uint32_t plan_reduction(const Plan& plan, uint32_t op) {
    switch (op) {
        case ENPU_OP_SOFTMAX_FWD:
            return plan_softmax(plan);
        case ENPU_OP_NORM_FWD:
            return plan_norm(plan);
        default:
            return plan_reduce(plan, op == ENPU_OP_ARG_REDUCE);
    }
}

uint32_t plan_dense(const Plan& plan, uint32_t op) {
    switch (op) {
        case ENPU_OP_CONV2D_FWD:
            return plan_conv(plan);
        case ENPU_OP_CONV_TRANSPOSE2D_FWD:
            return plan_conv_transpose(plan);
        default:
            return plan_matmul(plan);
    }
}

}  // namespace enpu::hal::cuda
