// SPDX-License-Identifier: MIT
// Graphs in the bytes that lowering_fuzz.cpp reads.
#include "graph_seeds.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "graph_words.h"

namespace enpu::fuzz {
namespace {

// Of attributes; lists come three behind.
constexpr uint8_t kInteger = 0, kFloat = 1, kText = 2, kList = 3;

template <size_t N>
uint8_t index_of(const char* const (&list)[N], const char* word) {
    for (size_t i = 0; i < N; ++i)
        if (std::strcmp(list[i], word) == 0) return static_cast<uint8_t>(i);
    std::fprintf(stderr, "graph_words.h lacks '%s'\n", word);
    std::abort();
}

size_t bytes_of(const SeedTensor& tensor) {
    constexpr size_t kBytes[] = {0, 4, 2, 2, 1, 1, 4, 8, 1};  // by enum enpu_op_dtype
    size_t bytes = kBytes[tensor.dtype];
    for (uint8_t dim : tensor.dims) bytes *= dim;
    return bytes;
}

class Writer {
  public:
    void byte(size_t value) { bytes_.push_back(static_cast<char>(value)); }
    template <typename T>
    void raw(const T& value) {
        const auto* bytes = reinterpret_cast<const char*>(&value);
        bytes_.insert(bytes_.end(), bytes, bytes + sizeof(value));
    }
    void value(const SeedTensor& tensor) {
        byte(tensor.dtype - 1u);
        byte(tensor.dims.size());
        for (uint8_t dim : tensor.dims) byte(dim);
    }
    void constant(const SeedTensor& tensor) {
        value(tensor);
        Writer data;
        for (int64_t number : tensor.integers) data.raw(number);
        for (float number : tensor.floats) data.raw(number);
        if (data.bytes_.empty()) data.raw(1.0f);
        // The reader takes no more than the tensor holds, and repeats what is less.
        const size_t whole = bytes_of(tensor);
        if (data.bytes_.size() > whole) data.bytes_.resize(whole);
        byte(data.bytes_.size());
        bytes_.insert(bytes_.end(), data.bytes_.begin(), data.bytes_.end());
    }
    void attribute(const SeedAttribute& attribute) {
        const size_t count =
            attribute.integers.size() + attribute.floats.size() + attribute.texts.size();
        const bool list = attribute.list || count > 1;
        const uint8_t kind = !attribute.texts.empty()    ? kText
                             : !attribute.floats.empty() ? kFloat
                                                         : kInteger;
        byte(list ? kind + size_t{kList} : kind);
        if (list) byte(count);
        for (int8_t number : attribute.integers) raw(number);
        for (float number : attribute.floats) raw(number);
        for (const char* text : attribute.texts) byte(index_of(kTexts, text));
        byte(index_of(kAttributes, attribute.name));
    }
    void node(const SeedNode& node) {
        byte(index_of(kOps, node.op));
        byte(node.opset);
        byte(node.inputs.size());
        for (int input : node.inputs) byte(input < 0 ? 255 : static_cast<size_t>(input));
        byte(node.attributes.size());
        for (const SeedAttribute& each : node.attributes) attribute(each);
        byte(node.outputs.size() - 1);
        for (uint8_t dtype : node.outputs) byte(dtype - 1u);
    }
    void save(const std::string& path) const {
        std::ofstream(path, std::ios::binary)
            .write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    }

  private:
    std::vector<char> bytes_;
};

void save(const SeedGraph& graph, const std::string& folder) {
    Writer out;
    out.byte(graph.inputs.size() - 1);
    for (const SeedTensor& input : graph.inputs) out.value(input);
    out.byte(graph.constants.size());
    for (const SeedTensor& constant : graph.constants) out.constant(constant);
    out.byte(graph.nodes.size() - 1);
    for (const SeedNode& node : graph.nodes) out.node(node);
    out.save(folder + "/" + graph.name);
}

}  // namespace

void save_graphs(const std::string& folder) {
    for (const SeedGraph& graph : seed_graphs()) save(graph, folder);
    // The others with one to three operands: of inputs, and of constants, which the host computes.
    const SeedTensor matrix{{5, 7}};
    for (const char* op : kOps)
        for (int operands = 1; operands <= 3; ++operands) {
            const std::string name = op + std::string("-plain") + std::to_string(operands);
            SeedNode node{op, {}};
            for (int i = 0; i < operands; ++i) node.inputs.push_back(i);
            const auto count = static_cast<size_t>(operands);
            save({name, std::vector<SeedTensor>(count, matrix), {}, {node}}, folder);
            for (int& input : node.inputs) ++input;
            for (const uint8_t dtype : {ENPU_OP_F32, ENPU_OP_I64, ENPU_OP_BOOL}) {
                SeedTensor whole{{2, 3}, dtype};
                if (dtype == ENPU_OP_I64) whole.integers = {1, 0, 1, 2, 1, 0};
                node.outputs = {dtype};
                save({name + "-host" + std::to_string(dtype),
                      {matrix},
                      std::vector<SeedTensor>(count, whole),
                      {node}},
                     folder);
            }
        }
}

}  // namespace enpu::fuzz
