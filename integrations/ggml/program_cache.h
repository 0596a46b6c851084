// SPDX-License-Identifier: MIT
// Graphs of ggml as programs: lowered and encoded once, launched each time the same graph comes.
#ifndef ENPU_GGML_PROGRAM_CACHE_H
#define ENPU_GGML_PROGRAM_CACHE_H

#include <atomic>
#include <list>

#include "abi.h"
#include "program.h"

namespace enpu::ggml {

struct Counters {
    std::atomic<uint64_t> graphs{0};
    std::atomic<uint64_t> hits{0};
    std::atomic<uint64_t> nodes{0};
    std::atomic<uint64_t> kernels{0};
};

// Empty when the device can compute the node, else why not.
std::string why_not(lowering::DeviceSession& session, const ggml_tensor* node);

class ProgramCache {
  public:
    ProgramCache(std::shared_ptr<lowering::DeviceSession> session, Counters& counters)
        : session_(std::move(session)), counters_(counters) {}

    // Enqueues the graph on `stream`; does not wait. Throws lowering::Error.
    void launch(ggml_cgraph* graph, rt_stream stream);

  private:
    std::string signature(ggml_cgraph* graph) const;

    static constexpr size_t kPrograms = 32;  // the least recently used goes
    std::shared_ptr<lowering::DeviceSession> session_;
    Counters& counters_;
    std::list<std::pair<std::string, std::unique_ptr<lowering::Program>>> programs_;
};

}  // namespace enpu::ggml
#endif
