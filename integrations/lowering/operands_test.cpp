// SPDX-License-Identifier: MIT
// Operators with operands of every rank, many of them wrong: refused with a sentence, or lowered to
// kernels whose operands lie in their buffers.
#include <catch2/catch_test_macros.hpp>

#include "claim.h"
#include "emitter.h"
#include "passes.h"
#include "plan_check.h"
#include "test_graph.h"

using namespace enpu::lowering;
using namespace enpu::lowering::test;

namespace {

class Numbers {
  public:
    explicit Numbers(uint32_t seed) : state_(seed) {}
    int64_t below(int64_t limit) {
        state_ = state_ * 1664525u + 1013904223u;
        return static_cast<int64_t>(state_ >> 8) % limit;
    }

  private:
    uint32_t state_;
};

// Mostly of one size, so that operands now and then fit each other.
Dims dims_of(Numbers& numbers, int64_t rank) {
    Dims dims(static_cast<size_t>(rank));
    for (int64_t& dim : dims) dim = numbers.below(3) ? 4 : 1 + numbers.below(8);
    return dims;
}

int constant_of(Builder& b, const Dims& dims, uint32_t dtype) {
    HostTensor tensor = make_host_tensor(dtype, dims);
    for (int64_t i = 0; i < tensor.size(); ++i) store(tensor, i, i % 2);
    return b.graph.add_constant("c", std::make_shared<const HostTensor>(std::move(tensor)));
}

// As many operands as there can be, of any rank, on the device or known; some left out.
Graph graph_of(const std::string& op, Numbers& numbers) {
    static constexpr uint32_t kTypes[] = {ENPU_OP_F32, ENPU_OP_F32, ENPU_OP_I64, ENPU_OP_U8,
                                          ENPU_OP_BOOL};
    Builder b;
    std::vector<int> inputs;
    const bool floats = numbers.below(2) != 0;
    for (int64_t count = 1 + numbers.below(9); count > 0; --count) {
        const Dims dims = dims_of(numbers, numbers.below(5));
        const uint32_t dtype =
            floats ? kTypes[0] : kTypes[static_cast<size_t>(numbers.below(std::size(kTypes)))];
        if (!inputs.empty() && numbers.below(8) == 0)
            inputs.push_back(-1);
        else if (numbers.below(2))
            inputs.push_back(b.input(dims, dtype));
        else
            inputs.push_back(constant_of(b, dims, dtype));
    }
    std::map<std::string, Attribute> attributes;
    for (const char* name : {"axis", "num_heads", "q_num_heads", "kv_num_heads", "batch_dims"})
        if (numbers.below(3) == 0) attributes[name] = numbers.below(5) - 1;
    const int y = b.add(op, inputs, attributes);
    for (int64_t more = numbers.below(4); more > 0; --more) {
        b.graph.nodes[0].outputs.push_back(
            b.graph.add_value({"more", ENPU_OP_F32, std::nullopt, nullptr}));
    }
    return b.finish({y});
}

}  // namespace

TEST_CASE("dims of any size take no memory of their own") {
    for (const std::string& op : operators()) {
        INFO(op);
        for (const Dims& dims : {Dims{1 << 30}, Dims{2, 1 << 30}, Dims{1, 1, 1 << 15, 1 << 15}}) {
            Builder b;
            std::vector<int> inputs;
            for (int i = 0; i < 3; ++i) inputs.push_back(b.input(dims));
            const Graph graph = b.finish({b.add(op, inputs, {{"k", int64_t{1}}})});
            try {
                const Plan plan = lower(graph, {dims, dims, dims}, {nullptr, nullptr, nullptr});
                for (const Constant& constant : plan.constants)
                    CHECK(constant.tensor->size() <= 1 << 26);
            } catch (const Error&) {
            }
        }
    }
}

TEST_CASE("operands of any rank are refused or stay in their buffers") {
    int lowered = 0;
    for (const std::string& op : operators()) {
        Numbers numbers(7);
        for (int round = 0; round < 150; ++round) {
            INFO(op << " " << round);
            Graph graph = graph_of(op, numbers);
            std::vector<Dims> dims;
            for (int input : graph.inputs)
                dims.push_back(*graph.values[static_cast<size_t>(input)].dims);
            const Claim claimed = claim(graph, {});
            try {
                optimise(graph);
                const Plan plan = lower(graph, dims, std::vector<HostTensorPtr>(dims.size()));
                CHECK(outside(plan) == "");
                ++lowered;
            } catch (const Error& error) {
                CHECK(std::string(error.what()) != "");
            }
        }
    }
    CHECK(lowered > 1000);
}
