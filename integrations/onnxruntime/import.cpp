// SPDX-License-Identifier: MIT
#include "import.h"

#include <cstring>
#include <unordered_map>

namespace enpu::ort {

using lowering::Attribute;
using lowering::Graph;
using lowering::HostTensor;
using lowering::HostTensorPtr;

uint32_t dtype_of(ONNXTensorElementDataType type) {
    switch (type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
            return ENPU_OP_F32;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
            return ENPU_OP_F16;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
            return ENPU_OP_BF16;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
            return ENPU_OP_I8;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
            return ENPU_OP_U8;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
            return ENPU_OP_I32;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
            return ENPU_OP_I64;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
            return ENPU_OP_BOOL;
        default:
            return ENPU_OP_NONE;
    }
}

namespace {

constexpr int64_t kSmallConstant = 1024;

HostTensorPtr import_tensor(const Ort::ConstValue& value, bool data) {
    const auto info = value.GetTensorTypeAndShapeInfo();
    HostTensor tensor;
    tensor.dtype = dtype_of(info.GetElementType());
    tensor.dims = info.GetShape();
    const int64_t count = lowering::element_count(tensor.dims);
    if (tensor.dtype == ENPU_OP_NONE) return nullptr;
    if (data || count <= kSmallConstant) {
        tensor.bytes.resize(static_cast<size_t>(count) * lowering::dtype_bytes(tensor.dtype));
        if (count) std::memcpy(tensor.bytes.data(), value.GetTensorRawData(), tensor.bytes.size());
    }
    return std::make_shared<const HostTensor>(std::move(tensor));
}

class Importer {
  public:
    Importer(const Ort::ConstGraph& graph, bool data) : from_(graph), data_(data) {}

    Graph run() {
        for (const auto& v : from_.GetInitializers()) add_initializer(v);
        for (const auto& v : from_.GetInputs()) {
            if (known_.count(v.GetName()) == 0) graph_.inputs.push_back(value(v));
        }
        for (const auto& node : from_.GetNodes()) add_node(node);
        for (const auto& v : from_.GetOutputs()) graph_.outputs.push_back(value(v));
        return std::move(graph_);
    }

  private:
    int value(const Ort::ConstValueInfo& info) {
        const std::string name = info.GetName();
        const auto it = known_.find(name);
        if (it != known_.end()) return it->second;
        lowering::Value v;
        v.name = name;
        const auto type = info.TypeInfo();
        if (type.GetONNXType() == ONNX_TYPE_TENSOR) {
            const auto shape = type.GetTensorTypeAndShapeInfo();
            v.dtype = dtype_of(shape.GetElementType());
            // Rank 0 stands for an unknown shape too.
            if (auto dims = shape.GetShape(); !dims.empty()) v.dims = std::move(dims);
        }
        return known_[name] = graph_.add_value(std::move(v));
    }

    void add_initializer(const Ort::ConstValueInfo& info) {
        if (!info.IsConstantInitializer()) return;  // a default that a run may override
        Ort::ConstValue tensor{nullptr};
        const Ort::Status status = info.GetInitializer(tensor);
        if (!status.IsOK())
            lowering::fail("initializer '" + info.GetName() + "': " + status.GetErrorMessage());
        const int v = value(info);
        const HostTensorPtr constant = import_tensor(tensor, data_);
        if (!constant) return;
        graph_.values[static_cast<size_t>(v)].constant = constant;
        graph_.values[static_cast<size_t>(v)].dims = constant->dims;
    }

    void add_node(const Ort::ConstNode& from) {
        lowering::Node node;
        node.op = from.GetOperatorType();
        const std::string domain = from.GetDomain();
        if (!domain.empty() && domain != "ai.onnx") node.op = domain + "::" + node.op;
        node.name = from.GetName();
        node.opset = from.GetSinceVersion();
        for (const auto& v : from.GetInputs()) node.inputs.push_back(v ? input(v) : -1);
        for (const auto& v : from.GetOutputs()) node.outputs.push_back(v ? value(v) : -1);
        while (!node.outputs.empty() && node.outputs.back() < 0) node.outputs.pop_back();
        while (!node.inputs.empty() && node.inputs.back() < 0) node.inputs.pop_back();
        for (int v : node.outputs) {
            if (node.name.empty() && v >= 0) node.name = graph_.values[static_cast<size_t>(v)].name;
        }
        for (const auto& attribute : from.GetAttributes()) add_attribute(node, attribute);
        graph_.nodes.push_back(std::move(node));
    }

    // Values of an outer scope are inputs too.
    int input(const Ort::ConstValueInfo& info) {
        const bool first_seen = known_.count(info.GetName()) == 0;
        const int v = value(info);
        if (!first_seen) return v;
        add_initializer(info);  // a constant of the outer scope is none of the inputs
        if (!graph_.values[static_cast<size_t>(v)].constant) graph_.inputs.push_back(v);
        return v;
    }

    void add_attribute(lowering::Node& node, const Ort::ConstOpAttr& attribute) {
        const std::string name = attribute.GetName();
        switch (attribute.GetType()) {
            case ORT_OP_ATTR_INT:
                node.attributes[name] = read<int64_t>(attribute);
                break;
            case ORT_OP_ATTR_FLOAT:
                node.attributes[name] = read<float>(attribute);
                break;
            case ORT_OP_ATTR_STRING:
                node.attributes[name] = read<std::string>(attribute);
                break;
            case ORT_OP_ATTR_INTS:
                node.attributes[name] = read_all<int64_t>(attribute);
                break;
            case ORT_OP_ATTR_FLOATS:
                node.attributes[name] = read_all<float>(attribute);
                break;
            case ORT_OP_ATTR_STRINGS:
                node.attributes[name] = read_all<std::string>(attribute);
                break;
            case ORT_OP_ATTR_TENSOR: {
                Ort::Value tensor{nullptr};
                Ort::ThrowOnError(attribute.GetTensorAttributeAsOrtValue(tensor));
                if (auto constant = import_tensor(tensor.GetConst(), true))
                    node.attributes[name] = constant;
                break;
            }
            default:
                node.attributes[name] = std::string("unreadable");
                break;
        }
        if (node.op == "Cast" && name == "to") {
            node.attributes["dtype"] =
                int64_t{dtype_of(static_cast<ONNXTensorElementDataType>(node.integer("to", 0)))};
        }
    }

    template <class T>
    static T read(const Ort::ConstOpAttr& attribute) {
        T value{};
        Ort::ThrowOnError(attribute.GetValue(value));
        return value;
    }
    template <class T>
    static std::vector<T> read_all(const Ort::ConstOpAttr& attribute) {
        std::vector<T> values;
        Ort::ThrowOnError(attribute.GetValueArray(values));
        return values;
    }

    Ort::ConstGraph from_;
    bool data_;
    Graph graph_;
    std::unordered_map<std::string, int> known_;
};

}  // namespace

Graph import_graph(const Ort::ConstGraph& graph, bool data) {
    return Importer(graph, data).run();
}

}  // namespace enpu::ort
