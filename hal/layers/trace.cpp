// SPDX-License-Identifier: MIT
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "layers.h"
#include "op_table.h"
#include "status.h"

namespace enpu::hal {
namespace {

std::atomic<TraceSink> trace_sink{nullptr};
std::atomic<TraceRecorder> trace_recorder{nullptr};

// The file of ENPU_HAL_TRACE, or null.
std::FILE* trace_file() {
    static std::FILE* file = [] {
        const char* path = std::getenv("ENPU_HAL_TRACE");
        std::FILE* opened = path ? std::fopen(path, "ae") : nullptr;
        if (path && !opened) std::fprintf(stderr, "enpu: trace: %s cannot be opened\n", path);
        return opened;
    }();
    return file;
}

void write_line(const TracedCall& call) {
    const uint64_t took = call.end_ns - call.start_ns;
    char line[640];
    std::snprintf(
        line, sizeof(line),
        "{\"name\":\"%s\",\"cat\":\"hal\",\"ph\":\"X\",\"ts\":%" PRIu64 ".%03" PRIu64
        ",\"dur\":%" PRIu64 ".%03" PRIu64 ",\"pid\":%d,\"tid\":%ld,\"args\":{%s%s\"code\":\"%s\"}}",
        call.name, call.start_ns / 1000, call.start_ns % 1000, took / 1000, took % 1000, getpid(),
        syscall(SYS_gettid), call.arguments, call.arguments[0] ? "," : "", code_name(call.code));
    if (TraceSink sink = trace_sink.load()) return sink(line);
    std::FILE* file = trace_file() ? trace_file() : stderr;
    std::fprintf(file, "%s\n", line);
    std::fflush(file);
}

void tell(const TracedCall& call) {
    const TraceRecorder recorder = trace_recorder.load();
    const bool kept = recorder && recorder(call);
    if (!kept || trace_sink.load() || trace_file()) write_line(call);
}

// One call. The arguments are a piece of JSON, without braces.
class Call {
  public:
    __attribute__((format(printf, 3, 4))) Call(const char* name, const char* format, ...)
        : name_(name), start_(now_ns()) {
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(arguments_, sizeof(arguments_), format, arguments);
        va_end(arguments);
    }
    uint32_t ends(uint32_t code) {
        tell({name_, start_, now_ns(), code, arguments_});
        return code;
    }

  private:
    const char* name_;
    const uint64_t start_;
    char arguments_[256];
};

const char* first_command(const enpu_hal_submission* submission) {
    if (!submission || !submission->commands || submission->command_count == 0) return "none";
    const enpu_hal_command& command = submission->commands[0];
    switch (command.kind) {
        case ENPU_HAL_COMMAND_COPY:
            return "copy";
        case ENPU_HAL_COMMAND_FILL:
            return "fill";
        case ENPU_HAL_COMMAND_TIMESTAMP:
            return "timestamp";
        case ENPU_HAL_COMMAND_HOST_CALL:
            return "host_call";
        case ENPU_HAL_COMMAND_DISPATCH: {
            const OpInfo* info = command.u.dispatch ? find_op(command.u.dispatch->op) : nullptr;
            return info ? info->name : "dispatch";
        }
    }
    return "unknown";
}

#define POINTER(p) reinterpret_cast<uintptr_t>(p)
#define OBJECT "\"object\":\"0x%" PRIxPTR "\""

class Trace final : public Layer {
  public:
    using Layer::Layer;

    uint32_t open(const char* spec, enpu_hal_device** device, enpu_hal_status* status) override {
        Call call("driver.open", "\"spec\":\"%.60s\"", spec ? spec : "");
        return call.ends(next.driver->open(spec, device, status));
    }
    void close(enpu_hal_device* device) override {
        Call call("device.close", OBJECT, POINTER(device));
        next.device->close(device);
        call.ends(ENPU_HAL_OK);
    }
    uint32_t device_check(enpu_hal_device* device, enpu_hal_status* status) override {
        Call call("device.check", OBJECT, POINTER(device));
        return call.ends(next.device->check(device, status));
    }
    uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc,
                   enpu_hal_buffer** buffer, enpu_hal_status* status) override {
        Call call("memory.alloc", "\"bytes\":%" PRIu64 ",\"memory\":%u", desc ? desc->bytes : 0,
                  desc ? desc->memory : 0);
        return call.ends(next.memory->alloc(device, desc, buffer, status));
    }
    void free(enpu_hal_buffer* buffer) override {
        Call call("memory.free", OBJECT, POINTER(buffer));
        next.memory->free(buffer);
        call.ends(ENPU_HAL_OK);
    }
    uint32_t wrap(enpu_hal_device* device, void* host, uint64_t bytes, enpu_hal_buffer** buffer,
                  enpu_hal_status* status) override {
        Call call("memory.wrap", "\"bytes\":%" PRIu64, bytes);
        return call.ends(next.memory->wrap(device, host, bytes, buffer, status));
    }
    uint32_t buffer_export(enpu_hal_buffer* buffer, int* fd, enpu_hal_status* status) override {
        Call call("memory.export_fd", OBJECT, POINTER(buffer));
        return call.ends(next.memory->export_fd(buffer, fd, status));
    }
    uint32_t buffer_import(enpu_hal_device* device, int fd, enpu_hal_buffer** buffer,
                           enpu_hal_status* status) override {
        Call call("memory.import_fd", "\"fd\":%d", fd);
        return call.ends(next.memory->import_fd(device, fd, buffer, status));
    }
    uint32_t queue_create(enpu_hal_device* device, const enpu_hal_queue_desc* desc,
                          enpu_hal_queue** queue, enpu_hal_status* status) override {
        Call call("queue.create", "\"engine\":%u,\"priority\":%d", desc ? desc->engine : 0,
                  desc ? desc->priority : 0);
        return call.ends(next.queue->create(device, desc, queue, status));
    }
    void queue_destroy(enpu_hal_queue* queue) override {
        Call call("queue.destroy", OBJECT, POINTER(queue));
        next.queue->destroy(queue);
        call.ends(ENPU_HAL_OK);
    }
    uint32_t submit(enpu_hal_queue* queue, const enpu_hal_submission* submission, uint64_t deadline,
                    enpu_hal_status* status) override {
        Call call("queue.submit",
                  OBJECT ",\"op\":%" PRIu64
                         ",\"commands\":%u,\"first\":\"%s\",\"waits\":%u,"
                         "\"signals\":%u",
                  POINTER(queue), submission ? submission->op_id : 0,
                  submission ? submission->command_count : 0, first_command(submission),
                  submission ? submission->wait_count : 0,
                  submission ? submission->signal_count : 0);
        return call.ends(next.queue->submit(queue, submission, deadline, status));
    }
    uint32_t fence_create(enpu_hal_device* device, uint64_t initial, enpu_hal_fence** fence,
                          enpu_hal_status* status) override {
        Call call("fence.create", "\"initial\":%" PRIu64, initial);
        return call.ends(next.fence->create(device, initial, fence, status));
    }
    void fence_destroy(enpu_hal_fence* fence) override {
        Call call("fence.destroy", OBJECT, POINTER(fence));
        next.fence->destroy(fence);
        call.ends(ENPU_HAL_OK);
    }
    uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                        uint32_t any, uint64_t deadline, enpu_hal_status* status) override {
        Call call("fence.wait", "\"points\":%u,\"any\":%u,\"value\":%" PRIu64, count, any,
                  points && count ? points[0].value : 0);
        return call.ends(next.fence->wait(device, points, count, any, deadline, status));
    }
    uint32_t fence_signal(enpu_hal_fence* fence, uint64_t value, enpu_hal_status* status) override {
        Call call("fence.signal", OBJECT ",\"value\":%" PRIu64, POINTER(fence), value);
        return call.ends(next.fence->signal(fence, value, status));
    }
    uint32_t supported(enpu_hal_device* device, const enpu_hal_dispatch* dispatch,
                       enpu_hal_status* status) override {
        const OpInfo* info = dispatch ? find_op(dispatch->op) : nullptr;
        Call call("kernel.supported", "\"kernel\":\"%s\"", info ? info->name : "unknown");
        return call.ends(next.kernel->supported(device, dispatch, status));
    }
    uint32_t graph_create(enpu_hal_device* device, const enpu_hal_command* commands, uint32_t count,
                          enpu_hal_graph** graph, enpu_hal_status* status) override {
        Call call("graph.create", "\"commands\":%u", count);
        return call.ends(next.graph->create(device, commands, count, graph, status));
    }
    void graph_destroy(enpu_hal_graph* graph) override {
        Call call("graph.destroy", OBJECT, POINTER(graph));
        next.graph->destroy(graph);
        call.ends(ENPU_HAL_OK);
    }
    uint32_t graph_update(enpu_hal_graph* graph, uint32_t index, const enpu_hal_command* command,
                          enpu_hal_status* status) override {
        Call call("graph.update", OBJECT ",\"index\":%u", POINTER(graph), index);
        return call.ends(next.graph->update(graph, index, command, status));
    }
    uint32_t graph_launch(enpu_hal_queue* queue, enpu_hal_graph* graph,
                          const enpu_hal_submission* submission, uint64_t deadline,
                          enpu_hal_status* status) override {
        Call call("graph.launch", OBJECT ",\"op\":%" PRIu64, POINTER(graph),
                  submission ? submission->op_id : 0);
        return call.ends(next.graph->launch(queue, graph, submission, deadline, status));
    }
};

}  // namespace

void set_trace_sink(TraceSink sink) {
    trace_sink.store(sink);
}

void set_trace_recorder(TraceRecorder recorder) {
    trace_recorder.store(recorder);
}

std::unique_ptr<Layer> make_trace_layer(const enpu_hal_plugin& below) {
    return std::make_unique<Trace>(below);
}

}  // namespace enpu::hal
