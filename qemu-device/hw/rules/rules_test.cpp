// SPDX-License-Identifier: MIT
// One sound packet of every opcode passes; each way of breaking one is found, with its rule and its
// sentence.
#include "rules.h"

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <limits>

#include "sample_packets.h"

namespace enpu::rules::test {
namespace {

struct Broken {
    uint16_t opcode;
    Rule rule;
    const char* sentence;
    std::function<void(Packet&)> change;
};

void expect(const Broken& broken) {
    Packet packet = sound_packet(broken.opcode);
    REQUIRE_FALSE(check_packet(packet.data(), packet.bytes(), ENPU_ENGINE_KIND_COMPUTE));
    broken.change(packet);
    const Violation violation =
        check_packet(packet.data(), packet.bytes(), ENPU_ENGINE_KIND_COMPUTE);
    CHECK(describe(packet.data(), packet.bytes(), violation) == broken.sentence);
    CHECK(rule_name(violation.rule) == std::string(rule_name(broken.rule)));
}

void expect_all(const std::vector<Broken>& list) {
    for (const Broken& broken : list) {
        INFO(broken.sentence);
        expect(broken);
    }
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr uint64_t kLastVa = (uint64_t{1} << ENPU_VA_BITS) - 1;

}  // namespace

TEST_CASE("a sound packet of every opcode passes", "[rules]") {
    for (uint16_t opcode = 0; opcode < ENPU_MAX_OPCODES; ++opcode) {
        if (!enpu_opcodes[opcode].exists) continue;
        Packet packet = sound_packet(opcode);
        const Violation v = check_packet(packet.data(), packet.bytes(), ENPU_ENGINE_KIND_COMPUTE);
        INFO(describe(packet.data(), packet.bytes(), v));
        CHECK_FALSE(v);
        const Violation copy = check_packet(packet.data(), packet.bytes(), ENPU_ENGINE_KIND_COPY);
        CHECK(copy.rule == (enpu_opcodes[opcode].is_operator ? Rule::kOpcodeEngine : Rule::kNone));
        // Cut short at any length.
        for (size_t bytes = 0; bytes < packet.bytes(); bytes += 8) {
            CHECK(check_packet(packet.data(), bytes, ENPU_ENGINE_KIND_COMPUTE).rule ==
                  Rule::kPacketTruncated);
        }
    }
}

TEST_CASE("header rules", "[rules]") {
    expect_all({
        {ENPU_OPCODE_NOP, Rule::kOpcodeUnknown,
         "packet: there is no such opcode: opcode is 8, must be a known one",
         [](Packet& p) { p.header().opcode = 8; }},
        {ENPU_OPCODE_NOP, Rule::kOpcodeUnknown,
         "packet: there is no such opcode: opcode is 65535, must be a known one",
         [](Packet& p) { p.header().opcode = 65535; }},
        {ENPU_OPCODE_NOP, Rule::kPacketAlign,
         "nop: the packet is not aligned: size is 17, must be a multiple of 16",
         [](Packet& p) { p.header().size = 17; }},
        {ENPU_OPCODE_NOP, Rule::kPacketSize,
         "nop: the size is not that of the opcode: size is 32, must be that of the opcode 16",
         [](Packet& p) { p.header().size = 32; }},
        {ENPU_OPCODE_MOVE, Rule::kFlags,
         "move: a flag or reserved bytes are not 0: flags is 1, must be 0",
         [](Packet& p) { p.header().flags = 1; }},
        {ENPU_OPCODE_UNARY, Rule::kFlags,
         "unary: a flag or reserved bytes are not 0: unused parameter bytes is 9, must be 0",
         [](Packet& p) { p.op().params.raw[2] = 9; }},
    });
    alignas(8) unsigned char bytes[32] = {};
    CHECK(check_packet(bytes + 4, 16, ENPU_ENGINE_KIND_COMPUTE).rule == Rule::kPacketAlign);
}

TEST_CASE("control packets", "[rules]") {
    expect_all({
        {ENPU_OPCODE_COPY, Rule::kParameter,
         "copy: a parameter is out of range: width is 0, must be at least 1",
         [](Packet& p) { p.as<enpu_copy_packet>().width = 0; }},
        {ENPU_OPCODE_COPY, Rule::kParameter,
         "copy: operand 'dst': a parameter is out of range: dst_pitch is 63, must be at least "
         "width 64",
         [](Packet& p) { p.as<enpu_copy_packet>().dst_pitch = 63; }},
        {ENPU_OPCODE_COPY, Rule::kAddressRange,
         "copy: operand 'src': the address range is not possible: addr is 0xffffffffffff, must be "
         "with its rows below 0x1000000000000",
         [](Packet& p) { p.as<enpu_copy_packet>().src = kLastVa; }},
        {ENPU_OPCODE_COPY, Rule::kSpan,
         "copy: operand 'dst': the tensor is too large: dst_pitch is 9223372036854775807, must be "
         "small enough for the rows to fit into the VA "
         "range",
         [](Packet& p) { p.as<enpu_copy_packet>().dst_pitch = INT64_MAX; }},
        {ENPU_OPCODE_COPY, Rule::kOverlap,
         "copy: operand 'src': the output overlaps an input: addr is 0x10100, must be outside the "
         "destination",
         [](Packet& p) { p.as<enpu_copy_packet>().src = 0x10100; }},
        {ENPU_OPCODE_COPY, Rule::kWork,
         "copy: the packet is too much work: width is 549755813888, must be small enough for width "
         "x height to be at most 274877906944",
         [](Packet& p) { p.as<enpu_copy_packet>().width = 1ull << 39; }},
        {ENPU_OPCODE_COPY, Rule::kFlags,
         "copy: a flag or reserved bytes are not 0: reserved is 1, must be 0",
         [](Packet& p) { p.as<enpu_copy_packet>().reserved = 1; }},
        {ENPU_OPCODE_FILL, Rule::kParameter,
         "fill: a parameter is out of range: pattern_bytes is 3, must be 1, 2, 4 or 8",
         [](Packet& p) { p.as<enpu_fill_packet>().pattern_bytes = 3; }},
        {ENPU_OPCODE_FILL, Rule::kParameter,
         "fill: a parameter is out of range: bytes is 63, must be a positive multiple of "
         "pattern_bytes 4",
         [](Packet& p) { p.as<enpu_fill_packet>().bytes = 63; }},
        {ENPU_OPCODE_FILL, Rule::kAddressAlign,
         "fill: operand 'dst': the address is not aligned: addr is 0x10002, must be a multiple of "
         "pattern_bytes 4",
         [](Packet& p) { p.as<enpu_fill_packet>().dst = 0x10002; }},
        {ENPU_OPCODE_WAIT, Rule::kParameter,
         "wait: a parameter is out of range: timeout_us is 0, must be 1 to 60000000",
         [](Packet& p) { p.as<enpu_wait_packet>().timeout_us = 0; }},
        {ENPU_OPCODE_WAIT, Rule::kAddressAlign,
         "wait: operand 'addr': the address is not aligned: addr is 0x10004, must be a multiple of "
         "8",
         [](Packet& p) { p.as<enpu_wait_packet>().addr = 0x10004; }},
        {ENPU_OPCODE_SIGNAL, Rule::kAddressRange,
         "signal: operand 'addr': the address range is not possible: addr is 0x1000000000000, must "
         "be below 0x1000000000000",
         [](Packet& p) { p.as<enpu_signal_packet>().addr = 1ull << 48; }},
        {ENPU_OPCODE_TIMESTAMP, Rule::kFlags,
         "timestamp: a flag or reserved bytes are not 0: reserved is 5, must be 0",
         [](Packet& p) { p.as<enpu_timestamp_packet>().reserved = 5; }},
    });
}

TEST_CASE("descriptor rules hold for every operand of every operator", "[rules]") {
    struct Change {
        Rule rule;
        void (*apply)(enpu_tensor&);
    };
    const Change changes[] = {
        {Rule::kDtype, [](enpu_tensor& t) { t.dtype = 99; }},
        {Rule::kFlags, [](enpu_tensor& t) { t.reserved0 = 1; }},
        {Rule::kFlags, [](enpu_tensor& t) { t.reserved1 = 1; }},
        {Rule::kFormat, [](enpu_tensor& t) { t.format = 2; }},
        {Rule::kRank, [](enpu_tensor& t) { t.rank = 9; }},
        {Rule::kDimZero, [](enpu_tensor& t) { t.dims[0] = 0; }},
        {Rule::kDims, [](enpu_tensor& t) { t.dims[7] = 1; }},
        {Rule::kStride, [](enpu_tensor& t) { t.strides[7] = -1; }},
        {Rule::kQuantisation, [](enpu_tensor& t) { t.zero_point = 300; }},
        {Rule::kQuantisation, [](enpu_tensor& t) { t.scale = -1; }},
        {Rule::kSpan, [](enpu_tensor& t) { t.dims[0] = UINT32_MAX; }},
        {Rule::kAddressRange,
         [](enpu_tensor& t) {
             t.addr = (1ull << 48) - 8;
             t.dims[0] *= 4;
             if (t.format == ENPU_FORMAT_PLAIN) t.strides[0] = 8;
         }},
        {Rule::kAddressRange, [](enpu_tensor& t) { t.addr = ~7ull; }},
    };
    for (uint16_t opcode = 0; opcode < ENPU_MAX_OPCODES; ++opcode) {
        if (!enpu_opcodes[opcode].is_operator) continue;
        for (unsigned i = 0; i < enpu_opcodes[opcode].num_operands; ++i) {
            if (sound_packet(opcode).operand(i).dtype == ENPU_DTYPE_NONE) continue;
            for (const Change& change : changes) {
                Packet packet = sound_packet(opcode);
                change.apply(packet.operand(i));
                const Violation v =
                    check_packet(packet.data(), packet.bytes(), ENPU_ENGINE_KIND_COMPUTE);
                INFO(describe(packet.data(), packet.bytes(), v));
                CHECK(rule_name(v.rule) == std::string(rule_name(change.rule)));
                CHECK(v.operand == i);
            }
            Packet packet = sound_packet(opcode);
            packet.operand(i) = {};
            const Violation v =
                check_packet(packet.data(), packet.bytes(), ENPU_ENGINE_KIND_COMPUTE);
            if (!enpu_opcodes[opcode].operands[i].optional) CHECK(v.rule == Rule::kOperandMissing);
            packet.operand(i).addr = 8;
            CHECK(check_packet(packet.data(), packet.bytes(), ENPU_ENGINE_KIND_COMPUTE));
        }
    }
}

TEST_CASE("tensors: sentences", "[rules]") {
    expect_all({
        {ENPU_OPCODE_MOVE, Rule::kOperandMissing,
         "move: operand 'x': a required operand is left out: dtype is NONE, must be given",
         [](Packet& p) { p.operand(0) = {}; }},
        {ENPU_OPCODE_MOVE, Rule::kAddressAlign,
         "move: operand 'y': the address is not aligned: addr is 0x101000002, must be a multiple "
         "of the element size 4",
         [](Packet& p) { p.operand(1).addr += 2; }},
        {ENPU_OPCODE_MOVE, Rule::kStride,
         "move: operand 'y': a stride is not allowed: strides[0] is 4, must be so that no two "
         "elements of an output share a place: at least 5",
         [](Packet& p) { p.operand(1).strides[0] = 4; }},
        {ENPU_OPCODE_MOVE, Rule::kOverlap,
         "move: operand 'x': the output overlaps an input: addr is 0x101000000, must be with its "
         "span outside that of the output, which begins "
         "at 0x101000000",
         [](Packet& p) { p.operand(0).addr = p.operand(1).addr; }},
        {ENPU_OPCODE_MOVE, Rule::kFormat,
         "move: operand 'x': the memory format does not fit: format is 1, must be PLAIN",
         [](Packet& p) { p.operand(0).format = ENPU_FORMAT_PACKED; }},
        {ENPU_OPCODE_MOVE, Rule::kFlags,
         "move: operand 'x': a flag or reserved bytes are not 0: bytes is 4096, must be 0 for a "
         "plain tensor",
         [](Packet& p) { p.operand(0).bytes = 4096; }},
        {ENPU_OPCODE_UNARY, Rule::kOverlap,
         "unary: operand 'x': the output overlaps an input: addr is 0x101000004, must be with its "
         "span outside that of the output, which begins "
         "at 0x101000000",
         [](Packet& p) { p.operand(0).addr = p.operand(1).addr + 4; }},
    });
    Packet in_place = sound_packet(ENPU_OPCODE_UNARY);
    in_place.operand(0) = in_place.operand(1);
    CHECK_FALSE(check_packet(in_place.data(), in_place.bytes(), ENPU_ENGINE_KIND_COMPUTE));
    Packet accumulate = sound_packet(ENPU_OPCODE_CONV2D);
    accumulate.operand(3) = accumulate.operand(5);
    CHECK_FALSE(check_packet(accumulate.data(), accumulate.bytes(), ENPU_ENGINE_KIND_COMPUTE));
}

TEST_CASE("dense operators", "[rules]") {
    expect_all({
        {ENPU_OPCODE_CONV2D, Rule::kDims,
         "conv2d: operand 'weights': dims do not fit: dims[1] is 8, must be C/groups = 4",
         [](Packet& p) {
             set(p, 1, ENPU_DTYPE_F32, {6, 8, 3, 3});
         }},
        {ENPU_OPCODE_CONV2D, Rule::kDims,
         "conv2d: operand 'y': dims do not fit: dims[2] is 9, must be (input + pads - dilated "
         "kernel) / stride + 1 = 10",
         [](Packet& p) {
             set(p, 5, ENPU_DTYPE_F32, {1, 6, 9, 12});
         }},
        {ENPU_OPCODE_CONV2D, Rule::kDims,
         "conv2d: operand 'weights': dims do not fit: height with dilation is 21, must be at most "
         "the padded input 12",
         [](Packet& p) { p.op().params.conv2d.dilation[0] = 10; }},
        {ENPU_OPCODE_CONV2D, Rule::kDims,
         "conv2d: operand 'x': dims do not fit: dims[1] is 8, must be a multiple of groups = 3",
         [](Packet& p) { p.op().params.conv2d.groups = 3; }},
        {ENPU_OPCODE_CONV2D, Rule::kRank,
         "conv2d: operand 'x': the rank does not fit: rank is 3, must be 4",
         [](Packet& p) {
             set(p, 0, ENPU_DTYPE_F32, {1, 8, 10});
         }},
        {ENPU_OPCODE_CONV2D, Rule::kDtype,
         "conv2d: operand 'weights': the dtype does not fit: dtype is F16, must be that of the "
         "input F32",
         [](Packet& p) { p.operand(1).dtype = ENPU_DTYPE_F16; }},
        {ENPU_OPCODE_CONV2D, Rule::kDtype,
         "conv2d: operand 'scale': the dtype does not fit: dtype is F32, must be NONE: only an "
         "integer product is scaled",
         [](Packet& p) { set(p, 4, ENPU_DTYPE_F32, {6}); }},
        {ENPU_OPCODE_CONV2D, Rule::kParameter,
         "conv2d: a parameter is out of range: stride[1] is 0, must be at least 1 and at most "
         "32768",
         [](Packet& p) { p.op().params.conv2d.stride[1] = 0; }},
        {ENPU_OPCODE_CONV2D, Rule::kParameter,
         "conv2d: a parameter is out of range: act is 41, must be a function from float to float",
         [](Packet& p) { p.op().params.conv2d.act = ENPU_UNARY_NOT; }},
        {ENPU_OPCODE_CONV2D, Rule::kParameter,
         "conv2d: a parameter is out of range: alpha is nan, must be a number",
         [](Packet& p) { p.op().params.conv2d.alpha = kNan; }},
        {ENPU_OPCODE_CONV2D, Rule::kPackedBytes,
         "conv2d: operand 'weights': the packed buffer is too small: bytes is 1000, must be at "
         "least header + plain layout 1120",
         [](Packet& p) {
             auto& t = p.operand(1);
             std::memset(t.strides, 0, sizeof(t.strides));
             t.format = ENPU_FORMAT_PACKED;
             t.bytes = 1000;
         }},
        {ENPU_OPCODE_CONV2D, Rule::kOverlap,
         "conv2d: operand 'residual': the output overlaps an input: addr is 0x105000004, must be "
         "with its span outside that of the output, which "
         "begins at 0x105000000",
         [](Packet& p) { p.operand(3).addr = p.operand(5).addr + 4; }},
        {ENPU_OPCODE_CONV_TRANSPOSE2D, Rule::kDims,
         "conv_transpose2d: operand 'y': dims do not fit: dims[3] is 26, must be between the "
         "output without padding and max(stride, dilation) - "
         "1 more; with the pads that begins at 24",
         [](Packet& p) {
             set(p, 3, ENPU_DTYPE_F32, {1, 6, 20, 26});
         }},
        {ENPU_OPCODE_CONV_TRANSPOSE2D, Rule::kDtype,
         "conv_transpose2d: operand 'x': the dtype does not fit: dtype is I8, must be F32, F16 or "
         "BF16",
         [](Packet& p) { p.operand(0).dtype = ENPU_DTYPE_I8; }},
        {ENPU_OPCODE_MATMUL, Rule::kDims,
         "matmul: operand 'b': dims do not fit: dims[1] is 6, must be K of a = 7",
         [](Packet& p) {
             set(p, 1, ENPU_DTYPE_F32, {2, 6, 9});
         }},
        {ENPU_OPCODE_MATMUL, Rule::kDims,
         "matmul: operand 'b': dims do not fit: dims[0] is 1, must be the batch of a = 2",
         [](Packet& p) {
             set(p, 1, ENPU_DTYPE_F32, {1, 7, 9});
         }},
        {ENPU_OPCODE_MATMUL, Rule::kRank,
         "matmul: operand 'bias': the rank does not fit: rank is 1, must be as the output "
         "(broadcast by stride 0) 3",
         [](Packet& p) { set(p, 2, ENPU_DTYPE_F32, {9}); }},
        {ENPU_OPCODE_MATMUL, Rule::kWork,
         "matmul: the packet is too much work: work is 1099511627776, must be at most 274877906944",
         [](Packet& p) {
             set(p, 0, ENPU_DTYPE_F32, {1 << 14, 1 << 14});
             set(p, 1, ENPU_DTYPE_F32, {1 << 14, 1 << 12});
             set(p, 5, ENPU_DTYPE_F32, {1 << 14, 1 << 12});
             p.operand(2) = p.operand(3) = {};
             p.operand(1).addr += 1ull << 40;
             p.operand(5).addr += 1ull << 41;
         }},
        {ENPU_OPCODE_POOL, Rule::kParameter,
         "pool: a parameter is out of range: pad[2] is 2, must be smaller than the dilated kernel "
         "= 2",
         [](Packet& p) { p.op().params.pool.pad[2] = 2; }},
        {ENPU_OPCODE_POOL, Rule::kDims,
         "pool: operand 'y': dims do not fit: dims[2] is 7, must be (input + pads - dilated "
         "kernel) / stride + 1, rounded down or up; rounded "
         "down it is 5",
         [](Packet& p) {
             set(p, 1, ENPU_DTYPE_F32, {1, 8, 7, 6});
         }},
        {ENPU_OPCODE_PACK, Rule::kFormat,
         "pack: operand 'packed': the memory format does not fit: format is 0, must be PACKED",
         [](Packet& p) {
             set(p, 1, ENPU_DTYPE_F32, {16, 8, 3, 3});
         }},
        {ENPU_OPCODE_PACK, Rule::kParameter,
         "pack: a parameter is out of range: kind is 3, must be below 3",
         [](Packet& p) { p.op().params.pack.kind = 3; }},
    });
}

TEST_CASE("the other operators", "[rules]") {
    expect_all({
        {ENPU_OPCODE_UNARY, Rule::kParameter,
         "unary: a parameter is out of range: function is 49, must be below 49",
         [](Packet& p) { p.op().params.unary.function = 49; }},
        {ENPU_OPCODE_UNARY, Rule::kDtype,
         "unary: operand 'x': the dtype does not fit: dtype is F32, must be one that the function "
         "takes",
         [](Packet& p) { p.op().params.unary.function = ENPU_UNARY_BIT_NOT; }},
        {ENPU_OPCODE_BINARY, Rule::kDims,
         "binary: operand 'b': dims do not fit: dims[1] is 1, must be as a (broadcast by stride 0) "
         "5",
         [](Packet& p) {
             set(p, 1, ENPU_DTYPE_F32, {4, 1});
         }},
        {ENPU_OPCODE_BINARY, Rule::kDtype,
         "binary: operand 'y': the dtype does not fit: dtype is F32, must be BOOL, which is BOOL",
         [](Packet& p) { p.op().params.binary.function = ENPU_BINARY_LT; }},
        {ENPU_OPCODE_BINARY, Rule::kParameter,
         "binary: a parameter is out of range: function is 12, must be a known one",
         [](Packet& p) { p.op().params.binary.function = 12; }},
        {ENPU_OPCODE_SELECT, Rule::kDtype,
         "select: operand 'condition': the dtype does not fit: dtype is F32, must be BOOL",
         [](Packet& p) {
             set(p, 0, ENPU_DTYPE_F32, {4, 5});
         }},
        {ENPU_OPCODE_SOFTMAX, Rule::kParameter,
         "softmax: a parameter is out of range: axis is 2, must be below the rank 2",
         [](Packet& p) { p.op().params.softmax.axis = 2; }},
        {ENPU_OPCODE_NORM, Rule::kOperandMissing,
         "norm: operand 'mean': a required operand is left out: dtype is NONE, must be given for "
         "BATCH",
         [](Packet& p) { p.operand(3) = {}; }},
        {ENPU_OPCODE_NORM, Rule::kParameter,
         "norm: a parameter is out of range: epsilon is -1, must be finite and not negative",
         [](Packet& p) { p.op().params.norm.epsilon = -1; }},
        {ENPU_OPCODE_REDUCE, Rule::kDims,
         "reduce: operand 'y': dims do not fit: dims[1] is 5, must be on a reduced axis 1",
         [](Packet& p) {
             set(p, 1, ENPU_DTYPE_F32, {4, 5, 6});
         }},
        {ENPU_OPCODE_REDUCE, Rule::kParameter,
         "reduce: a parameter is out of range: axes is 8, must be a mask of axes below the rank, "
         "so below 8",
         [](Packet& p) { p.op().params.reduce.axes = 8; }},
        {ENPU_OPCODE_ARG, Rule::kDtype,
         "arg: operand 'y': the dtype does not fit: dtype is F32, must be I32 or I64",
         [](Packet& p) {
             set(p, 1, ENPU_DTYPE_F32, {4, 1});
         }},
        {ENPU_OPCODE_PAD, Rule::kParameter,
         "pad: a parameter is out of range: before[2] is -3, must be 0, it is past the rank",
         [](Packet& p) { p.op().params.pad.before[2] = -3; }},
        {ENPU_OPCODE_GATHER, Rule::kDims,
         "gather: operand 'y': dims do not fit: dims[2] is 4, must be as the indices = 3",
         [](Packet& p) {
             set(p, 2, ENPU_DTYPE_F32, {4, 2, 4, 6});
         }},
        {ENPU_OPCODE_RESIZE, Rule::kParameter,
         "resize: a parameter is out of range: scale is nan, must be finite and not negative",
         [](Packet& p) { p.op().params.resize.scale[3] = kNan; }},
        {ENPU_OPCODE_CAST, Rule::kRank,
         "cast: operand 'y': the rank does not fit: rank is 1, must be as the input 2",
         [](Packet& p) { set(p, 1, ENPU_DTYPE_I8, {20}); }},
        {ENPU_OPCODE_QUANTIZE, Rule::kDtype,
         "quantize: operand 'zero_point': the dtype does not fit: dtype is U8, must be that of the "
         "integer tensor I8",
         [](Packet& p) { p.operand(2).dtype = ENPU_DTYPE_U8; }},
        {ENPU_OPCODE_DEQUANTIZE, Rule::kDtype,
         "dequantize: operand 'x': the dtype does not fit: dtype is I64, must be I8, U8 or I32",
         [](Packet& p) {
             set(p, 0, ENPU_DTYPE_I64, {4, 5});
         }},
    });
}

}  // namespace enpu::rules::test
