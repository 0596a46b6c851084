// SPDX-License-Identifier: MIT
// The C++ wrapper: owners, shared tensors and errors as exceptions.
#include "rt.hpp"
#include "test_support.h"

using namespace enpu::rt;

TEST_CASE("wrapper: a matrix product through the C++ owners") {
    const Device device(test::device_spec());
    test::needs_kernels(device.get());
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
    test::needs_kernels(device.get());
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

TEST_CASE("wrapper: pinned memory, copies and fills") {
    const Device device(test::device_spec());
    const Stream stream(device);
    const Pinned from(device, 4096), to(device, 4096);
    void* memory = stream.allocate(4096);
    stream.fill(memory, uint32_t{7}, 1024);
    const Event done(device);
    stream.to_host_async(to.data(), memory, 2048);
    stream.record(done);
    done.wait(after_ms(20'000));
    CHECK(done.done());
    CHECK(to.as<uint32_t>()[0] == 7);
    CHECK(to.as<uint32_t>().size() == 1024);
    for (uint32_t& word : from.as<uint32_t>()) word = 9;
    const rt_copy pieces[] = {{memory, from.data(), 64},
                              {static_cast<char*>(memory) + 64, from.data(), 64}};
    stream.copy(pieces);
    stream.copy_rows(to.data(), 32, memory, 64, 32, 2);
    stream.sync(after_ms(20'000));
    CHECK(stream.done());
    CHECK(to.as<uint32_t>()[15] == 9);
    CHECK(to.as<uint32_t>()[16] == 7);
    stream.free(memory);
    CHECK(device.pool().live == 0);
    device.trim_pool();
    CHECK(device.pool().reserved_bytes == 0);
    device.check();
    CHECK(bytes_of(dense_nhwc(ENPU_OP_F16, {1, 3, 4, 4})) == 96);
    bool listed = false;
    for (const rt_device_info& info : Device::all()) listed |= std::string(info.spec) == "cpu";
    CHECK(listed);
}

TEST_CASE("wrapper: a graph by hand, recorded, measured and updated") {
    const Device device(test::device_spec());
    test::needs_kernels(device.get());
    const Stream stream(device);
    const Tensor x = stream.tensor(dense(ENPU_OP_F32, {4})),
                 y = stream.tensor(dense(ENPU_OP_F32, {4})),
                 z = stream.tensor(dense(ENPU_OP_F32, {4}));
    const rt_kernel binary = device.kernel(ENPU_OP_BINARY);
    CHECK(std::string(name(binary)) == "binary");
    const enpu_op_binary_params add{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    const rt_operand operands[] = {x.operand(), x.operand(), y.operand()};
    CHECK(why_unsupported(binary, add, operands).empty());
    const rt_operand too_few[] = {x.operand()};
    CHECK(!why_unsupported(binary, add, too_few).empty());
    const Graph graph(device);
    const rt_node filled = graph.fill(x.data(), 1.5f, 4);
    const rt_node after[] = {filled};
    const rt_node sum = graph.kernel(binary, add, operands, after);
    graph.set_name(sum, "the sum");
    graph.measure(stream.get(), after_ms(20'000));
    const GraphExec exec = graph.instantiate();
    CHECK(exec.info().nodes == 2);
    auto options = sized<rt_profile_options>();
    options.flags = RT_PROFILE_DEVICE;
    const Profile profile = Profile::record(options, after_ms(20'000), [&] {
        stream.launch(exec);
        stream.sync(after_ms(20'000));
    });
    CHECK(profile.info().operations + profile.info().dropped >= 1);
    CHECK(profile.info().api_calls == 0);
    CHECK(profile.kernels().size() <= 2);
    exec.update_kernel(sum, 2, z.data(), after_ms(20'000));
    stream.launch(exec);
    std::vector<float> seen(4), moved(4);
    stream.download(std::span(seen), y);
    stream.download(std::span(moved), z);
    CHECK(seen == std::vector<float>(4, 3.0f));
    CHECK(moved == seen);
}

TEST_CASE("wrapper: a pipeline and a memory plan") {
    const Device device(test::device_spec());
    auto desc = sized<rt_pipeline_desc>();
    desc.slots = 2;
    desc.input_bytes = desc.output_bytes = 256;
    desc.compute = [](void*, rt_stream stream, const rt_pipeline_slot* slot) {
        return rt_memcpy_d2d(stream, slot->output, slot->input, 256);
    };
    const Pipeline pipeline(device, desc);
    CHECK(pipeline.slots() == 2);
    for (uint8_t item = 1; item < 6; ++item) {
        std::memset(pipeline.input(after_ms(20'000)), item, 256);
        pipeline.push();
        CHECK(static_cast<const uint8_t*>(pipeline.pop(after_ms(20'000)))[255] == item);
    }
    CHECK(pipeline.in_flight() == 0);
    pipeline.release();
    rt_plan_value values[] = {{1000, 0, 1, 0, 0, 0}, {1000, 2, 3, 0, 0, 0}};
    CHECK(plan_memory(values, {}, 256).arena_bytes == 1024);
    CHECK(values[0].offset == values[1].offset);
}
