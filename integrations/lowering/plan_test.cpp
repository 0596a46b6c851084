// SPDX-License-Identifier: MIT
#include "plan.h"

#include <catch2/catch_test_macros.hpp>

#include "emitter.h"
#include "shapes.h"
#include "test_graph.h"

using namespace enpu::lowering;
using namespace enpu::lowering::test;

namespace {

View dense_view(const Dims& dims) {
    return {0, 0, ENPU_OP_F32, dims, row_major_strides(dims)};
}

// A buffer that works in place begins where the one dies whose memory it got.
bool handed_over(const Buffer& from, const Buffer& to) {
    return to.in_place && from.last == to.first && from.offset == to.offset;
}

// No two temporaries that are alive at the same kernel overlap, save one that was taken over in
// place.
void check_memory(const Plan& plan) {
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
        const Buffer& a = plan.buffers[i];
        if (a.kind == Buffer::Kind::kConstant || a.first < 0) continue;
        CHECK(a.offset % kBufferAlign == 0);
        CHECK(a.offset + a.bytes <= plan.arena_bytes);
        for (size_t j = i + 1; j < plan.buffers.size(); ++j) {
            const Buffer& b = plan.buffers[j];
            if (b.kind == Buffer::Kind::kConstant || b.first < 0) continue;
            const bool together = a.first <= b.last && b.first <= a.last;
            const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
            if (together && overlap) CHECK((handed_over(a, b) || handed_over(b, a)));
        }
    }
    CHECK(plan.arena_bytes >= plan.lower_bound_bytes);
}

Plan lower_floats(const Graph& graph, const std::vector<Dims>& dims) {
    return lower(graph, dims, std::vector<HostTensorPtr>(dims.size()));
}

}  // namespace

TEST_CASE("reshape without a copy, where strides allow it") {
    const View x = dense_view({2, 3, 4});
    REQUIRE(reshape_view(x, {6, 4}));
    CHECK(reshape_view(x, {6, 4})->strides == Dims{4, 1});
    CHECK(reshape_view(x, {2, 1, 12})->strides[2] == 1);
    const View t = transpose_view(x, {0, 2, 1});  // [2,4,3], strides 12,1,4
    CHECK_FALSE(reshape_view(t, {2, 12}));
    REQUIRE(reshape_view(t, {2, 2, 2, 3}));
    CHECK(reshape_view(t, {2, 2, 2, 3})->strides == Dims{12, 2, 1, 4});
    CHECK_FALSE(reshape_view(x, {5, 5}));
}

TEST_CASE("channels-last with one row is a matrix of pixels without a copy") {
    View x = dense_view({2, 8, 1, 5});
    x.strides = channels_last_strides(x.dims);
    const auto flat = reshape_view(x, {2, 8, 5});
    REQUIRE(flat);
    CHECK(is_row_major(transpose_view(*flat, {0, 2, 1})));
}

TEST_CASE("a chain of functions works in place") {
    Builder b;
    int v = b.input({1, 8, 16, 16});
    for (int i = 0; i < 4; ++i) v = b.add(i % 2 ? "Tanh" : "Exp", {v});
    const Plan plan = lower_floats(b.finish({v}), {{1, 8, 16, 16}});
    REQUIRE(plan.kernels.size() == 4);
    check_memory(plan);
    CHECK(plan.arena_bytes == 8 * 16 * 16 * 4);
    CHECK(plan.arena_bytes == plan.lower_bound_bytes);
}

TEST_CASE("a value that is read later is not written over") {
    Builder b;
    const int x = b.input({64});
    const int y = b.add("Exp", {x});
    const int z = b.add("Tanh", {y});
    const Plan plan = lower_floats(b.finish({b.add("Add", {y, z})}), {{64}});
    const Buffer& kept = plan.buffers[static_cast<size_t>(plan.kernels[0].operands.back().buffer)];
    const Buffer& later = plan.buffers[static_cast<size_t>(plan.kernels[1].operands.back().buffer)];
    CHECK(kept.offset != later.offset);
    check_memory(plan);
}

TEST_CASE("an operand that is broadcast is not written over") {
    Builder b;
    const int x = b.input({8, 8}), row = b.input({8});
    const Plan plan = lower_floats(
        b.finish({b.add("Add", {b.add("Exp", {row}), b.add("Exp", {x})})}), {{8, 8}, {8}});
    check_memory(plan);
    const Kernel& sum = plan.kernels.back();
    CHECK(plan.buffers[static_cast<size_t>(sum.operands[0].buffer)].offset !=
          plan.buffers[static_cast<size_t>(sum.operands[2].buffer)].offset);
}

TEST_CASE("memory of a ladder of convolutions with skips") {
    Builder b;
    int v = b.input({1, 4, 32, 32});
    std::vector<int> skips;
    for (int i = 0; i < 6; ++i) {
        v = b.add("Conv", {v, b.constant({4, 4, 3, 3}, noise(144, 7))},
                  {{"pads", std::vector<int64_t>{1, 1, 1, 1}},
                   {"strides", std::vector<int64_t>{1 + i % 2, 1 + i % 2}}});
        if (i % 2 == 0) skips.push_back(v);
    }
    skips.push_back(v);
    Graph g = b.finish(skips);
    const Plan plan = lower_floats(g, {{1, 4, 32, 32}});
    check_memory(plan);
    CHECK(plan.arena_bytes <= plan.lower_bound_bytes * 5 / 4);
}

TEST_CASE("a reshape by the shape of an input costs no kernel") {
    Builder b;
    const int x = b.input({-1, 6, 1, 10}, ENPU_OP_F32);
    const int shape = b.add("Shape", {x}, {}, ENPU_OP_I64);
    const int first = b.add("Slice", {shape, b.integers({0}), b.integers({2})}, {}, ENPU_OP_I64);
    const int wanted =
        b.add("Concat", {first, b.integers({-1})}, {{"axis", int64_t{0}}}, ENPU_OP_I64);
    const Plan plan = lower_floats(b.finish({b.add("Reshape", {x, wanted})}), {{3, 6, 1, 10}});
    CHECK(plan.kernels.empty());
    CHECK(plan.outputs[0].dims == Dims{3, 6, 10});
}

TEST_CASE("errors name the node and the rule") {
    Builder b;
    const int x = b.input({1, 3, 8, 8});
    const Graph g = b.finish({b.add("Conv", {x, b.constant({4, 2, 1, 1}, noise(8, 1))})});
    try {
        lower_floats(g, {{1, 3, 8, 8}});
        FAIL("channels that do not fit were taken");
    } catch (const Error& error) {
        CHECK(std::string(error.what()).find("Conv 'Conv0'") != std::string::npos);
        CHECK(std::string(error.what()).find("3 channels") != std::string::npos);
    }
}

TEST_CASE("dims that overflow are refused") {
    CHECK_THROWS_AS(element_count({int64_t{1} << 31, int64_t{1} << 31, 4}), Error);
    CHECK_THROWS_AS(element_count({4, -1}), Error);
    // Without elements there are strides all the same, and they must not overflow.
    const Dims none{0, int64_t{1} << 40, int64_t{1} << 40, 4};
    CHECK_THROWS_AS(element_count(none), Error);
    CHECK_THROWS_AS(row_major_strides(none), Error);
    CHECK_THROWS_AS(channels_last_strides(none), Error);
    CHECK_THROWS_AS(strides_like(dense_view({1, 1, 1, 1}), none), Error);
    CHECK(element_count({0, 3, 4}) == 0);
    CHECK_THROWS_AS(reshape_dims({2, 3}, {-1, -1}, false), Error);
    CHECK_THROWS_AS(normalise_axis(3, 3), Error);
}

TEST_CASE("slices from the end, past the end and backwards") {
    const auto whole = slice_axes({10}, {-1000}, {1000}, {}, {});
    CHECK(whole[0].count == 10);
    const auto back = slice_axes({10}, {-1}, {INT64_MIN}, {0}, {-3});
    CHECK(back[0].start == 9);
    CHECK(back[0].count == 4);
    CHECK(slice_axes({10}, {7}, {3}, {0}, {1})[0].count == 0);
    CHECK_THROWS_AS(slice_axes({10}, {0}, {1}, {0}, {0}), Error);
}
