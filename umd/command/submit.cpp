// SPDX-License-Identifier: MIT
// Submission: points become sync operations on the stack, then one call goes down.
#include "command/command.h"
#include "context.h"

using namespace enpu;

namespace {

struct SyncOps {
    drm_enpu_sync_op ops[ENPU_MAX_SYNC_OPS];
    uint32_t count = 0;

    void add(const enpu_timeline* timeline, uint64_t value, uint32_t flags) {
        ops[count++] = {timeline->handle, flags, value};
    }
};

int check_point(const enpu_context* context, const enpu_point& point, const char* list,
                size_t index, enpu_error* error) {
    if (point.timeline == nullptr)
        return fail(error, -EINVAL, "submit: %s[%zu].timeline is NULL", list, index);
    if (point.timeline->device.get() != context->device.get()) {
        return fail(error, -EINVAL, "submit: %s[%zu] is a timeline of another device", list, index);
    }
    return 0;
}

int add_points(const enpu_context* context, SyncOps& sync, const enpu_point* waits,
               size_t wait_count, const enpu_point* signals, size_t signal_count,
               enpu_error* error) {
    // One place is kept for the command's own timeline.
    constexpr size_t kMost = ENPU_MAX_SYNC_OPS - 1;
    if (wait_count > kMost || signal_count > kMost || wait_count + signal_count > kMost) {
        return fail(error, -EINVAL, "submit: %zu waits and %zu signals are more than %zu points",
                    wait_count, signal_count, kMost);
    }
    if ((waits == nullptr && wait_count != 0) || (signals == nullptr && signal_count != 0)) {
        return fail(error, -EINVAL, "submit: waits or signals is NULL");
    }
    for (size_t i = 0; i < wait_count; ++i) {
        if (int r = check_point(context, waits[i], "waits", i, error)) return r;
        if (waits[i].value != 0) sync.add(waits[i].timeline, waits[i].value, DRM_ENPU_SYNC_WAIT);
    }
    for (size_t i = 0; i < signal_count; ++i) {
        if (int r = check_point(context, signals[i], "signals", i, error)) return r;
        const uint64_t last = signals[i].timeline->last.load(std::memory_order_relaxed);
        if (signals[i].value <= last) {
            return fail(error, -EINVAL,
                        "submit: signals[%zu] is %llu, but %llu was signalled or submitted before",
                        i, (unsigned long long)signals[i].value, (unsigned long long)last);
        }
        sync.add(signals[i].timeline, signals[i].value, DRM_ENPU_SYNC_SIGNAL);
    }
    return 0;
}

int refused(const enpu_context* context, int code, enpu_error* error) {
    switch (code) {
        case -ENOTRECOVERABLE: {
            drm_enpu_ctx_status status{};
            status.ctx_id = context->id;
            if (context->device->os->ctx_status(&status) != 0) break;
            return fail(error, code, "submit: the context takes no more jobs: %s",
                        describe_failure(status).c_str());
        }
        case -EAGAIN:
            return fail(error, code, "submit: the context has its maximum of unfinished jobs");
        case -ENOSPC:
            return fail(error, code, "submit: the device has no hardware queue left");
        case -EINVAL:
            return fail(error, code,
                        "submit: refused; a point to wait for that nobody has submitted?");
        default:
            break;
    }
    return fail(error, code, "submit: %s", errno_text(code).c_str());
}

int check_engine(const enpu_device* device, uint32_t engine, const enpu_command* command,
                 enpu_error* error) {
    const uint32_t engines = device->info.compute_engines + device->info.copy_engines;
    if (engine >= engines)
        return fail(error, -EINVAL, "submit: engine %u does not exist, the device has %u", engine,
                    engines);
    if (command == nullptr) return 0;
    const uint32_t kind =
        engine < device->info.compute_engines ? ENPU_ENGINE_KIND_COMPUTE : ENPU_ENGINE_KIND_COPY;
    if (kind != command->kind) {
        return fail(error, -EINVAL,
                    "submit: engine %u is a %s engine, the command was built for the other kind",
                    engine, kind == ENPU_ENGINE_KIND_COMPUTE ? "compute" : "copy");
    }
    return 0;
}

int send(enpu_context* context, drm_enpu_submit* submit, const SyncOps& sync,
         const enpu_point* signals, size_t signal_count, uint64_t* seqno, enpu_error* error) {
    submit->ctx_id = context->id;
    submit->syncs = reinterpret_cast<uint64_t>(sync.ops);
    submit->sync_count = sync.count;
    submit->sync_stride = sizeof(drm_enpu_sync_op);
    int result;
    do result = context->device->os->submit(submit);
    while (result == -EINTR);
    if (result != 0) return refused(context, result, error);
    for (size_t i = 0; i < signal_count; ++i) signals[i].timeline->raise_last(signals[i].value);
    if (seqno != nullptr) *seqno = submit->seqno;
    return 0;
}

}  // namespace

int enpu_submit(enpu_context* context, uint32_t engine, enpu_command* command,
                const enpu_point* waits, size_t wait_count, const enpu_point* signals,
                size_t signal_count, uint64_t job_id, uint64_t* seqno, enpu_error* error) {
    if (seqno != nullptr) *seqno = 0;
    if (context == nullptr || command == nullptr)
        return fail(error, -EINVAL, "enpu_submit: an argument is NULL");
    if (command->device.get() != context->device.get())
        return fail(error, -EINVAL, "enpu_submit: the command is of another device");
    if (int r = check_engine(context->device.get(), engine, command, error)) return r;
    return guard(error, [&] {
        SyncOps sync;
        if (int r = add_points(context, sync, waits, wait_count, signals, signal_count, error))
            return r;
        std::lock_guard lock(command->mutex);
        enpu_point last = signal_count != 0 ? signals[signal_count - 1] : enpu_point{};
        if (signal_count == 0) {
            if (!command->own) {
                enpu_timeline* made = nullptr;
                if (int r = enpu_timeline_create(command->device.get(), 0, &made, error)) return r;
                command->own = Ref<enpu_timeline>::adopt(made);
            }
            last = {command->own.get(), command->own->last.load(std::memory_order_relaxed) + 1};
            sync.add(last.timeline, last.value, DRM_ENPU_SYNC_SIGNAL);
        }
        drm_enpu_submit submit{};
        submit.engine = engine;
        submit.cmd_va = command->storage->va;
        submit.cmd_bytes = command->bytes;
        submit.bos = reinterpret_cast<uint64_t>(command->shared.data());
        submit.bo_count = static_cast<uint32_t>(command->shared.size());
        submit.job_id = job_id;
        if (int r = command->make_room(error)) return r;
        if (int r = send(context, &submit, sync, signals, signal_count, seqno, error)) return r;
        last.timeline->raise_last(last.value);
        command->fly(last.timeline, last.value);
        return 0;
    });
}

int enpu_submit_raw(enpu_context* context, uint32_t engine, uint64_t va, uint32_t bytes,
                    const enpu_point* waits, size_t wait_count, const enpu_point* signals,
                    size_t signal_count, uint64_t job_id, uint64_t* seqno, enpu_error* error) {
    if (seqno != nullptr) *seqno = 0;
    if (context == nullptr) return fail(error, -EINVAL, "enpu_submit_raw: context is NULL");
    if (int r = check_engine(context->device.get(), engine, nullptr, error)) return r;
    return guard(error, [&] {
        SyncOps sync;
        if (int r = add_points(context, sync, waits, wait_count, signals, signal_count, error))
            return r;
        drm_enpu_submit submit{};
        submit.engine = engine;
        submit.cmd_va = va;
        submit.cmd_bytes = bytes;
        submit.job_id = job_id;
        return send(context, &submit, sync, signals, signal_count, seqno, error);
    });
}
