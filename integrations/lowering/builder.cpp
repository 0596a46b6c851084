// SPDX-License-Identifier: MIT
#include "builder.h"

#include "shapes.h"

namespace enpu::lowering {

View PlanBuilder::upload(HostTensorPtr tensor) {
    if (tensor->bytes.empty())
        fail("an operand of " + to_string(tensor->dims) + " has no elements");
    const auto it = uploads_.find(tensor.get());
    if (it != uploads_.end()) return it->second;
    plan_.constants.push_back({tensor, -1, 1, tensor->dims, row_major_strides(tensor->dims)});
    Buffer buffer;
    buffer.kind = Buffer::Kind::kConstant;
    buffer.bytes = tensor->bytes.size();
    buffer.index = static_cast<int>(plan_.constants.size()) - 1;
    const View view{new_buffer(buffer), 0, tensor->dtype, tensor->dims,
                    row_major_strides(tensor->dims)};
    uploads_[tensor.get()] = view;
    return view;
}

View PlanBuilder::packable(const View& view, uint32_t kind, uint32_t groups) {
    const Buffer& from = plan_.buffers[static_cast<size_t>(view.buffer)];
    if (from.kind != Buffer::Kind::kConstant || view.offset != 0) return view;
    Constant constant = plan_.constants[static_cast<size_t>(from.index)];
    constant.pack = static_cast<int>(kind);
    constant.groups = groups;
    constant.dims = view.dims;
    constant.strides = view.strides;
    if (kind == ENPU_OP_PACK_KIND_MATMUL) {  // without the batch, which is broadcast
        constant.dims.erase(constant.dims.begin(), constant.dims.end() - 2);
        constant.strides.erase(constant.strides.begin(), constant.strides.end() - 2);
    }
    plan_.constants.push_back(constant);
    Buffer buffer = from;
    buffer.index = static_cast<int>(plan_.constants.size()) - 1;
    View result = view;
    result.buffer = new_buffer(buffer);
    return result;
}

int PlanBuilder::new_buffer(Buffer buffer) {
    plan_.buffers.push_back(buffer);
    return static_cast<int>(plan_.buffers.size()) - 1;
}

View PlanBuilder::temporary(uint32_t dtype, const Dims& dims, const Dims& strides) {
    if (dims.size() > ENPU_OP_MAX_RANK)
        fail("a tensor of " + to_string(dims) + " has a rank over 8");
    Buffer buffer;
    buffer.bytes = static_cast<uint64_t>(element_count(dims)) * dtype_bytes(dtype);
    if (buffer.bytes == 0) fail("a result of " + to_string(dims) + " has no elements");
    return {new_buffer(buffer), 0, dtype, dims, strides};
}

View PlanBuilder::temporary(uint32_t dtype, const Dims& dims) {
    return temporary(dtype, dims, row_major_strides(dims));
}

void PlanBuilder::add_bytes(uint32_t op, const void* params, size_t bytes,
                            std::vector<View> operands) {
    Kernel kernel;
    kernel.op = op;
    if (bytes) std::memcpy(kernel.params.data(), params, bytes);
    kernel.params_bytes = static_cast<uint32_t>(bytes);
    kernel.operands = std::move(operands);
    kernel.in_place = op == ENPU_OP_UNARY || op == ENPU_OP_BINARY;
    kernel.node = origin_;
    plan_.kernels.push_back(std::move(kernel));
}

void PlanBuilder::move(const View& x, const View& y) {
    add(ENPU_OP_MOVE, {x, y});
}

View PlanBuilder::dense(const View& view) {
    if (is_row_major(view)) {
        View result = view;
        result.strides = row_major_strides(view.dims);
        return result;
    }
    View y = temporary(view.dtype, view.dims);
    move(view, y);
    return y;
}

View PlanBuilder::channels_last(const View& view) {
    const Dims strides = channels_last_strides(view.dims);
    if (is_dense(view, strides)) {
        View result = view;
        result.strides = strides;
        return result;
    }
    View y = temporary(view.dtype, view.dims, strides);
    move(view, y);
    return y;
}

View PlanBuilder::reshape(const View& view, const Dims& dims) {
    if (element_count(view.dims) != element_count(dims))
        fail("operands do not fit each other: " + to_string(view.dims) + " is no " +
             to_string(dims));
    if (auto result = reshape_view(view, dims)) return *result;
    View copy = dense(view);
    copy.dims = dims;
    copy.strides = row_major_strides(dims);
    return copy;
}

View PlanBuilder::external(void* address, uint64_t bytes, uint32_t dtype, const Dims& dims,
                           const Dims& strides) {
    Buffer buffer;
    buffer.kind = Buffer::Kind::kExternal;
    buffer.bytes = bytes;
    buffer.address = address;
    return {new_buffer(buffer), 0, dtype, dims, strides};
}

}  // namespace enpu::lowering
