// SPDX-License-Identifier: MIT
#include "queue.h"

#include <algorithm>
#include <atomic>
#include <bit>

using namespace enpu;

namespace {

// How long a wait looks at the fence itself before it sleeps: waking up costs more than that.
constexpr int64_t kSpinNs = 50'000;
// The clock costs more than a look.
constexpr int kLooksPerClock = 16;

void pause_cpu() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// Why the context fails, if it does.
int context_failure(enpu_queue* queue, int code, enpu_error* error) {
    drm_enpu_ctx_status status{};
    status.ctx_id = queue->context->id;
    const int result = queue->context->device->os->ctx_status(&status);
    if (result != 0)
        return fail(error, result, "the context's status cannot be read: %s",
                    errno_text(result).c_str());
    if (code == 0) code = status.error;
    if (code == 0) return 0;
    if (status.error == 0)
        return fail(error, code, "the queue ended: %s", errno_text(code).c_str());
    return fail(error, code, "%s", describe_failure(status).c_str());
}

// What the completion record says of an entry whose fence was reached. With the queue's mutex held.
int entry_result(enpu_queue* queue, uint64_t fence, enpu_error* error) {
    const enpu_completion& record = queue->completions[(fence - 1) & (queue->entries - 1)];
    const uint64_t about = __atomic_load_n(&record.fence, __ATOMIC_ACQUIRE);
    // A later turn of the ring may have taken its place: it has ended long ago.
    if (about < fence || about > queue->tail || (about - fence) % queue->entries != 0)
        return fail(error, -EREMOTEIO,
                    "enpu_queue_wait: fence %llu was reached, but its completion record says %llu",
                    (unsigned long long)fence, (unsigned long long)about);
    if (about > fence || record.status == ENPU_STATUS_OK) return 0;
    return context_failure(queue, 0, error);
}

bool spin(const enpu_queue* queue, uint64_t fence, uint64_t submitted, int64_t deadline_ns) {
    const int64_t until = std::min(deadline_ns, os::now_ns() + kSpinNs);
    do {
        for (int i = 0; i < kLooksPerClock; ++i) {
            if (queue->completed(submitted) >= fence) return true;
            pause_cpu();
        }
        if (queue->failed()) return false;
    } while (os::now_ns() < until);
    return false;
}

int refuse_full(enpu_queue* queue, size_t count, enpu_error* error) {
    if (count > queue->entries)
        return fail(error, -EINVAL, "enpu_queue_submit: %zu commands, the queue has %u entries",
                    count, queue->entries);
    return fail(error, -EAGAIN,
                "enpu_queue_submit: the ring of %u entries has no room for %zu; wait for one",
                queue->entries, count);
}

int check_command(const enpu_queue* queue, const enpu_command* command, size_t index,
                  enpu_error* error) {
    const enpu_device* device = queue->context->device.get();
    const uint32_t kind = queue->engine < device->info.compute_engines ? ENPU_ENGINE_KIND_COMPUTE
                                                                       : ENPU_ENGINE_KIND_COPY;
    if (command == nullptr)
        return fail(error, -EINVAL, "enpu_queue_submit: commands[%zu] is NULL", index);
    if (command->device.get() != device)
        return fail(error, -EINVAL, "enpu_queue_submit: commands[%zu] is of another device", index);
    if (command->kind != kind)
        return fail(error, -EINVAL,
                    "enpu_queue_submit: engine %u is a %s engine, commands[%zu] was built for the "
                    "other kind",
                    queue->engine, kind == ENPU_ENGINE_KIND_COMPUTE ? "compute" : "copy", index);
    if (!command->shared.empty())
        return fail(error, -EOPNOTSUPP,
                    "enpu_queue_submit: commands[%zu] uses a shared buffer, which only enpu_submit "
                    "orders against others",
                    index);
    return 0;
}

// With the queue's mutex held; nothing can fail any more.
void push(enpu_queue* queue, enpu_command* const* commands, size_t count, uint64_t job_id) {
    for (size_t i = 0; i < count; ++i) {
        const uint64_t slot = (queue->tail + i) & (queue->entries - 1);
        queue->ring[slot] = {commands[i]->storage->va, commands[i]->bytes, 0, queue->tail + i + 1,
                             job_id};
        commands[i]->queued.fetch_add(1, std::memory_order_relaxed);
        queue->commands[slot] = Ref<enpu_command>(commands[i]);
    }
    queue->tail += count;
    __atomic_store_n(&queue->header->tail, queue->tail, __ATOMIC_RELEASE);
    // Either we see that the device has stopped polling, or it sees the new tail.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (__atomic_load_n(&queue->header->no_doorbell, __ATOMIC_RELAXED) == 0)
        queue->doorbell->ring();
}

}  // namespace

void enpu_queue::release_commands(uint64_t fence) {
    for (; freed < fence; ++freed) {
        Ref<enpu_command>& command = commands[freed & (entries - 1)];
        command->queued.fetch_sub(1, std::memory_order_release);
        command = {};
    }
}

int enpu_queue::create(enpu_error* error) {
    enpu_device* device = context->device.get();
    const uint64_t bytes =
        ENPU_QUEUE_RING_OFFSET + (sizeof(enpu_ring_entry) + sizeof(enpu_completion)) * entries;
    enpu_buffer* made = nullptr;
    if (int r = enpu_buffer_create(device, bytes, ENPU_BUFFER_HOST, &made, error)) return r;
    memory = Ref<enpu_buffer>::adopt(made);
    void* cpu = nullptr;
    if (int r = enpu_buffer_map(made, &cpu, error)) return r;
    auto* base = static_cast<std::byte*>(cpu);
    header = reinterpret_cast<enpu_queue_header*>(base);
    ring = reinterpret_cast<enpu_ring_entry*>(base + ENPU_QUEUE_RING_OFFSET);
    completions = reinterpret_cast<const enpu_completion*>(ring + entries);
    commands.resize(entries);

    drm_enpu_queue_create args{};
    args.ctx_id = context->id;
    args.engine = engine;
    args.ring_va = memory->va;
    args.ring_log2 = log2;
    const int result = device->os->queue_create(&args, &doorbell);
    if (result == -EOPNOTSUPP)
        return fail(error, result, "this device, or a recording of it, has no user-mode queues");
    if (result == -ENOSPC)
        return fail(error, result, "the device or this open device has no user-mode queue left");
    if (result != 0)
        return fail(error, result, "a user-mode queue could not be made: %s",
                    errno_text(result).c_str());
    id = args.queue_id;
    return 0;
}

enpu_queue::~enpu_queue() {
    doorbell.reset();
    // What is in it ends here, so its commands can go.
    if (id != 0) context->device->os->queue_destroy(id);
    release_commands(tail);
}

int enpu_queue_create(enpu_context* context, uint32_t engine, uint32_t entries, enpu_queue** queue,
                      enpu_error* error) {
    if (context == nullptr || queue == nullptr)
        return fail(error, -EINVAL, "enpu_queue_create: an argument is NULL");
    *queue = nullptr;
    const auto& info = context->device->info;
    if (engine >= info.compute_engines + info.copy_engines)
        return fail(error, -EINVAL,
                    "enpu_queue_create: engine %u does not exist, the device has %u", engine,
                    info.compute_engines + info.copy_engines);
    if (entries < 4 || entries > 1u << ENPU_MAX_RING_LOG2 || !std::has_single_bit(entries))
        return fail(error, -EINVAL,
                    "enpu_queue_create: %u entries; a power of two from 4 to %u is allowed",
                    entries, 1u << ENPU_MAX_RING_LOG2);
    return guard(error, [&] {
        auto made = Ref<enpu_queue>::adopt(
            new enpu_queue(context, engine, static_cast<uint32_t>(std::countr_zero(entries))));
        if (int r = made->create(error)) return r;
        *queue = made.leak();
        return 0;
    });
}

enpu_queue* enpu_queue_retain(enpu_queue* queue) {
    if (queue != nullptr) queue->retain();
    return queue;
}

void enpu_queue_release(enpu_queue* queue) {
    if (queue != nullptr) queue->release();
}

int enpu_queue_submit(enpu_queue* queue, enpu_command* const* commands, size_t count,
                      uint64_t job_id, uint64_t* fence, enpu_error* error) {
    if (fence != nullptr) *fence = 0;
    if (queue == nullptr || commands == nullptr || count == 0)
        return fail(error, -EINVAL,
                    "enpu_queue_submit: an argument is NULL or there is no command");
    return guard(error, [&] {
        for (size_t i = 0; i < count; ++i)
            if (int r = check_command(queue, commands[i], i, error)) return r;
        std::lock_guard lock(queue->mutex);
        if (queue->failed()) {
            if (int r = context_failure(queue, 0, error); r != 0 && r != -ESTALE)
                return fail(error, -ENOTRECOVERABLE,
                            "enpu_queue_submit: the context takes no more jobs");
        }
        queue->release_commands(queue->completed(queue->tail));
        if (count > queue->entries - (queue->tail - queue->freed))
            return refuse_full(queue, count, error);
        push(queue, commands, count, job_id);
        if (fence != nullptr) *fence = queue->tail;
        return 0;
    });
}

uint64_t enpu_queue_completed(enpu_queue* queue) {
    std::lock_guard lock(queue->mutex);
    const uint64_t fence = queue->completed(queue->tail);
    queue->release_commands(fence);
    return fence;
}

int enpu_queue_wait(enpu_queue* queue, uint64_t fence, int64_t deadline_ns, enpu_error* error) {
    if (queue == nullptr) return fail(error, -EINVAL, "enpu_queue_wait: queue is NULL");
    return guard(error, [&] {
        uint64_t submitted;
        {
            std::lock_guard lock(queue->mutex);
            submitted = queue->tail;
        }
        if (fence == 0 || fence > submitted)
            return fail(error, -EINVAL, "enpu_queue_wait: fence %llu, but %llu were submitted",
                        (unsigned long long)fence, (unsigned long long)submitted);
        if (!spin(queue, fence, submitted, deadline_ns)) {
            int result;
            do result = queue->context->device->os->queue_wait({queue->id, 0, fence, deadline_ns});
            while (result == -EINTR);
            if (result == -ETIME)
                return fail(error, result, "enpu_queue_wait: fence %llu was not reached in time",
                            (unsigned long long)fence);
            if (result != 0) return context_failure(queue, result, error);
        }
        std::lock_guard lock(queue->mutex);
        if (int r = entry_result(queue, fence, error)) return r;
        queue->release_commands(std::max(fence, queue->completed(queue->tail)));
        return 0;
    });
}
