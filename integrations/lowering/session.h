// SPDX-License-Identifier: MIT
// Lowered graphs on a device: weights, compiled programs, runs.
#ifndef ENPU_LOWERING_SESSION_H
#define ENPU_LOWERING_SESSION_H

#include <functional>
#include <list>
#include <mutex>
#include <unordered_map>

#include "claim.h"
#include "passes.h"
#include "rt.h"

namespace enpu::lowering {

void check(rt_status status, const char* what);  // throws Error with the status' own sentence

// Constants on the device, each form once for all programs. Not thread-safe: used under the lock of
// the session.
class WeightStore {
  public:
    // Without `pack` constants stay as they are: another device could not read this one's layout.
    WeightStore(rt_device device, rt_stream stream, bool pack)
        : device_(device), stream_(stream), pack_(pack) {}
    ~WeightStore();
    WeightStore(const WeightStore&) = delete;
    WeightStore& operator=(const WeightStore&) = delete;

    struct Weight {
        void* data = nullptr;
        bool packed = false;
        enpu_op_tensor desc{};  // of the packed form
    };
    const Weight& get(const Constant& constant);
    uint64_t bytes() const { return bytes_; }
    size_t count() const { return weights_.size(); }

  private:
    Weight upload(const Constant& constant);
    void* allocate(uint64_t bytes);
    Weight pack(const Constant& constant, const enpu_op_tensor& plain, uint64_t packed_bytes);
    rt_device device_;
    rt_stream stream_;
    bool pack_;
    std::map<std::string, Weight> weights_;
    std::vector<void*> owned_;
    std::vector<HostTensorPtr> kept_;  // keys hold their addresses
    uint64_t bytes_ = 0;
};

struct DeviceOptions {
    std::string spec;
    // Spec of the device that goes on when an operation fails on the first one or it is lost
    // (rt_policy.h: every operation is then waited for); empty: failures are errors.
    std::string fallback;
    void (*notice)(void* context, const char* text) = nullptr;  // told of each such event
    void* context = nullptr;
};

// One opening of a device; memory belongs to it.
class OpenDevice {
  public:
    explicit OpenDevice(const DeviceOptions& options);
    ~OpenDevice();
    OpenDevice(const OpenDevice&) = delete;
    OpenDevice& operator=(const OpenDevice&) = delete;
    rt_device handle() const { return device_; }
    bool has_fallback() const { return has_fallback_; }

  private:
    rt_device device_ = nullptr;
    bool has_fallback_ = false;
};

rt_stream make_stream(rt_device device, const char* name);  // throws Error

// A device and a stream of its own, shared by the executables of a framework session.
class DeviceSession {
  public:
    explicit DeviceSession(const std::string& spec);
    explicit DeviceSession(std::shared_ptr<OpenDevice> device);
    ~DeviceSession();
    DeviceSession(const DeviceSession&) = delete;
    DeviceSession& operator=(const DeviceSession&) = delete;

    rt_device device() const { return device_->handle(); }
    rt_stream stream() const { return stream_; }
    WeightStore& weights() { return *weights_; }
    std::mutex& lock() { return lock_; }
    std::string check_kernel(const Kernel& kernel);  // empty, or why the device refuses it

  private:
    std::shared_ptr<OpenDevice> device_;
    rt_stream stream_ = nullptr;
    std::unique_ptr<WeightStore> weights_;
    std::mutex lock_;
};

struct ExecutableStats {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t evictions = 0;
    uint64_t runs = 0;
    uint64_t compile_ns = 0;
    uint64_t kernels = 0;  // of the last program
    uint64_t arena_bytes = 0;
    uint64_t lower_bound_bytes = 0;  // no plan of the program's memory needs less
};

struct RunInput {
    const void* data = nullptr;  // row-major
    Dims dims;
    bool on_host = false;  // host memory even in a run on device memory; copied then
};

// Where the operands of a run are.
struct RunPlace {
    // Inputs (but those that say otherwise) and outputs are device memory: kernels read and write
    // them directly, and the run is enqueued only. Else they are host memory, and the run is
    // finished on return.
    bool on_device = false;
    rt_stream stream = nullptr;  // for a run on the device; NULL: the session's own, waited for
};

struct Program;

class Executable {
  public:
    // Takes the graph as it is and optimises it. At most `max_programs` sets of shapes stay
    // compiled.
    Executable(std::shared_ptr<DeviceSession> session, Graph graph, size_t max_programs);
    ~Executable();

    using Output = std::function<void*(size_t, const Dims&)>;
    // `output(i, dims)` gives memory for output i. One run at a time. Throws Error.
    void run(const std::vector<RunInput>& inputs, const Output& output, const RunPlace& place = {});

    const Graph& graph() const { return graph_; }
    const OptimiseReport& optimised() const { return optimised_; }
    ExecutableStats stats() const;

  private:
    Program& program_for(const std::vector<RunInput>& inputs);
    std::unique_ptr<Program> compile(const std::vector<RunInput>& inputs);
    void run_on_host_memory(const std::vector<RunInput>& inputs, const Output& output);
    void run_on_device_memory(std::vector<RunInput> inputs, const Output& output,
                              const RunPlace& place);
    uint64_t input_bytes(const RunInput& input, size_t index) const;

    std::shared_ptr<DeviceSession> session_;
    Graph graph_;
    OptimiseReport optimised_;
    std::vector<bool> host_inputs_;
    size_t max_programs_;
    std::list<std::pair<std::string, std::unique_ptr<Program>>> programs_;  // newest first
    ExecutableStats stats_;
};

}  // namespace enpu::lowering
#endif
