// SPDX-License-Identifier: MIT
// Kernels, tensors, and failures of work in flight.
#include <algorithm>
#include <cmath>

#include "test_support.h"

using namespace enpu::rt::test;

namespace {

std::vector<float> floats(size_t count, int seed) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i)
        values[i] = static_cast<float>((int(i) * 37 + seed * 11) % 101 - 50) / 16;
    return values;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
    float worst = 0;
    for (size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::fabs(a[i] - b[i]));
    return worst;
}

}  // namespace

TEST_CASE("kernels are found by name, and an unknown name lists what there is") {
    Fixture f;
    for (const char* name : {"conv2d_fwd", "matmul_fwd", "pool2d_fwd", "binary", "softmax_fwd",
                             "norm_fwd", "gather", "pack_weights"}) {
        CHECK(std::string(rt_kernel_name(f.lookup(name))) == name);
    }
    CHECK(rt_kernel_operands(f.lookup("conv2d_fwd")) == ENPU_OP_CONV2D_OPERANDS);
    rt_kernel kernel = nullptr;
    const Failure unknown = failure(rt_kernel_lookup(f.device, "conv9d", &kernel));
    CHECK(unknown.code == RT_NOT_FOUND);
    CHECK(contains(unknown.message, "conv2d_fwd"));
    OK(rt_kernel_for_op(f.device, ENPU_OP_SOFTMAX_FWD, &kernel));
    CHECK(kernel == f.lookup("softmax_fwd"));
}

TEST_CASE("the call chain: a convolution on tensors from the pool") {
    Fixture f;
    needs_kernels(f.device);
    constexpr int64_t kC = 4, kH = 9, kW = 7, kO = 6;
    const auto x = floats(kC * kH * kW, 1), w = floats(kO * kC * 9, 2), b = floats(kO, 3);
    const auto tensor = [&](std::vector<int64_t> dims) {
        enpu_op_tensor desc;
        MUST(rt_tensor_desc_init(&desc, ENPU_OP_F32, uint32_t(dims.size()), dims.data()));
        rt_tensor made = nullptr;
        MUST(rt_tensor_alloc(f.stream, &desc, &made));
        return made;
    };
    rt_tensor tx = tensor({1, kC, kH, kW}), tw = tensor({kO, kC, 3, 3}), tb = tensor({kO}),
              ty = tensor({1, kO, kH, kW});
    MUST(rt_memcpy_h2d(f.stream, rt_tensor_data(tx), x.data(), rt_tensor_bytes(tx)));
    MUST(rt_memcpy_h2d(f.stream, rt_tensor_data(tw), w.data(), rt_tensor_bytes(tw)));
    MUST(rt_memcpy_h2d(f.stream, rt_tensor_data(tb), b.data(), rt_tensor_bytes(tb)));
    const uint64_t ran = f.counters().ops[ENPU_OP_CONV2D_FWD];
    const enpu_op_conv_params params{{1, 1}, {1, 1, 1, 1}, {1, 1}, 1, ENPU_OP_UNARY_RELU, 0, 0};
    rt_operand operands[ENPU_OP_CONV2D_OPERANDS] = {};
    operands[0] = {nullptr, tx, *rt_tensor_desc(tx)};
    operands[1] = {nullptr, tw, *rt_tensor_desc(tw)};
    operands[2] = {nullptr, tb, *rt_tensor_desc(tb)};
    operands[5] = {nullptr, ty, *rt_tensor_desc(ty)};
    MUST(rt_kernel_launch(f.stream, f.kernel("conv2d_fwd"), nullptr, &params, sizeof(params),
                          operands, ENPU_OP_CONV2D_OPERANDS));
    // In flight: the memory lives until the work has ended.
    rt_tensor_release(tx);
    rt_tensor_release(tw);
    rt_tensor_release(tb);
    const auto y = f.download<float>(rt_tensor_data(ty), kO * kH * kW);
    std::vector<float> expected(y.size());
    for (int64_t o = 0; o < kO; ++o)
        for (int64_t i = 0; i < kH; ++i)
            for (int64_t j = 0; j < kW; ++j) {
                double sum = b[size_t(o)];
                for (int64_t c = 0; c < kC; ++c)
                    for (int64_t r = 0; r < 3; ++r)
                        for (int64_t q = 0; q < 3; ++q) {
                            const int64_t h = i + r - 1, v = j + q - 1;
                            if (h < 0 || v < 0 || h >= kH || v >= kW) continue;
                            sum += double(x[size_t((c * kH + h) * kW + v)]) *
                                   w[size_t(((o * kC + c) * 3 + r) * 3 + q)];
                        }
                expected[size_t((o * kH + i) * kW + j)] = float(std::max(sum, 0.0));
            }
    CHECK(largest_difference(y, expected) < 1e-4f);
    CHECK(f.counters().ops[ENPU_OP_CONV2D_FWD] == ran + 1);
    rt_tensor_release(ty);
    CHECK(f.pool().live == 0);
}

TEST_CASE("a tensor used on another stream is not reused before that use has ended") {
    Fixture f;
    needs_kernels(f.device);
    rt_stream other = nullptr;
    rt_event event = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &other));
    MUST(rt_event_create(f.device, 0, &event));
    enpu_op_tensor desc;
    const int64_t dims[] = {1 << 18};
    MUST(rt_tensor_desc_init(&desc, ENPU_OP_F32, 1, dims));
    rt_kernel binary = f.kernel("binary");
    const enpu_op_binary_params add{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    rt_tensor out = nullptr;
    MUST(rt_tensor_alloc(other, &desc, &out));
    for (int round = 0; round < 10; ++round) {
        rt_tensor in = nullptr;
        MUST(rt_tensor_alloc(f.stream, &desc, &in));
        MUST(rt_fill(f.stream, rt_tensor_data(in), 0x3f800000, 4, rt_tensor_bytes(in)));  // 1.0f
        MUST(rt_event_record(event, f.stream));
        MUST(rt_stream_wait_event(other, event));
        const rt_operand operands[] = {
            {nullptr, in, desc}, {nullptr, in, desc}, {nullptr, out, desc}};
        MUST(rt_kernel_launch(other, binary, nullptr, &add, sizeof(add), operands, 3));
        rt_tensor_release(in);
        // Would overwrite the operand if it got the memory too early.
        rt_tensor next = nullptr;
        MUST(rt_tensor_alloc(f.stream, &desc, &next));
        MUST(rt_fill(f.stream, rt_tensor_data(next), 0, 4, rt_tensor_bytes(next)));
        rt_tensor_release(next);
        std::vector<float> seen(static_cast<size_t>(dims[0]));
        MUST(rt_memcpy_d2h(other, seen.data(), rt_tensor_data(out), rt_tensor_bytes(out)));
        REQUIRE(std::count(seen.begin(), seen.end(), 2.0f) == dims[0]);
    }
    rt_tensor_release(out);
    rt_event_destroy(event);
    rt_stream_destroy(other);
}

TEST_CASE("strides, broadcasting and pinned operands") {
    Fixture f;
    needs_kernels(f.device);
    const auto a = floats(6, 1), b = floats(3, 2);
    void* da = f.upload(a);
    auto* hb = static_cast<float*>(f.pinned(12));
    std::copy(b.begin(), b.end(), hb);
    void* y = f.allocate(24);
    rt_operand operands[3] = {operand(da, ENPU_OP_F32, {2, 3}), operand(hb, ENPU_OP_F32, {2, 3}),
                              operand(y, ENPU_OP_F32, {2, 3})};
    operands[1].desc.strides[0] = 0;  // one row for both
    operands[0].data = static_cast<float*>(da) + 5;
    operands[0].desc.strides[0] = -3, operands[0].desc.strides[1] = -1;  // backwards
    const enpu_op_binary_params params{ENPU_OP_BINARY_SUB, ENPU_OP_UNARY_IDENTITY, 0, 0};
    MUST(rt_kernel_launch(f.stream, f.kernel("binary"), nullptr, &params, sizeof(params), operands,
                          3));
    const auto seen = f.download<float>(y, 6);
    for (size_t i = 0; i < 6; ++i) CHECK(seen[i] == a[5 - i] - b[i % 3]);
    // One step further would leave the allocation.
    operands[0].data = static_cast<float*>(da) + 4;
    const Failure outside = failure(rt_kernel_launch(f.stream, f.kernel("binary"), nullptr, &params,
                                                     sizeof(params), operands, 3));
    CHECK(outside.code == RT_INVALID_ARGUMENT);
    CHECK(contains(outside.message, "binary: operand a"));
    f.sync();
    OK(rt_host_free(f.device, hb));
}

TEST_CASE("supported says yes or why not, without memory") {
    Fixture f;
    rt_kernel kernel = f.kernel("matmul_fwd");
    const enpu_op_matmul_params params{ENPU_OP_UNARY_IDENTITY, 0, 0, 1};
    rt_operand operands[ENPU_OP_MATMUL_OPERANDS] = {};
    operands[0] = operand(nullptr, ENPU_OP_F32, {4, 5});
    operands[1] = operand(nullptr, ENPU_OP_F32, {5, 6});
    operands[5] = operand(nullptr, ENPU_OP_F32, {4, 6});
    OK(rt_kernel_supported(kernel, &params, sizeof(params), operands, 6));
    operands[1].desc.dims[0] = 7;
    const Failure wrong =
        failure(rt_kernel_supported(kernel, &params, sizeof(params), operands, 6));
    CHECK((wrong.code == RT_INVALID_ARGUMENT || wrong.code == RT_UNSUPPORTED));
    CHECK(contains(wrong.message, "'b'"));
    CHECK(contains(failure(rt_kernel_supported(kernel, &params, 3, operands, 6)).message, "3"));
    CHECK(
        contains(failure(rt_kernel_supported(kernel, &params, sizeof(params), operands, 5)).message,
                 "takes 6 operands"));
    operands[5] = {};
    CHECK(contains(
        failure(rt_kernel_supported(kernel, &params, sizeof(params), operands, 6)).message, "'y'"));
}

TEST_CASE(
    "what fails in flight is told with its origin, poisons the stream, and a reset heals it") {
    Fixture f;
    needs_kernels(f.device);
    const std::vector<int32_t> indices{0, 99};  // the second is out of range
    void* x = f.upload(floats(4, 1));
    void* at = f.upload(indices);
    void* y = f.allocate(8);
    f.sync();
    const enpu_op_gather_params params{ENPU_OP_GATHER_MODE_TAKE, 0};
    const rt_operand operands[] = {operand(x, ENPU_OP_F32, {4}), operand(at, ENPU_OP_I32, {2}),
                                   operand(y, ENPU_OP_F32, {2})};
    MUST(rt_kernel_launch(f.stream, f.kernel("gather"), nullptr, &params, sizeof(params), operands,
                          3));
    const Failure failed = failure(rt_stream_sync(f.stream, soon()));
    CHECK(failed.code == RT_WORK_FAILED);
    CHECK(contains(failed.message, "indices"));
    CHECK(contains(failed.origin, "kernel gather"));
    CHECK(contains(failed.origin, "enqueued by rt_kernel_launch"));
    CHECK(failed.operation > 0);
    const Failure poisoned = failure(rt_fill(f.stream, y, 0, 1, 8));
    CHECK(poisoned.code == RT_STREAM_POISONED);
    CHECK(contains(poisoned.message, "kernel gather"));
    CHECK(failure(rt_stream_sync(f.stream, soon())).code == RT_STREAM_POISONED);

    // Another stream of the device is not hurt.
    rt_stream other = nullptr;
    MUST(rt_stream_create(f.device, nullptr, &other));
    OK(rt_fill(other, y, 7, 1, 8));
    OK(rt_stream_sync(other, soon()));
    rt_stream_destroy(other);

    OK(rt_stream_reset(f.stream));
    MUST(rt_fill(f.stream, y, 0x40000000, 4, 8));
    CHECK(f.download<float>(y, 2) == std::vector<float>{2.0f, 2.0f});
}

TEST_CASE("memory of one device is refused by another") {
    Fixture f, g;
    void* mine = f.allocate(64);
    CHECK(failure(rt_fill(g.stream, mine, 0, 1, 64)).code == RT_INVALID_ARGUMENT);
    CHECK(failure(rt_kernel_launch(g.stream, f.lookup("unary"), nullptr, nullptr, 0, nullptr, 0))
              .code == RT_INVALID_ARGUMENT);
    rt_event event = nullptr;
    MUST(rt_event_create(f.device, 0, &event));
    CHECK(failure(rt_event_record(event, g.stream)).code == RT_INVALID_ARGUMENT);
    rt_event_destroy(event);
}

TEST_CASE("descriptors are checked") {
    enpu_op_tensor desc;
    const int64_t zero[] = {2, 0}, huge[] = {INT64_MAX, 3}, good[] = {2, 3, 4, 5};
    CHECK(failure(rt_tensor_desc_init(&desc, ENPU_OP_F32, 2, zero)).code == RT_INVALID_ARGUMENT);
    CHECK(failure(rt_tensor_desc_init(&desc, ENPU_OP_F32, 2, huge)).code == RT_INVALID_ARGUMENT);
    CHECK(failure(rt_tensor_desc_init(&desc, 77, 2, good)).code == RT_INVALID_ARGUMENT);
    CHECK(failure(rt_tensor_desc_init(&desc, ENPU_OP_F32, 9, good)).code == RT_INVALID_ARGUMENT);
    OK(rt_tensor_desc_init_nhwc(&desc, ENPU_OP_F16, good));
    CHECK(desc.strides[1] == 1);
    CHECK(desc.strides[3] == 3);
    CHECK(desc.strides[2] == 15);
    CHECK(desc.strides[0] == 60);
    uint64_t bytes = 0;
    OK(rt_tensor_desc_bytes(&desc, &bytes));
    CHECK(bytes == 240);
    desc.strides[0] = -60;
    CHECK(failure(rt_tensor_desc_bytes(&desc, &bytes)).code == RT_INVALID_ARGUMENT);
}
