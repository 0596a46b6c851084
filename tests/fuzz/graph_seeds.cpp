// SPDX-License-Identifier: MIT
// A graph of one node for the operators that a fuzzer would not soon hit upon, as lowering_fuzz.cpp
// reads it.
#include "graph_seeds.h"

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "enpu_hal_ops.h"
#include "graph_words.h"

namespace enpu::fuzz {
namespace {

using Dims = std::vector<uint8_t>;

struct Tensor {
    Dims dims;
    uint8_t dtype = ENPU_OP_F32;
    std::vector<int64_t> values = {};  // of I64; others get one pattern
};
struct Attribute {
    const char* name;
    std::vector<int8_t> integers;  // one: a number, several: a list
};
struct Case {
    const char* op;
    std::vector<Tensor> inputs, constants;
    std::vector<Attribute> attributes = {};
};

Tensor integers(std::vector<int64_t> values) {
    return {{static_cast<uint8_t>(values.size())}, ENPU_OP_I64, std::move(values)};
}

const Tensor kImage{{1, 4, 6, 6}}, kVector{{4}}, kMatrix{{5, 7}};

const std::vector<Case> kCases = {
    {"Conv", {kImage}, {{{6, 4, 3, 3}}, {{6}}}, {{"pads", {1, 1, 1, 1}}, {"strides", {2, 2}}}},
    {"Conv", {kImage}, {{{4, 1, 3, 3}}}, {{"group", {4}}, {"dilations", {2, 2}}}},
    {"Conv", {{{1, 4, 8}}}, {{{6, 4, 3}}}, {{"pads", {1, 1}}}},
    {"ConvTranspose", {kImage}, {{{4, 6, 2, 2}}}, {{"strides", {2, 2}}}},
    {"ConvInteger", {{{1, 4, 6, 6}, ENPU_OP_U8}}, {{{6, 4, 3, 3}, ENPU_OP_I8}}},
    {"MatMul", {kMatrix}, {{{7, 9}}}},
    {"MatMul", {{{2, 5, 7}}, {{2, 7, 3}}}, {}},
    {"MatMulInteger", {{{5, 7}, ENPU_OP_U8}}, {{{7, 9}, ENPU_OP_I8}}},
    {"Gemm", {kMatrix}, {{{9, 7}}, {{9}}}, {{"transB", {1}}}},
    {"BatchNormalization", {kImage, kVector, kVector}, {kVector, kVector}},
    {"LayerNormalization", {{{2, 8}}}, {{{8}}, {{8}}}, {{"axis", {-1}}}},
    {"RMSNormalization", {{{2, 8}}}, {{{8}}}},
    {"InstanceNormalization", {kImage}, {kVector, kVector}},
    {"GroupNormalization", {kImage}, {kVector, kVector}, {{"num_groups", {2}}}},
    {"AveragePool", {kImage}, {}, {{"kernel_shape", {3, 3}}, {"pads", {1, 1, 1, 1}}}},
    {"MaxPool", {kImage}, {}, {{"kernel_shape", {2, 2}}, {"strides", {2, 2}}}},
    {"Reshape", {kImage}, {integers({1, 4, -1})}},
    {"Transpose", {kImage}, {}, {{"perm", {0, 2, 3, 1}}}},
    {"Concat", {kImage, kImage}, {}, {{"axis", {1}}}},
    {"Slice", {kImage}, {integers({0, 1}), integers({4, 5}), integers({1, 2})}},
    {"Split", {kImage}, {integers({2, 2})}, {{"axis", {1}}}},
    {"Squeeze", {{{1, 4, 1}}}, {integers({0, 2})}},
    {"Unsqueeze", {kVector}, {integers({0, 2})}},
    {"Pad", {kMatrix}, {integers({1, 0, 0, 2})}},
    {"Tile", {kMatrix}, {integers({2, 3})}},
    {"Expand", {{{5, 1}}}, {integers({5, 7})}},
    {"Gather", {kMatrix}, {integers({0, 2, 4})}, {{"axis", {0}}}},
    {"GatherElements", {kMatrix, {{2, 7}, ENPU_OP_I64}}, {}, {{"axis", {0}}}},
    {"ReduceSum", {kImage}, {integers({2, 3})}, {{"keepdims", {1}}}},
    {"ReduceL2", {kImage}, {integers({1})}, {{"keepdims", {0}}}},
    {"ArgMax", {kMatrix}, {}, {{"axis", {1}}}},
    {"Resize", {kImage}, {{{0}}, {{0}}, integers({1, 4, 9, 9})}},
    {"Cast", {kMatrix}, {}, {{"to", {10}}}},
    {"Where", {{{5, 7}, ENPU_OP_BOOL}, kMatrix, kMatrix}, {}},
    {"Clip", {kMatrix}, {{{}}, {{}}}},
    {"PRelu", {kImage}, {{{4, 1, 1}}}},
    {"QuantizeLinear", {kMatrix}, {{{}}, {{}, ENPU_OP_I8}}},
    {"DequantizeLinear", {{{5, 7}, ENPU_OP_I8}}, {{{}}, {{}, ENPU_OP_I8}}},
    {"QLinearMatMul", {{{5, 7}, ENPU_OP_U8}}, {{{}}, {{}, ENPU_OP_U8}, {{7, 9}, ENPU_OP_U8}}},
    {"DepthToSpace", {kImage}, {}, {{"blocksize", {2}}}},
    {"SpaceToDepth", {kImage}, {}, {{"blocksize", {2}}}},
    {"Softmax", {kMatrix}, {}, {{"axis", {1}}}},
    {"LogSoftmax", {kMatrix}, {}, {{"axis", {-1}}}},
    {"ConstantOfShape", {kMatrix}, {integers({3, 3})}},
    {"Range", {kMatrix}, {{{}, ENPU_OP_I64, {0}}, {{}, ENPU_OP_I64, {9}}, {{}, ENPU_OP_I64, {2}}}},
    {"Flatten", {kImage}, {}, {{"axis", {2}}}},
};

template <size_t N>
uint8_t index_of(const char* const (&list)[N], const char* word) {
    uint8_t i = 0;
    while (std::strcmp(list[i], word) != 0) ++i;
    return i;
}

class Writer {
  public:
    void byte(size_t value) { bytes_.push_back(static_cast<char>(value)); }
    void value(const Tensor& tensor) {
        byte(tensor.dtype - 1u);
        byte(tensor.dims.size());
        for (uint8_t dim : tensor.dims) byte(dim);
    }
    void constant(const Tensor& tensor) {
        value(tensor);
        if (tensor.values.empty()) {
            byte(4);
            for (int i : {0, 0, 0x80, 0x3f}) byte(static_cast<size_t>(i));
            return;
        }
        byte(tensor.values.size() * 8);
        const auto* raw = reinterpret_cast<const char*>(tensor.values.data());
        bytes_.insert(bytes_.end(), raw, raw + tensor.values.size() * 8);
    }
    void attribute(const Attribute& attribute) {
        byte(index_of(kAttributes, attribute.name));
        if (attribute.integers.size() == 1) {
            byte(0);
        } else {
            byte(3);
            byte(attribute.integers.size());
        }
        for (int8_t number : attribute.integers) byte(static_cast<uint8_t>(number));
    }
    void save(const std::string& path) const {
        std::ofstream(path, std::ios::binary)
            .write(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    }

  private:
    std::vector<char> bytes_;
};

void save_case(const Case& one, const std::string& path) {
    Writer out;
    out.byte(one.inputs.size() - 1);
    for (const Tensor& input : one.inputs) out.value(input);
    out.byte(one.constants.size());
    for (const Tensor& constant : one.constants) out.constant(constant);
    out.byte(0);  // one node
    out.byte(index_of(kOps, one.op));
    out.byte(0);  // the newest operator set
    // ConstantOfShape and Range take constants alone.
    const bool host = !std::strcmp(one.op, "ConstantOfShape") || !std::strcmp(one.op, "Range");
    const size_t first = host ? one.inputs.size() : 0;
    out.byte(one.inputs.size() + one.constants.size() - first);
    for (size_t i = first; i < one.inputs.size() + one.constants.size(); ++i) out.byte(i);
    out.byte(one.attributes.size());
    for (const Attribute& attribute : one.attributes) out.attribute(attribute);
    out.byte(!std::strcmp(one.op, "Split") ? 1 : 0);
    out.byte(one.inputs[0].dtype - 1u);
    out.byte(one.inputs[0].dtype - 1u);
    out.save(path);
}

}  // namespace

void save_graphs(const std::string& folder) {
    int number = 0;
    for (const Case& one : kCases)
        save_case(one, folder + "/" + one.op + "-" + std::to_string(number++));
    // The others with one, two and three operands.
    for (const char* op : kOps)
        for (size_t operands = 1; operands <= 3; ++operands)
            save_case({op, std::vector<Tensor>(operands, kMatrix), {}},
                      folder + "/" + op + "-plain" + std::to_string(operands));
}

}  // namespace enpu::fuzz
