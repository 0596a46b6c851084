// SPDX-License-Identifier: MIT
// model-bench MODEL.onnx [options]: latency of Run on the execution provider and on ONNX Runtime's CPU
// provider, in turns, same inputs, same number of threads. Results go to stdout as JSON.
//   --dims NAME=1,3,320,320   dims of an input whose shape the model leaves open; 1 for each that is not said
//   --device SPEC             of the execution provider (docs/onnxruntime.md)
//   --ep LIBRARY              the execution provider
//   --runs N  --threads N  --side both|ours|peer
#include <onnxruntime_cxx_api.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

namespace {

struct Options {
    std::string model, device = "sim:cores=1,threads=1", ep = "libenpu-ort-ep.so", side = "both";
    std::vector<std::string> dims;
    unsigned runs = 9;
    int threads = 1;
};

double now_ms() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(now).count();
}

size_t element_bytes(ONNXTensorElementDataType type) {
    switch (type) {
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
            return 4;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
            return 8;
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
        case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
            return 1;
        default:
            throw std::runtime_error("an input has an element type that is not supported here");
    }
}

// What both sides get.
struct Input {
    std::string name;
    ONNXTensorElementDataType type;
    std::vector<int64_t> dims;
    std::vector<std::byte> data;
};

std::vector<int64_t> dims_of(const std::string& text) {
    std::vector<int64_t> dims;
    for (const char* at = text.c_str(); *at != 0;) {
        char* end = nullptr;
        dims.push_back(std::strtoll(at, &end, 10));
        if (end == at || dims.back() < 0)
            throw std::runtime_error("--dims: '" + text + "' is no list of dims");
        at = *end == ',' ? end + 1 : end;
    }
    return dims;
}

void fill(Input& input) {
    size_t count = 1;
    for (const int64_t dim : input.dims) count *= static_cast<size_t>(dim);
    input.data.resize(count * element_bytes(input.type));
    if (input.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
        auto* x = reinterpret_cast<float*>(input.data.data());
        for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>((i * 37) % 101) / 50.5f - 1.0f;
    } else if (input.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64) {
        // Numbers of words, sample rates: small ones are in every range. 16000 is that of speech models.
        auto* x = reinterpret_cast<int64_t*>(input.data.data());
        for (size_t i = 0; i < count; ++i)
            x[i] = count == 1 ? 16000 : static_cast<int64_t>(i % 7) + 1;
    } else {
        for (size_t i = 0; i < input.data.size(); ++i) input.data[i] = std::byte(i % 5);
    }
}

std::vector<Input> make_inputs(const Ort::Session& session, const Options& options) {
    std::map<std::string, std::vector<int64_t>> wanted;
    for (const std::string& text : options.dims) {
        const size_t equals = text.find('=');
        if (equals == std::string::npos)
            throw std::runtime_error("--dims takes NAME=DIMS, not '" + text + "'");
        wanted[text.substr(0, equals)] = dims_of(text.substr(equals + 1));
    }
    Ort::AllocatorWithDefaultOptions allocator;
    std::vector<Input> inputs;
    for (size_t i = 0; i < session.GetInputCount(); ++i) {
        const auto type = session.GetInputTypeInfo(i);
        const auto info = type.GetTensorTypeAndShapeInfo();
        Input input{session.GetInputNameAllocated(i, allocator).get(),
                    info.GetElementType(),
                    info.GetShape(),
                    {}};
        if (const auto found = wanted.find(input.name); found != wanted.end())
            input.dims = found->second;
        for (int64_t& dim : input.dims)
            if (dim < 0) dim = 1;
        fill(input);
        inputs.push_back(std::move(input));
    }
    return inputs;
}

class Side {
  public:
    Side(Ort::Env& env, const Options& options, bool ours, const std::string& report) {
        const double begin = now_ms();
        Ort::SessionOptions settings;
        settings.SetIntraOpNumThreads(options.threads);
        if (ours) {
            Ort::KeyValuePairs provider;
            provider.Add("device", options.device.c_str());
            provider.Add("report", report.c_str());
            for (const Ort::ConstEpDevice& device : env.GetEpDevices()) {
                if (std::string(device.EpName()) != "EnpuExecutionProvider") continue;
                settings.AppendExecutionProvider_V2(env, {device}, provider);
                settings.SetGraphOptimizationLevel(
                    ORT_DISABLE_ALL);  // the provider optimises itself
                break;
            }
        } else {
            settings.SetGraphOptimizationLevel(ORT_ENABLE_ALL);
        }
        session_ = std::make_unique<Ort::Session>(env, options.model.c_str(), settings);
        Ort::AllocatorWithDefaultOptions allocator;
        for (size_t i = 0; i < session_->GetOutputCount(); ++i)
            outputs_.push_back(session_->GetOutputNameAllocated(i, allocator).get());
        load_ms_ = now_ms() - begin;
    }
    Ort::Session& session() { return *session_; }
    double load_ms() const { return load_ms_; }

    // ms of one Run; keeps the outputs.
    double run(const std::vector<Input>& inputs) {
        const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
        std::vector<Ort::Value> values;
        std::vector<const char*> in, out;
        for (const Input& input : inputs) {
            in.push_back(input.name.c_str());
            values.push_back(Ort::Value::CreateTensor(
                memory, const_cast<std::byte*>(input.data.data()), input.data.size(),
                input.dims.data(), input.dims.size(), input.type));
        }
        for (const std::string& name : outputs_) out.push_back(name.c_str());
        const double begin = now_ms();
        results_ = session_->Run(Ort::RunOptions{}, in.data(), values.data(), values.size(),
                                 out.data(), out.size());
        return now_ms() - begin;
    }
    const std::vector<Ort::Value>& results() const { return results_; }

  private:
    std::unique_ptr<Ort::Session> session_;
    std::vector<std::string> outputs_;
    std::vector<Ort::Value> results_;
    double load_ms_ = 0;
};

// Largest difference of float outputs relative to the largest magnitude of the tensor: a figure counts only
// for results that are right.
double largest_error(const Side& ours, const Side& peer) {
    double worst = 0;
    for (size_t i = 0; i < ours.results().size(); ++i) {
        const Ort::Value &a = ours.results()[i], &b = peer.results()[i];
        const auto info = b.GetTensorTypeAndShapeInfo();
        if (info.GetElementType() != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) continue;
        if (a.GetTensorTypeAndShapeInfo().GetShape() != info.GetShape())
            throw std::runtime_error("outputs differ in shape");
        const float *x = a.GetTensorData<float>(), *y = b.GetTensorData<float>();
        // Where all outputs are nearly 0, their differences say nothing.
        double magnitude = 0.01, difference = 0;
        for (size_t n = 0; n < info.GetElementCount(); ++n) {
            magnitude = std::max(magnitude, std::fabs(double(y[n])));
            difference = std::max(difference, std::fabs(double(x[n]) - y[n]));
        }
        worst = std::max(worst, difference / magnitude);
    }
    return worst;
}

nlohmann::json last_report(const std::string& path) {
    std::ifstream file(path);
    return file ? nlohmann::json::parse(file, nullptr, false) : nlohmann::json();
}

int bench(const Options& options) {
    Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "model-bench");
    const std::string report =
        (std::filesystem::temp_directory_path() / ("model-bench." + std::to_string(getpid())))
            .string();
    nlohmann::ordered_json result{{"model", std::filesystem::path(options.model).filename()}};
    {
        std::unique_ptr<Side> ours, peer;
        if (options.side != "peer") {
            env.RegisterExecutionProviderLibrary("enpu", options.ep);
            ours = std::make_unique<Side>(env, options, true, report);
        }
        if (options.side != "ours") peer = std::make_unique<Side>(env, options, false, report);
        const auto inputs = make_inputs((ours ? ours : peer)->session(), options);
        std::vector<double> our_ms, peer_ms;
        if (ours) result["first_ms"] = ours->run(inputs);
        if (peer) result["peer_first_ms"] = peer->run(inputs);
        if (ours && peer) result["error"] = largest_error(*ours, *peer);
        for (unsigned run = 0; run < options.runs; ++run) {
            if (peer && run % 2) peer_ms.push_back(peer->run(inputs));
            if (ours) our_ms.push_back(ours->run(inputs));
            if (peer && run % 2 == 0) peer_ms.push_back(peer->run(inputs));
        }
        if (ours) {
            result["load_ms"] = ours->load_ms();
            result["last_ms"] = our_ms.back();
            result["report"] = last_report(report);
        }
        result["ours"] = our_ms;
        result["peer"] = peer_ms;
    }
    std::filesystem::remove(report);
    std::printf("%s\n", result.dump(1).c_str());
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("latency of a model on the NPU and on ONNX Runtime's CPU provider");
    app.add_option("model", options.model, "ONNX file")->required()->check(CLI::ExistingFile);
    app.add_option("--dims", options.dims, "NAME=DIMS of an input");
    app.add_option("--device", options.device, "device spec");
    app.add_option("--ep", options.ep, "the execution provider's library");
    app.add_option("--runs", options.runs, "samples")->check(CLI::Range(1, 10000));
    app.add_option("--threads", options.threads, "of the CPU provider")->check(CLI::Range(1, 64));
    app.add_option("--side", options.side, "who runs")
        ->check(CLI::IsMember({"both", "ours", "peer"}));
    CLI11_PARSE(app, argc, argv);
    try {
        return bench(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "model-bench: %s\n", error.what());
        return 1;
    }
}
