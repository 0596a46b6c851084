// SPDX-License-Identifier: MIT
// Runs ONNX's node tests on the execution provider alone: a node that falls back to another
// provider fails the session. (With --fallback it is left to the CPU provider: that tests graphs of
// which only a part is claimed.) Prints TAP. Without --all the named tests must pass; with it every
// test is tried and a refusal is a skip with the provider's reason.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>

#include <onnxruntime_cxx_api.h>

#include "tensor_file.h"

namespace enpu::conformance {
namespace {

struct Options {
    std::string data, list, ep, device = "sim";
    bool all = false;
    bool fallback = false;
};

class Engine {
  public:
    explicit Engine(const Options& o)
        : device_(o.device), fallback_(o.fallback), env_(ORT_LOGGING_LEVEL_FATAL, "conformance") {
        env_.RegisterExecutionProviderLibrary("enpu", o.ep);
        for (const Ort::ConstEpDevice& device : env_.GetEpDevices()) {
            if (std::string(device.EpName()) == "EnpuExecutionProvider") ep_ = device;
        }
        if (!ep_) throw std::runtime_error("the execution provider offers no device");
    }
    ~Engine() {
        try {
            env_.UnregisterExecutionProviderLibrary("enpu");
        } catch (const Ort::Exception&) {
            // The process ends; there is nobody left to tell.
        }
    }
    Ort::Session open(const std::string& model) {
        Ort::SessionOptions options;
        options.SetIntraOpNumThreads(1);
        if (!fallback_) options.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
        options.SetGraphOptimizationLevel(
            ORT_DISABLE_ALL);  // ORT must not fold the node under test
        Ort::KeyValuePairs provider;
        provider.Add("device", device_.c_str());
        if (fallback_) provider.Add("report", report_.c_str());
        options.AppendExecutionProvider_V2(env_, {ep_}, provider);
        return Ort::Session(env_, model.c_str(), options);
    }

    // Whether the last run had nodes on the provider; without fallback it has nothing else.
    bool took_part() {
        if (!fallback_) return true;
        std::error_code none;
        if (!std::filesystem::exists(report_, none)) return false;
        const std::string json = read_bytes(report_);
        std::filesystem::remove(report_, none);
        return json.find("\"nodes_npu\": 0,") == std::string::npos;
    }

  private:
    std::string device_;
    bool fallback_;
    std::string report_ = (std::filesystem::temp_directory_path() /
                           ("ort-conformance-" + std::to_string(getpid()) + ".json"))
                              .string();
    Ort::Env env_;
    Ort::ConstEpDevice ep_{nullptr};
};

double element(const std::byte* data, int32_t type, size_t i) {
    auto at = [&](auto zero) {
        std::memcpy(&zero, data + i * sizeof(zero), sizeof(zero));
        return static_cast<double>(zero);
    };
    switch (type) {
        case 1:
            return at(float{});
        case 2:
        case 9:
            return at(uint8_t{});
        case 3:
            return at(int8_t{});
        case 4:
            return at(uint16_t{});
        case 5:
            return at(int16_t{});
        case 6:
            return at(int32_t{});
        case 7:
            return at(int64_t{});
        case 10: {
            Ort::Float16_t half;
            std::memcpy(&half.val, data + i * 2, 2);
            return half.ToFloat();
        }
        case 11:
            return at(double{});
        case 16: {
            Ort::BFloat16_t half;
            std::memcpy(&half.val, data + i * 2, 2);
            return half.ToFloat();
        }
        default:
            return at(uint32_t{});
    }
}

// Empty when equal: exactly for integers, within ONNX's own tolerance for floats.
std::string compare(const Ort::Value& got, const StoredTensor& want) {
    const auto info = got.GetTensorTypeAndShapeInfo();
    if (info.GetElementType() != static_cast<ONNXTensorElementDataType>(want.type))
        return "another element type";
    if (info.GetShape() != want.dims) return "other dims";
    const bool half = want.type == 10 || want.type == 16;
    const bool real = half || want.type == 1 || want.type == 11;
    const double relative = real ? (want.type == 16 ? 2e-2
                                    : half          ? 5e-3
                                                    : 1e-3)
                                 : 0,
                 absolute = real ? (half ? 1e-3 : 1e-5) : 0;
    const auto* data = static_cast<const std::byte*>(got.GetTensorRawData());
    const size_t count = info.GetElementCount();
    for (size_t i = 0; i < count; ++i) {
        const double a = element(data, want.type, i), b = element(want.bytes.data(), want.type, i);
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        if (!(std::fabs(a - b) <= absolute + relative * std::fabs(b))) {
            return "element " + std::to_string(i) + " is " + std::to_string(a) + ", must be " +
                   std::to_string(b);
        }
    }
    return {};
}

StoredTensor load(const std::filesystem::path& path) {
    return parse_tensor(read_bytes(path.string()));
}

std::string run_set(Ort::Session& session, const std::filesystem::path& set) {
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    Ort::AllocatorWithDefaultOptions allocator;
    std::vector<StoredTensor> stored;
    std::vector<std::string> names, output_names;
    for (size_t i = 0; i < session.GetInputCount(); ++i) {
        stored.push_back(load(set / ("input_" + std::to_string(i) + ".pb")));
        names.emplace_back(session.GetInputNameAllocated(i, allocator).get());
    }
    std::vector<Ort::Value> inputs;
    for (StoredTensor& t : stored) {
        inputs.push_back(Ort::Value::CreateTensor(memory, t.bytes.data(), t.bytes.size(),
                                                  t.dims.data(), t.dims.size(),
                                                  static_cast<ONNXTensorElementDataType>(t.type)));
    }
    std::vector<const char*> in, out;
    for (const auto& name : names) in.push_back(name.c_str());
    for (size_t i = 0; i < session.GetOutputCount(); ++i)
        output_names.emplace_back(session.GetOutputNameAllocated(i, allocator).get());
    for (const auto& name : output_names) out.push_back(name.c_str());
    const auto results =
        session.Run(Ort::RunOptions{}, in.data(), inputs.data(), in.size(), out.data(), out.size());
    for (size_t i = 0; i < results.size(); ++i) {
        const std::string difference =
            compare(results[i], load(set / ("output_" + std::to_string(i) + ".pb")));
        if (!difference.empty()) return "output " + std::to_string(i) + ": " + difference;
    }
    return {};
}

struct Verdict {
    bool refused = false;  // the session could not be made on this provider alone
    std::string fault;
};

Verdict run_test(Engine& engine, const std::filesystem::path& dir) {
    try {
        Ort::Session session = engine.open((dir / "model.onnx").string());
        try {
            const std::string fault = run_set(session, dir / "test_data_set_0");
            if (!engine.took_part()) return {true, "no node ran on the provider"};
            return {false, fault};
        } catch (const std::exception& error) {
            return {false, error.what()};
        }
    } catch (const Ort::Exception& error) {
        return {true, error.what()};
    }
}

Options parse(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--all" || word == "--fallback") {
            (word == "--all" ? o.all : o.fallback) = true;
            continue;
        }
        std::string* value = word == "--data"     ? &o.data
                             : word == "--list"   ? &o.list
                             : word == "--ep"     ? &o.ep
                             : word == "--device" ? &o.device
                                                  : nullptr;
        if (!value || i + 1 == argc)
            throw std::runtime_error(
                "usage: ort-conformance --data DIR --list FILE --ep LIBRARY [--device SPEC] "
                "[--all] [--fallback]");
        *value = argv[++i];
    }
    return o;
}

std::string one_line(std::string text) {
    for (char& c : text) {
        if (c == '\n' || c == '#') c = ' ';
    }
    return text;
}

int run(const Options& options) {
    std::set<std::string> names;
    if (options.all) {
        for (const auto& entry : std::filesystem::directory_iterator(options.data))
            names.insert(entry.path().filename().string());
    } else {
        std::ifstream list(options.list);
        for (std::string line; std::getline(list, line);) {
            if (!line.empty() && line[0] != '#') names.insert(line);
        }
        if (names.empty())
            throw std::runtime_error("the list '" + options.list + "' names no test");
    }
    if (!std::filesystem::is_directory(options.data))
        throw std::runtime_error("there are no tests in '" + options.data + "'");
    Engine engine(options);
    std::printf("1..%zu\n", names.size());
    int number = 0, failed = 0;
    for (const std::string& name : names) {
        ++number;
        if (!std::filesystem::exists(std::filesystem::path(options.data) / name)) {
            std::printf("ok %d - %s # SKIP not in this version of the tests\n", number,
                        name.c_str());
            continue;
        }
        const Verdict v = run_test(engine, std::filesystem::path(options.data) / name);
        const bool skip = options.all && v.refused;
        const bool ok = v.fault.empty() || skip;
        failed += !ok;
        std::printf("%s %d - %s%s\n", ok ? "ok" : "not ok", number, name.c_str(),
                    skip ? (" # SKIP " + one_line(v.fault)).c_str() : "");
        if (!ok) std::printf("# %s\n", one_line(v.fault).c_str());
        std::fflush(stdout);
    }
    return failed ? 1 : 0;
}

}  // namespace
}  // namespace enpu::conformance

int main(int argc, char** argv) {
    try {
        return enpu::conformance::run(enpu::conformance::parse(argc, argv));
    } catch (const std::exception& error) {
        std::printf("Bail out! %s\n", error.what());
        return 1;
    }
}
