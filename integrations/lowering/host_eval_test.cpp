// SPDX-License-Identifier: MIT
// Operators computed on the host take their operands from a model's file: whatever is in it, they compute, refuse or leave it.
#include "host_eval.h"

#include <catch2/catch_test_macros.hpp>
#include <random>

namespace enpu::lowering {
namespace {

HostTensorPtr filled(uint32_t dtype, const Dims& dims, const std::vector<double>& values) {
    HostTensor tensor = make_host_tensor(dtype, dims);
    for (int64_t i = 0; i < tensor.size(); ++i)
        store(tensor, i, values[static_cast<size_t>(i) % values.size()]);
    return std::make_shared<const HostTensor>(std::move(tensor));
}

Node node_of(const std::string& op) {
    Node node;
    node.op = op;
    return node;
}

std::string refusal(const Node& node, const std::vector<HostTensorPtr>& inputs) {
    try {
        host_evaluate(node, inputs);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST_CASE(
    "operands that must have one element or a type have it, or the operand and the rule are "
    "named") {
    const auto none = filled(ENPU_OP_F32, {0}, {0}), two = filled(ENPU_OP_F32, {2}, {1, 2});
    const auto one = filled(ENPU_OP_F32, {}, {1}), shape = host_i64({1}, {4});
    Node fill = node_of("ConstantOfShape");
    for (const auto& value : {none, two}) {
        fill.attributes["value"] = value;
        CHECK(refusal(fill, {shape}).find("the value of ConstantOfShape has the dims") == 0);
    }
    fill.attributes["value"] = HostTensorPtr();
    CHECK(as_f64(*host_evaluate(fill, {shape}).at(0)) == std::vector<double>(4, 0));
    CHECK(refusal(node_of("Range"), {none, one, one}).find("the start of Range") == 0);
    CHECK(refusal(node_of("Range"), {one, none, one}).find("the limit of Range") == 0);
    CHECK(refusal(node_of("Range"), {one, one, two}).find("the step of Range") == 0);
    // As many bytes as the result, but of elements of another size.
    CHECK(refusal(node_of("Where"), {host_i64({2}, {0, 0}), two, two}) ==
          "the condition of Where is i64 and must be bool");
    const auto mask = filled(ENPU_OP_BOOL, {2}, {0, 1}), halves = filled(ENPU_OP_F16, {2}, {1});
    CHECK(refusal(node_of("Where"), {mask, two, halves}) ==
          "the second choice of Where is f16 and must be f32");
    CHECK(refusal(node_of("Concat"), {two, halves}) == "an input of Concat is f16 and must be f32");
}

TEST_CASE("a result that grows by a product is left to the device") {
    const auto row = filled(ENPU_OP_F32, {1, 1 << 20}, {1}),
               column = filled(ENPU_OP_F32, {1 << 20, 1}, {1});
    CHECK(host_evaluate(node_of("Add"), {row, column}).empty());
    const auto where = filled(ENPU_OP_I64, {1 << 20}, {0});
    CHECK(host_evaluate(node_of("Gather"), {row, where}).empty());
}

TEST_CASE("integers wrap round and are not rounded") {
    const auto of = [](const std::string& op, std::vector<int64_t> a, std::vector<int64_t> b) {
        std::vector<HostTensorPtr> inputs = {host_i64({1}, a)};
        if (!b.empty()) inputs.push_back(host_i64({1}, b));
        return as_i64(*host_evaluate(node_of(op), inputs).at(0)).at(0);
    };
    CHECK(of("Add", {INT64_MAX}, {1}) == INT64_MIN);
    CHECK(of("Sub", {INT64_MIN}, {1}) == INT64_MAX);
    CHECK(of("Mul", {INT64_MAX}, {2}) == -2);
    CHECK(of("Pow", {10}, {30}) == INT64_MAX);
    CHECK(of("Neg", {(int64_t{1} << 53) + 1}, {}) == -(int64_t{1} << 53) - 1);
    CHECK(of("Abs", {INT64_MIN}, {}) == INT64_MIN);
}

// Every operator, with operands of any type, rank, size and value: the sanitizers say whether one reads or writes beyond.
TEST_CASE("no operand makes an operator leave its tensors") {
    const std::vector<std::string> ops = {
        "Add",       "Sub",        "Mul",        "Div",
        "Mod",       "Min",        "Max",        "Pow",
        "Equal",     "Less",       "And",        "Xor",
        "Neg",       "Abs",        "Sqrt",       "Floor",
        "Exp",       "Reciprocal", "Not",        "Cast",
        "CastLike",  "Where",      "Identity",   "Reshape",
        "Squeeze",   "Unsqueeze",  "Transpose",  "Slice",
        "Concat",    "Gather",     "Expand",     "ConstantOfShape",
        "Range",     "Size",       "ReduceProd", "ReduceSum",
        "ReduceMax", "ReduceMin"};
    const std::vector<double> values = {0, 1, -1, 2, 3, -2, 1e18, -1e18, 1e300, -1e300, 0.5, 255};
    std::mt19937 random(11);
    const auto below = [&](size_t n) { return random() % n; };
    const auto tensor = [&]() -> HostTensorPtr {
        if (below(12) == 0) return nullptr;
        Dims dims(below(4));
        for (auto& dim : dims) dim = static_cast<int64_t>(below(4));
        std::vector<double> some(1 + below(4));
        for (auto& value : some) value = values[below(values.size())];
        return filled(1 + static_cast<uint32_t>(below(ENPU_OP_DTYPES - 1)), dims, some);
    };
    const auto numbers = [&] {
        std::vector<int64_t> list(below(4));
        for (auto& number : list)
            number = below(8) == 0 ? INT64_MIN + static_cast<int64_t>(below(2))
                                   : static_cast<int64_t>(below(9)) - 4;
        return list;
    };
    size_t done = 0, refused = 0;
    for (int round = 0; round < 100'000; ++round) {
        Node node = node_of(ops[below(ops.size())]);
        for (const char* name : {"perm", "axes", "starts", "ends", "shape"})
            if (below(3) == 0) node.attributes[name] = numbers();
        for (const char* name : {"axis", "dtype", "keepdims", "allowzero"})
            if (below(2) == 0) node.attributes[name] = static_cast<int64_t>(below(9)) - 2;
        if (below(2) == 0) node.attributes["value"] = tensor();
        std::vector<HostTensorPtr> inputs(below(6));
        for (auto& input : inputs) input = tensor();
        try {
            for (const auto& result : host_evaluate(node, inputs)) {
                REQUIRE(result->bytes.size() ==
                        static_cast<size_t>(result->size()) * dtype_bytes(result->dtype));
                ++done;
            }
        } catch (const Error& error) {
            REQUIRE(std::string(error.what()).size() > 10);
            ++refused;
        }
    }
    CHECK(done > 10'000);
    CHECK(refused > 10'000);
}

}  // namespace
}  // namespace enpu::lowering
