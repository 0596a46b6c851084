// SPDX-License-Identifier: MIT
// ONNX Runtime with the execution provider, and one node test on it.
#ifndef ENPU_CONFORMANCE_ENGINE_H
#define ENPU_CONFORMANCE_ENGINE_H

#include <filesystem>
#include <string>

#include <onnxruntime_cxx_api.h>

namespace enpu::conformance {

enum class Mode {
    kStrict,    // the provider alone: a node that it leaves out fails the session
    kFallback,  // what it leaves out goes to the CPU provider
    kCpu,       // without the provider
};

struct Verdict {
    enum class State { kPassed, kFailed, kRefused };  // refused: no session could be made
    State state = State::kPassed;
    std::string why;     // of a failure or refusal
    std::string report;  // of the provider, JSON; empty when there is none
};

class Engine {
  public:
    // `ep` is the provider's library, `device` its option; both unused in mode kCpu.
    Engine(Mode mode, const std::string& ep, const std::string& device);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // `dir` has model.onnx and test_data_set_0. A tensor file that cannot be read is a failure.
    Verdict run(const std::filesystem::path& dir);

  private:
    Ort::Session open(const std::string& model);
    Mode mode_;
    std::string device_, report_;
    Ort::Env env_;
    Ort::ConstEpDevice ep_{nullptr};
};

}  // namespace enpu::conformance
#endif
