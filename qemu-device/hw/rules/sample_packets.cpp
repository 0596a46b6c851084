// SPDX-License-Identifier: MIT
#include "sample_packets.h"

namespace enpu::rules::test {
namespace {

constexpr uint8_t F32 = ENPU_DTYPE_F32, I8 = ENPU_DTYPE_I8, I64 = ENPU_DTYPE_I64,
                  BOOL = ENPU_DTYPE_BOOL;

void fill_control(Packet& p) {
    switch (p.header().opcode) {
        case ENPU_OPCODE_COPY:
            p.as<enpu_copy_packet>() = {p.header(), 0x10000, 0x20000, 64, 4, 0, 128, 64};
            break;
        case ENPU_OPCODE_FILL:
            p.as<enpu_fill_packet>() = {p.header(), 0x10000, 64, 7, 4, 0};
            break;
        case ENPU_OPCODE_WAIT:
            p.as<enpu_wait_packet>() = {p.header(), 0x10000, 1, 1000, 0, 0};
            break;
        case ENPU_OPCODE_SIGNAL:
            p.as<enpu_signal_packet>() = {p.header(), 0x10000, 1};
            break;
        case ENPU_OPCODE_TIMESTAMP:
            p.as<enpu_timestamp_packet>() = {p.header(), 0x10000, 0};
            break;
        default:
            break;
    }
}

void fill_dense(Packet& p) {
    auto& params = p.op().params;
    switch (p.header().opcode) {
        case ENPU_OPCODE_PACK:
            set(p, 0, F32, {16, 8, 3, 3});
            set(p, 1, F32, {16, 8, 3, 3});
            std::memset(p.operand(1).strides, 0, sizeof(p.operand(1).strides));
            p.operand(1).format = ENPU_FORMAT_PACKED;
            p.operand(1).bytes = 65536;
            params.pack.groups = 1;
            break;
        case ENPU_OPCODE_CONV2D:
            set(p, 0, F32, {1, 8, 10, 12});
            set(p, 1, F32, {6, 4, 3, 3});
            set(p, 2, F32, {6});
            set(p, 3, F32, {1, 6, 10, 12});
            set(p, 5, F32, {1, 6, 10, 12});
            params.conv2d = {{1, 1}, {1, 1, 1, 1}, {1, 1}, 2, ENPU_UNARY_RELU, 0, 0};
            break;
        case ENPU_OPCODE_CONV_TRANSPOSE2D:
            set(p, 0, F32, {1, 8, 10, 12});
            set(p, 1, F32, {8, 3, 2, 2});
            set(p, 2, F32, {6});
            set(p, 3, F32, {1, 6, 20, 24});
            params.conv_transpose2d = {{2, 2}, {0, 0, 0, 0}, {1, 1}, 2, ENPU_UNARY_RELU, 0, 0};
            break;
        case ENPU_OPCODE_MATMUL:
            set(p, 0, F32, {2, 5, 7});
            set(p, 1, F32, {2, 7, 9});
            set_row(p, 2, F32, {2, 5, 9});
            set(p, 3, F32, {2, 5, 9});
            set(p, 5, F32, {2, 5, 9});
            break;
        case ENPU_OPCODE_POOL:
            set(p, 0, F32, {1, 8, 10, 12});
            set(p, 1, F32, {1, 8, 5, 6});
            params.pool = {ENPU_POOL_MAX, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}};
            break;
        default:
            break;
    }
}

void fill_others(Packet& p) {
    auto& params = p.op().params;
    switch (p.header().opcode) {
        case ENPU_OPCODE_SELECT:
            set_row(p, 0, BOOL, {4, 5});
            for (unsigned i : {1u, 2u, 3u}) set(p, i, F32, {4, 5});
            break;
        case ENPU_OPCODE_BINARY:
            set(p, 0, F32, {4, 5});
            set_row(p, 1, F32, {4, 5});
            set(p, 2, F32, {4, 5});
            break;
        case ENPU_OPCODE_NORM:
            set(p, 0, F32, {2, 6, 5});
            for (unsigned i = 1; i < 5; ++i) set(p, i, F32, {6});
            set(p, 5, F32, {2, 6, 5});
            params.norm = {ENPU_NORM_BATCH, 0, 0, 1e-5f, 0, 0, 0};
            break;
        case ENPU_OPCODE_REDUCE:
            set(p, 0, F32, {4, 5, 6});
            set(p, 1, F32, {4, 1, 6});
            params.reduce = {ENPU_REDUCE_SUM, 2};
            break;
        case ENPU_OPCODE_ARG:
            set(p, 0, F32, {4, 5});
            set(p, 1, I64, {4, 1});
            params.arg = {0, 1, 0};
            break;
        case ENPU_OPCODE_GATHER:
            set(p, 0, F32, {4, 5, 6});
            set(p, 1, I64, {2, 3});
            set(p, 2, F32, {4, 2, 3, 6});
            params.gather = {ENPU_GATHER_MODE_TAKE, 1};
            break;
        case ENPU_OPCODE_QUANTIZE:
        case ENPU_OPCODE_DEQUANTIZE: {
            const bool quantize = p.header().opcode == ENPU_OPCODE_QUANTIZE;
            set(p, 0, quantize ? F32 : I8, {4, 5});
            set_row(p, 1, F32, {4, 5});
            set_row(p, 2, I8, {4, 5});
            set(p, 3, quantize ? I8 : F32, {4, 5});
            break;
        }
        case ENPU_OPCODE_PAD:
            set(p, 0, F32, {4, 5});
            set(p, 1, F32, {6, 9});
            params.pad.before[0] = 1;
            break;
        case ENPU_OPCODE_RESIZE:
            set(p, 0, F32, {1, 3, 8, 8});
            set(p, 1, F32, {1, 3, 16, 12});
            params.resize.mode = ENPU_RESIZE_MODE_LINEAR;
            break;
        default:  // UNARY, SOFTMAX, MOVE, CAST: x and y
            set(p, 0, F32, {4, 5});
            set(p, 1, F32, {4, 5});
    }
}

}  // namespace

Packet sound_packet(uint16_t opcode) {
    Packet packet(opcode);
    if (!enpu_opcodes[opcode].is_operator) {
        fill_control(packet);
    } else if (opcode <= ENPU_OPCODE_POOL) {
        fill_dense(packet);
    } else {
        fill_others(packet);
    }
    return packet;
}

}  // namespace enpu::rules::test
