// SPDX-License-Identifier: MIT
// Operator packets: header, parameters, tensor descriptors. One typed function a family over one
// generic one.
#include <array>
#include <cstring>

#include "command/builder.h"
#include "command/names.h"
#include "enpu_hw_tables.h"

using namespace enpu;

namespace {

// Storage of the largest operator packet.
struct alignas(16) Storage {
    std::array<std::byte, kMaxPacketBytes> bytes{};
    enpu_operator_packet* packet() { return reinterpret_cast<enpu_operator_packet*>(bytes.data()); }
};

constexpr uint32_t operand_field(uint32_t operand) {
    return static_cast<uint32_t>(ENPU_OPERATOR_PACKET_BYTES(operand) + offsetof(enpu_tensor, addr));
}

// Header and parameters; the operands stay empty.
int start(Storage& storage, uint32_t opcode, const void* params, size_t params_bytes,
          size_t operands, enpu_error* error) {
    if (opcode >= ENPU_MAX_OPCODES || !enpu_opcodes[opcode].exists ||
        !enpu_opcodes[opcode].is_operator) {
        return fail(error, -EINVAL, "opcode %u is no operator", opcode);
    }
    const auto& info = enpu_opcodes[opcode];
    if (operands != info.num_operands) {
        return fail(error, -EINVAL, "%s takes %u operands, %zu were given",
                    opcode_name(opcode).c_str(), info.num_operands, operands);
    }
    if (params_bytes != info.param_bytes || (params_bytes != 0 && params == nullptr)) {
        return fail(error, -EINVAL, "%s takes %u bytes of parameters, %zu were given%s",
                    opcode_name(opcode).c_str(), info.param_bytes, params_bytes,
                    params == nullptr ? " (NULL)" : "");
    }
    auto& header = storage.packet()->header;
    header.opcode = static_cast<uint16_t>(opcode);
    header.size = ENPU_OPERATOR_PACKET_BYTES(info.num_operands);
    if (params_bytes != 0) std::memcpy(&storage.packet()->params, params, params_bytes);
    return 0;
}

template <typename Params, typename... Operands>
int build(enpu_builder* builder, uint32_t opcode, const Params* params, enpu_error* error,
          const Operands*... operands) {
    const enpu_operand* const list[] = {operands...};
    return enpu_build_operator(builder, opcode, params, sizeof(Params), list, sizeof...(operands),
                               error);
}

template <typename... Operands>
int build_plain(enpu_builder* builder, uint32_t opcode, enpu_error* error,
                const Operands*... operands) {
    const enpu_operand* const list[] = {operands...};
    return enpu_build_operator(builder, opcode, nullptr, 0, list, sizeof...(operands), error);
}

}  // namespace

int enpu_build_operator(enpu_builder* builder, uint32_t opcode, const void* params,
                        size_t params_bytes, const enpu_operand* const* operands, size_t count,
                        enpu_error* error) {
    if (builder == nullptr || operands == nullptr)
        return fail(error, -EINVAL, "enpu_build_operator: an argument is NULL");
    Storage storage;
    if (int r = start(storage, opcode, params, params_bytes, count, error)) return r;
    Target targets[ENPU_MAX_OPERANDS];
    size_t used = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (operands[i] == nullptr || operands[i]->tensor.dtype == ENPU_DTYPE_NONE) continue;
        storage.packet()->operands[i] = operands[i]->tensor;
        targets[used++] = {i, operand_field(i), operands[i]->buffer, operands[i]->offset};
    }
    return builder->append(&storage.packet()->header, {targets, used}, error);
}

int enpu_check_operator(enpu_device* device, uint32_t opcode, const void* params,
                        size_t params_bytes, const enpu_tensor* tensors, size_t count,
                        enpu_error* error) {
    if (device == nullptr || tensors == nullptr)
        return fail(error, -EINVAL, "enpu_check_operator: an argument is NULL");
    return guard(error, [&] {
        Storage storage;
        if (int r = start(storage, opcode, params, params_bytes, count, error)) return r;
        for (uint32_t i = 0; i < count; ++i) {
            auto& tensor = storage.packet()->operands[i];
            if (tensors[i].dtype == ENPU_DTYPE_NONE) continue;
            tensor = tensors[i];
            // A place of its own for each: far enough apart that none reaches another or passes the
            // VA range, either way.
            tensor.addr = uint64_t{i + 1} << (ENPU_VA_BITS - 6);
        }
        const auto* raw = storage.bytes.data();
        if (int r = check_capability(device, raw, error)) return r;
        return check_resolved(raw, storage.packet()->header.size, ENPU_ENGINE_KIND_COMPUTE, {},
                              error);
    });
}

int enpu_build_pack(enpu_builder* builder, const enpu_pack_params* params,
                    const enpu_operand* weights, const enpu_operand* packed, enpu_error* error) {
    return build(builder, ENPU_OPCODE_PACK, params, error, weights, packed);
}

int enpu_build_conv2d(enpu_builder* builder, const enpu_conv2d_params* params,
                      const enpu_operand* x, const enpu_operand* weights,
                      const enpu_operand* bias_opt, const enpu_operand* residual_opt,
                      const enpu_operand* scale_opt, const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_CONV2D, params, error, x, weights, bias_opt, residual_opt,
                 scale_opt, y);
}

int enpu_build_conv_transpose2d(enpu_builder* builder, const enpu_conv_transpose2d_params* params,
                                const enpu_operand* x, const enpu_operand* weights,
                                const enpu_operand* bias_opt, const enpu_operand* y,
                                enpu_error* error) {
    return build(builder, ENPU_OPCODE_CONV_TRANSPOSE2D, params, error, x, weights, bias_opt, y);
}

int enpu_build_matmul(enpu_builder* builder, const enpu_matmul_params* params,
                      const enpu_operand* a, const enpu_operand* b, const enpu_operand* bias_opt,
                      const enpu_operand* residual_opt, const enpu_operand* scale_opt,
                      const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_MATMUL, params, error, a, b, bias_opt, residual_opt,
                 scale_opt, y);
}

int enpu_build_pool(enpu_builder* builder, const enpu_pool_params* params, const enpu_operand* x,
                    const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_POOL, params, error, x, y);
}

int enpu_build_unary(enpu_builder* builder, const enpu_unary_params* params, const enpu_operand* x,
                     const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_UNARY, params, error, x, y);
}

int enpu_build_binary(enpu_builder* builder, const enpu_binary_params* params,
                      const enpu_operand* a, const enpu_operand* b, const enpu_operand* y,
                      enpu_error* error) {
    return build(builder, ENPU_OPCODE_BINARY, params, error, a, b, y);
}

int enpu_build_select(enpu_builder* builder, const enpu_operand* condition, const enpu_operand* a,
                      const enpu_operand* b, const enpu_operand* y, enpu_error* error) {
    return build_plain(builder, ENPU_OPCODE_SELECT, error, condition, a, b, y);
}

int enpu_build_softmax(enpu_builder* builder, const enpu_softmax_params* params,
                       const enpu_operand* x, const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_SOFTMAX, params, error, x, y);
}

int enpu_build_norm(enpu_builder* builder, const enpu_norm_params* params, const enpu_operand* x,
                    const enpu_operand* scale_opt, const enpu_operand* bias_opt,
                    const enpu_operand* mean_opt, const enpu_operand* variance_opt,
                    const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_NORM, params, error, x, scale_opt, bias_opt, mean_opt,
                 variance_opt, y);
}

int enpu_build_reduce(enpu_builder* builder, const enpu_reduce_params* params,
                      const enpu_operand* x, const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_REDUCE, params, error, x, y);
}

int enpu_build_arg(enpu_builder* builder, const enpu_arg_params* params, const enpu_operand* x,
                   const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_ARG, params, error, x, y);
}

int enpu_build_move(enpu_builder* builder, const enpu_operand* x, const enpu_operand* y,
                    enpu_error* error) {
    return build_plain(builder, ENPU_OPCODE_MOVE, error, x, y);
}

int enpu_build_pad(enpu_builder* builder, const enpu_pad_params* params, const enpu_operand* x,
                   const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_PAD, params, error, x, y);
}

int enpu_build_gather(enpu_builder* builder, const enpu_gather_params* params,
                      const enpu_operand* x, const enpu_operand* indices, const enpu_operand* y,
                      enpu_error* error) {
    return build(builder, ENPU_OPCODE_GATHER, params, error, x, indices, y);
}

int enpu_build_resize(enpu_builder* builder, const enpu_resize_params* params,
                      const enpu_operand* x, const enpu_operand* y, enpu_error* error) {
    return build(builder, ENPU_OPCODE_RESIZE, params, error, x, y);
}

int enpu_build_cast(enpu_builder* builder, const enpu_operand* x, const enpu_operand* y,
                    enpu_error* error) {
    return build_plain(builder, ENPU_OPCODE_CAST, error, x, y);
}

int enpu_build_quantize(enpu_builder* builder, const enpu_operand* x, const enpu_operand* scale,
                        const enpu_operand* zero_point_opt, const enpu_operand* y,
                        enpu_error* error) {
    return build_plain(builder, ENPU_OPCODE_QUANTIZE, error, x, scale, zero_point_opt, y);
}

int enpu_build_dequantize(enpu_builder* builder, const enpu_operand* x, const enpu_operand* scale,
                          const enpu_operand* zero_point_opt, const enpu_operand* y,
                          enpu_error* error) {
    return build_plain(builder, ENPU_OPCODE_DEQUANTIZE, error, x, scale, zero_point_opt, y);
}
