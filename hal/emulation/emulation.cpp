// SPDX-License-Identifier: MIT
#include "emulation.h"

#include <exception>
#include <map>
#include <memory>
#include <mutex>

#include "arguments.h"
#include "layer.h"
#include "queue.h"
#include "ranges.h"
#include "status.h"
#include "structure.h"

namespace enpu::hal {
namespace {

struct EmulatedGraph {
    enpu_hal_device* device;
    CommandList list;
};

EmulatedQueue* queue_of(enpu_hal_queue* handle) {
    return reinterpret_cast<EmulatedQueue*>(handle);
}

EmulatedGraph* graph_of(enpu_hal_graph* handle) {
    return reinterpret_cast<EmulatedGraph*>(handle);
}

// Queues, and graphs where the backend has none, are its own objects; all other handles are the
// backend's.
class Emulation final : public Layer {
  public:
    explicit Emulation(const enpu_hal_plugin& below)
        : Layer(below), graphs_(!(below.caps & ENPU_HAL_CAP_GRAPH)), fences_(below) {}

    uint32_t enumerate(uint32_t index, enpu_hal_device_info* info,
                       enpu_hal_status* status) override {
        const uint32_t code = next.driver->enumerate(index, info, status);
        if (code == ENPU_HAL_OK) info->caps |= kEmulatedCaps;
        return code;
    }
    uint32_t device_info(enpu_hal_device* device, enpu_hal_device_info* info,
                         enpu_hal_status* status) override {
        const uint32_t code = next.device->info(device, info, status);
        if (code == ENPU_HAL_OK) info->caps |= kEmulatedCaps;
        return code;
    }

    uint32_t queue_create(enpu_hal_device* device, const enpu_hal_queue_desc* desc,
                          enpu_hal_queue** queue, enpu_hal_status* status) override {
        enpu_hal_device_info info{};
        info.header = table_header(sizeof(info), ENPU_HAL_TYPE_DEVICE_INFO);
        if (uint32_t code = next.device->info(device, &info, status)) return code;
        if (uint32_t code = check_queue_desc(desc, info.copy_engines, status)) return code;
        try {
            auto made =
                std::make_unique<EmulatedQueue>(next, fences_, device, info, desc->timeout_ns);
            if (uint32_t code = made->open(*desc, status)) return code;
            *queue = reinterpret_cast<enpu_hal_queue*>(made.release());
        } catch (const std::exception&) {
            return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "queue: no host memory");
        }
        return ENPU_HAL_OK;
    }
    void queue_destroy(enpu_hal_queue* queue) override { delete queue_of(queue); }

    uint32_t submit(enpu_hal_queue* queue, const enpu_hal_submission* submission,
                    uint64_t deadline_ns, enpu_hal_status* status) override {
        EmulatedQueue& to = *queue_of(queue);
        if (uint32_t code =
                check_submission(submission, to.info().max_commands, to.info().max_points, status))
            return code;
        try {
            if (!to.direct(*submission)) return to.submit(*submission, {}, deadline_ns, status);
        } catch (const std::exception&) {
            return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "submit: no host memory");
        }
        return pass(next.queue->submit(to.handle(), submission, deadline_ns, status), *submission);
    }

    void fence_destroy(enpu_hal_fence* fence) override {
        if (fence) fences_.forget(fence);
        next.fence->destroy(fence);
    }
    uint32_t fence_query(enpu_hal_fence* fence, uint64_t* value, enpu_hal_status* status) override {
        const uint32_t code = next.fence->query(fence, value, status);
        if (code != ENPU_HAL_OK || !fences_.any_failed()) return code;
        enpu_hal_status why{};
        const uint64_t from = fences_.failed_from(fence, &why);
        if (from == UINT64_MAX) return code;
        if (*value >= from) *value = from - 1;
        return fail_as(status, why);
    }
    uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                        uint32_t any, uint64_t deadline_ns, enpu_hal_status* status) override {
        if (uint32_t code = check_points(points, count, UINT32_MAX, status)) return code;
        uint32_t code = failure_among(points, count, any, status);
        if (code != ENPU_HAL_OK) return code;
        code = next.fence->wait(device, points, count, any, deadline_ns, status);
        const uint32_t here = failure_among(points, count, any, status);
        return here ? here : code;
    }
    uint32_t fence_signal(enpu_hal_fence* fence, uint64_t value, enpu_hal_status* status) override {
        enpu_hal_status why{};
        if (fences_.any_failed() && fences_.failed_from(fence, &why) != UINT64_MAX)
            return fail_as(status, why);
        return next.fence->signal(fence, value, status);
    }

    uint32_t graph_create(enpu_hal_device* device, const enpu_hal_command* commands, uint32_t count,
                          enpu_hal_graph** graph, enpu_hal_status* status) override;
    void graph_destroy(enpu_hal_graph* graph) override {
        if (!graphs_) return next.graph->destroy(graph);
        delete graph_of(graph);
    }
    uint32_t graph_update(enpu_hal_graph* graph, uint32_t index, const enpu_hal_command* command,
                          enpu_hal_status* status) override;
    uint32_t graph_launch(enpu_hal_queue* queue, enpu_hal_graph* graph,
                          const enpu_hal_submission* submission, uint64_t deadline_ns,
                          enpu_hal_status* status) override;

  private:
    uint32_t pass(uint32_t code, const enpu_hal_submission& submission) {
        if (code == ENPU_HAL_OK && !(next.caps & ENPU_HAL_CAP_WAIT_EARLY))
            fences_.submitted(submission.signals, submission.signal_count);
        return code;
    }
    // A failure that decides the wait: one that failed, unless any will do and another is reached.
    uint32_t failure_among(const enpu_hal_point* points, uint32_t count, uint32_t any,
                           enpu_hal_status* status) {
        if (!fences_.any_failed()) return ENPU_HAL_OK;
        enpu_hal_status why{};
        bool failed = false, reached = false;
        for (uint32_t i = 0; i < count; ++i) {
            uint64_t value = 0;
            if (fences_.failed(points[i], &why))
                failed = true;
            else if (any && next.fence->query(points[i].fence, &value, nullptr) == ENPU_HAL_OK)
                reached |= value >= points[i].value;
        }
        return failed && !reached ? fail_as(status, why) : uint32_t(ENPU_HAL_OK);
    }

    const bool graphs_;  // made here
    Fences fences_;
};

uint32_t Emulation::graph_create(enpu_hal_device* device, const enpu_hal_command* commands,
                                 uint32_t count, enpu_hal_graph** graph, enpu_hal_status* status) {
    if (!graphs_) return next.graph->create(device, commands, count, graph, status);
    if (count == 0 || !commands)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: has no commands");
    try {
        auto made = std::make_unique<EmulatedGraph>();
        made->device = device;
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t code =
                commands[i].kind == ENPU_HAL_COMMAND_HOST_CALL
                    ? fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: no host calls")
                    : check_command(next, device, commands[i], status);
            if (code != ENPU_HAL_OK) {
                if (status) status->op_id = i + 1;
                return code;
            }
            made->list.append(commands[i]);
        }
        *graph = reinterpret_cast<enpu_hal_graph*>(made.release());
    } catch (const std::exception&) {
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "graph: no host memory for %u commands",
                    count);
    }
    return ENPU_HAL_OK;
}

uint32_t Emulation::graph_update(enpu_hal_graph* graph, uint32_t index,
                                 const enpu_hal_command* command, enpu_hal_status* status) {
    if (!graphs_) return next.graph->update(graph, index, command, status);
    EmulatedGraph& own = *graph_of(graph);
    if (index >= own.list.size() || !command)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "graph: has no command %u", index);
    const enpu_hal_command& old = own.list[index];
    if (command->kind != old.kind || (command->kind == ENPU_HAL_COMMAND_DISPATCH &&
                                      command->u.dispatch->op != old.u.dispatch->op))
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "graph: command %u can only be replaced by one of its kind", index);
    if (uint32_t code = check_command(next, own.device, *command, status)) return code;
    try {
        own.list.replace(index, *command);
    } catch (const std::exception&) {
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "graph: no host memory");
    }
    return ENPU_HAL_OK;
}

uint32_t Emulation::graph_launch(enpu_hal_queue* queue, enpu_hal_graph* graph,
                                 const enpu_hal_submission* submission, uint64_t deadline_ns,
                                 enpu_hal_status* status) {
    EmulatedQueue& to = *queue_of(queue);
    if (uint32_t code = check_submission(submission, 0, to.info().max_points, status)) return code;
    if (!graphs_ && to.direct(*submission))
        return pass(next.graph->launch(to.handle(), graph, submission, deadline_ns, status),
                    *submission);
    if (graphs_ && graph_of(graph)->device != to.device())
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "launch: the graph is another device's");
    EmulatedQueue::Launch launch;
    if (graphs_)
        launch.list = &graph_of(graph)->list;
    else
        launch.graph = graph;
    try {
        return to.submit(*submission, launch, deadline_ns, status);
    } catch (const std::exception&) {
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "launch: no host memory");
    }
}

}  // namespace

const enpu_hal_plugin* complete(const enpu_hal_plugin& plugin) {
    if ((plugin.caps & kEmulatedCaps) == kEmulatedCaps) return &plugin;
    const enpu_hal_plugin* made =
        interpose(std::make_unique<Emulation>(plugin), plugin, plugin.caps | kEmulatedCaps);
    return made ? made : &plugin;
}

}  // namespace enpu::hal
