// SPDX-License-Identifier: MIT
#include "engine.h"

#include <unistd.h>

#include <stdexcept>
#include <vector>

#include "compare.h"

namespace enpu::conformance {
namespace {

constexpr int32_t kUint16 = ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16;
constexpr int32_t kBfloat16 = ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;

StoredTensor load(const std::filesystem::path& set, const char* kind, size_t index) {
    return parse_tensor(
        read_bytes((set / (kind + ("_" + std::to_string(index)) + ".pb")).string()));
}

// The test data has the bits of bfloat16 as 16-bit integers.
void retype(StoredTensor& tensor, const Ort::TypeInfo& declared) {
    if (tensor.type == kUint16 && declared.GetONNXType() == ONNX_TYPE_TENSOR &&
        declared.GetTensorTypeAndShapeInfo().GetElementType() == kBfloat16) {
        tensor.type = kBfloat16;
    }
}

std::vector<const char*> pointers(const std::vector<std::string>& names) {
    std::vector<const char*> result;
    for (const auto& name : names) result.push_back(name.c_str());
    return result;
}

std::string run_set(Ort::Session& session, const std::filesystem::path& set) {
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    Ort::AllocatorWithDefaultOptions allocator;
    std::vector<StoredTensor> stored;
    std::vector<std::string> names, output_names;
    for (size_t i = 0; i < session.GetInputCount(); ++i) {
        stored.push_back(load(set, "input", i));
        retype(stored.back(), session.GetInputTypeInfo(i));
        names.emplace_back(session.GetInputNameAllocated(i, allocator).get());
    }
    std::vector<Ort::Value> inputs;
    for (StoredTensor& t : stored) {
        inputs.push_back(Ort::Value::CreateTensor(memory, t.bytes.data(), t.bytes.size(),
                                                  t.dims.data(), t.dims.size(),
                                                  static_cast<ONNXTensorElementDataType>(t.type)));
    }
    for (size_t i = 0; i < session.GetOutputCount(); ++i)
        output_names.emplace_back(session.GetOutputNameAllocated(i, allocator).get());
    const auto in = pointers(names), out = pointers(output_names);
    const auto results =
        session.Run(Ort::RunOptions{}, in.data(), inputs.data(), in.size(), out.data(), out.size());
    for (size_t i = 0; i < results.size(); ++i) {
        StoredTensor want = load(set, "output", i);
        retype(want, session.GetOutputTypeInfo(i));
        const std::string difference = compare(results[i], want);
        if (!difference.empty()) return "output " + std::to_string(i) + ": " + difference;
    }
    return {};
}

}  // namespace

Engine::Engine(Mode mode, const std::string& ep, const std::string& device)
    : mode_(mode), device_(device), env_(ORT_LOGGING_LEVEL_FATAL, "conformance") {
    if (mode_ == Mode::kCpu) return;
    report_ = (std::filesystem::temp_directory_path() /
               ("ort-conformance-" + std::to_string(getpid()) + ".json"))
                  .string();
    env_.RegisterExecutionProviderLibrary("enpu", ep);
    for (const Ort::ConstEpDevice& offered : env_.GetEpDevices()) {
        const char* memory = offered.EpMetadata().GetValue("memory");
        if (memory && std::string(memory) == "host") ep_ = offered;
    }
    if (!ep_) throw std::runtime_error("the execution provider offers no device");
}

Engine::~Engine() {
    if (mode_ == Mode::kCpu) return;
    try {
        env_.UnregisterExecutionProviderLibrary("enpu");
    } catch (const Ort::Exception&) {
        // The process ends; there is nobody left to tell.
    }
}

Ort::Session Engine::open(const std::string& model) {
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1);
    // ONNX Runtime must not fold the node under test.
    options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
    if (mode_ == Mode::kStrict) options.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
    if (mode_ != Mode::kCpu) {
        Ort::KeyValuePairs provider;
        provider.Add("device", device_.c_str());
        provider.Add("report", report_.c_str());
        options.AppendExecutionProvider_V2(env_, {ep_}, provider);
    }
    return Ort::Session(env_, model.c_str(), options);
}

Verdict Engine::run(const std::filesystem::path& dir) {
    std::error_code none;
    if (!report_.empty()) std::filesystem::remove(report_, none);
    Verdict verdict;
    try {
        Ort::Session session = open((dir / "model.onnx").string());
        try {
            verdict.why = run_set(session, dir / "test_data_set_0");
        } catch (const std::exception& error) {
            verdict.why = error.what();
        }
        if (!verdict.why.empty()) verdict.state = Verdict::State::kFailed;
    } catch (const Ort::Exception& error) {
        return {Verdict::State::kRefused, error.what(), {}};
    }
    if (!report_.empty() && std::filesystem::exists(report_, none)) {
        verdict.report = read_bytes(report_);
    }
    return verdict;
}

}  // namespace enpu::conformance
