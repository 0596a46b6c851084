// SPDX-License-Identifier: MIT
// The words that a language model holds to be near to a word: the cosine of its embedding with all
// others, on any device that ggml has loaded.
//
//     GGML_BACKEND_PATH=libenpu-ggml.so ENPU_DEVICE=npu enpu-ggml-nearest MODEL.gguf WORD [DEVICE]
//
// DEVICE is a name of ggml, default NPU0; "CPU" gives the reference.
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml.h>
#include <gguf.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr size_t kShown = 10;
constexpr const char* kTable = "token_embd.weight";
constexpr const char* kWords = "tokenizer.ggml.tokens";

template <class T, void (*Free)(T*)>
using Owned = std::unique_ptr<T, decltype([](T* p) { Free(p); })>;
using Context = Owned<ggml_context, ggml_free>;
using Backend = Owned<ggml_backend, ggml_backend_free>;
using Buffer = Owned<ggml_backend_buffer, ggml_backend_buffer_free>;
using Allocator = Owned<ggml_gallocr, ggml_gallocr_free>;

[[noreturn]] void fail(const std::string& why) {
    throw std::runtime_error(why);
}

Context make_context(size_t tensors) {
    const ggml_init_params params{tensors * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr,
                                  true};
    return Context(ggml_init(params));
}

// ---- the file: its words, and the table of their embeddings

struct Model {
    std::vector<std::string> words;
    ggml_type type;
    int64_t width;
    std::vector<char> table;
};

Model read_model(const std::string& path) {
    ggml_context* described = nullptr;
    const Owned<gguf_context, gguf_free> file(
        gguf_init_from_file(path.c_str(), {true, &described}));
    if (!file) fail("'" + path + "' is no GGUF file, or is cut off");
    const Context tensors(described);
    const int64_t words = gguf_find_key(file.get(), kWords);
    const int64_t index = gguf_find_tensor(file.get(), kTable);
    if (words < 0 || gguf_get_kv_type(file.get(), words) != GGUF_TYPE_ARRAY ||
        gguf_get_arr_type(file.get(), words) != GGUF_TYPE_STRING) {
        fail("'" + path + "' has no list of words");
    }
    if (index < 0) fail("'" + path + "' has no tensor " + kTable);
    const ggml_tensor* table = ggml_get_tensor(tensors.get(), kTable);
    Model model{{}, table->type, table->ne[0], {}};
    for (size_t i = 0; i < gguf_get_arr_n(file.get(), words); ++i)
        model.words.emplace_back(gguf_get_arr_str(file.get(), words, i));
    if (ggml_n_dims(table) != 2 || table->ne[1] != static_cast<int64_t>(model.words.size()))
        fail("'" + path + "': there is not one embedding for each word");
    model.table.resize(ggml_nbytes(table));
    std::ifstream in(path, std::ios::binary);
    in.seekg(static_cast<std::streamoff>(gguf_get_data_offset(file.get()) +
                                         gguf_get_tensor_offset(file.get(), index)));
    if (!in.read(model.table.data(), static_cast<std::streamsize>(model.table.size())))
        fail("'" + path + "' ends inside of " + kTable);
    return model;
}

// Inside a sentence words begin with a blank, which the list spells as U+0120.
int32_t find_word(const Model& model, const std::string& word) {
    for (const std::string& spelling : {"\u0120" + word, word}) {
        const auto at = std::find(model.words.begin(), model.words.end(), spelling);
        if (at != model.words.end()) return static_cast<int32_t>(at - model.words.begin());
    }
    fail("the model has no single token for '" + word + "'");
}

// ---- the graph

struct Graph {
    Context context = make_context(64);
    ggml_tensor *table, *word, *nearness;
    ggml_cgraph* nodes;

    explicit Graph(const Model& model) {
        ggml_context* c = context.get();
        table = ggml_new_tensor_2d(c, model.type, model.width,
                                   static_cast<int64_t>(model.words.size()));
        word = ggml_new_tensor_1d(c, GGML_TYPE_I32, 1);
        ggml_tensor* mine = ggml_get_rows(c, table, word);
        ggml_tensor* products = ggml_mul_mat(c, table, ggml_l2_norm(c, mine, 1e-9F));
        ggml_tensor* squares = ggml_sqr(c, ggml_cast(c, table, GGML_TYPE_F32));
        ggml_tensor* lengths = ggml_sqrt(c, ggml_sum_rows(c, squares));
        nearness = ggml_div(c, products, ggml_reshape_2d(c, lengths, products->ne[0], 1));
        nodes = ggml_new_graph(c);
        ggml_build_forward_expand(nodes, nearness);
    }
};

std::vector<float> run(const Model& model, int32_t word, ggml_backend_t backend) {
    Graph graph(model);
    ggml_backend_dev_t device = ggml_backend_get_device(backend);
    for (int i = 0; i < ggml_graph_n_nodes(graph.nodes); ++i) {
        const ggml_tensor* node = ggml_graph_node(graph.nodes, i);
        if (!ggml_backend_dev_supports_op(device, node))
            fail(std::string(ggml_backend_dev_name(device)) + " does not compute " +
                 ggml_op_desc(node));
    }
    const Buffer buffer(ggml_backend_alloc_ctx_tensors(graph.context.get(), backend));
    if (!buffer) fail("the device's memory does not hold the model");
    ggml_backend_tensor_set(graph.table, model.table.data(), 0, model.table.size());
    ggml_backend_tensor_set(graph.word, &word, 0, sizeof(word));
    if (ggml_backend_graph_compute(backend, graph.nodes) != GGML_STATUS_SUCCESS)
        fail("the graph failed; the reason is in the log");
    std::vector<float> nearness(model.words.size());
    ggml_backend_tensor_get(graph.nearness, nearness.data(), 0, nearness.size() * sizeof(float));
    return nearness;
}

void show(const Model& model, int32_t word, const std::vector<float>& nearness) {
    std::vector<size_t> order(nearness.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const size_t count = std::min(kShown + 1, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                      order.end(), [&](size_t a, size_t b) { return nearness[a] > nearness[b]; });
    for (size_t i = 0; i < count; ++i) {
        if (order[i] == static_cast<size_t>(word)) continue;
        const std::string& name = model.words[order[i]];
        std::printf("%.4f %s\n", static_cast<double>(nearness[order[i]]),
                    name.starts_with("\u0120") ? name.c_str() + 2 : name.c_str());
    }
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 3 || argc > 4) fail("usage: enpu-ggml-nearest MODEL.gguf WORD [DEVICE]");
    const std::string name = argc > 3 ? argv[3] : "NPU0";
    ggml_backend_load_all();
    ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
    if (!device) fail("ggml has no device '" + name + "'; is GGML_BACKEND_PATH set?");
    const Model model = read_model(argv[1]);
    const int32_t word = find_word(model, argv[2]);
    const Backend backend(ggml_backend_dev_init(device, nullptr));
    if (!backend) fail("the device '" + name + "' cannot be opened; the reason is in the log");
    show(model, word, run(model, word, backend.get()));
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "enpu-ggml-nearest: %s\n", error.what());
    return 1;
}
