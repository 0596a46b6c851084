// SPDX-License-Identifier: MIT
#include <algorithm>

#include "rt_tensor.h"
#include "session.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

constexpr size_t kSmallBytes = 1 << 16;

}  // namespace

void check(rt_status status, const char* what) {
    if (status == RT_OK) return;
    const std::string origin = rt_status_origin(status);
    const std::string text = std::string(what) + ": " + rt_code_name(rt_status_code(status)) +
                             ": " + rt_status_message(status) +
                             (origin.empty() ? "" : " (" + origin + ")");
    rt_status_free(status);
    fail(text);
}

enpu_op_tensor tensor_desc(uint32_t dtype, const Dims& dims, const Dims& strides) {
    enpu_op_tensor t{};
    if (dims.size() > ENPU_OP_MAX_RANK)
        fail("a tensor of " + to_string(dims) + " has a rank over 8");
    t.dtype = dtype;
    t.rank = static_cast<uint32_t>(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
        t.dims[i] = dims[i];
        t.strides[i] = dims[i] == 1 ? std::max<int64_t>(strides[i], 0) : strides[i];
    }
    return t;
}

enpu_op_tensor tensor_desc(const View& view) {
    enpu_op_tensor t = tensor_desc(view.dtype, view.dims, view.strides);
    t.zero_point = view.zero_point;
    return t;
}

WeightStore::~WeightStore() {
    for (void* data : owned_) rt_status_free(rt_free(stream_, data));
}

const WeightStore::Weight& WeightStore::get(const Constant& c) {
    // Small ones by content: those that a program computes for its shapes come again with the next
    // program.
    const bool small = c.tensor->bytes.size() <= kSmallBytes;
    std::string key = std::to_string(c.pack) + "/" + std::to_string(c.groups) +
                      (c.pack < 0 ? "" : to_string(c.dims) + to_string(c.strides)) + "/";
    if (small) {
        key += std::to_string(c.tensor->dtype);
        key.append(reinterpret_cast<const char*>(c.tensor->bytes.data()), c.tensor->bytes.size());
    } else {
        key += std::to_string(reinterpret_cast<uintptr_t>(c.tensor.get()));
    }
    const auto it = weights_.find(key);
    if (it != weights_.end()) return it->second;
    if (!small) kept_.push_back(c.tensor);
    return weights_.emplace(key, upload(c)).first->second;
}

void* WeightStore::allocate(uint64_t bytes) {
    void* data = nullptr;
    check(rt_malloc(stream_, bytes, &data), "memory for weights");
    owned_.push_back(data);
    bytes_ += bytes;
    return data;
}

WeightStore::Weight WeightStore::upload(const Constant& c) {
    if (c.pack >= 0) {
        const enpu_op_tensor plain = tensor_desc(c.tensor->dtype, c.dims, c.strides);
        const enpu_op_pack_params params{static_cast<uint32_t>(c.pack), c.groups};
        uint64_t bytes = 0;
        rt_status status = pack_ ? rt_packed_size(device_, &plain, &params, &bytes) : RT_OK;
        if (pack_ && rt_status_code(status) != RT_UNSUPPORTED) {
            check(status, "size of packed weights");
            return pack(c, plain, bytes);
        }
        rt_status_free(status);
        return get({c.tensor, -1, 1, c.tensor->dims, row_major_strides(c.tensor->dims)});
    }
    Weight weight;
    weight.data = allocate(c.tensor->bytes.size());
    check(rt_memcpy_h2d(stream_, weight.data, c.tensor->bytes.data(), c.tensor->bytes.size()),
          "upload of weights");
    return weight;
}

WeightStore::Weight WeightStore::pack(const Constant& c, const enpu_op_tensor& plain,
                                      uint64_t packed_bytes) {
    Weight weight;
    weight.packed = true;
    weight.desc = plain;
    weight.desc.format = ENPU_OP_PACKED;
    weight.desc.packed_bytes = packed_bytes;
    std::fill(std::begin(weight.desc.strides), std::end(weight.desc.strides), int64_t{0});
    void* raw = nullptr;
    check(rt_malloc(stream_, c.tensor->bytes.size(), &raw), "memory for weights");
    weight.data = allocate(packed_bytes);
    check(rt_memcpy_h2d(stream_, raw, c.tensor->bytes.data(), c.tensor->bytes.size()),
          "upload of weights");
    rt_kernel kernel = nullptr;
    check(rt_kernel_for_op(device_, ENPU_OP_PACK_WEIGHTS, &kernel), "pack_weights");
    const enpu_op_pack_params params{static_cast<uint32_t>(c.pack), c.groups};
    const rt_operand operands[2] = {{raw, nullptr, plain}, {weight.data, nullptr, weight.desc}};
    check(rt_kernel_launch(stream_, kernel, nullptr, &params, sizeof(params), operands, 2),
          "pack_weights");
    check(rt_free(stream_, raw), "memory for weights");
    return weight;
}

}  // namespace enpu::lowering
