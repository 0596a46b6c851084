// SPDX-License-Identifier: MIT
// The elementwise kernels and those that move elements.
#include "plan.h"

#include <algorithm>
#include <array>

#include "op_table.h"
#include "status.h"

namespace enpu::hal::cuda {

Ref Plan::ref(unsigned index) const {
    const enpu_tensor& tensor = operand(index);
    if (tensor.dtype == ENPU_DTYPE_NONE) return {};
    return {tensor.addr, tensor.dtype, tensor.zero_point};
}

ops::View view_of_operand(const enpu_operator_packet& packet, unsigned index) {
    const enpu_tensor& tensor = packet.operands[index];
    if (tensor.dtype == ENPU_DTYPE_NONE) return {};
    return ops::view_of({&tensor, reinterpret_cast<std::byte*>(tensor.addr)});
}

ops::View Plan::view(unsigned index) const {
    return view_of_operand(packet, index);
}

uint32_t blocks_for(uint64_t count) {
    return static_cast<uint32_t>(std::min<uint64_t>((count + kThreads - 1) / kThreads, 1u << 20));
}

uint32_t too_large(const Plan& plan) {
    return fail(plan.status, ENPU_HAL_UNSUPPORTED,
                "%s: more than 2^31 positions, which the cuda kernels do not count",
                find_op(op_of(plan.packet.header.opcode))->name);
}

namespace {

uint32_t plan_unary(const Plan& plan) {
    const auto& p = plan.packet.params.unary;
    Walk<2> walk{};
    if (!to_walk(ops::make_loop(std::array{plan.view(0), plan.view(1)}), walk))
        return too_large(plan);
    auto& args = plan.call.set<UnaryArgs>(KernelId::kUnary, blocks_for(walk.count), kThreads);
    args = {walk, plan.ref(0), plan.ref(1), {p.function, p.alpha, p.beta}};
    return ENPU_HAL_OK;
}

uint32_t plan_binary(const Plan& plan) {
    const auto& p = plan.packet.params.binary;
    Walk<3> walk{};
    if (!to_walk(ops::make_loop(std::array{plan.view(0), plan.view(1), plan.view(2)}), walk))
        return too_large(plan);
    auto& args = plan.call.set<BinaryArgs>(KernelId::kBinary, blocks_for(walk.count), kThreads);
    args = {walk, plan.ref(0), plan.ref(1), plan.ref(2), p.function, {p.act, p.alpha, p.beta}};
    return ENPU_HAL_OK;
}

uint32_t plan_select(const Plan& plan) {
    Walk<4> walk{};
    if (!to_walk(ops::make_loop(std::array{plan.view(0), plan.view(1), plan.view(2), plan.view(3)}),
                 walk))
        return too_large(plan);
    auto& args = plan.call.set<SelectArgs>(KernelId::kSelect, blocks_for(walk.count), kThreads);
    args = {walk, plan.ref(0), plan.ref(1), plan.ref(2), plan.ref(3)};
    return ENPU_HAL_OK;
}

// Integers below 2^24 are exact in float, and f16 overflows before they are not; for bf16 a float
// would be a second rounding.
bool casts_through_float(uint32_t from, uint32_t to) {
    const auto is = [](uint32_t dtype, std::initializer_list<uint32_t> list) {
        return std::find(list.begin(), list.end(), dtype) != list.end();
    };
    return is(from,
              {ENPU_DTYPE_F32, ENPU_DTYPE_F16, ENPU_DTYPE_BF16, ENPU_DTYPE_I8, ENPU_DTYPE_U8}) ||
           is(to, {ENPU_DTYPE_F32, ENPU_DTYPE_F16});
}

uint32_t plan_cast(const Plan& plan) {
    Walk<2> walk{};
    if (!to_walk(ops::make_loop(std::array{plan.view(0), plan.view(1)}), walk))
        return too_large(plan);
    auto& args = plan.call.set<CastArgs>(KernelId::kCast, blocks_for(walk.count), kThreads);
    args = {walk, plan.ref(0), plan.ref(1),
            casts_through_float(plan.operand(0).dtype, plan.operand(1).dtype)};
    return ENPU_HAL_OK;
}

uint32_t plan_quantize(const Plan& plan, KernelId kernel) {
    Walk<4> walk{};
    if (!to_walk(ops::make_loop(std::array{plan.view(0), plan.view(1), plan.view(2), plan.view(3)}),
                 walk))
        return too_large(plan);
    auto& args = plan.call.set<QuantizeArgs>(kernel, blocks_for(walk.count), kThreads);
    args = {walk, plan.ref(0), plan.ref(1), plan.ref(2), plan.ref(3)};
    return ENPU_HAL_OK;
}

uint32_t plan_move(const Plan& plan) {
    Walk<2> walk{};
    if (!to_walk(ops::make_loop(std::array{plan.view(0), plan.view(1)}), walk))
        return too_large(plan);
    auto& args = plan.call.set<MoveArgs>(KernelId::kMove, blocks_for(walk.count), kThreads);
    args = {walk, plan.ref(0), plan.ref(1)};
    return ENPU_HAL_OK;
}

// The dims of y axis by axis, with the strides of both: for kernels that map each axis of its own.
bool axis_walk(const ops::View& x, const ops::View& y, Walk<2>& walk) {
    ops::Loop loop;
    loop.rank = y.rank;
    loop.dims = y.dims;
    loop.strides[0] = x.strides;
    loop.strides[1] = y.strides;
    return to_walk(loop, walk);
}

uint32_t plan_pad(const Plan& plan) {
    const auto& p = plan.packet.params.pad;
    Walk<2> walk{};
    if (!axis_walk(plan.view(0), plan.view(1), walk)) return too_large(plan);
    auto& args = plan.call.set<PadArgs>(KernelId::kPad, blocks_for(walk.count), kThreads);
    args.walk = walk;
    args.x = plan.ref(0);
    args.y = plan.ref(1);
    for (unsigned axis = 0; axis < walk.rank; ++axis) {
        args.x_dims[axis] = plan.operand(0).dims[axis];
        args.before[axis] = p.before[axis];
    }
    args.mode = p.mode;
    args.value = p.value;
    return ENPU_HAL_OK;
}

// x and indices stretched to the dims of y; the axis itself is added by the kernel.
void stretch(const Plan& plan, ops::View& from, ops::View& index) {
    const auto& p = plan.packet.params.gather;
    const ops::View x = plan.view(0), indices = plan.view(1), y = plan.view(2);
    from = index = y;
    if (p.mode == ENPU_GATHER_MODE_ELEMENTS) {
        from.strides = x.strides;
        from.strides[p.axis] = 0;
        index.strides = indices.strides;
        return;
    }
    for (unsigned i = 0; i < y.rank; ++i) {
        const bool inside = i >= p.axis && i < p.axis + indices.rank;
        from.strides[i] = inside ? 0 : x.strides[i < p.axis ? i : i + 1 - indices.rank];
        index.strides[i] = inside ? indices.strides[i - p.axis] : 0;
    }
}

uint32_t plan_gather(const Plan& plan) {
    ops::View from, index;
    stretch(plan, from, index);
    Walk<3> walk{};
    if (!to_walk(ops::make_loop(std::array{from, index, plan.view(2)}), walk))
        return too_large(plan);
    const uint32_t axis = plan.packet.params.gather.axis;
    auto& args = plan.call.set<GatherArgs>(KernelId::kGather, blocks_for(walk.count), kThreads);
    args = {walk,
            plan.ref(0),
            plan.ref(1),
            plan.ref(2),
            plan.operand(0).dims[axis],
            plan.operand(0).strides[axis],
            plan.offence};
    plan.call.fallible = true;
    return ENPU_HAL_OK;
}

uint32_t plan_resize(const Plan& plan) {
    const auto& p = plan.packet.params.resize;
    const ops::View x = plan.view(0), y = plan.view(1);
    Walk<2> walk{};
    if (!axis_walk(x, y, walk)) return too_large(plan);
    auto& args = plan.call.set<ResizeArgs>(KernelId::kResize, blocks_for(walk.count), kThreads);
    args.walk = walk;
    args.x = plan.ref(0);
    args.y = plan.ref(1);
    args.params = p;
    for (unsigned axis = 0; axis < walk.rank; ++axis)
        args.rules[axis] = ops::resize_rule(p, axis, walk.rank, x.dims[axis], y.dims[axis]);
    return ENPU_HAL_OK;
}

uint32_t plan_pool(const Plan& plan) {
    Walk<2> walk{};
    if (!axis_walk(plan.view(0), plan.view(1), walk)) return too_large(plan);
    auto& args = plan.call.set<PoolArgs>(KernelId::kPool, blocks_for(walk.count), kThreads);
    args = {walk,
            plan.ref(0),
            plan.ref(1),
            {plan.operand(0).dims[2], plan.operand(0).dims[3]},
            plan.packet.params.pool};
    return ENPU_HAL_OK;
}

uint32_t plan_op(const Plan& plan, uint32_t op) {
    switch (op) {
        case ENPU_OP_PACK_WEIGHTS:
            return fail(plan.status, ENPU_HAL_UNSUPPORTED,
                        "pack_weights: the cuda backend takes weights PLAIN");
        case ENPU_OP_UNARY:
            return plan_unary(plan);
        case ENPU_OP_BINARY:
            return plan_binary(plan);
        case ENPU_OP_SELECT:
            return plan_select(plan);
        case ENPU_OP_CAST:
            return plan_cast(plan);
        case ENPU_OP_QUANTIZE:
            return plan_quantize(plan, KernelId::kQuantize);
        case ENPU_OP_DEQUANTIZE:
            return plan_quantize(plan, KernelId::kDequantize);
        case ENPU_OP_MOVE:
            return plan_move(plan);
        case ENPU_OP_PAD:
            return plan_pad(plan);
        case ENPU_OP_GATHER:
            return plan_gather(plan);
        case ENPU_OP_RESIZE:
            return plan_resize(plan);
        case ENPU_OP_POOL2D_FWD:
            return plan_pool(plan);
        case ENPU_OP_REDUCE:
        case ENPU_OP_ARG_REDUCE:
        case ENPU_OP_SOFTMAX_FWD:
        case ENPU_OP_NORM_FWD:
            return plan_reduction(plan, op);
        default:
            return plan_dense(plan, op);
    }
}

}  // namespace

uint32_t plan_kernel(const PacketStorage& packet, uint64_t offence, KernelCall& call,
                     enpu_hal_status* status) {
    const uint32_t op = op_of(packet.packet().header.opcode);
    const OpInfo& info = *find_op(op);
    for (uint32_t i = 0; i < info.operands; ++i)
        if (packet.packet().operands[i].format != ENPU_FORMAT_PLAIN && op != ENPU_OP_PACK_WEIGHTS)
            return fail(status, ENPU_HAL_UNSUPPORTED,
                        "%s: operand '%s' is PACKED, but the cuda backend takes weights PLAIN",
                        info.name, info.operand_names[i]);
    return plan_op({packet.packet(), offence, call, status}, op);
}

}  // namespace enpu::hal::cuda
