// SPDX-License-Identifier: MIT
// Every packet family: accepted when right, refused with a sentence that names opcode, operand and
// rule when not; patched; reused.
#include "tests/device_fixture.h"

using namespace enpu;
using namespace enpu::test;

namespace {

using Dims = std::vector<uint32_t>;

struct Packets : Fixture {
    Buffer data = local(1 << 20);
    Builder compute{device, ENPU_ENGINE_KIND_COMPUTE};
    Builder copier{device, ENPU_ENGINE_KIND_COPY};
    uint64_t next = 0;

    // A dense f32 operand in a place of its own.
    enpu_operand f32(const Dims& dims) { return place(ENPU_DTYPE_F32, dims); }
    enpu_operand place(uint32_t dtype, const Dims& dims) {
        const auto made = operand(data, dtype, dims, next);
        int64_t begin;
        uint64_t bytes;
        check([&](enpu_error* e) { return enpu_tensor_span(&made.tensor, &begin, &bytes, e); });
        next = (next + bytes + 63) & ~uint64_t{63};
        return made;
    }
    int packets() { return static_cast<int>(enpu_command_packets(compute.finish().get())); }
};

constexpr enpu_conv2d_params conv3x3() {
    return {{1, 1}, {1, 1, 1, 1}, {1, 1}, 1, ENPU_UNARY_RELU, 0, 0};
}

}  // namespace

TEST_CASE_METHOD(Packets, "operators of every family are accepted") {
    const auto x = f32({1, 4, 8, 8}), w = f32({4, 4, 3, 3}), b = f32({4}), y = f32({1, 4, 8, 8});
    const auto row = f32({4, 16}), matrix = f32({16, 8}), result = f32({4, 8}), row2 = f32({4, 16}),
               one = f32({4, 1}), scalar = f32({1});
    const auto index = place(ENPU_DTYPE_I32, {4, 1}), mask = place(ENPU_DTYPE_BOOL, {4, 16}),
               take = place(ENPU_DTYPE_I64, {2});
    const auto taken = f32({2, 16}), bytes = place(ENPU_DTYPE_U8, {4, 16}),
               half = place(ENPU_DTYPE_F16, {4, 16});
    const auto pooled = f32({1, 4, 4, 4}), padded = f32({6, 16}), turned = f32({1, 4, 16, 16}),
               w2 = f32({4, 4, 2, 2});
    const auto conv = conv3x3();
    enpu_builder* to = compute.get();
    int expected = 0;
    const auto add = [&](auto&& call) { REQUIRE(check(call) == expected++); };

    add([&](enpu_error* e) {
        return enpu_build_conv2d(to, &conv, &x, &w, &b, &x, nullptr, &y, e);
    });
    const enpu_conv_transpose2d_params transpose = {
        {2, 2}, {0, 0, 0, 0}, {1, 1}, 1, ENPU_UNARY_IDENTITY, 0, 0};
    add([&](enpu_error* e) {
        return enpu_build_conv_transpose2d(to, &transpose, &x, &w2, &b, &turned, e);
    });
    const enpu_matmul_params matmul = {ENPU_UNARY_IDENTITY, 0, 0, 0};
    add([&](enpu_error* e) {
        return enpu_build_matmul(to, &matmul, &row, &matrix, nullptr, nullptr, nullptr, &result, e);
    });
    const enpu_pool_params pool = {ENPU_POOL_MAX, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}};
    add([&](enpu_error* e) { return enpu_build_pool(to, &pool, &x, &pooled, e); });
    const enpu_unary_params unary = {ENPU_UNARY_SIGMOID, 0, 0};
    add([&](enpu_error* e) { return enpu_build_unary(to, &unary, &row, &row2, e); });
    const enpu_binary_params binary = {ENPU_BINARY_ADD, ENPU_UNARY_IDENTITY, 0, 0};
    add([&](enpu_error* e) { return enpu_build_binary(to, &binary, &row, &row, &row2, e); });
    add([&](enpu_error* e) { return enpu_build_select(to, &mask, &row, &row, &row2, e); });
    const enpu_softmax_params softmax = {1, 0};
    add([&](enpu_error* e) { return enpu_build_softmax(to, &softmax, &row, &row2, e); });
    const enpu_norm_params norm = {ENPU_NORM_LAYER, 1, 1, 1e-5f, ENPU_UNARY_IDENTITY, 0, 0};
    add([&](enpu_error* e) {
        return enpu_build_norm(to, &norm, &row, nullptr, nullptr, nullptr, nullptr, &row2, e);
    });
    const enpu_reduce_params reduce = {ENPU_REDUCE_SUM, 1u << 1};
    add([&](enpu_error* e) { return enpu_build_reduce(to, &reduce, &row, &one, e); });
    const enpu_arg_params arg = {0, 1, 0};
    add([&](enpu_error* e) { return enpu_build_arg(to, &arg, &row, &index, e); });
    add([&](enpu_error* e) { return enpu_build_move(to, &row, &row2, e); });
    enpu_pad_params pad{};
    pad.before[0] = 1;
    add([&](enpu_error* e) { return enpu_build_pad(to, &pad, &row, &padded, e); });
    const enpu_gather_params gather = {ENPU_GATHER_MODE_TAKE, 0};
    add([&](enpu_error* e) { return enpu_build_gather(to, &gather, &row, &take, &taken, e); });
    enpu_resize_params resize{};
    resize.mode = ENPU_RESIZE_MODE_LINEAR;
    add([&](enpu_error* e) { return enpu_build_resize(to, &resize, &x, &turned, e); });
    add([&](enpu_error* e) { return enpu_build_cast(to, &row, &half, e); });
    add([&](enpu_error* e) {
        auto scale = scalar;
        scale.tensor.rank = 2;
        scale.tensor.dims[0] = 4, scale.tensor.dims[1] = 16;
        scale.tensor.strides[0] = scale.tensor.strides[1] = 0;
        return enpu_build_quantize(to, &row, &scale, nullptr, &bytes, e);
    });
    add([&](enpu_error* e) {
        auto scale = scalar;
        scale.tensor.rank = 2;
        scale.tensor.dims[0] = 4, scale.tensor.dims[1] = 16;
        scale.tensor.strides[0] = scale.tensor.strides[1] = 0;
        return enpu_build_dequantize(to, &bytes, &scale, nullptr, &row2, e);
    });
    auto packed = w;
    packed.tensor.format = ENPU_FORMAT_PACKED;
    packed.tensor.bytes = enpu_packed_bytes(&w.tensor, ENPU_PACK_KIND_CONV2D, 1);
    REQUIRE(packed.tensor.bytes >= ENPU_PACKED_HEADER_BYTES + 4 * 4 * 3 * 3 * 4);
    std::fill_n(packed.tensor.strides, ENPU_MAX_RANK, 0);
    packed.offset = next;
    const enpu_pack_params pack = {ENPU_PACK_KIND_CONV2D, 1};
    add([&](enpu_error* e) { return enpu_build_pack(to, &pack, &w, &packed, e); });
    REQUIRE(packets() == expected);
    // finish() has emptied the builder.
    REQUIRE(enpu_builder_bytes(to) == 0);
}

TEST_CASE_METHOD(Packets, "operands that do not fit are named with the rule") {
    const auto x = f32({1, 4, 8, 8}), w = f32({4, 4, 3, 3}), y = f32({1, 4, 8, 8});
    const auto conv = conv3x3();
    enpu_builder* to = compute.get();
    const auto build = [&](const enpu_operand* in, const enpu_operand* weights,
                           const enpu_operand* out) {
        return [=](enpu_error* e) {
            return enpu_build_conv2d(to, &conv, in, weights, nullptr, nullptr, nullptr, out, e);
        };
    };
    auto bad = w;
    bad.tensor.dims[1] = 3;
    expect_failure(build(&x, &bad, &y), -EINVAL, {"'weights'"});
    bad = y;
    bad.tensor.dims[3] = 9;
    expect_failure(build(&x, &w, &bad), -EINVAL, {"'y'"});
    bad = x;
    bad.tensor.dtype = ENPU_DTYPE_I64;
    expect_failure(build(&bad, &w, &y), -EINVAL, {"'x'"});
    bad = x;
    bad.tensor.rank = 9;
    expect_failure(build(&bad, &w, &y), -EINVAL, {"'x'"});
    bad = x;
    bad.offset += 2;
    expect_failure(build(&bad, &w, &y), -EINVAL, {"'x'", "align"});
    expect_failure(build(nullptr, &w, &y), -EINVAL, {"'x'"});
    bad = y;
    bad.offset = data.bytes() - 64;
    expect_failure(build(&x, &w, &bad), -EINVAL, {"'y'", "outside of its buffer", "1048576"});
    bad.offset = data.bytes();
    expect_failure(build(&x, &w, &bad), -EINVAL, {"'y'", "not inside"});
    bad = x;
    bad.buffer = nullptr;
    expect_failure(build(&bad, &w, &y), -EINVAL, {"'x'", "no buffer"});
    // A negative stride reaches before the address.
    bad = x;
    bad.tensor.strides[2] = -8;
    bad.offset = 0;
    expect_failure(build(&bad, &w, &y), -EINVAL, {"'x'", "outside of its buffer", "[-"});
    const auto other = Device::open("sim");
    const auto foreign = Buffer::create(other, 1 << 16, ENPU_BUFFER_HOST);
    bad = x;
    bad.buffer = foreign.get();
    expect_failure(build(&bad, &w, &y), -EINVAL, {"'x'", "another device"});
    REQUIRE(enpu_builder_bytes(to) == 0);
    REQUIRE(check(build(&x, &w, &y)) == 0);
}

TEST_CASE_METHOD(Packets, "parameters out of their range are named") {
    const auto x = f32({1, 4, 8, 8}), w = f32({4, 4, 3, 3}), y = f32({1, 4, 8, 8}),
               row = f32({4, 16});
    enpu_builder* to = compute.get();
    auto conv = conv3x3();
    conv.act = 1000;
    expect_failure(
        [&](enpu_error* e) {
            return enpu_build_conv2d(to, &conv, &x, &w, nullptr, nullptr, nullptr, &y, e);
        },
        -EINVAL, {"act"});
    conv = conv3x3();
    conv.stride[0] = 0;
    expect_failure(
        [&](enpu_error* e) {
            return enpu_build_conv2d(to, &conv, &x, &w, nullptr, nullptr, nullptr, &y, e);
        },
        -EINVAL, {"stride"});
    const enpu_softmax_params softmax = {2, 0};
    expect_failure([&](enpu_error* e) { return enpu_build_softmax(to, &softmax, &row, &row, e); },
                   -EINVAL, {"axis"});
    const enpu_operand* list[] = {&row, &row};
    expect_failure(
        [&](enpu_error* e) {
            return enpu_build_operator(to, ENPU_OPCODE_UNARY, nullptr, 0, list, 2, e);
        },
        -EINVAL, {"unary", "parameters"});
    expect_failure(
        [&](enpu_error* e) {
            return enpu_build_operator(to, ENPU_OPCODE_MOVE, nullptr, 0, list, 1, e);
        },
        -EINVAL, {"move", "2 operands"});
    expect_failure(
        [&](enpu_error* e) {
            return enpu_build_operator(to, ENPU_OPCODE_COPY, nullptr, 0, list, 2, e);
        },
        -EINVAL, {"no operator"});
    expect_failure(
        [&](enpu_error* e) {
            return enpu_build_operator(copier.get(), ENPU_OPCODE_MOVE, nullptr, 0, list, 2, e);
        },
        -EINVAL, {"engine"});
}

TEST_CASE_METHOD(Packets, "control packets are checked like operators") {
    enpu_builder* to = copier.get();
    enpu_buffer* buffer = data.get();
    const uint64_t end = data.bytes();
    expect_failure(
        [&](enpu_error* e) { return enpu_build_copy(to, buffer, 0, buffer, end - 8, 16, e); },
        -EINVAL, {"copy", "'src'", "outside"});
    expect_failure(
        [&](enpu_error* e) { return enpu_build_copy(to, buffer, 0, buffer, 64, 128, e); }, -EINVAL,
        {"overlap"});
    expect_failure(
        [&](enpu_error* e) { return enpu_build_copy(to, nullptr, 0, buffer, 64, 128, e); }, -EINVAL,
        {"'dst'", "no buffer"});
    expect_failure([&](enpu_error* e) { return enpu_build_copy(to, buffer, 0, buffer, 64, 0, e); },
                   -EINVAL, {"width"});
    enpu_copy_2d copy = {buffer, buffer, 0, end / 2, 100, 64, 128, 4, 0};
    expect_failure([&](enpu_error* e) { return enpu_build_copy_2d(to, &copy, e); }, -EINVAL,
                   {"pitch"});
    copy = {buffer, buffer, 0, end / 2, UINT64_MAX / 2, 128, 128, 4, 0};
    expect_failure([&](enpu_error* e) { return enpu_build_copy_2d(to, &copy, e); }, -EINVAL,
                   {"copy"});
    expect_failure([&](enpu_error* e) { return enpu_build_fill(to, buffer, 0, 30, 0, 4, e); },
                   -EINVAL, {"fill", "bytes"});
    expect_failure([&](enpu_error* e) { return enpu_build_fill(to, buffer, 0, 30, 0, 3, e); },
                   -EINVAL, {"pattern_bytes"});
    expect_failure([&](enpu_error* e) { return enpu_build_fill(to, buffer, 8, end, 0, 4, e); },
                   -EINVAL, {"'dst'", "outside"});
    expect_failure([&](enpu_error* e) { return enpu_build_wait(to, buffer, 4, 1, 100, e); },
                   -EINVAL, {"wait", "align"});
    expect_failure([&](enpu_error* e) { return enpu_build_wait(to, buffer, 8, 1, 0, e); }, -EINVAL,
                   {"timeout_us"});
    expect_failure([&](enpu_error* e) { return enpu_build_signal(to, buffer, end - 4, 1, e); },
                   -EINVAL, {"signal"});
    expect_failure([&](enpu_error* e) { return enpu_build_timestamp(to, buffer, end, e); }, -EINVAL,
                   {"timestamp", "not inside"});
    enpu_command* none = nullptr;
    expect_failure([&](enpu_error* e) { return enpu_builder_finish(to, &none, e); }, -EINVAL,
                   {"no packet"});
}

TEST_CASE_METHOD(Packets, "an operator can be asked for without buffers") {
    const auto x = f32({1, 4, 8, 8}), w = f32({4, 4, 3, 3}), y = f32({1, 4, 8, 8});
    auto conv = conv3x3();
    enpu_tensor tensors[ENPU_CONV2D_OPERANDS] = {x.tensor, w.tensor, {}, {}, {}, y.tensor};
    const auto ask = [&](enpu_error* e) {
        return enpu_check_operator(device.get(), ENPU_OPCODE_CONV2D, &conv, sizeof(conv), tensors,
                                   std::size(tensors), e);
    };
    check(ask);
    tensors[0].strides[3] = -1;
    check(ask);
    tensors[1].dims[1] = 2;
    expect_failure(ask, -EINVAL, {"'weights'"});
}

TEST_CASE_METHOD(Packets, "a command is patched and run again") {
    const auto a = host(64), b = host(64), out = host(128);
    put(a, std::vector<uint64_t>(8, 0xa));
    put(b, std::vector<uint64_t>(8, 0xb));
    const int packet = check([&](enpu_error* e) {
        return enpu_build_copy(copier.get(), out.get(), 0, a.get(), 0, 64, e);
    });
    const auto command = copier.finish();
    const auto index = static_cast<uint32_t>(packet);
    run(copy_engine(), command);
    command.patch(index, 1, b, 0);
    command.patch(index, 0, out, 64);
    run(copy_engine(), command);
    auto expected = std::vector<uint64_t>(16, 0xa);
    std::fill(expected.begin() + 8, expected.end(), 0xb);
    REQUIRE(take<uint64_t>(out, 16) == expected);

    const auto patch = [&](uint32_t at, uint32_t which, const Buffer& buffer, uint64_t offset) {
        return [&, at, which, offset](enpu_error* e) {
            return enpu_command_patch(command.get(), at, which, buffer.get(), offset, e);
        };
    };
    expect_failure(patch(index, 1, b, 8), -EINVAL, {"'src'", "outside"});
    expect_failure(patch(index, 2, b, 0), -EINVAL, {"operand 2"});
    expect_failure(patch(index + 1, 0, b, 0), -EINVAL, {"packet 1"});
    expect_failure(patch(index, 1, out, 80), -EINVAL, {"'src'"});
    // Nothing of the refused patches has stuck.
    run(copy_engine(), command);
    REQUIRE(take<uint64_t>(out, 16) == expected);
}

TEST_CASE_METHOD(Packets, "a command with a job in flight cannot be patched") {
    const auto flag = host(8), a = host(64), out = host(64);
    check([&](enpu_error* e) {
        return enpu_build_wait(copier.get(), flag.get(), 0, 1, 10'000'000, e);
    });
    check([&](enpu_error* e) {
        return enpu_build_copy(copier.get(), out.get(), 0, a.get(), 0, 64, e);
    });
    const auto command = copier.finish();
    // Without a point of the caller's the library keeps one of its own.
    context.submit(copy_engine(), command, {}, {});
    expect_failure(
        [&](enpu_error* e) { return enpu_command_patch(command.get(), 1, 1, out.get(), 0, e); },
        -EBUSY, {"still runs"});
    Builder kick(device, ENPU_ENGINE_KIND_COMPUTE);
    check([&](enpu_error* e) { return enpu_build_signal(kick.get(), flag.get(), 0, 1, e); });
    run(0, kick.finish());
    int result = -EBUSY;
    const auto b = host(64);
    for (const int64_t deadline = soon(); result == -EBUSY && enpu_deadline_after(0) < deadline;) {
        result = enpu_command_patch(command.get(), 1, 1, b.get(), 0, nullptr);
    }
    REQUIRE(result == 0);
}
