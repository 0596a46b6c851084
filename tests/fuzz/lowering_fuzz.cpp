// SPDX-License-Identifier: MIT
// A model's graph as the plug-in gets it, from bytes: any operator, operands, attributes and shapes,
// sound or not. It is claimed, optimised and lowered to a plan, or refused with a sentence. Bytes
// behind the graph change it as a context cache keeps it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "bytes.h"
#include "claim.h"
#include "emitter.h"
#include "graph_file.h"
#include "graph_words.h"
#include "passes.h"
#include "plan_check.h"

using namespace enpu::lowering;
using namespace enpu::fuzz;

namespace {

template <size_t N>
const char* pick(const char* const (&list)[N], Bytes& bytes) {
    return list[bytes.byte() % N];
}

// Small numbers of both signs, rarely any.
int64_t number(Bytes& bytes) {
    const auto small = bytes.take<int8_t>();
    return small == 127 ? bytes.take<int64_t>() : small;
}

Dims dims_from(Bytes& bytes) {
    Dims dims(bytes.byte() % 7);
    for (int64_t& dim : dims) {
        const uint8_t size = bytes.byte();
        dim = size == 255 ? bytes.take<uint32_t>() : size % 10;
    }
    return dims;
}

HostTensorPtr tensor_from(Bytes& bytes) {
    HostTensor tensor;
    tensor.dtype = 1 + bytes.byte() % ENPU_OP_BOOL;
    tensor.dims = dims_from(bytes);
    int64_t count = 1;
    for (int64_t dim : tensor.dims)
        if (__builtin_mul_overflow(count, dim, &count) || count > 4096) return nullptr;
    tensor.bytes.resize(static_cast<size_t>(count) * dtype_bytes(tensor.dtype));
    const auto block = bytes.block(std::min<size_t>(tensor.bytes.size(), bytes.byte()));
    for (size_t i = 0; i < tensor.bytes.size() && !block.empty(); ++i)
        tensor.bytes[i] = std::byte{block[i % block.size()]};
    if (tensor.dtype == ENPU_OP_BOOL)
        for (std::byte& byte : tensor.bytes) byte &= std::byte{1};
    return std::make_shared<const HostTensor>(std::move(tensor));
}

Attribute attribute_from(Bytes& bytes) {
    switch (bytes.byte() % 7) {
        case 0:
            return number(bytes);
        case 1:
            return bytes.take<float>();
        case 2:
            return std::string(pick(kTexts, bytes));
        case 3: {
            std::vector<int64_t> values(bytes.byte() % 9);
            for (int64_t& value : values) value = number(bytes);
            return values;
        }
        case 4: {
            std::vector<float> values(bytes.byte() % 9);
            for (float& value : values) value = bytes.take<float>();
            return values;
        }
        case 5: {
            std::vector<std::string> values(bytes.byte() % 7);
            for (std::string& value : values) value = pick(kTexts, bytes);
            return values;
        }
        default: {
            HostTensorPtr tensor = tensor_from(bytes);
            return tensor ? Attribute(tensor) : Attribute(int64_t{0});
        }
    }
}

int value_from(Graph& graph, Bytes& bytes) {
    Value value;
    value.name = "v" + std::to_string(graph.values.size());
    value.dtype = 1 + bytes.byte() % ENPU_OP_BOOL;
    value.dims = dims_from(bytes);
    return graph.add_value(std::move(value));
}

// As a framework hands them over: producers first, one producer a value.
Graph graph_from(Bytes& bytes) {
    Graph graph;
    for (uint32_t i = 1 + bytes.byte() % 3; i > 0; --i)
        graph.inputs.push_back(value_from(graph, bytes));
    for (uint32_t i = bytes.byte() % 9; i > 0; --i)
        if (HostTensorPtr tensor = tensor_from(bytes)) graph.add_constant("c", tensor);
    for (uint32_t nodes = 1 + bytes.byte() % 8; nodes > 0; --nodes) {
        Node node;
        node.op = pick(kOps, bytes);
        node.name = node.op + std::to_string(nodes);
        node.opset = bytes.byte() % 24;
        for (uint32_t i = bytes.byte() % 10; i > 0; --i) {
            const uint32_t input = bytes.byte();
            node.inputs.push_back(input == 255 ? -1
                                               : static_cast<int>(input % graph.values.size()));
        }
        for (uint32_t i = bytes.byte() % 6; i > 0; --i) {
            Attribute attribute = attribute_from(bytes);  // its name comes behind
            node.attributes[pick(kAttributes, bytes)] = std::move(attribute);
        }
        for (uint32_t i = 1 + bytes.byte() % 4; i > 0; --i) {
            Value value;
            value.name = node.name + "." + std::to_string(i);
            const uint8_t dtype = bytes.byte();
            value.dtype = 1 + dtype % ENPU_OP_BOOL;
            node.outputs.push_back(dtype == 255 ? -1 : graph.add_value(std::move(value)));
        }
        graph.nodes.push_back(std::move(node));
    }
    for (int output : graph.nodes.back().outputs)
        if (output >= 0) graph.outputs.push_back(output);
    return graph;
}

void check_plan(const Plan& plan) {
    const std::string wrong = outside(plan);
    if (wrong.empty()) return;
    std::fprintf(stderr, "not where it belongs: %s\n", wrong.c_str());
    std::abort();
}

// What the lowering has, an input can name.
bool check_words() {
    for (const std::string& op : operators()) {
        if (op == "Unary" || std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps))
            continue;
        std::fprintf(stderr, "graph_words.h lacks the operator %s\n", op.c_str());
        std::abort();
    }
    return true;
}

void lower_whole(Graph graph) {
    const Claim claimed = claim(graph, {});
    if (claimed.reasons.size() != graph.nodes.size()) std::abort();
    std::vector<Dims> dims;
    for (int input : graph.inputs) {
        dims.push_back(graph.values[input].dims.value_or(Dims{}));
        for (int64_t& dim : dims.back()) dim = dim < 0 ? 2 : dim;
    }
    try {
        optimise(graph);
        check_plan(lower(graph, dims, std::vector<HostTensorPtr>(dims.size())));
    } catch (const Error& error) {
        if (error.what()[0] == 0) std::abort();
    }
}

// As a context cache keeps it, with changes that its checksum does not give away.
void change_saved(const Graph& graph, Bytes& bytes) {
    std::string saved = save_graph(graph);
    while (!bytes.empty()) {
        const size_t at = bytes.take<uint16_t>() % saved.size();
        saved[at] = static_cast<char>(bytes.byte());
    }
    seal_graph(saved);
    try {
        lower_whole(load_graph(saved));
    } catch (const Error& error) {
        if (error.what()[0] == 0) std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const bool checked = check_words();
    (void)checked;
    Bytes bytes(data, size);
    const Graph graph = graph_from(bytes);
    if (bytes.empty())
        lower_whole(graph);
    else
        change_saved(graph, bytes);
    return 0;
}
