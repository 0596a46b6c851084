// SPDX-License-Identifier: MIT
// The C++ wrapper: owners, shared tensors and errors as exceptions.
#include "rt.hpp"
#include "test_support.h"

using namespace enpu::rt;

TEST_CASE("wrapper: a matrix product through the C++ owners") {
    const Device device(test::device_spec());
    const Stream stream(device);
    const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 0, 0, 1, 1, 1};
    Tensor ta = stream.tensor(dense(ENPU_OP_F32, {2, 3})),
           tb = stream.tensor(dense(ENPU_OP_F32, {3, 2}));
    const Tensor ty = stream.tensor(dense(ENPU_OP_F32, {2, 2}));
    stream.upload(ta, std::span(a));
    stream.upload(tb, std::span(b));
    const rt_operand operands[] = {ta.operand(), tb.operand(), {}, {}, {}, ty.operand()};
    stream.launch(device.kernel("matmul_fwd"), enpu_op_matmul_params{}, operands);
    ta = tb;  // the first is released while it is used
    std::vector<float> y(4);
    stream.download(std::span(y), ty);
    CHECK(y == std::vector<float>{4, 5, 10, 11});
    CHECK(device.counters().ops[ENPU_OP_MATMUL_FWD] == 1);
}

TEST_CASE("wrapper: a failed call throws its code and sentence") {
    const Device device(test::device_spec());
    try {
        device.kernel("no_such_kernel");
        FAIL("nothing was thrown");
    } catch (const Error& error) {
        CHECK(error.code() == RT_NOT_FOUND);
        CHECK(test::contains(error.what(), "no_such_kernel"));
    }
}

TEST_CASE("wrapper: a captured stream is replayed, and a failure knows the line of the launch") {
    const Device device(test::device_spec());
    const Stream stream(device);
    const Tensor x = stream.tensor(dense(ENPU_OP_F32, {2})),
                 y = stream.tensor(dense(ENPU_OP_F32, {2})),
                 at = stream.tensor(dense(ENPU_OP_I32, {2}));
    const rt_kernel gather = device.kernel("gather");
    const enpu_op_gather_params params{ENPU_OP_GATHER_MODE_TAKE, 0};
    const rt_operand operands[] = {x.operand(), at.operand(), y.operand()};
    const Graph graph = stream.capture([&] { stream.launch(gather, params, operands); });
    const GraphExec exec = graph.instantiate();
    const std::vector<float> values{5, 6};
    stream.upload(x, std::span(values));
    const std::vector<int32_t> swapped{1, 0}, wrong{0, 9};
    stream.upload(at, std::span(swapped));
    stream.launch(exec);
    std::vector<float> seen(2);
    stream.download(std::span(seen), y);
    CHECK(seen == std::vector<float>{6, 5});
    stream.upload(at, std::span(wrong));
    stream.launch(exec);
    try {
        stream.sync(test::soon());
        FAIL("nothing was thrown");
    } catch (const Error& error) {
        CHECK(error.code() == RT_WORK_FAILED);
        CHECK(test::contains(error.call_site(), "wrapper_test.cpp:"));
    }
    stream.reset();
}
