// SPDX-License-Identifier: MIT
#include "launch.h"

#include <ATen/native/Resize.h>

#include <cstring>
#include <unordered_map>

namespace enpu::pytorch {
namespace {

rt_operand operand(const Tensor& t) {
    rt_operand result{};
    if (!t.defined()) return result;
    result.data = const_cast<void*>(t.const_data_ptr());
    result.desc.dtype = device_dtype(t.scalar_type());
    result.desc.rank = static_cast<uint32_t>(t.dim());
    for (int64_t i = 0; i < t.dim(); ++i) {
        result.desc.dims[i] = t.size(i);
        result.desc.strides[i] = t.size(i) == 1 ? 1 : t.stride(i);
    }
    return result;
}

// A row of equal axes of all operands.
struct Axis {
    int64_t size;
    c10::SmallVector<int64_t, ENPU_OP_MAX_OPERANDS> strides;
};

bool follows(const Axis& outer, const Axis& inner) {
    for (size_t i = 0; i < outer.strides.size(); ++i) {
        if (outer.strides[i] != inner.strides[i] * inner.size) return false;
    }
    return true;
}

// Axes without those of one element; neighbours that lie together are one.
std::vector<Axis> joined_axes(c10::ArrayRef<Tensor> operands) {
    std::vector<Axis> axes;
    const Tensor& first = operands.back();
    for (int64_t i = 0; i < first.dim(); ++i) {
        if (first.size(i) == 1) continue;
        Axis axis{first.size(i), {}};
        for (const Tensor& t : operands) axis.strides.push_back(t.stride(i));
        if (!axes.empty() && follows(axes.back(), axis)) {
            axis.size *= axes.back().size;
            axes.back() = axis;
        } else {
            axes.push_back(axis);
        }
    }
    return axes;
}

struct ConstantKey {
    ScalarType type;
    uint64_t bits;
    bool operator==(const ConstantKey& other) const {
        return type == other.type && bits == other.bits;
    }
};
struct ConstantHash {
    size_t operator()(const ConstantKey& key) const {
        return key.bits * 0x9e3779b97f4a7c15u + static_cast<size_t>(key.type);
    }
};
struct Constants {
    std::mutex lock;
    std::unordered_map<ConstantKey, Tensor, ConstantHash> made;
};
constexpr size_t kMostConstants = 4096;  // more are made, but not kept

Constants& constants() {
    static auto* made = new Constants;
    return *made;
}

}  // namespace

uint32_t device_dtype(ScalarType type) {
    switch (type) {
        case at::kFloat:
            return ENPU_OP_F32;
        case at::kHalf:
            return ENPU_OP_F16;
        case at::kBFloat16:
            return ENPU_OP_BF16;
        case at::kChar:
            return ENPU_OP_I8;
        case at::kByte:
            return ENPU_OP_U8;
        case at::kInt:
            return ENPU_OP_I32;
        case at::kLong:
            return ENPU_OP_I64;
        case at::kBool:
            return ENPU_OP_BOOL;
        default:
            return ENPU_OP_NONE;
    }
}

bool on_device(const Tensor& t) {
    return t.device().type() == c10::DeviceType::PrivateUse1;
}

void check_operand(const Tensor& t, const char* op) {
    TORCH_CHECK(on_device(t), "enpu: ", op, ": a tensor is on ", t.device(), ", not on the NPU");
    TORCH_CHECK_NOT_IMPLEMENTED(device_dtype(t.scalar_type()) != ENPU_OP_NONE, "enpu: ", op,
                                ": the device does not compute with dtype ", t.scalar_type());
}

Tensor as_bits(const Tensor& t) {
    if (device_dtype(t.scalar_type()) != ENPU_OP_NONE) return t;
    static constexpr ScalarType kBySize[9] = {ScalarType::Undefined,
                                              at::kByte,
                                              at::kHalf,
                                              ScalarType::Undefined,
                                              at::kInt,
                                              ScalarType::Undefined,
                                              ScalarType::Undefined,
                                              ScalarType::Undefined,
                                              at::kLong};
    const size_t bytes = t.element_size();
    TORCH_CHECK_NOT_IMPLEMENTED(bytes <= 8 && kBySize[bytes] != ScalarType::Undefined,
                                "enpu: the device does not move elements of dtype ",
                                t.scalar_type());
    Tensor bits = at::empty({0}, t.options().dtype(kBySize[bytes]));
    return bits.set_(t.storage(), t.storage_offset(), t.sizes(), t.strides());
}

void launch_bytes(enpu_op op, const void* params, size_t bytes, c10::ArrayRef<Tensor> operands) {
    Runtime& runtime = Runtime::get();
    rt_kernel kernel = runtime.kernel(op);
    TORCH_CHECK_NOT_IMPLEMENTED(kernel, "enpu: the device has no kernel number ",
                                static_cast<int>(op));
    std::array<rt_operand, ENPU_OP_MAX_OPERANDS> packed;
    for (size_t i = 0; i < operands.size(); ++i) {
        const Tensor& t = operands[i];
        if (t.defined()) {
            check_operand(t, rt_kernel_name(kernel));
            TORCH_CHECK_NOT_IMPLEMENTED(t.dim() <= ENPU_OP_MAX_RANK,
                                        "enpu: ", rt_kernel_name(kernel), ": a tensor has ",
                                        t.dim(), " axes, the device takes ", ENPU_OP_MAX_RANK);
        }
        packed[i] = operand(t);
    }
    check(rt_kernel_launch(runtime.current(), kernel, nullptr, params, bytes, packed.data(),
                           static_cast<uint32_t>(operands.size())),
          rt_kernel_name(kernel));
}

void launch_elementwise(enpu_op op, const void* params, size_t bytes,
                        std::initializer_list<Tensor> list) {
    const c10::ArrayRef<Tensor> operands(list);
    if (operands.back().numel() == 0) return;
    const std::vector<Axis> axes = joined_axes(operands);
    c10::SmallVector<int64_t, 8> sizes, strides;
    for (const Axis& axis : axes) sizes.push_back(axis.size);
    c10::SmallVector<Tensor, ENPU_OP_MAX_OPERANDS> joined;
    for (size_t i = 0; i < operands.size(); ++i) {
        strides.clear();
        for (const Axis& axis : axes) strides.push_back(axis.strides[i]);
        joined.push_back(at::as_strided(operands[i], sizes, strides));
    }
    launch_bytes(op, params, bytes, joined);
}

Tensor new_tensor(IntArrayRef sizes, ScalarType type) {
    return at::empty(sizes, at::TensorOptions().device(npu()).dtype(type));
}

Tensor new_like(const Tensor& layout, ScalarType type) {
    if (!layout.is_non_overlapping_and_dense()) return new_tensor(layout.sizes(), type);
    return at::empty_strided(layout.sizes(), layout.strides(),
                             at::TensorOptions().device(npu()).dtype(type));
}

Tensor constant(const Scalar& value, ScalarType type) {
    const Tensor host = at::scalar_tensor(value, at::TensorOptions().dtype(type));
    ConstantKey key{type, 0};
    const size_t bytes = host.element_size();
    TORCH_CHECK_NOT_IMPLEMENTED(bytes <= sizeof(key.bits), "enpu: the device has no dtype ", type);
    std::memcpy(&key.bits, host.const_data_ptr(), bytes);
    const std::lock_guard guard(constants().lock);
    auto& made = constants().made;
    if (auto found = made.find(key); found != made.end()) return found->second;
    Tensor t = new_tensor({}, type);
    rt_stream stream = Runtime::get().current();
    check(rt_fill(stream, t.mutable_data_ptr(), key.bits, static_cast<uint32_t>(bytes), bytes),
          "constant");
    // From now on every stream may read it.
    check(rt_stream_sync(stream, rt_deadline_ms(kDeadlineMs)), "constant");
    if (made.size() < kMostConstants) made.emplace(key, t);
    return t;
}

void cast_into(const Tensor& from, const Tensor& to) {
    if (to.scalar_type() == at::kBool && from.scalar_type() != at::kBool) {
        // NaN is true, and so are fractions: a comparison, no truncation.
        const enpu_op_binary_params params{ENPU_OP_BINARY_NE, ENPU_OP_UNARY_IDENTITY, 0, 0};
        launch_elementwise(ENPU_OP_BINARY, &params, sizeof(params),
                           {from, constant(0, from.scalar_type()).expand(from.sizes()), to});
        return;
    }
    launch_elementwise(ENPU_OP_CAST, nullptr, 0, {from, to});
}

Tensor to_operand(const Tensor& t, ScalarType type, const char* op) {
    if (!on_device(t)) {
        TORCH_CHECK(t.dim() == 0 && t.device().is_cpu(), "enpu: ", op, ": a tensor is on ",
                    t.device(), ", not on the NPU");
        return constant(t.item(), type);
    }
    if (t.scalar_type() == type) return t;
    check_operand(t, op);
    Tensor cast = new_like(t, type);
    cast_into(t, cast);
    return cast;
}

bool overlaps(const Tensor& out, const Tensor& in) {
    if (!out.storage().is_alias_of(in.storage())) return false;
    if (out.data_ptr() == in.data_ptr() && out.sizes() == in.sizes() &&
        out.strides() == in.strides() && out.element_size() == in.element_size())
        return false;
    return at::get_overlap_status(out, in) != at::MemOverlapStatus::No;
}

void move_into(const Tensor& from, const Tensor& to) {
    if (to.numel() == 0) return;
    if (overlaps(to, from)) {
        Tensor copy = new_tensor(from.sizes(), from.scalar_type());
        move_into(from, copy);
        return move_into(copy, to);
    }
    if (from.is_same(to) || (from.data_ptr() == to.data_ptr() && from.strides() == to.strides()))
        return;
    const bool whole = from.is_non_overlapping_and_dense() && from.strides() == to.strides();
    if (whole) {
        check(rt_memcpy_d2d(Runtime::get().current(), to.mutable_data_ptr(), from.const_data_ptr(),
                            to.nbytes()),
              "copy");
        return;
    }
    launch_elementwise(ENPU_OP_MOVE, nullptr, 0, {as_bits(from), as_bits(to)});
}

Tensor contiguous(const Tensor& t) {
    if (t.is_contiguous()) return t;
    Tensor copy = new_tensor(t.sizes(), t.scalar_type());
    move_into(t, copy);
    return copy;
}

void move_reversed(const Tensor& from, uint32_t axes, const Tensor& out) {
    Runtime& runtime = Runtime::get();
    const Tensor bits = as_bits(from);
    TORCH_CHECK_NOT_IMPLEMENTED(from.dim() <= ENPU_OP_MAX_RANK, "enpu: flip: a tensor has ",
                                from.dim(), " axes, the device takes ", ENPU_OP_MAX_RANK);
    rt_operand operands[ENPU_OP_MOVE_OPERANDS] = {operand(bits), operand(as_bits(out))};
    auto* first = static_cast<char*>(operands[0].data);
    for (int64_t i = 0; i < from.dim(); ++i) {
        if (!(axes >> i & 1) || from.size(i) == 1) continue;
        first += (from.size(i) - 1) * from.stride(i) * static_cast<int64_t>(from.element_size());
        operands[0].desc.strides[i] = -from.stride(i);
    }
    operands[0].data = first;
    check(rt_kernel_launch(runtime.current(), runtime.kernel(ENPU_OP_MOVE), nullptr, nullptr, 0,
                           operands, ENPU_OP_MOVE_OPERANDS),
          "flip");
}

Tensor iota(int64_t count) {
    static std::mutex lock;
    static auto* longest = new Tensor;
    const std::lock_guard guard(lock);
    if (!longest->defined() || longest->numel() < count) {
        *longest = at::arange(std::max<int64_t>(2 * count, 256)).to(npu());
        // From now on every stream may read it.
        check(rt_stream_sync(Runtime::get().current(), rt_deadline_ms(kDeadlineMs)), "constant");
    }
    return longest->narrow(0, 0, count);
}

bool resize_out(Tensor& out, IntArrayRef sizes) {
    return at::native::resize_output(out, sizes);
}

}  // namespace enpu::pytorch
