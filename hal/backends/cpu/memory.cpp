// SPDX-License-Identifier: MIT
// Buffers and fences of the cpu backend.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>

#include "arguments.h"
#include "device.h"
#include "status.h"

enpu_hal_buffer::enpu_hal_buffer(enpu_hal_device* owner) : device(owner) {
    ++device->counters.buffers;
}

enpu_hal_buffer::~enpu_hal_buffer() {
    if (shared >= 0) {
        if (host) munmap(host, bytes);
        close(shared);
    } else if (owned) {
        std::free(host);
    }
    --device->counters.buffers;
}

void enpu_hal_fence::signal(uint64_t point) {
    enpu_hal_device* const owner = device;  // whoever sees the value may destroy the fence
    uint64_t now = value.load();
    while (now < point && !value.compare_exchange_weak(now, point)) {
    }
    owner->sleepers.notify();
}

void enpu_hal_fence::fail(const enpu_hal_status& why) {
    enpu_hal_device* const owner = device;
    {
        std::lock_guard lock(failure_mutex);
        if (failed.load()) return;  // the first failure is the one to tell
        failure = why;
        failed.store(true);
    }
    owner->sleepers.notify();
}

namespace enpu::hal::cpu {
namespace {

// Memory that an exported descriptor names too.
uint32_t allocate_shared(enpu_hal_buffer& buffer, enpu_hal_status* status) {
    buffer.shared = memfd_create("enpu-cpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void* memory = MAP_FAILED;
    // Whoever gets the descriptor cannot take the pages away from under us.
    if (buffer.shared >= 0 && ftruncate(buffer.shared, off_t(buffer.bytes)) == 0 &&
        fcntl(buffer.shared, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        memory = mmap(nullptr, buffer.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, buffer.shared, 0);
    if (memory == MAP_FAILED)
        return fail_device(status, ENPU_HAL_RESOURCE_EXHAUSTED, -errno,
                           "alloc: no shared memory for %llu bytes",
                           static_cast<unsigned long long>(buffer.bytes));
    buffer.host = static_cast<std::byte*>(memory);
    return ENPU_HAL_OK;
}

uint32_t allocate(enpu_hal_buffer& buffer, uint64_t alignment, enpu_hal_status* status) {
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment, buffer.bytes) != 0)
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "alloc: no host memory for %llu bytes",
                    static_cast<unsigned long long>(buffer.bytes));
    buffer.host = static_cast<std::byte*>(memory);
    return ENPU_HAL_OK;
}

uint32_t no_memory(enpu_hal_status* status) {
    return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "no host memory for the object");
}

uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc, enpu_hal_buffer** buffer,
               enpu_hal_status* status) {
    const bool shared = desc && (desc->flags & ENPU_HAL_BUFFER_SHARED);
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    if (uint32_t code = check_buffer_desc(desc, shared ? page : kMaxAlignment, kCaps, status))
        return code;
    if (desc->bytes > uint64_t(INT64_MAX))
        return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "alloc: no host memory for %llu bytes",
                    static_cast<unsigned long long>(desc->bytes));
    auto made = std::unique_ptr<enpu_hal_buffer>(new (std::nothrow) enpu_hal_buffer(device));
    if (!made) return no_memory(status);
    made->bytes = desc->bytes;
    made->memory = desc->memory;
    if (uint32_t code = shared ? allocate_shared(*made, status)
                               : allocate(*made, std::max<uint64_t>(desc->alignment, 64), status))
        return code;
    *buffer = made.release();
    return ENPU_HAL_OK;
}

void free_buffer(enpu_hal_buffer* buffer) {
    delete buffer;
}

uint32_t info(enpu_hal_buffer* buffer, enpu_hal_buffer_info* out, enpu_hal_status* status) {
    if (uint32_t code = check_buffer_info(out, status)) return code;
    out->bytes = buffer->bytes;
    out->address = reinterpret_cast<uint64_t>(buffer->host);
    out->host = buffer->host;
    out->memory = buffer->memory;
    out->reserved = 0;
    return ENPU_HAL_OK;
}

uint32_t usage(enpu_hal_device*, uint64_t* free_bytes, uint64_t* total_bytes, enpu_hal_status*) {
    const long page = sysconf(_SC_PAGESIZE);
    *free_bytes = uint64_t(sysconf(_SC_AVPHYS_PAGES)) * uint64_t(page);
    *total_bytes = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(page);
    return ENPU_HAL_OK;
}

uint32_t wrap(enpu_hal_device* device, void* host, uint64_t bytes, enpu_hal_buffer** buffer,
              enpu_hal_status* status) {
    if (!host || bytes == 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "wrap: no memory given");
    auto* made = new (std::nothrow) enpu_hal_buffer(device);
    if (!made) return no_memory(status);
    made->host = static_cast<std::byte*>(host);
    made->bytes = bytes;
    made->memory = ENPU_HAL_MEMORY_HOST;
    made->owned = false;
    *buffer = made;
    return ENPU_HAL_OK;
}

uint32_t export_fd(enpu_hal_buffer* buffer, int* fd, enpu_hal_status* status) {
    if (!buffer || !fd || buffer->shared < 0 || buffer->imported)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "export: the buffer was not allocated with SHARED, or no descriptor is asked");
    *fd = fcntl(buffer->shared, F_DUPFD_CLOEXEC, 0);
    if (*fd >= 0) return ENPU_HAL_OK;
    return fail_device(status, ENPU_HAL_RESOURCE_EXHAUSTED, -errno, "export: no descriptor left");
}

uint32_t import_fd(enpu_hal_device* device, int fd, enpu_hal_buffer** buffer,
                   enpu_hal_status* status) {
    struct stat about {};
    // A file that shrinks under us would end in SIGBUS: memory files that cannot, only.
    const int seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &about) != 0 ||
        !S_ISREG(about.st_mode) || about.st_size <= 0)
        return fail(status, ENPU_HAL_INVALID_ARGUMENT,
                    "import: descriptor %d is no shared memory of a cpu device, sealed against "
                    "shrinking",
                    fd);
    auto made = std::unique_ptr<enpu_hal_buffer>(new (std::nothrow) enpu_hal_buffer(device));
    if (!made) return no_memory(status);
    made->bytes = uint64_t(about.st_size);
    made->imported = true;
    made->shared = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    void* memory = made->shared < 0 ? MAP_FAILED
                                    : mmap(nullptr, made->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                                           made->shared, 0);
    if (memory == MAP_FAILED)
        return fail_device(status, ENPU_HAL_RESOURCE_EXHAUSTED, -errno,
                           "import: %llu bytes cannot be mapped",
                           static_cast<unsigned long long>(made->bytes));
    made->host = static_cast<std::byte*>(memory);
    *buffer = made.release();
    return ENPU_HAL_OK;
}

uint32_t fence_create(enpu_hal_device* device, uint64_t initial, enpu_hal_fence** fence,
                      enpu_hal_status* status) {
    *fence = new (std::nothrow) enpu_hal_fence(device, initial);
    return *fence ? uint32_t(ENPU_HAL_OK)
                  : fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "fence: no host memory");
}

void fence_destroy(enpu_hal_fence* fence) {
    delete fence;
}

uint32_t fence_query(enpu_hal_fence* fence, uint64_t* value, enpu_hal_status* status) {
    const bool failed = fence->failed.load();
    *value = fence->value.load();
    return failed ? fail_as(status, fence->failure) : uint32_t(ENPU_HAL_OK);
}

uint32_t fence_signal(enpu_hal_fence* fence, uint64_t value, enpu_hal_status* status) {
    if (fence->failed.load()) return fail_as(status, fence->failure);
    if (value <= fence->value.load())
        return fail(status, ENPU_HAL_INVALID_ARGUMENT, "fence: %llu is not more than %llu",
                    static_cast<unsigned long long>(value),
                    static_cast<unsigned long long>(fence->value.load()));
    fence->signal(value);
    return ENPU_HAL_OK;
}

}  // namespace

uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                    uint32_t any, uint64_t deadline_ns, enpu_hal_status* status) {
    if (uint32_t code = check_points(points, count, kMaxPoints, status)) return code;
    if (count == 0) return ENPU_HAL_OK;
    const enpu_hal_point* broken = nullptr;
    const auto ready = [&] { return points_settled(points, count, any != 0, &broken); };
    if (!device->sleepers.wait_until(deadline_ns, ready))
        return fail(status, ENPU_HAL_DEADLINE_EXCEEDED, "fence: not reached before the deadline");
    return broken ? fail_as(status, broken->fence->failure) : uint32_t(ENPU_HAL_OK);
}

const enpu_hal_memory_table kMemory = {
    table_header(sizeof(enpu_hal_memory_table), ENPU_HAL_TYPE_MEMORY_TABLE),
    alloc,
    free_buffer,
    info,
    usage,
    wrap,
    export_fd,
    import_fd};
const enpu_hal_fence_table kFence = {
    table_header(sizeof(enpu_hal_fence_table), ENPU_HAL_TYPE_FENCE_TABLE),
    fence_create,
    fence_destroy,
    fence_query,
    fence_wait,
    fence_signal,
    nullptr,
    nullptr};

}  // namespace enpu::hal::cpu
