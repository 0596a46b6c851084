// SPDX-License-Identifier: MIT
#include "graph_file.h"

#include <cstring>

namespace enpu::lowering {
namespace {

constexpr char kMagic[8] = {'E', 'N', 'P', 'U', 'G', 'R', 'F', '1'};

uint64_t checksum(const char* data, size_t bytes) {
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i < bytes; ++i) {
        hash = (hash ^ static_cast<unsigned char>(data[i])) * 1099511628211ull;
    }
    return hash;
}

class Writer {
  public:
    template <class T>
    void number(T value) {
        static_assert(std::is_trivially_copyable_v<T>);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    void raw(const void* data, size_t count) {
        number(static_cast<uint64_t>(count));
        if (count) bytes.append(static_cast<const char*>(data), count);
    }
    void text(const std::string& value) { raw(value.data(), value.size()); }
    template <class T>
    void list(const std::vector<T>& values) {
        number(static_cast<uint64_t>(values.size()));
        for (const T& value : values) number(value);
    }
    void tensor(const HostTensorPtr& tensor) {
        number(static_cast<uint8_t>(tensor != nullptr));
        if (!tensor) return;
        number(tensor->dtype);
        list(tensor->dims);
        raw(tensor->bytes.data(), tensor->bytes.size());
    }
    void attribute(const Attribute& attribute) {
        number(static_cast<uint8_t>(attribute.index()));
        std::visit([&](const auto& value) { this->value(value); }, attribute);
    }

    std::string bytes;

  private:
    void value(int64_t v) { number(v); }
    void value(float v) { number(v); }
    void value(const std::string& v) { text(v); }
    void value(const std::vector<int64_t>& v) { list(v); }
    void value(const std::vector<float>& v) { list(v); }
    void value(const std::vector<std::string>& v) {
        number(static_cast<uint64_t>(v.size()));
        for (const auto& each : v) text(each);
    }
    void value(const HostTensorPtr& v) { tensor(v); }
};

class Reader {
  public:
    Reader(const char* data, size_t size) : at_(data), end_(data + size) {}

    template <class T>
    T number() {
        T value;
        std::memcpy(&value, take(sizeof(T)), sizeof(T));
        return value;
    }
    std::string text() {
        const size_t size = count(1);
        const char* from = take(size);
        return std::string(from, size);
    }
    // Stands in messages.
    std::string name() {
        std::string name = text();
        if (name.find('\0') != std::string::npos) fail("the saved graph has a name with a NUL");
        return name;
    }
    template <class T>
    std::vector<T> list() {
        std::vector<T> values(count(sizeof(T)));
        for (T& value : values) value = number<T>();
        return values;
    }
    // How many elements follow, of at least `each` bytes.
    size_t count(size_t each) {
        const auto n = number<uint64_t>();
        if (n > static_cast<uint64_t>(end_ - at_) / each) fail("the saved graph is cut off");
        return static_cast<size_t>(n);
    }
    HostTensorPtr tensor() {
        if (number<uint8_t>() == 0) return nullptr;
        HostTensor tensor;
        tensor.dtype = number<uint32_t>();
        tensor.dims = list<int64_t>();
        const size_t size = count(1);
        const size_t each = dtype_bytes(tensor.dtype);
        if (each == 0 || static_cast<uint64_t>(element_count(tensor.dims)) * each != size) {
            fail("the saved graph has a tensor of another size than its dims");
        }
        const char* from = take(size);
        tensor.bytes.resize(size);
        if (size) std::memcpy(tensor.bytes.data(), from, size);
        return std::make_shared<const HostTensor>(std::move(tensor));
    }
    Attribute attribute() {
        switch (number<uint8_t>()) {
            case 0:
                return number<int64_t>();
            case 1:
                return number<float>();
            case 2:
                return text();
            case 3:
                return list<int64_t>();
            case 4:
                return list<float>();
            case 5: {
                std::vector<std::string> values(count(sizeof(uint64_t)));
                for (auto& value : values) value = text();
                return values;
            }
            case 6:
                return tensor();
            default:
                fail("the saved graph has an attribute of an unknown kind");
        }
    }
    bool at_end() const { return at_ == end_; }

  private:
    const char* take(size_t size) {
        if (size > static_cast<size_t>(end_ - at_)) fail("the saved graph is cut off");
        const char* from = at_;
        at_ += size;
        return from;
    }
    const char* at_;
    const char* end_;
};

void write_value(Writer& w, const Value& value) {
    w.text(value.name);
    w.number(value.dtype);
    w.number(static_cast<uint8_t>(value.dims.has_value()));
    w.list(value.dims.value_or(Dims{}));
    w.tensor(value.constant);
}

Value read_value(Reader& r) {
    Value value;
    value.name = r.name();
    value.dtype = r.number<uint32_t>();
    const bool known = r.number<uint8_t>() != 0;
    Dims dims = r.list<int64_t>();
    if (known) value.dims = std::move(dims);
    value.constant = r.tensor();
    if (value.dtype >= ENPU_OP_DTYPES) fail("the saved graph has an unknown element type");
    return value;
}

void write_node(Writer& w, const Node& node) {
    w.text(node.op);
    w.text(node.name);
    w.number(node.opset);
    w.list(node.inputs);
    w.list(node.outputs);
    w.number(static_cast<uint64_t>(node.attributes.size()));
    for (const auto& [key, value] : node.attributes) {
        w.text(key);
        w.attribute(value);
    }
    w.number(node.residual);
    w.number(node.activation);
}

// Every value that is named must exist; -1 is one left out.
void check_values(const Graph& graph, const std::vector<int>& values, int lowest) {
    for (int v : values) {
        if (v < lowest || v >= static_cast<int>(graph.values.size())) {
            fail("the saved graph names a value that it does not have");
        }
    }
}

Node read_node(Reader& r, const Graph& graph) {
    Node node;
    node.op = r.name();
    node.name = r.name();
    node.opset = r.number<int64_t>();
    node.inputs = r.list<int>();
    node.outputs = r.list<int>();
    for (size_t i = r.count(sizeof(uint64_t)); i > 0; --i) {
        std::string key = r.text();
        node.attributes[std::move(key)] = r.attribute();
    }
    node.residual = r.number<int>();
    node.activation = r.number<Activation>();
    check_values(graph, node.inputs, -1);
    check_values(graph, node.outputs, -1);
    check_values(graph, {node.residual}, -1);
    if (node.outputs.empty()) fail("the saved graph has a node without results");
    return node;
}

// As passes and emitters rely on: what a node reads was made before, and nothing is made twice.
void check_order(const Graph& graph) {
    std::vector<bool> made(graph.values.size(), false);
    const auto make = [&](int value) {
        if (value < 0) return;
        if (made[static_cast<size_t>(value)]) fail("the saved graph makes a value twice");
        made[static_cast<size_t>(value)] = true;
    };
    const auto need = [&](int value) {
        if (value >= 0 && !made[static_cast<size_t>(value)])
            fail("the saved graph reads a value before it is made");
    };
    for (size_t v = 0; v < graph.values.size(); ++v)
        if (graph.values[v].constant) made[v] = true;
    for (int value : graph.inputs) make(value);
    for (const Node& node : graph.nodes) {
        for (int value : node.inputs) need(value);
        need(node.residual);
        for (int value : node.outputs) make(value);
    }
    for (int value : graph.outputs) need(value);
}

}  // namespace

std::string save_graph(const Graph& graph) {
    Writer w;
    w.bytes.assign(kMagic, sizeof(kMagic));
    w.number(static_cast<uint64_t>(graph.values.size()));
    for (const Value& value : graph.values) write_value(w, value);
    w.number(static_cast<uint64_t>(graph.nodes.size()));
    for (const Node& node : graph.nodes) write_node(w, node);
    w.list(graph.inputs);
    w.list(graph.outputs);
    w.number(checksum(w.bytes.data(), w.bytes.size()));
    return std::move(w.bytes);
}

void seal_graph(std::string& bytes) {
    if (bytes.size() < sizeof(uint64_t)) return;
    const size_t body = bytes.size() - sizeof(uint64_t);
    const uint64_t sum = checksum(bytes.data(), body);
    std::memcpy(bytes.data() + body, &sum, sizeof(sum));
}

Graph load_graph(const std::string& bytes) {
    if (bytes.size() < sizeof(kMagic) + sizeof(uint64_t) ||
        std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
        fail("this is no saved graph of this version");
    }
    const size_t body = bytes.size() - sizeof(uint64_t);
    uint64_t sum = 0;
    std::memcpy(&sum, bytes.data() + body, sizeof(sum));
    if (sum != checksum(bytes.data(), body)) fail("the saved graph is damaged or cut off");
    Reader r(bytes.data() + sizeof(kMagic), body - sizeof(kMagic));
    Graph graph;
    graph.values.resize(r.count(1));
    for (Value& value : graph.values) value = read_value(r);
    graph.nodes.resize(r.count(1));
    for (Node& node : graph.nodes) node = read_node(r, graph);
    graph.inputs = r.list<int>();
    graph.outputs = r.list<int>();
    check_values(graph, graph.inputs, 0);
    check_values(graph, graph.outputs, 0);
    if (!r.at_end()) fail("the saved graph has bytes too many");
    check_order(graph);
    return graph;
}

}  // namespace enpu::lowering
