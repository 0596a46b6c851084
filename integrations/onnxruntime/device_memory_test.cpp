// SPDX-License-Identifier: MIT
// Values in the device's memory from C++: bound as inputs and outputs they are not copied, and nodes
// on ONNX Runtime's CPU provider may stand between those on the device.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "onnxruntime_cxx_api.h"

namespace {

using Floats = std::vector<float>;
constexpr int64_t kWidth = 8;

// ---- the provider, registered once

struct Library {
    Ort::Env env{ORT_LOGGING_LEVEL_FATAL, "device-memory"};
    Ort::ConstEpDevice device{nullptr};
    Library() {
        const char* path = std::getenv("ENPU_ORT_EP");
        env.RegisterExecutionProviderLibrary("enpu", path ? path : "libenpu-ort-ep.so");
        for (const Ort::ConstEpDevice& offered : env.GetEpDevices()) {
            const char* memory = offered.EpMetadata().GetValue("memory");
            if (memory && std::string(memory) == "device") device = offered;
        }
        if (!device) throw std::runtime_error("the provider does not offer the device's memory");
    }
};

Library& library() {
    static Library* one = new Library;  // the library outlives what it made
    return *one;
}

Ort::Env& env() {
    return library().env;
}

Ort::ConstMemoryInfo memory(OrtDeviceMemoryType type = OrtDeviceMemoryType_DEFAULT) {
    return library().device.GetMemoryInfo(type);
}

// ---- values

Ort::Value value_in(OrtAllocator* allocator, int64_t rows) {
    const std::array<int64_t, 2> dims{rows, kWidth};
    return Ort::Value::CreateTensor(allocator, dims.data(), dims.size(),
                                    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
}

Ort::Value on_device(int64_t rows) {
    return value_in(env().GetSharedAllocator(memory()), rows);
}

Ort::Value on_host(Floats& values) {
    static const auto cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
    const std::array<int64_t, 2> dims{static_cast<int64_t>(values.size()) / kWidth, kWidth};
    return Ort::Value::CreateTensor<float>(cpu, values.data(), values.size(), dims.data(),
                                           dims.size());
}

// Whichever of the two is on the device.
void copy(Ort::Value from, Ort::Value& to) {
    std::vector<Ort::Value> source, target;
    source.push_back(std::move(from));
    target.push_back(std::move(to));
    const Ort::Status status = env().CopyTensors(source, target, nullptr);
    to = std::move(target[0]);
    INFO((status.IsOK() ? std::string() : status.GetErrorMessage()));
    REQUIRE(status.IsOK());
}

Floats fetched(Ort::Value& value) {
    Floats values(value.GetTensorTypeAndShapeInfo().GetElementCount());
    Ort::Value target = on_host(values);
    std::vector<Ort::Value> source, targets;
    source.push_back(std::move(value));
    targets.push_back(std::move(target));
    const Ort::Status status = env().CopyTensors(source, targets, nullptr);
    value = std::move(source[0]);
    REQUIRE(status.IsOK());
    return values;
}

Floats numbers(int64_t rows, int seed) {
    Floats values(static_cast<size_t>(rows * kWidth));
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = std::sin(static_cast<float>(i * 7 + static_cast<size_t>(seed) * 31));
    }
    return values;
}

// ---- models: x [n, 8] goes through products with w, with or without a node between them that the
// provider leaves out

Floats weights() {
    Floats values = numbers(kWidth, 99);
    for (float& v : values) v *= 0.3F;
    return values;
}

Ort::ValueInfo info(const char* name) {
    const std::vector<std::string> symbols{"n", ""};
    Ort::TensorTypeAndShapeInfo shape(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {-1, kWidth}, &symbols);
    return Ort::ValueInfo(name, Ort::TypeInfo::CreateTensorInfo(shape.GetConst()).GetConst());
}

// Operators of one or two operands; the second is w. Einsum with this equation is a product as well.
Ort::Model chain(const std::vector<std::string>& operators, Floats& stored) {
    Ort::Graph graph;
    std::vector<Ort::ValueInfo> inputs, outputs;
    inputs.push_back(info("x"));
    outputs.push_back(info("y"));
    graph.SetInputs(inputs);
    graph.SetOutputs(outputs);
    Ort::Value w = on_host(stored);
    graph.AddInitializer("w", w, true);
    std::string last = "x";
    for (size_t i = 0; i < operators.size(); ++i) {
        const std::string next = i + 1 == operators.size() ? "y" : "v" + std::to_string(i);
        std::vector<std::string> operands{last};
        std::vector<Ort::OpAttr> attributes;
        if (operators[i] != "Tanh") operands.emplace_back("w");
        if (operators[i] == "Einsum") {
            const std::string equation = "ij,jk->ik";
            attributes.emplace_back("equation", equation.data(), static_cast<int>(equation.size()),
                                    ORT_OP_ATTR_STRING);
        }
        Ort::Node node(operators[i], "", "n" + std::to_string(i), operands, {next}, attributes);
        graph.AddNode(node);
        last = next;
    }
    Ort::Model model({{"", 17}});
    model.AddGraph(graph);
    return model;
}

Floats reference(const std::vector<std::string>& operators, Floats x) {
    const Floats w = weights();
    for (const std::string& name : operators) {
        if (name == "Tanh") {
            for (float& v : x) v = std::tanh(v);
            continue;
        }
        Floats next(x.size(), 0);
        for (size_t i = 0; i < x.size(); ++i) {
            for (size_t k = 0; k < kWidth; ++k)
                next[i] += x[i / kWidth * kWidth + k] * w[k * kWidth + i % kWidth];
        }
        x = std::move(next);
    }
    return x;
}

void require_close(const Floats& got, const Floats& want) {
    REQUIRE(got.size() == want.size());
    for (size_t i = 0; i < got.size(); ++i) {
        REQUIRE_THAT(got[i], Catch::Matchers::WithinAbs(want[i], 1e-4));
    }
}

// ---- a session, and what the provider reported after its last run

class Run {
  public:
    explicit Run(std::vector<std::string> operators, bool strict = true)
        : operators_(std::move(operators)), weights_(weights()) {
        report_ = (std::filesystem::temp_directory_path() /
                   ("ort-device-memory-" + std::to_string(getpid()) + ".json"))
                      .string();
        Ort::SessionOptions options;
        options.SetIntraOpNumThreads(1);
        options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
        if (strict) options.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
        Ort::KeyValuePairs settings;
        settings.Add("report", report_.c_str());
        options.AppendExecutionProvider_V2(env(), {library().device}, settings);
        const Ort::Model model = chain(operators_, weights_);
        session_ = Ort::Session(env(), model, options);
    }
    ~Run() { std::filesystem::remove(report_); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    void operator()(const Ort::Value& x, const Ort::Value& y) {
        Ort::IoBinding binding(session_);
        binding.BindInput("x", x);
        binding.BindOutput("y", y);
        session_.Run(Ort::RunOptions{}, binding);
    }
    // The output is made by ONNX Runtime in that memory.
    Ort::Value output(const Ort::Value& x, const OrtMemoryInfo* where) {
        Ort::IoBinding binding(session_);
        binding.BindInput("x", x);
        binding.BindOutput("y", where);
        session_.Run(Ort::RunOptions{}, binding);
        return std::move(binding.GetOutputValues().at(0));
    }
    nlohmann::json report() const { return nlohmann::json::parse(std::ifstream(report_)); }
    Floats want(const Floats& x) const { return reference(operators_, x); }

  private:
    std::vector<std::string> operators_;
    Floats weights_;  // the model reads them where they are
    std::string report_;
    Ort::Session session_{nullptr};
};

const std::vector<std::string> kWhole{"MatMul", "Tanh", "MatMul"};
const std::vector<std::string> kMixed{"MatMul", "Einsum", "MatMul", "Tanh"};

}  // namespace

TEST_CASE("bound operands in device memory are not copied") {
    Run run(kWhole);
    Floats x = numbers(5, 1);
    std::array<Ort::Value, 2> values{on_device(5), on_device(5)};
    copy(on_host(x), values[0]);
    for (size_t i = 0; i < 6; ++i) {  // the output of a run is the input of the next
        run(values[i % 2], values[1 - i % 2]);
        x = run.want(x);
        const auto last = run.report()["last_run"];
        INFO(last.dump());
        CHECK(last["ops"]["matmul_fwd"] == 2);
        if (i == 0) continue;  // the weights went up
        CHECK(last["copies"] == 0);
        CHECK(last["copy_bytes"] == 0);
        CHECK(last["bytes_h2d"] == 0);
        CHECK(last["bytes_d2h"] == 0);
    }
    require_close(fetched(values[0]), x);
}

TEST_CASE("an output that ONNX Runtime makes is in the memory that was asked for") {
    Run run(kWhole);
    const Floats x = numbers(3, 2);
    Ort::Value bound = on_device(3);
    Floats sent = x;
    copy(on_host(sent), bound);
    Ort::Value there = run.output(bound, memory());
    CHECK(there.GetTensorMemoryInfo().GetDeviceType() == OrtMemoryInfoDeviceType_NPU);
    require_close(fetched(there), run.want(x));

    const auto cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
    const Ort::Value here = run.output(bound, cpu);
    const float* data = here.GetTensorData<float>();
    require_close(Floats(data, data + x.size()), run.want(x));
}

TEST_CASE("pinned host memory is bound as input") {
    Run run(kWhole);
    const Floats x = numbers(4, 3);
    Ort::Value pinned =
        value_in(env().GetSharedAllocator(memory(OrtDeviceMemoryType_HOST_ACCESSIBLE)), 4);
    std::copy(x.begin(), x.end(), pinned.GetTensorMutableData<float>());
    Ort::Value y = on_device(4);
    run(pinned, y);
    require_close(fetched(y), run.want(x));
}

TEST_CASE("a node on the CPU provider between nodes on the device") {
    Run run(kMixed, false);
    Ort::Value x = on_device(6), y = on_device(6);
    for (int seed = 0; seed < 4; ++seed) {
        Floats sent = numbers(6, seed);
        copy(on_host(sent), x);
        run(x, y);
        require_close(fetched(y), run.want(sent));
        const auto report = run.report();
        INFO(report.dump());
        CHECK(report["nodes_npu"] == 3);
        CHECK(report["subgraphs"] == 2);
        REQUIRE(report["left_out"].size() == 1);
        CHECK(report["left_out"][0]["op"] == "Einsum");
        CHECK(report["last_run"]["ops"]["matmul_fwd"] == 2);
        if (seed == 0) continue;
        // What the node on the CPU reads and writes, and nothing else.
        CHECK(report["last_run"]["bytes_d2h"] == 6 * kWidth * 4);
        CHECK(report["last_run"]["bytes_h2d"] == 6 * kWidth * 4);
    }
}

TEST_CASE("a node on the CPU provider first and last, and operands in host memory") {
    Run run({"Einsum", "MatMul", "Einsum"}, false);
    for (int64_t rows : {2, 7, 2}) {
        Floats x = numbers(rows, static_cast<int>(rows)), y(x.size());
        const Ort::Value from = on_host(x), to = on_host(y);
        run(from, to);
        require_close(y, run.want(x));
    }
    Ort::Value x = on_device(4), y = on_device(4);
    Floats sent = numbers(4, 8);
    copy(on_host(sent), x);
    run(x, y);
    require_close(fetched(y), run.want(sent));
}

TEST_CASE("the allocator counts what is in use and gives it back") {
    auto allocator = env().GetSharedAllocator(memory());
    const auto used = [&] { return std::stoull(allocator.GetStats().GetValue("InUse")); };
    const auto before = used();
    {
        const Ort::Value large = on_device(1 << 14);
        CHECK(used() >= before + (uint64_t{1} << 14) * kWidth * 4);
    }
    CHECK(used() == before);
}

TEST_CASE("a value whose allocation failed is an error where it is used") {
    Run run(kWhole);
    const Ort::Value none = on_device(int64_t{1} << 40);
    REQUIRE(none.GetTensorRawData() == nullptr);
    const Ort::Value y = on_device(2);
    CHECK_THROWS_WITH(run(none, y), Catch::Matchers::ContainsSubstring("allocation"));
    Floats x = numbers(2, 1);
    Ort::Value good = on_device(2);
    copy(on_host(x), good);
    run(good, y);
}

TEST_CASE("sizes that differ are not copied") {
    std::vector<Ort::Value> from, to;
    Floats x = numbers(2, 1);
    from.push_back(on_host(x));
    to.push_back(on_device(3));
    CHECK_FALSE(env().CopyTensors(from, to, nullptr).IsOK());
}
