// SPDX-License-Identifier: MIT
#include "buffer.h"

using namespace enpu;

namespace {

// How long a failed allocation waits for jobs to give freed memory back.
constexpr uint64_t kReapWaitNs = 10'000'000'000;
constexpr uint32_t kPlacement = ENPU_BUFFER_HOST | ENPU_BUFFER_LOCAL;
constexpr uint32_t kOptions = ENPU_BUFFER_SHARED | ENPU_BUFFER_READ_ONLY;

uint32_t map_flags(uint32_t flags) {
    return DRM_ENPU_MAP_READ | ((flags & ENPU_BUFFER_READ_ONLY) != 0 ? 0 : DRM_ENPU_MAP_WRITE);
}

// Runs an allocation; when memory is short, frees what finished jobs have left, then waits for the
// others, before it gives up.
template <typename Allocate>
int with_reap(enpu_device* device, Allocate&& allocate) {
    device->reap(0);
    int result = allocate();
    if (result != -ENOSPC && result != -ENOMEM) return result;
    if (!device->reap(enpu_deadline_after(kReapWaitNs))) return result;
    return allocate();
}

uint64_t round_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}

int create_failed(enpu_device* device, uint64_t bytes, uint32_t flags, int code,
                  enpu_error* error) {
    const char* place = (flags & ENPU_BUFFER_LOCAL) != 0 ? "device-local" : "host";
    drm_enpu_memory_info memory{};
    uint32_t size = sizeof(memory);
    if (code == -ENOSPC && device->os->query(DRM_ENPU_QUERY_MEMORY, &memory, &size) == 0) {
        return fail(error, code,
                    "no room for a buffer of %llu bytes in device-local memory: %llu of %llu bytes "
                    "free, largest piece %llu",
                    (unsigned long long)bytes, (unsigned long long)memory.local_free,
                    (unsigned long long)memory.local_total,
                    (unsigned long long)memory.local_largest);
    }
    return fail(error, code, "a %s buffer of %llu bytes could not be made: %s", place,
                (unsigned long long)bytes, errno_text(code).c_str());
}

}  // namespace

int enpu_buffer_create(enpu_device* device, uint64_t bytes, uint32_t flags, enpu_buffer** buffer,
                       enpu_error* error) {
    if (device == nullptr || buffer == nullptr)
        return fail(error, -EINVAL, "enpu_buffer_create: an argument is NULL");
    *buffer = nullptr;
    if (bytes == 0 || bytes > INT64_MAX) {
        return fail(error, -EINVAL, "enpu_buffer_create: a buffer cannot have %llu bytes",
                    (unsigned long long)bytes);
    }
    const uint32_t placement = flags & kPlacement;
    if ((flags & ~(kPlacement | kOptions)) != 0 || placement == 0 || placement == kPlacement) {
        return fail(error, -EINVAL,
                    "enpu_buffer_create: flags 0x%x: exactly one of HOST and LOCAL, and SHARED and "
                    "READ_ONLY are known",
                    flags);
    }
    return guard(error, [&] {
        auto made = Ref<enpu_buffer>::adopt(new enpu_buffer(device, bytes, flags));
        drm_enpu_bo_create create{};
        const int result = with_reap(device, [&] {
            create = {bytes, 0, 0};
            create.flags = placement == ENPU_BUFFER_LOCAL ? DRM_ENPU_BO_LOCAL : DRM_ENPU_BO_HOST;
            if ((flags & ENPU_BUFFER_SHARED) == 0) create.flags |= DRM_ENPU_BO_PRIVATE;
            return device->os->bo_create(&create);
        });
        if (result != 0) return create_failed(device, bytes, flags, result, error);
        made->remains.handle = create.handle;
        device->add_handle(create.handle);
        if (int r = device->map(create.handle, create.size, map_flags(flags), &made->va, error))
            return r;
        made->remains.va = made->va;
        made->remains.va_bytes = create.size;
        *buffer = made.leak();
        return 0;
    });
}

int enpu_buffer_wrap(enpu_device* device, void* memory, uint64_t bytes, uint32_t flags,
                     enpu_buffer** buffer, enpu_error* error) {
    if (device == nullptr || buffer == nullptr || memory == nullptr)
        return fail(error, -EINVAL, "enpu_buffer_wrap: an argument is NULL");
    *buffer = nullptr;
    if ((flags & ~ENPU_BUFFER_READ_ONLY) != 0) {
        return fail(error, -EINVAL, "enpu_buffer_wrap: flags 0x%x: only READ_ONLY is known", flags);
    }
    const auto address = reinterpret_cast<uint64_t>(memory);
    const uint64_t page = device->info.page_size;
    uint64_t end;
    if (bytes == 0 || __builtin_add_overflow(address, bytes, &end) || end > UINT64_MAX - page) {
        return fail(error, -EINVAL, "enpu_buffer_wrap: %llu bytes at %p are no range of memory",
                    (unsigned long long)bytes, memory);
    }
    return guard(error, [&] {
        auto made =
            Ref<enpu_buffer>::adopt(new enpu_buffer(device, bytes, flags | ENPU_BUFFER_HOST));
        const uint64_t begin = address & ~(page - 1);
        drm_enpu_bo_userptr userptr{};
        const int result = with_reap(device, [&] {
            userptr = {begin, round_up(end, page) - begin,
                       (flags & ENPU_BUFFER_READ_ONLY) != 0 ? DRM_ENPU_USERPTR_READ_ONLY : 0u, 0};
            return device->os->bo_userptr(&userptr);
        });
        if (result != 0) {
            return fail(error, result, "%llu bytes at %p cannot be given to the device: %s%s",
                        (unsigned long long)bytes, memory, errno_text(result).c_str(),
                        result == -ENOMEM ? "; is RLIMIT_MEMLOCK (ulimit -l) large enough?" : "");
        }
        made->remains.handle = userptr.handle;
        device->add_handle(userptr.handle);
        if (int r = device->map(userptr.handle, userptr.size, map_flags(flags), &made->remains.va,
                                error))
            return r;
        made->remains.va_bytes = userptr.size;
        made->va = made->remains.va + (address - begin);
        made->user_memory = memory;
        *buffer = made.leak();
        return 0;
    });
}

int enpu_buffer_export(enpu_buffer* buffer, int* fd, enpu_error* error) {
    if (buffer == nullptr || fd == nullptr)
        return fail(error, -EINVAL, "enpu_buffer_export: an argument is NULL");
    *fd = -1;
    if (!buffer->shared())
        return fail(error, -EINVAL, "enpu_buffer_export: the buffer was made without SHARED");
    const int result = buffer->device->os->bo_export(buffer->remains.handle, fd);
    if (result != 0)
        return fail(error, result, "the buffer cannot be exported: %s", errno_text(result).c_str());
    return 0;
}

int enpu_buffer_import(enpu_device* device, int fd, uint32_t flags, enpu_buffer** buffer,
                       enpu_error* error) {
    if (device == nullptr || buffer == nullptr)
        return fail(error, -EINVAL, "enpu_buffer_import: an argument is NULL");
    *buffer = nullptr;
    if ((flags & ~ENPU_BUFFER_READ_ONLY) != 0) {
        return fail(error, -EINVAL, "enpu_buffer_import: flags 0x%x: only READ_ONLY is known",
                    flags);
    }
    return guard(error, [&] {
        uint32_t handle = 0;
        const int result = device->import_handle(
            [&](uint32_t* out) { return device->os->bo_import(fd, out); }, &handle);
        if (result != 0)
            return fail(error, result, "descriptor %d cannot be imported: %s", fd,
                        errno_text(result).c_str());
        Remains remains;
        remains.handle = handle;
        drm_enpu_bo_info info{};
        info.handle = handle;
        if (const int r = device->os->bo_info(&info)) {
            device->bury(remains);
            return fail(error, r, "descriptor %d: its size cannot be read: %s", fd,
                        errno_text(r).c_str());
        }
        auto made =
            Ref<enpu_buffer>::adopt(new enpu_buffer(device, info.size, flags | ENPU_BUFFER_SHARED));
        made->remains = remains;
        made->imported = true;
        if (int r = device->map(handle, info.size, map_flags(flags), &made->va, error)) return r;
        made->remains.va = made->va;
        made->remains.va_bytes = info.size;
        *buffer = made.leak();
        return 0;
    });
}

enpu_buffer* enpu_buffer_retain(enpu_buffer* buffer) {
    if (buffer != nullptr) buffer->retain();
    return buffer;
}

void enpu_buffer_release(enpu_buffer* buffer) {
    if (buffer != nullptr) buffer->release();
}

uint64_t enpu_buffer_bytes(const enpu_buffer* buffer) {
    return buffer->bytes;
}
uint64_t enpu_buffer_va(const enpu_buffer* buffer) {
    return buffer->va;
}
uint32_t enpu_buffer_flags(const enpu_buffer* buffer) {
    return buffer->flags;
}

int enpu_buffer_map(enpu_buffer* buffer, void** address, enpu_error* error) {
    if (buffer == nullptr || address == nullptr)
        return fail(error, -EINVAL, "enpu_buffer_map: an argument is NULL");
    *address = buffer->user_memory;
    if (*address != nullptr) return 0;
    std::lock_guard lock(buffer->cpu_mutex);
    if (buffer->remains.cpu == nullptr) {
        drm_enpu_bo_info info{};
        info.handle = buffer->remains.handle;
        int result = buffer->device->os->bo_info(&info);
        if (result == 0) result = buffer->device->os->bo_mmap(info, &buffer->remains.cpu);
        if (result != 0) {
            buffer->remains.cpu = nullptr;
            return fail(error, result, "the buffer cannot be mapped for the CPU: %s",
                        errno_text(result).c_str());
        }
        buffer->remains.cpu_bytes = info.size;
    }
    *address = buffer->remains.cpu;
    return 0;
}

int enpu_buffer_wait(enpu_buffer* buffer, bool write, int64_t deadline_ns, enpu_error* error) {
    if (buffer == nullptr) return fail(error, -EINVAL, "enpu_buffer_wait: buffer is NULL");
    if (!buffer->shared()) {
        return fail(
            error, -EINVAL,
            "enpu_buffer_wait: only SHARED and imported buffers are tracked; wait for a timeline");
    }
    const drm_enpu_bo_wait wait = {buffer->remains.handle,
                                   write ? uint32_t{DRM_ENPU_BO_WAIT_WRITE} : 0u, deadline_ns};
    int result;
    do result = buffer->device->os->bo_wait(wait);
    while (result == -EINTR);
    if (result == -ETIME)
        return fail(error, result,
                    "enpu_buffer_wait: the deadline passed with jobs still using the buffer");
    if (result != 0) return fail(error, result, "enpu_buffer_wait: %s", errno_text(result).c_str());
    return 0;
}
