// SPDX-License-Identifier: MIT
#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <set>
#include <unordered_map>

#include "arguments.h"
#include "habits.h"
#include "layers.h"
#include "order.h"
#include "status.h"
#include "structure.h"

namespace enpu::hal {
namespace {

std::atomic<FindingSink> finding_sink{nullptr};

void report(Finding finding, const std::string& message) {
    if (message.empty()) return;
    if (FindingSink sink = finding_sink.load()) return sink(finding, message.c_str());
    std::fprintf(stderr, "enpu: validate: %s: %s\n", finding_name(finding), message.c_str());
}

// Objects of one kind that live, and those that have been.
template <typename T>
struct Objects {
    struct Entry {
        enpu_hal_device* device = nullptr;
        uint64_t bytes = 0;
        uint32_t memory = 0;
        const void* host = nullptr;
    };
    std::unordered_map<T*, Entry> alive;
    std::set<T*> gone;

    void add(T* object, const Entry& entry) {
        alive[object] = entry;
        gone.erase(object);  // the address is used again
    }
};

class Validate final : public Layer {
  public:
    explicit Validate(const enpu_hal_plugin& below) : Layer(below) {
        std::lock_guard lock(all_mutex());
        all().push_back(this);
        ++count;
    }

    void close(enpu_hal_device* device) override;
    uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc,
                   enpu_hal_buffer** buffer, enpu_hal_status* status) override;
    void free(enpu_hal_buffer* buffer) override;
    uint32_t buffer_info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* info,
                         enpu_hal_status* status) override;
    uint32_t wrap(enpu_hal_device* device, void* host, uint64_t bytes, enpu_hal_buffer** buffer,
                  enpu_hal_status* status) override {
        const uint32_t code = next.memory->wrap(device, host, bytes, buffer, status);
        if (code == ENPU_HAL_OK) remember(device, *buffer);
        return code;
    }
    uint32_t buffer_export(enpu_hal_buffer* buffer, int* fd, enpu_hal_status* status) override {
        if (uint32_t code = must_live(buffers_, buffer, "buffer", status)) return code;
        return next.memory->export_fd(buffer, fd, status);
    }
    uint32_t buffer_import(enpu_hal_device* device, int fd, enpu_hal_buffer** buffer,
                           enpu_hal_status* status) override {
        const uint32_t code = next.memory->import_fd(device, fd, buffer, status);
        if (code == ENPU_HAL_OK) remember(device, *buffer);
        return code;
    }

    uint32_t queue_create(enpu_hal_device* device, const enpu_hal_queue_desc* desc,
                          enpu_hal_queue** queue, enpu_hal_status* status) override {
        return added(queues_, device, queue, next.queue->create(device, desc, queue, status));
    }
    void queue_destroy(enpu_hal_queue* queue) override {
        if (!remove(queues_, queue, "queue")) return;
        next.queue->destroy(queue);
        std::lock_guard lock(mutex_);
        order_.forget_queue(queue);
    }
    uint32_t submit(enpu_hal_queue* queue, const enpu_hal_submission* submission,
                    uint64_t deadline_ns, enpu_hal_status* status) override;

    uint32_t fence_create(enpu_hal_device* device, uint64_t initial, enpu_hal_fence** fence,
                          enpu_hal_status* status) override {
        return added(fences_, device, fence, next.fence->create(device, initial, fence, status));
    }
    void fence_destroy(enpu_hal_fence* fence) override {
        if (!remove(fences_, fence, "fence")) return;
        {
            std::lock_guard lock(mutex_);
            order_.forget_fence(fence);
        }
        next.fence->destroy(fence);
    }
    uint32_t fence_query(enpu_hal_fence* fence, uint64_t* value, enpu_hal_status* status) override {
        if (uint32_t code = must_live(fences_, fence, "fence", status)) return code;
        const uint32_t code = next.fence->query(fence, value, status);
        if (code == ENPU_HAL_OK) seen(enpu_hal_point{fence, *value});
        return code;
    }
    uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                        uint32_t any, uint64_t deadline_ns, enpu_hal_status* status) override {
        if (uint32_t code = check_points(points, count, UINT32_MAX, status)) return code;
        if (uint32_t code = check_fences(points, count, device, status)) return code;
        const uint32_t code = next.fence->wait(device, points, count, any, deadline_ns, status);
        // Work that failed has ended, too.
        const bool ended = code == ENPU_HAL_OK || code >= ENPU_HAL_ABORTED;
        for (uint32_t i = 0; ended && !any && i < count; ++i)
            if (code == ENPU_HAL_OK || next.fence->wait(device, &points[i], 1, 0, 0, nullptr) !=
                                           ENPU_HAL_DEADLINE_EXCEEDED)
                seen(points[i]);
        return code;
    }
    uint32_t fence_signal(enpu_hal_fence* fence, uint64_t value, enpu_hal_status* status) override {
        if (uint32_t code = must_live(fences_, fence, "fence", status)) return code;
        {
            std::lock_guard lock(mutex_);
            order_.signalled({fence, value});
        }
        return next.fence->signal(fence, value, status);
    }
    uint32_t fence_import(enpu_hal_device* device, int fd, enpu_hal_fence** fence,
                          enpu_hal_status* status) override {
        return added(fences_, device, fence, next.fence->import_fd(device, fd, fence, status));
    }

    uint32_t supported(enpu_hal_device* device, const enpu_hal_dispatch* dispatch,
                       enpu_hal_status* status) override {
        if (is_a(dispatch, ENPU_HAL_TYPE_DISPATCH)) {
            std::string habit;
            {
                std::lock_guard lock(mutex_);
                habit = habits_.asked_about(*dispatch);
            }
            report(Finding::kShapeLoop, habit);
        }
        return next.kernel->supported(device, dispatch, status);
    }

    uint32_t graph_create(enpu_hal_device* device, const enpu_hal_command* commands, uint32_t count,
                          enpu_hal_graph** graph, enpu_hal_status* status) override;
    void graph_destroy(enpu_hal_graph* graph) override {
        if (!remove(graphs_, graph, "graph")) return;
        next.graph->destroy(graph);
        std::lock_guard lock(mutex_);
        graph_touches_.erase(graph);
    }
    uint32_t graph_update(enpu_hal_graph* graph, uint32_t index, const enpu_hal_command* command,
                          enpu_hal_status* status) override;
    uint32_t graph_launch(enpu_hal_queue* queue, enpu_hal_graph* graph,
                          const enpu_hal_submission* submission, uint64_t deadline_ns,
                          enpu_hal_status* status) override;

    void host_access(const void* pointer, uint64_t bytes, bool writes);

    static inline std::atomic<uint32_t> count{0};  // of all()
    static std::vector<Validate*>& all() {
        static auto* layers = new std::vector<Validate*>;
        return *layers;
    }
    static std::mutex& all_mutex() {
        static std::mutex mutex;
        return mutex;
    }

  private:
    template <typename T>
    uint32_t added(Objects<T>& objects, enpu_hal_device* device, T** object, uint32_t code) {
        if (code != ENPU_HAL_OK) return code;
        std::lock_guard lock(mutex_);
        objects.add(*object, {device, 0, 0, nullptr});
        return code;
    }
    // False when it must not be passed on: it is gone already. NULL is passed on.
    template <typename T>
    bool remove(Objects<T>& objects, T* object, const char* kind) {
        std::unique_lock lock(mutex_);
        const bool known = objects.alive.erase(object) != 0;
        const bool twice = !known && objects.gone.contains(object);
        if (known) objects.gone.insert(object);
        lock.unlock();
        if (twice)
            report(Finding::kDoubleFree, std::string("a ") + kind +
                                             " is destroyed that was destroyed before: "
                                             "somebody else owned it; the call is ignored");
        return !twice;
    }
    template <typename T>
    uint32_t must_live(Objects<T>& objects, T* object, const char* kind, enpu_hal_status* status) {
        std::unique_lock lock(mutex_);
        const bool dead = objects.gone.contains(object);
        lock.unlock();
        if (!dead) return ENPU_HAL_OK;
        return refuse(Finding::kUseAfterFree, status,
                      "a %s is used that was destroyed: keep it until the work that names it has "
                      "been waited for",
                      kind);
    }
    __attribute__((format(printf, 4, 5))) uint32_t refuse(Finding finding, enpu_hal_status* status,
                                                          const char* format, ...) {
        char text[ENPU_HAL_MESSAGE_BYTES];
        va_list arguments;
        va_start(arguments, format);
        std::vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        report(finding, text);
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "%s: %.220s", finding_name(finding), text);
    }
    template <typename T>
    enpu_hal_device* device_of(Objects<T>& objects, T* object) {
        std::lock_guard lock(mutex_);
        const auto found = objects.alive.find(object);
        return found == objects.alive.end() ? nullptr : found->second.device;
    }

    void remember(enpu_hal_device* device, enpu_hal_buffer* buffer);
    void seen(const enpu_hal_point& point) {
        std::lock_guard lock(mutex_);
        order_.seen(point);
    }
    uint32_t check_fences(const enpu_hal_point* points, uint32_t count, enpu_hal_device* device,
                          enpu_hal_status* status);
    uint32_t check_command(const enpu_hal_command& command, uint32_t index, enpu_hal_device* device,
                           std::vector<Order::Touch>& touches, enpu_hal_status* status);
    uint32_t check_submission_of(enpu_hal_queue* queue, const enpu_hal_submission& submission,
                                 std::vector<Order::Touch>& touches, enpu_hal_status* status);
    void taken(enpu_hal_queue* queue, const enpu_hal_submission& submission,
               std::vector<Order::Touch> touches, uint32_t commands);

    std::mutex mutex_;
    Objects<enpu_hal_buffer> buffers_;
    Objects<enpu_hal_queue> queues_;
    Objects<enpu_hal_fence> fences_;
    Objects<enpu_hal_graph> graphs_;
    std::unordered_map<enpu_hal_graph*, std::vector<std::vector<Order::Touch>>> graph_touches_;
    Order order_;
    Habits habits_;
};

// ----------------------------------------------------------------------------- lifetimes

void Validate::close(enpu_hal_device* device) {
    size_t left[4] = {};
    const auto take = [&](auto& objects, size_t& count) {
        for (auto it = objects.alive.begin(); it != objects.alive.end();) {
            const bool own = it->second.device == device;
            count += own;
            it = own ? objects.alive.erase(it) : std::next(it);
        }
    };
    {
        std::lock_guard lock(mutex_);
        take(buffers_, left[0]);
        take(queues_, left[1]);
        take(fences_, left[2]);
        take(graphs_, left[3]);
    }
    if (left[0] + left[1] + left[2] + left[3])
        report(Finding::kLeak, "a device is closed with " + std::to_string(left[0]) + " buffers, " +
                                   std::to_string(left[1]) + " queues, " + std::to_string(left[2]) +
                                   " fences and " + std::to_string(left[3]) +
                                   " graphs alive: destroy them first, they cannot be used or "
                                   "freed afterwards");
    next.device->close(device);
}

void Validate::remember(enpu_hal_device* device, enpu_hal_buffer* buffer) {
    enpu_hal_buffer_info info{};
    info.header = table_header(sizeof(info), ENPU_HAL_TYPE_BUFFER_INFO);
    if (next.memory->info(buffer, &info, nullptr) != ENPU_HAL_OK) return;
    std::lock_guard lock(mutex_);
    buffers_.add(buffer, {device, info.bytes, info.memory, info.host});
}

uint32_t Validate::alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc,
                         enpu_hal_buffer** buffer, enpu_hal_status* status) {
    const uint32_t code = next.memory->alloc(device, desc, buffer, status);
    if (code != ENPU_HAL_OK) return code;
    remember(device, *buffer);
    std::string habit;
    {
        std::lock_guard lock(mutex_);
        const auto& entry = buffers_.alive[*buffer];
        habit = habits_.allocated(entry.bytes, entry.memory);
    }
    report(Finding::kAllocationLoop, habit);
    return code;
}

void Validate::free(enpu_hal_buffer* buffer) {
    std::string busy;
    {
        std::lock_guard lock(mutex_);
        const auto found = buffers_.alive.find(buffer);
        if (found != buffers_.alive.end()) {
            habits_.freed(found->second.bytes, found->second.memory);
            busy = order_.in_flight(buffer, 0, found->second.bytes, false, next);
            order_.forget_buffer(buffer);
        }
    }
    if (!busy.empty())
        report(Finding::kFreeInFlight, "a buffer is freed while " + busy +
                                           " of it: wait for that operation's signal first");
    if (remove(buffers_, buffer, "buffer")) next.memory->free(buffer);
}

uint32_t Validate::buffer_info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* info,
                               enpu_hal_status* status) {
    if (uint32_t code = must_live(buffers_, buffer, "buffer", status)) return code;
    return next.memory->info(buffer, info, status);
}

void Validate::host_access(const void* pointer, uint64_t bytes, bool writes) {
    std::string busy;
    {
        std::lock_guard lock(mutex_);
        const auto at = reinterpret_cast<uintptr_t>(pointer);
        for (const auto& [buffer, entry] : buffers_.alive) {
            const auto begin = reinterpret_cast<uintptr_t>(entry.host);
            if (!begin || at < begin || at - begin >= entry.bytes) continue;
            busy = order_.in_flight(buffer, at - begin, at - begin + bytes, !writes, next);
        }
    }
    if (!busy.empty())
        report(Finding::kHostAccess, std::string("the host ") + (writes ? "writes" : "reads") +
                                         " memory while " + busy +
                                         " of it: wait for that operation's signal first");
}

// ---------------------------------------------------------------------------------- work

uint32_t Validate::check_fences(const enpu_hal_point* points, uint32_t count,
                                enpu_hal_device* device, enpu_hal_status* status) {
    for (uint32_t i = 0; i < count; ++i) {
        if (uint32_t code = must_live(fences_, points[i].fence, "fence", status)) return code;
        enpu_hal_device* owner = device_of(fences_, points[i].fence);
        if (owner && owner != device)
            return refuse(Finding::kWrongDevice, status,
                          "point %u is of a fence of another device: wait for it on the host, or "
                          "share the fence",
                          i);
    }
    return ENPU_HAL_OK;
}

uint32_t Validate::check_command(const enpu_hal_command& command, uint32_t index,
                                 enpu_hal_device* device, std::vector<Order::Touch>& touches,
                                 enpu_hal_status* status) {
    Access accesses[kMostAccesses];
    uint32_t count = 0;
    // What is malformed is the backend's to refuse.
    if (accesses_of(command, accesses, count, nullptr) != ENPU_HAL_OK) return ENPU_HAL_OK;
    for (uint32_t i = 0; i < count; ++i) {
        enpu_hal_buffer* buffer = accesses[i].place.buffer;
        if (uint32_t code = must_live(buffers_, buffer, "buffer", status)) return code;
        enpu_hal_device* owner = device_of(buffers_, buffer);
        if (owner && device && owner != device)
            return refuse(Finding::kWrongDevice, status,
                          "command %u, %s: the buffer is another device's: copy through host "
                          "memory, or share the buffer",
                          index, accesses[i].what);
        const uint64_t begin = accesses[i].place.offset;
        touches.push_back({buffer, begin, begin + accesses[i].bytes, accesses[i].writes});
    }
    return ENPU_HAL_OK;
}

uint32_t Validate::check_submission_of(enpu_hal_queue* queue, const enpu_hal_submission& submission,
                                       std::vector<Order::Touch>& touches,
                                       enpu_hal_status* status) {
    if (uint32_t code = must_live(queues_, queue, "queue", status)) return code;
    enpu_hal_device* device = device_of(queues_, queue);
    if (uint32_t code = check_fences(submission.waits, submission.wait_count, device, status))
        return code;
    if (uint32_t code = check_fences(submission.signals, submission.signal_count, device, status))
        return code;
    for (uint32_t i = 0; i < submission.command_count; ++i)
        if (uint32_t code = check_command(submission.commands[i], i, device, touches, status))
            return code;
    return ENPU_HAL_OK;
}

void Validate::taken(enpu_hal_queue* queue, const enpu_hal_submission& submission,
                     std::vector<Order::Touch> touches, uint32_t commands) {
    std::string race, habit;
    {
        enpu_hal_device* device = device_of(queues_, queue);
        std::lock_guard lock(mutex_);
        race = order_.submitted(queue, submission.op_id, std::move(touches), submission.waits,
                                submission.wait_count, submission.signals, submission.signal_count);
        habit = habits_.submitted(device, commands);
    }
    report(Finding::kMissingSync, race);
    report(Finding::kDeviceSwitching, habit);
}

uint32_t Validate::submit(enpu_hal_queue* queue, const enpu_hal_submission* submission,
                          uint64_t deadline_ns, enpu_hal_status* status) {
    if (uint32_t code = check_submission(submission, UINT32_MAX, UINT32_MAX, status)) return code;
    std::vector<Order::Touch> touches;
    if (uint32_t code = check_submission_of(queue, *submission, touches, status)) return code;
    const uint32_t code = next.queue->submit(queue, submission, deadline_ns, status);
    if (code == ENPU_HAL_OK)
        taken(queue, *submission, std::move(touches), submission->command_count);
    return code;
}

uint32_t Validate::graph_create(enpu_hal_device* device, const enpu_hal_command* commands,
                                uint32_t count, enpu_hal_graph** graph, enpu_hal_status* status) {
    std::vector<std::vector<Order::Touch>> touches(commands ? count : 0);
    for (uint32_t i = 0; commands && i < count; ++i)
        if (uint32_t code = check_command(commands[i], i, device, touches[i], status)) {
            if (status) status->op_id = i + 1;
            return code;
        }
    const uint32_t code = next.graph->create(device, commands, count, graph, status);
    if (code != ENPU_HAL_OK) return code;
    std::string habit;
    {
        std::lock_guard lock(mutex_);
        graphs_.add(*graph, {device, 0, 0, nullptr});
        graph_touches_[*graph] = std::move(touches);
        habit = habits_.graph_made(count);
    }
    report(Finding::kShapeLoop, habit);
    return code;
}

uint32_t Validate::graph_update(enpu_hal_graph* graph, uint32_t index,
                                const enpu_hal_command* command, enpu_hal_status* status) {
    if (uint32_t code = must_live(graphs_, graph, "graph", status)) return code;
    std::vector<Order::Touch> touches;
    if (command)
        if (uint32_t code =
                check_command(*command, index, device_of(graphs_, graph), touches, status))
            return code;
    const uint32_t code = next.graph->update(graph, index, command, status);
    if (code != ENPU_HAL_OK) return code;
    std::lock_guard lock(mutex_);
    auto& all_touches = graph_touches_[graph];
    if (index < all_touches.size()) all_touches[index] = std::move(touches);
    return code;
}

uint32_t Validate::graph_launch(enpu_hal_queue* queue, enpu_hal_graph* graph,
                                const enpu_hal_submission* submission, uint64_t deadline_ns,
                                enpu_hal_status* status) {
    if (uint32_t code = check_submission(submission, UINT32_MAX, UINT32_MAX, status)) return code;
    if (uint32_t code = must_live(graphs_, graph, "graph", status)) return code;
    std::vector<Order::Touch> touches;
    if (uint32_t code = check_submission_of(queue, *submission, touches, status)) return code;
    uint32_t commands = 0;
    {
        std::lock_guard lock(mutex_);
        for (const auto& each : graph_touches_[graph]) {
            ++commands;
            touches.insert(touches.end(), each.begin(), each.end());
        }
    }
    const uint32_t code = next.graph->launch(queue, graph, submission, deadline_ns, status);
    if (code == ENPU_HAL_OK) taken(queue, *submission, std::move(touches), commands);
    return code;
}

}  // namespace

const char* finding_name(Finding finding) {
    static constexpr const char* kNames[] = {
        "use after free",   "wrong device", "double free",        "free in flight",
        "host access",      "missing sync", "allocation in loop", "shape work in loop",
        "device switching", "leak"};
    static_assert(sizeof(kNames) / sizeof(kNames[0]) == size_t(Finding::kCount));
    return finding < Finding::kCount ? kNames[size_t(finding)] : "?";
}

void set_finding_sink(FindingSink sink) {
    finding_sink.store(sink);
}

void note_host_access(const void* pointer, uint64_t bytes, bool writes) {
    if (Validate::count.load(std::memory_order_relaxed) == 0) [[likely]]
        return;
    std::lock_guard lock(Validate::all_mutex());
    for (Validate* layer : Validate::all()) layer->host_access(pointer, bytes, writes);
}

std::unique_ptr<Layer> make_validate_layer(const enpu_hal_plugin& below) {
    return std::make_unique<Validate>(below);
}

}  // namespace enpu::hal
