// SPDX-License-Identifier: MIT
#include "context_cache.h"

#include <filesystem>
#include <fstream>

#include "graph_file.h"
#include "report.h"

namespace enpu::ort {
namespace {

constexpr const char* kOperator = "EPContext";
constexpr const char* kDomain = "com.microsoft";
constexpr uint64_t kMaxFile = uint64_t{1} << 33;

// Attributes of a node to be; ONNX Runtime takes them over with the node.
class Attributes {
  public:
    ~Attributes() {
        for (OrtOpAttr* attribute : list_) Ort::GetApi().ReleaseOpAttr(attribute);
    }
    void add(const char* name, const std::string& value) {
        if (value.size() > INT32_MAX) lowering::fail("a context over 2 GiB cannot be embedded");
        add(name, value.data(), static_cast<int>(value.size()), ORT_OP_ATTR_STRING);
    }
    void add(const char* name, int64_t value) { add(name, &value, 1, ORT_OP_ATTR_INT); }
    std::vector<OrtOpAttr*>& list() { return list_; }

  private:
    void add(const char* name, const void* data, int size, OrtOpAttrType type) {
        OrtOpAttr* attribute = nullptr;
        Ort::ThrowOnError(Ort::GetApi().CreateOpAttr(name, data, size, type, &attribute));
        list_.push_back(attribute);
    }
    std::vector<OrtOpAttr*> list_;
};

std::string config(const OrtSessionOptions* options, const char* key) {
    const Ort::ConstSessionOptions wrapped(options);
    return wrapped.GetConfigEntryOrDefault(key, "");
}

std::vector<const char*> pointers(const std::vector<std::string>& names) {
    std::vector<const char*> result;
    for (const std::string& name : names) result.push_back(name.c_str());
    return result;
}

std::vector<std::string> names_of(const std::vector<Ort::ConstValueInfo>& values) {
    std::vector<std::string> names;
    for (const auto& value : values) names.push_back(value.GetName());
    return names;
}

std::string read_file(const std::filesystem::path& path) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error) lowering::fail("the context '" + path.string() + "': " + error.message());
    if (size > kMaxFile) lowering::fail("the context '" + path.string() + "' is over 8 GiB");
    std::string bytes(size, '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(bytes.data(), static_cast<std::streamsize>(size));
    if (!file) lowering::fail("the context '" + path.string() + "' cannot be read");
    return bytes;
}

}  // namespace

ContextOptions read_context_options(const OrtSessionOptions* options) {
    ContextOptions result;
    result.enabled = config(options, "ep.context_enable") == "1";
    result.embedded = config(options, "ep.context_embed_mode") == "1";
    result.model_path = config(options, "ep.context_file_path");
    return result;
}

bool is_context(const lowering::Node& node) {
    return node.op == std::string(kDomain) + "::" + kOperator && node.text("source", "") == kEpName;
}

OrtNode* make_context_node(const ContextOptions& options, const std::string& read_model,
                           const OrtNode* fused, const lowering::Graph& graph) {
    const Ort::ConstNode node(fused);
    const std::string name = node.GetName();
    std::string content = lowering::save_graph(graph);
    if (!options.embedded) {
        const std::filesystem::path model =
            options.model_path.empty() ? read_model : options.model_path;
        const std::string file = model.stem().string() + "_" + name + ".bin";
        write_file((model.parent_path() / file).string(), content);
        content = file;
    }
    Attributes attributes;
    attributes.add("ep_cache_context", content);
    attributes.add("embed_mode", int64_t{options.embedded});
    attributes.add("main_context", int64_t{1});
    attributes.add("source", kEpName);
    attributes.add("ep_sdk_version", kEpVersion);
    attributes.add("partition_name", name);
    const auto inputs = names_of(node.GetInputs()), outputs = names_of(node.GetOutputs());
    const auto in = pointers(inputs), out = pointers(outputs);
    OrtNode* result = nullptr;
    Ort::ThrowOnError(Ort::GetModelEditorApi().CreateNode(
        kOperator, kDomain, name.c_str(), in.data(), in.size(), out.data(), out.size(),
        attributes.list().data(), attributes.list().size(), &result));
    attributes.list().clear();
    return result;
}

lowering::Graph load_context(const lowering::Node& node, const std::string& read_model) {
    const std::string content = node.text("ep_cache_context", "");
    if (node.integer("embed_mode", 1)) return lowering::load_graph(content);
    const std::filesystem::path file(content);
    if (file.empty() || file.filename() != file) {
        lowering::fail("the context '" + content + "' is no file beside the model");
    }
    return lowering::load_graph(read_file(std::filesystem::path(read_model).parent_path() / file));
}

}  // namespace enpu::ort
