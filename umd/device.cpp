// SPDX-License-Identifier: MIT
#include "device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "os/record/record_os.h"

namespace enpu {
namespace {

// How long a closing device waits for jobs that still use its memory; afterwards the kernel, which
// ends them, frees it.
constexpr uint64_t kCloseWaitNs = 2'000'000'000;

int query_exact(os::Os& os, uint32_t type, void* data, uint32_t bytes, const char* what,
                enpu_error* error) {
    const int result = os.query(type, data, &bytes);
    if (result != 0)
        return fail(error, result, "query of %s failed: %s", what, errno_text(result).c_str());
    return 0;
}

int read_info(os::Os& os, const std::string& spec, drm_enpu_device_info* kernel,
              enpu_device_info* info, enpu_error* error) {
    drm_enpu_opcode_info opcodes{};
    if (int r =
            query_exact(os, DRM_ENPU_QUERY_DEVICE, kernel, sizeof(*kernel), "the device", error))
        return r;
    if (int r = query_exact(os, DRM_ENPU_QUERY_OPCODES, &opcodes, sizeof(opcodes), "the opcodes",
                            error))
        return r;
    const auto major = ENPU_FIELD_GET(ENPU_VERSION_MAJOR, kernel->hw_version);
    if (major != ENPU_HW_VERSION_MAJOR) {
        return fail(error, -EPROTO, "%s: hardware version is %u.%u, this library is for %u.x",
                    spec.c_str(), major, ENPU_FIELD_GET(ENPU_VERSION_MINOR, kernel->hw_version),
                    ENPU_HW_VERSION_MAJOR);
    }
    if (kernel->page_size == 0 || (kernel->page_size & (kernel->page_size - 1)) != 0 ||
        kernel->va_start >= kernel->va_end) {
        return fail(error, -EPROTO, "%s: driver reports an impossible page size or VA range",
                    spec.c_str());
    }
    std::snprintf(info->spec, sizeof(info->spec), "%s", spec.c_str());
    info->simulator = os.simulator() ? 1 : 0;
    info->hw_version = kernel->hw_version;
    info->features = kernel->features;
    info->compute_engines = kernel->compute_engines;
    info->copy_engines = kernel->copy_engines;
    info->threads = kernel->threads;
    info->page_size = kernel->page_size;
    info->max_command_bytes = kernel->max_command_bytes;
    info->max_tensor_bytes = kernel->max_tensor_bytes;
    info->max_packet_work = kernel->max_packet_work;
    info->local_bytes = kernel->local_bytes;
    info->default_timeout_ms = kernel->default_timeout_ms;
    info->reset_count = kernel->reset_count;
    info->opcodes = opcodes.opcodes;
    static_assert(sizeof(info->dtypes) == sizeof(opcodes.dtypes));
    std::memcpy(info->dtypes, opcodes.dtypes, sizeof(info->dtypes));
    return 0;
}

int first_node(std::string* node, enpu_error* error) {
    enpu_device_entry entries[64];
    const int count = enpu_enumerate(entries, std::size(entries), error);
    if (count < 0) return count;
    for (int i = 0; i < std::min<int>(count, std::size(entries)); ++i) {
        if (std::strncmp(entries[i].spec, "/dev/", 5) == 0) {
            *node = entries[i].spec;
            return 0;
        }
    }
    return fail(error, -ENODEV,
                "no enpu device under /sys/class/accel: load the kernel module, or name the "
                "simulator: \"sim\"");
}

int open_os(std::string spec, std::string* opened, std::unique_ptr<os::Os>* os, enpu_error* error) {
    if (spec.empty()) {
        const char* environment = std::getenv("ENPU_DEVICE");
        spec = environment != nullptr && *environment != '\0' ? environment : "npu";
    }
    if (spec == "npu") {
        if (int r = first_node(&spec, error)) return r;
    }
    *opened = spec;
    int result;
    if (spec == "sim" || spec.rfind("sim:", 0) == 0)
        result = os::open_sim(spec.size() > 4 ? spec.substr(4) : "", os, error);
    else if (spec.rfind("/dev/", 0) == 0)
        result = os::open_drm(spec, os, error);
    else
        return fail(error, -EINVAL,
                    "device '%s' is not known: use /dev/accel/accelN, npu, or sim[:option=value,…]",
                    spec.c_str());
    const char* record = std::getenv("ENPU_RECORD");
    if (result == 0 && record != nullptr && *record != '\0')
        result = os::record_to(record, os, error);
    return result;
}

}  // namespace

}  // namespace enpu

using namespace enpu;

enpu_device::enpu_device(std::unique_ptr<os::Os> os_in, const enpu_device_info& info_in,
                         uint64_t va_start, uint64_t va_end)
    : os(std::move(os_in)), info(info_in), va_(va_start, va_end) {}

enpu_device::~enpu_device() {
    reap(enpu_deadline_after(kCloseWaitNs));
}

int enpu_device::map(uint32_t handle, uint64_t bytes, uint32_t map_flags, uint64_t* va,
                     enpu_error* error) {
    // A page that is never mapped ends each range: an overrun faults instead of reaching the next
    // buffer.
    const uint64_t alignment =
        bytes >= ENPU_LARGE_PAGE_SIZE ? ENPU_LARGE_PAGE_SIZE : info.page_size;
    std::optional<uint64_t> place;
    {
        std::lock_guard lock(va_mutex_);
        place = va_.allocate(bytes + info.page_size, alignment);
    }
    if (!place)
        return fail(error, -ENOSPC, "no range of %llu bytes is left in the device's address space",
                    (unsigned long long)bytes);
    const drm_enpu_vm_map request = {*place, 0, bytes, handle, map_flags};
    const int result = os->vm_map(request);
    if (result != 0) {
        std::lock_guard lock(va_mutex_);
        va_.release(*place, bytes + info.page_size);
        return fail(error, result, "mapping %llu bytes at VA 0x%llx failed: %s",
                    (unsigned long long)bytes, (unsigned long long)*place,
                    errno_text(result).c_str());
    }
    *va = *place;
    return 0;
}

void enpu_device::add_handle(uint32_t handle) {
    std::lock_guard lock(handles_mutex_);
    ++handles_[handle];
}

void enpu_device::close_handle(uint32_t handle) {
    std::lock_guard lock(handles_mutex_);
    auto it = handles_.find(handle);
    if (it == handles_.end() || --it->second != 0) return;
    handles_.erase(it);
    os->bo_close(handle);
}

// 0 when everything is gone (a removed device has unmapped all by itself), -ETIME when jobs still
// run.
int enpu_device::try_free(const Remains& remains, int64_t deadline_ns) {
    if (remains.va != 0) {
        const drm_enpu_vm_unmap request = {remains.va, remains.va_bytes, deadline_ns, 0};
        int result;
        do result = os->vm_unmap(request);
        while (result == -EINTR);
        if (result == -ETIME) return result;
        std::lock_guard lock(va_mutex_);
        // After another failure the VA may still be mapped: it is not used again.
        if (result == 0) va_.release(remains.va, remains.va_bytes + info.page_size);
    }
    if (remains.cpu != nullptr) os->bo_munmap(remains.cpu, remains.cpu_bytes);
    if (remains.handle != 0) close_handle(remains.handle);
    return 0;
}

void enpu_device::bury(const Remains& remains) {
    if (try_free(remains, 0) == 0) return;
    std::lock_guard lock(graves_mutex_);
    graves_.push_back(remains);
}

bool enpu_device::reap(int64_t deadline_ns) {
    std::vector<Remains> graves;
    {
        std::lock_guard lock(graves_mutex_);
        graves.swap(graves_);
    }
    if (graves.empty()) return false;
    const size_t before = graves.size();
    std::erase_if(graves,
                  [&](const Remains& remains) { return try_free(remains, deadline_ns) == 0; });
    const bool freed = graves.size() != before;
    std::lock_guard lock(graves_mutex_);
    graves_.insert(graves_.end(), graves.begin(), graves.end());
    return freed;
}

int enpu_device_open(const char* spec, enpu_device** device, enpu_error* error) {
    if (device == nullptr) return fail(error, -EINVAL, "enpu_device_open: device is NULL");
    *device = nullptr;
    return guard(error, [&] {
        std::unique_ptr<os::Os> os;
        std::string opened;
        if (int r = open_os(spec != nullptr ? spec : "", &opened, &os, error)) return r;
        drm_enpu_device_info kernel{};
        enpu_device_info info{};
        if (int r = read_info(*os, opened, &kernel, &info, error)) return r;
        *device = new enpu_device(std::move(os), info, kernel.va_start, kernel.va_end);
        return 0;
    });
}

enpu_device* enpu_device_retain(enpu_device* device) {
    if (device != nullptr) device->retain();
    return device;
}

void enpu_device_release(enpu_device* device) {
    if (device != nullptr) device->release();
}

const enpu_device_info* enpu_device_get_info(const enpu_device* device) {
    return &device->info;
}

int enpu_device_get_memory(enpu_device* device, enpu_memory_info* info, enpu_error* error) {
    if (device == nullptr || info == nullptr)
        return fail(error, -EINVAL, "enpu_device_get_memory: an argument is NULL");
    *info = {};
    return guard(error, [&] {
        drm_enpu_memory_info kernel{};
        if (int r = query_exact(*device->os, DRM_ENPU_QUERY_MEMORY, &kernel, sizeof(kernel),
                                "memory", error))
            return r;
        *info = {kernel.local_total, kernel.local_free, kernel.local_largest, kernel.local_used,
                 kernel.host_used};
        return 0;
    });
}

int enpu_device_get_counters(enpu_device* device, uint64_t* counters, size_t capacity,
                             enpu_error* error) {
    if (device == nullptr || (counters == nullptr && capacity != 0)) {
        return fail(error, -EINVAL, "enpu_device_get_counters: an argument is NULL");
    }
    return guard(error, [&] {
        uint64_t words[ENPU_COUNTER_STRIDE / 8] = {};
        uint32_t bytes = sizeof(words);
        const int result = device->os->query(DRM_ENPU_QUERY_COUNTERS, words, &bytes);
        if (result != 0)
            return fail(error, result, "query of the counters failed: %s",
                        errno_text(result).c_str());
        const size_t count = std::min(sizeof(words), size_t{bytes}) / 8;
        std::copy_n(words, std::min(count, capacity), counters);
        return static_cast<int>(count);
    });
}

int enpu_device_get_clock(enpu_device* device, uint64_t* device_ns, uint64_t* monotonic_ns,
                          enpu_error* error) {
    if (device == nullptr || device_ns == nullptr || monotonic_ns == nullptr) {
        return fail(error, -EINVAL, "enpu_device_get_clock: an argument is NULL");
    }
    return guard(error, [&] {
        drm_enpu_device_info kernel{};
        if (int r = query_exact(*device->os, DRM_ENPU_QUERY_DEVICE, &kernel, sizeof(kernel),
                                "the clock", error))
            return r;
        *device_ns = kernel.timestamp_ns;
        *monotonic_ns = kernel.monotonic_ns;
        return 0;
    });
}

int enpu_device_inject_faults(enpu_device* device, const char* faults, enpu_error* error) {
    if (device == nullptr || faults == nullptr)
        return fail(error, -EINVAL, "enpu_device_inject_faults: device or faults is NULL");
    return guard(error, [&] { return device->os->inject_faults(faults, error); });
}

int enpu_device_get_faults_fired(enpu_device* device, uint32_t kind, uint32_t* fired,
                                 uint64_t* last_ns, enpu_error* error) {
    if (device == nullptr || fired == nullptr)
        return fail(error, -EINVAL, "enpu_device_get_faults_fired: device or fired is NULL");
    if (kind == ENPU_FAULT_KIND_NONE || kind >= ENPU_FAULT_KINDS)
        return fail(error, -EINVAL, "enpu_device_get_faults_fired: there is no kind %u", kind);
    uint64_t unused;
    return device->os->faults_fired(kind, fired, last_ns != nullptr ? last_ns : &unused, error);
}

int64_t enpu_deadline_after(uint64_t ns) {
    int64_t deadline;
    if (ns > INT64_MAX || __builtin_add_overflow(os::now_ns(), static_cast<int64_t>(ns), &deadline))
        return INT64_MAX;
    return deadline;
}
