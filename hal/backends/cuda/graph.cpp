// SPDX-License-Identifier: MIT
// Graphs: records captured from a stream into graphs of the driver.
#include <algorithm>
#include <exception>
#include <memory>

#include "arguments.h"
#include "queue.h"
#include "status.h"

using namespace enpu::hal::cuda;

namespace {

// An update makes its segment again: short ones make that cheap, long ones make launches cheap.
constexpr size_t kSegmentRecords = 256;

}  // namespace

enpu_hal_graph::~enpu_hal_graph() {
    --device->counters.graphs;
    Gpu& gpu = device->gpu;
    const InContext in(gpu);
    for (Segment& segment : segments) {
        if (segment.exec) gpu.api.cuGraphExecDestroy(segment.exec);
        if (segment.workspace && !gpu.is_lost()) gpu.give_back(segment.workspace);
    }
    if (capture) gpu.api.cuStreamDestroy(capture);
    if (offence && !gpu.is_lost()) gpu.api.cuMemFreeHost(offence);
}

bool enpu_hal_graph::claim(const void* job) {
    const auto fallible = [](const Segment& segment) { return segment.fallible; };
    if (std::none_of(segments.begin(), segments.end(), fallible)) return true;
    const void* nobody = nullptr;
    return claimed_.load() == job || claimed_.compare_exchange_strong(nobody, job);
}

void enpu_hal_graph::release(const void* job) {
    claimed_.compare_exchange_strong(job, nullptr);
}

uint32_t enpu_hal_graph::build(enpu_hal_status* status) {
    std::lock_guard lock(mutex_);
    bool changed = false;
    for (Segment& segment : segments) {
        if (!segment.stale) continue;
        if (uint32_t code = build_segment(segment, status)) return code;
        changed = true;
    }
    if (!changed) return ENPU_HAL_OK;
    totals = {};
    for (const Record& record : records) totals.add(record);
    return ENPU_HAL_OK;
}

// No launch of a stale segment is unfinished, so that its room can be exchanged.
void enpu_hal_graph::make_room(Segment& segment) {
    Gpu& gpu = device->gpu;
    uint64_t bytes = 0;
    for (size_t i = 0; i < segment.count; ++i)
        bytes = std::max(bytes, records[segment.first + i].workspace_bytes());
    if (bytes <= segment.workspace_bytes) return;
    if (segment.workspace) gpu.give_back(segment.workspace);
    segment.workspace = 0;
    segment.workspace_bytes =
        gpu.take(bytes, &segment.workspace, nullptr) == ENPU_HAL_OK ? bytes : 0;
    if (segment.workspace_bytes == 0) segment.workspace = 0;
}

Result enpu_hal_graph::capture_segment(Segment& segment, Graph* graph, const char** what) {
    const Driver& api = device->gpu.api;
    Result error = api.cuStreamBeginCapture(capture, kCaptureRelaxed);
    if (error != kSuccess) return error;
    for (size_t i = 0; i < segment.count && error == kSuccess; ++i) {
        Record& record = records[segment.first + i];
        error = issue(*device, record, capture, segment.workspace);
        if (error != kSuccess && record.kernel_missing()) *what = issue_what(record);
    }
    // The capture ends whatever happened in it.
    const Result ended = api.cuStreamEndCapture(capture, graph);
    return error == kSuccess ? ended : error;
}

uint32_t enpu_hal_graph::build_segment(Segment& segment, enpu_hal_status* status) {
    Gpu& gpu = device->gpu;
    const Driver& api = gpu.api;
    const char* what = "graph: capturing commands";
    make_room(segment);
    Graph graph = nullptr;
    Result error = capture_segment(segment, &graph, &what);
    // A library that failed may have spoilt the capture: it is not asked a second time.
    if (error == kStreamCaptureInvalidated && !graph)
        error = capture_segment(segment, &graph, &what);
    if (error == kSuccess && segment.exec) {
        GraphUpdateInfo info{};
        if (api.cuGraphExecUpdate(segment.exec, graph, &info) != kSuccess) {
            // It cannot take this change: made anew.
            api.cuGraphExecDestroy(segment.exec);
            segment.exec = nullptr;
        }
    }
    if (error == kSuccess && !segment.exec)
        error = api.cuGraphInstantiateWithFlags(&segment.exec, graph, 0);
    if (graph) api.cuGraphDestroy(graph);
    segment.stale = error != kSuccess;
    return gpu.result(status, ENPU_HAL_RESOURCE_EXHAUSTED, error, what);
}

namespace enpu::hal::cuda {
namespace {

uint32_t prepare(enpu_hal_graph& graph, enpu_hal_status* status) {
    Gpu& gpu = graph.device->gpu;
    void* words = nullptr;
    DevicePtr address = 0;
    Result error = gpu.api.cuStreamCreateWithPriority(&graph.capture, kStreamNonBlocking, 0);
    if (error == kSuccess)
        error = gpu.api.cuMemHostAlloc(&words, sizeof(Offence), kHostPortable | kHostDeviceMap);
    graph.offence = static_cast<Offence*>(words);
    if (error == kSuccess) error = gpu.api.cuMemHostGetDevicePointer(&address, words, 0);
    graph.offence_address = address;
    return gpu.result(status, ENPU_HAL_RESOURCE_EXHAUSTED, error, "graph: making a stream");
}

// Checks the commands and cuts them into segments.
uint32_t fill(enpu_hal_graph& graph, const enpu_hal_command* commands, uint32_t count,
              enpu_hal_status* status) {
    graph.records.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t code = commands[i].kind == ENPU_HAL_COMMAND_HOST_CALL
                                  ? fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: no host calls")
                                  : resolve(*graph.device, commands[i], graph.offence_address,
                                            graph.records[i], status);
        if (code != ENPU_HAL_OK) {
            if (status) status->op_id = i + 1;
            return code;
        }
        if (graph.segments.empty() || graph.segments.back().fallible ||
            graph.segments.back().count == kSegmentRecords)
            graph.segments.push_back({.first = i});
        ++graph.segments.back().count;
        graph.segments.back().fallible = graph.records[i].fallible();
    }
    return graph.build(status);
}

uint32_t graph_create(enpu_hal_device* device, const enpu_hal_command* commands, uint32_t count,
                      enpu_hal_graph** graph, enpu_hal_status* status) {
    if (count == 0) return fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: has no commands");
    if (uint32_t code = device->gpu.check(status)) return code;
    const InContext in(device->gpu);
    try {
        auto made = std::make_unique<enpu_hal_graph>(device);
        if (uint32_t code = prepare(*made, status)) return code;
        if (uint32_t code = fill(*made, commands, count, status)) return code;
        *graph = made.release();
    } catch (const std::exception&) {
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "graph: no host memory for %u commands",
                    count);
    }
    return ENPU_HAL_OK;
}

void graph_destroy(enpu_hal_graph* graph) {
    delete graph;
}

enpu_hal_graph::Segment& segment_of(enpu_hal_graph& graph, uint32_t index) {
    for (enpu_hal_graph::Segment& segment : graph.segments)
        if (index < segment.first + segment.count) return segment;
    return graph.segments.back();
}

uint32_t graph_update(enpu_hal_graph* graph, uint32_t index, const enpu_hal_command* command,
                      enpu_hal_status* status) {
    if (index >= graph->records.size())
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: has no command %u", index);
    Record record;
    if (uint32_t code = resolve(*graph->device, *command, graph->offence_address, record, status))
        return code;
    const Record& old = graph->records[index];
    if (record.kind != old.kind || record.op != old.op)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "graph: command %u can only be replaced by one of its kind", index);
    graph->records[index] = record;
    // Captured again by the next launch, once for any number of updates.
    segment_of(*graph, index).stale = true;
    return ENPU_HAL_OK;
}

uint32_t graph_launch(enpu_hal_queue* queue, enpu_hal_graph* graph,
                      const enpu_hal_submission* submission, uint64_t deadline_ns,
                      enpu_hal_status* status) {
    if (uint32_t code = check_submission(submission, kMaxCommands, kMaxPoints, status)) return code;
    return queue->submit(*submission, graph, deadline_ns, status);
}

}  // namespace

const enpu_hal_graph_table kGraph = {
    table_header(sizeof(enpu_hal_graph_table), ENPU_HAL_TYPE_GRAPH_TABLE), graph_create,
    graph_destroy, graph_update, graph_launch};

}  // namespace enpu::hal::cuda
