// SPDX-License-Identifier: MIT
#include "model.h"

#include <chrono>
#include <stdexcept>

namespace enpu::ocr {
namespace {

constexpr const char* kRegistration = "enpu";
constexpr const char* kProvider = "EnpuExecutionProvider";

Ort::ConstEpDevice find_device(Ort::Env& env) {
    for (const Ort::ConstEpDevice& device : env.GetEpDevices()) {
        if (std::string(device.EpName()) == kProvider) return device;
    }
    throw std::runtime_error("the execution provider offers no device");
}

}  // namespace

double now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

Engine::Engine(Placement placement)
    : placement_(std::move(placement)), env_(ORT_LOGGING_LEVEL_ERROR, "enpu-ocr") {
    if (!on_cpu_provider()) env_.RegisterExecutionProviderLibrary(kRegistration, placement_.ep);
}

Engine::~Engine() {
    if (on_cpu_provider()) return;
    try {
        env_.UnregisterExecutionProviderLibrary(kRegistration);
    } catch (const Ort::Exception&) {
        // The process ends; there is nobody left to tell.
    }
}

Model::Model(Engine& engine, const std::string& name, const std::string& path) : name_(name) {
    const double start = now_ms();
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1);
    if (!engine.on_cpu_provider()) {
        report_ = engine.placement().report_dir + "/" + name + ".report.json";
        Ort::KeyValuePairs provider;
        provider.Add("device", engine.placement().device.c_str());
        provider.Add("report", report_.c_str());
        options.AppendExecutionProvider_V2(engine.env(), {find_device(engine.env())}, provider);
        // The provider optimises its subgraphs itself; ORT would need three times as long to load.
        options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);
    }
    session_ = std::make_unique<Ort::Session>(engine.env(), path.c_str(), options);
    if (session_->GetInputCount() != 1 || session_->GetOutputCount() != 1) {
        throw std::runtime_error("the model '" + path + "' does not have one input and one output");
    }
    Ort::AllocatorWithDefaultOptions allocator;
    input_ = session_->GetInputNameAllocated(0, allocator).get();
    output_ = session_->GetOutputNameAllocated(0, allocator).get();
    load_ms_ = now_ms() - start;
}

Tensor Model::run(const Tensor& input) {
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    const Ort::Value value =
        Ort::Value::CreateTensor<float>(memory, const_cast<float*>(input.data.data()),
                                        input.data.size(), input.dims.data(), input.dims.size());
    const char *in = input_.c_str(), *out = output_.c_str();
    auto outputs = session_->Run(Ort::RunOptions{}, &in, &value, 1, &out, 1);
    const auto info = outputs[0].GetTensorTypeAndShapeInfo();
    const float* data = outputs[0].GetTensorData<float>();
    return {info.GetShape(), std::vector<float>(data, data + info.GetElementCount())};
}

std::string Model::metadata(const char* key) {
    Ort::AllocatorWithDefaultOptions allocator;
    const auto text = session_->GetModelMetadata().LookupCustomMetadataMapAllocated(key, allocator);
    return text ? text.get() : "";
}

}  // namespace enpu::ocr
