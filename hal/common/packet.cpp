// SPDX-License-Identifier: MIT
#include "packet.h"

#include <array>
#include <cstring>
#include <limits>

#include "op_table.h"
#include "status.h"

namespace enpu::hal {
namespace {

constexpr uint16_t kOpcodes[ENPU_OPS] = {
    ENPU_OPCODE_PACK,    ENPU_OPCODE_CONV2D,   ENPU_OPCODE_CONV_TRANSPOSE2D, ENPU_OPCODE_MATMUL,
    ENPU_OPCODE_POOL,    ENPU_OPCODE_UNARY,    ENPU_OPCODE_BINARY,           ENPU_OPCODE_SELECT,
    ENPU_OPCODE_SOFTMAX, ENPU_OPCODE_NORM,     ENPU_OPCODE_REDUCE,           ENPU_OPCODE_ARG,
    ENPU_OPCODE_MOVE,    ENPU_OPCODE_PAD,      ENPU_OPCODE_GATHER,           ENPU_OPCODE_RESIZE,
    ENPU_OPCODE_CAST,    ENPU_OPCODE_QUANTIZE, ENPU_OPCODE_DEQUANTIZE};

// Parameters are handed over byte for byte, so the two contracts must agree in layout and numbers.
#define SAME_SIZE(op_type, hw_type) \
    static_assert(sizeof(struct op_type) == sizeof(struct hw_type), #op_type " and " #hw_type)
#define SAME_FIELD(op_type, hw_type, field)                                             \
    static_assert(offsetof(struct op_type, field) == offsetof(struct hw_type, field) && \
                      sizeof(op_type::field) == sizeof(hw_type::field),                 \
                  #op_type " and " #hw_type ": " #field)
SAME_SIZE(enpu_op_pack_params, enpu_pack_params);
SAME_FIELD(enpu_op_pack_params, enpu_pack_params, groups);
SAME_SIZE(enpu_op_conv_params, enpu_conv2d_params);
SAME_FIELD(enpu_op_conv_params, enpu_conv2d_params, pad);
SAME_FIELD(enpu_op_conv_params, enpu_conv2d_params, dilation);
SAME_FIELD(enpu_op_conv_params, enpu_conv2d_params, groups);
SAME_FIELD(enpu_op_conv_params, enpu_conv2d_params, act);
SAME_SIZE(enpu_op_conv_params, enpu_conv_transpose2d_params);
SAME_FIELD(enpu_op_conv_params, enpu_conv_transpose2d_params, pad);
SAME_FIELD(enpu_op_conv_params, enpu_conv_transpose2d_params, groups);
SAME_FIELD(enpu_op_conv_params, enpu_conv_transpose2d_params, act);
SAME_SIZE(enpu_op_matmul_params, enpu_matmul_params);
SAME_FIELD(enpu_op_matmul_params, enpu_matmul_params, scale);
SAME_SIZE(enpu_op_pool_params, enpu_pool_params);
SAME_FIELD(enpu_op_pool_params, enpu_pool_params, kernel);
SAME_FIELD(enpu_op_pool_params, enpu_pool_params, pad);
SAME_FIELD(enpu_op_pool_params, enpu_pool_params, dilation);
SAME_SIZE(enpu_op_unary_params, enpu_unary_params);
SAME_SIZE(enpu_op_binary_params, enpu_binary_params);
SAME_FIELD(enpu_op_binary_params, enpu_binary_params, act);
SAME_SIZE(enpu_op_softmax_params, enpu_softmax_params);
SAME_SIZE(enpu_op_norm_params, enpu_norm_params);
SAME_FIELD(enpu_op_norm_params, enpu_norm_params, epsilon);
SAME_FIELD(enpu_op_norm_params, enpu_norm_params, act);
SAME_SIZE(enpu_op_reduce_params, enpu_reduce_params);
SAME_FIELD(enpu_op_reduce_params, enpu_reduce_params, axes);
SAME_SIZE(enpu_op_arg_params, enpu_arg_params);
SAME_FIELD(enpu_op_arg_params, enpu_arg_params, axis);
SAME_SIZE(enpu_op_pad_params, enpu_pad_params);
SAME_FIELD(enpu_op_pad_params, enpu_pad_params, before);
SAME_FIELD(enpu_op_pad_params, enpu_pad_params, value);
SAME_SIZE(enpu_op_gather_params, enpu_gather_params);
SAME_FIELD(enpu_op_gather_params, enpu_gather_params, axis);
SAME_SIZE(enpu_op_resize_params, enpu_resize_params);
SAME_FIELD(enpu_op_resize_params, enpu_resize_params, extrapolation);
SAME_FIELD(enpu_op_resize_params, enpu_resize_params, scale);
SAME_FIELD(enpu_op_resize_params, enpu_resize_params, roi_end);

static_assert(int(ENPU_OP_F32) == int(ENPU_DTYPE_F32) && int(ENPU_OP_F16) == int(ENPU_DTYPE_F16) &&
              int(ENPU_OP_BF16) == int(ENPU_DTYPE_BF16) && int(ENPU_OP_I8) == int(ENPU_DTYPE_I8) &&
              int(ENPU_OP_U8) == int(ENPU_DTYPE_U8) && int(ENPU_OP_I32) == int(ENPU_DTYPE_I32) &&
              int(ENPU_OP_I64) == int(ENPU_DTYPE_I64) && int(ENPU_OP_BOOL) == int(ENPU_DTYPE_BOOL));
static_assert(int(ENPU_OP_PACKED) == int(ENPU_FORMAT_PACKED));
#include "same_values.inc"

constexpr const char* kDtypeNames[ENPU_OP_DTYPES] = {"none", "f32", "f16", "bf16", "i8",
                                                     "u8",   "i32", "i64", "bool"};

bool fits_dim(int64_t value) {
    return value >= 0 && value <= int64_t(std::numeric_limits<uint32_t>::max());
}

bool fits_stride(int64_t value) {
    return value >= std::numeric_limits<int32_t>::min() &&
           value <= std::numeric_limits<int32_t>::max();
}

// Prefixes the sentence in *status with the operand it is about.
void name_operand(enpu_hal_status* status, const OpInfo& info, uint32_t operand) {
    if (!status) return;
    char inner[ENPU_HAL_MESSAGE_BYTES];
    std::memcpy(inner, status->message, sizeof(inner));
    fail(status, status->code, "%s: operand '%s': %.180s", info.name, info.operand_names[operand],
         inner);
}

uint32_t check_structure(const enpu_hal_dispatch& dispatch, const OpInfo*& info,
                         enpu_hal_status* status) {
    info = find_op(dispatch.op);
    if (!info)
        return fail(status, ENPU_HAL_UNSUPPORTED, "dispatch: kernel number %u is unknown",
                    dispatch.op);
    if (dispatch.operand_count != info->operands)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: takes %u operands, %u were given",
                    info->name, info->operands, dispatch.operand_count);
    if (dispatch.params_bytes != info->params_bytes || (info->params_bytes && !dispatch.params))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "%s: parameters are %u bytes, %llu were given", info->name, info->params_bytes,
                    static_cast<unsigned long long>(dispatch.params ? dispatch.params_bytes : 0));
    if (!dispatch.operands)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: operands is null", info->name);
    return ENPU_HAL_OK;
}

}  // namespace

uint16_t opcode_of(uint32_t op) {
    return op < ENPU_OPS ? kOpcodes[op] : uint16_t{0};
}

uint32_t op_of(uint16_t opcode) {
    static constexpr auto kOps = [] {
        std::array<uint8_t, ENPU_MAX_OPCODES> ops{};
        for (uint8_t& op : ops) op = ENPU_OPS;
        for (uint32_t op = 0; op < ENPU_OPS; ++op) ops[kOpcodes[op]] = static_cast<uint8_t>(op);
        return ops;
    }();
    return opcode < kOps.size() ? kOps[opcode] : uint32_t{ENPU_OPS};
}

uint32_t translate(const enpu_op_tensor& tensor, enpu_tensor& out, enpu_hal_status* status) {
    std::memset(&out, 0, sizeof(out));
    if (tensor.dtype >= ENPU_OP_DTYPES)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "dtype %u is unknown", tensor.dtype);
    if (tensor.dtype == ENPU_OP_NONE) return ENPU_HAL_OK;
    if (tensor.rank > ENPU_OP_MAX_RANK)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "rank %u is more than %u", tensor.rank,
                    ENPU_OP_MAX_RANK);
    if (tensor.format > ENPU_OP_PACKED || tensor.reserved != 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "format is %u and the reserved member %u: unknown", tensor.format,
                    tensor.reserved);
    out.dtype = static_cast<uint8_t>(tensor.dtype);
    out.rank = static_cast<uint8_t>(tensor.rank);
    out.format = static_cast<uint8_t>(tensor.format);
    out.zero_point = tensor.zero_point;
    out.scale = tensor.scale;
    out.bytes = tensor.packed_bytes;
    for (uint32_t i = 0; i < tensor.rank; ++i) {
        if (!fits_dim(tensor.dims[i]) || !fits_stride(tensor.strides[i]))
            return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                        "%s tensor: dims[%u] = %lld or strides[%u] = %lld passes 32 bits",
                        kDtypeNames[tensor.dtype], i, static_cast<long long>(tensor.dims[i]), i,
                        static_cast<long long>(tensor.strides[i]));
        out.dims[i] = static_cast<uint32_t>(tensor.dims[i]);
        out.strides[i] = static_cast<int32_t>(tensor.strides[i]);
    }
    if (tensor.rank == 0) {  // the hardware has no rank 0: a scalar is one element
        out.rank = 1;
        out.dims[0] = 1;
        out.strides[0] = tensor.format == ENPU_OP_PLAIN ? 1 : 0;
    }
    return ENPU_HAL_OK;
}

uint32_t translate(const enpu_hal_dispatch& dispatch, PacketStorage& out, enpu_hal_status* status) {
    const OpInfo* info = nullptr;
    if (uint32_t code = check_structure(dispatch, info, status)) return code;
    enpu_operator_packet& packet = out.packet();
    std::memset(&packet, 0, sizeof(packet));
    packet.header.opcode = opcode_of(dispatch.op);
    packet.header.size = ENPU_OPERATOR_PACKET_BYTES(info->operands);
    if (info->params_bytes) std::memcpy(&packet.params, dispatch.params, info->params_bytes);
    for (uint32_t i = 0; i < info->operands; ++i) {
        const enpu_hal_operand& operand = dispatch.operands[i];
        if (uint32_t code = translate(operand.tensor, packet.operands[i], status)) {
            name_operand(status, *info, i);
            return code;
        }
        if (operand.tensor.dtype == ENPU_OP_NONE && !(info->optional >> i & 1))
            return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: operand '%s' is missing",
                        info->name, info->operand_names[i]);
    }
    return ENPU_HAL_OK;
}

}  // namespace enpu::hal
