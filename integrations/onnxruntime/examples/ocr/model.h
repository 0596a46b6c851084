// SPDX-License-Identifier: MIT
// A model in ONNX Runtime, on the execution provider or on the CPU provider.
#ifndef ENPU_OCR_MODEL_H
#define ENPU_OCR_MODEL_H

#include <memory>
#include <string>
#include <vector>

#include <onnxruntime_cxx_api.h>

namespace enpu::ocr {

struct Tensor {
    std::vector<int64_t> dims;
    std::vector<float> data;
};

struct Placement {
    std::string device;      // spec of the execution provider's device, or "ort-cpu"
    std::string ep;          // path of the provider's library
    std::string report_dir;  // where the provider writes its reports
};

// One environment a process; registers the provider's library once.
class Engine {
  public:
    explicit Engine(Placement placement);
    ~Engine();
    Ort::Env& env() { return env_; }
    const Placement& placement() const { return placement_; }
    bool on_cpu_provider() const { return placement_.device == "ort-cpu"; }

  private:
    Placement placement_;
    Ort::Env env_;
};

class Model {
  public:
    // `name` names it in reports and dumps.
    Model(Engine& engine, const std::string& name, const std::string& path);
    // One float input, one float output. Throws Ort::Exception.
    Tensor run(const Tensor& input);
    std::string metadata(const char* key);
    const std::string& name() const { return name_; }
    const std::string& report() const { return report_; }  // path, empty on the CPU provider
    double load_ms() const { return load_ms_; }

  private:
    std::string name_, report_;
    double load_ms_ = 0;
    std::unique_ptr<Ort::Session> session_;
    std::string input_, output_;
};

double now_ms();

}  // namespace enpu::ocr
#endif
