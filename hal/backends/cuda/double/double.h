// SPDX-License-Identifier: MIT
// A stand-in for the CUDA driver library on host memory: streams are threads, so that work is as
// asynchronous as on a GPU. It runs copies, fills, events, graphs and host calls, and checks every
// address it touches; it loads no code, so that kernels are what it does not have.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../driver_api.h"
#include "control.h"

namespace enpu::hal::cuda {

struct ContextObject {
    int device = 0;
    std::atomic<int> sticky{kSuccess};
};

// The state of an event; operations in flight keep it after cuEventDestroy.
struct EventState {
    std::mutex mutex;
    std::condition_variable changed;
    uint64_t recorded = 0, completed = 0;
    uint64_t time_ns = 0;  // of the last completed record
};
struct EventObject {
    ContextObject* context;
    std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

using Operation = std::function<Result()>;

struct GraphObject {
    std::vector<Operation> operations;
};
struct GraphExecObject {
    std::shared_ptr<std::vector<Operation>> operations;
};

// Runs operations in order on a thread of its own, which outlives it until it has run everything.
class StreamWorker : public std::enable_shared_from_this<StreamWorker> {
  public:
    explicit StreamWorker(ContextObject* context) : context_(context) {}
    void begin();
    void add(Operation operation);
    void end();
    bool idle();

  private:
    void loop();

    ContextObject* const context_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Operation> waiting_;
    bool busy_ = false, ended_ = false;
};
struct StreamObject {
    ContextObject* context;
    std::shared_ptr<StreamWorker> worker;
    std::unique_ptr<GraphObject> capture;  // while it captures
};

struct MemoryPoolObject {
    int device = 0;
    uint64_t used = 0, reserved = 0;
};

}  // namespace enpu::hal::cuda

namespace enpu::hal::cuda::fake {

struct Range {
    uint64_t bytes = 0;
    enum Kind { kLocal, kPooled, kHost, kRegistered } kind = kLocal;
    int device = 0;
    MemoryPool pool = nullptr;
};

// Everything that the process has of this driver.
struct World {
    std::mutex mutex;
    enpu_cuda_double_objects live{};
    std::map<uint64_t, Range> ranges;  // by address
    std::map<int, uint64_t> taken;     // bytes of each GPU
    std::map<std::string, uint64_t> calls;
    struct Failure {
        uint64_t skip, count;
        int result;
    };
    std::map<std::string, Failure> failures;
    // What outlives its destruction, because work that hangs or blocks still in use look at it; and
    // what a GPU that is given up never gets destroyed. The driver's own, until the process ends.
    std::deque<ContextObject> contexts;
    std::deque<MemoryPoolObject> pools;
    std::map<Stream, std::unique_ptr<StreamObject>> streams;

    std::atomic<int> breaking{kSuccess};
    std::atomic<uint64_t> delay_us{0};
    std::mutex hang_mutex;
    std::condition_variable hang_changed;
    bool hang = false;
};
World& world();

uint64_t env_number(const char* name, uint64_t otherwise);
uint64_t device_bytes();

// Counts the call; an injected failure, or the sticky error of the current context, or kSuccess.
Result enter(const char* function, bool needs_context = true);
ContextObject* current();

// Puts an operation into a stream, or into the graph that it captures.
Result enqueue(Stream stream, Operation operation);

// Whether [address, address + bytes) lies in one live allocation.
bool is_memory(uint64_t address, uint64_t bytes);

#define ENPU_DOUBLE_ENTER(function) \
    if (const Result injected = enter(#function); injected != kSuccess) return injected

#define ENPU_DOUBLE_DECLARE(name, version, parameters) Result name parameters;
ENPU_CUDA_FUNCTIONS(ENPU_DOUBLE_DECLARE)
#undef ENPU_DOUBLE_DECLARE

}  // namespace enpu::hal::cuda::fake
