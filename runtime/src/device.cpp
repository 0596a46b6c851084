// SPDX-License-Identifier: MIT
#include "device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "common/status.h"
#include "fork.h"
#include "guard.h"
#include "loader/loader.h"
#include "profile.h"
#include "stream.h"

namespace enpu::rt {
namespace {

// Order of enumeration: what is fastest to be wanted comes first. The null backend opens by name
// only.
constexpr uint32_t kClassOrder[] = {ENPU_HAL_CLASS_NPU, ENPU_HAL_CLASS_GPU,
                                    ENPU_HAL_CLASS_SIMULATOR, ENPU_HAL_CLASS_CPU};

enpu_hal_device_info empty_info() {
    enpu_hal_device_info info{};
    info.header = {sizeof(info), ENPU_HAL_TYPE_DEVICE_INFO, nullptr};
    return info;
}

// Checks the caller's structure, empties it and keeps its size.
template <typename T>
rt_status check_out(T* out, const char* origin) {
    if (!out) return make_status(RT_INVALID_ARGUMENT, origin, "the structure to fill is null");
    if (out->struct_size < sizeof(T))
        return make_status(RT_INVALID_ARGUMENT, origin, "struct_size is %u, must be at least %zu",
                           out->struct_size, sizeof(T));
    const uint32_t size = out->struct_size;
    std::memset(out, 0, sizeof(T));
    out->struct_size = size;
    return RT_OK;
}

void copy_info(const enpu_hal_device_info& from, const enpu_hal_plugin& plugin,
               rt_device_info& out) {
    std::snprintf(out.spec, sizeof(out.spec), "%s", from.spec);
    std::snprintf(out.name, sizeof(out.name), "%s", from.name);
    std::snprintf(out.driver, sizeof(out.driver), "%s", from.driver);
    std::snprintf(out.backend, sizeof(out.backend), "%s", plugin.name);
    out.local_bytes = from.local_bytes;
    out.max_tensor_bytes = from.max_tensor_bytes;
    out.compute_engines = from.compute_engines;
    out.copy_engines = from.copy_engines;
    out.threads = from.threads;
    out.is_simulator = from.class_id == ENPU_HAL_CLASS_SIMULATOR;
    // Where the CPU is the device its memory is the host's.
    out.host_visible = from.class_id == ENPU_HAL_CLASS_CPU;
}

std::string no_backend(const char* spec) {
    std::string text = "no backend knows the device '" + std::string(spec) + "'; loaded:";
    for (const auto& backend : hal::backends().loaded)
        text += std::string(" ") + backend.plugin->name;
    if (hal::backends().loaded.empty()) text += " none (is ENPU_HAL_PATH right?)";
    for (const auto& refusal : hal::backends().refused)
        text += "; " + refusal.path + ": " + refusal.reason;
    return text;
}

rt_status enumerate(uint32_t wanted, rt_device_info& out) {
    uint32_t count = 0;
    for (uint32_t class_id : kClassOrder) {
        for (const auto& backend : hal::backends().loaded) {
            enpu_hal_device_info info = empty_info();
            for (uint32_t i = 0;
                 backend.plugin->driver->enumerate(i, &info, nullptr) == ENPU_HAL_OK; ++i) {
                if (info.class_id == class_id && count++ == wanted) {
                    copy_info(info, *backend.plugin, out);
                    return RT_OK;
                }
                info = empty_info();
            }
        }
    }
    return make_status(RT_NOT_FOUND, "rt_device_enumerate", "there are %u devices", count);
}

}  // namespace

rt_status open_backend(const char* spec, const char* origin, const enpu_hal_plugin** plugin,
                       enpu_hal_device** handle) {
    for (const auto& backend : hal::backends().loaded) {
        if (!backend.plugin->driver->accepts(spec)) continue;
        enpu_hal_status status{};
        if (backend.plugin->driver->open(spec, handle, &status) != ENPU_HAL_OK)
            return from_hal(status, origin);
        *plugin = backend.plugin;
        return RT_OK;
    }
    return make_status(RT_NOT_FOUND, origin, "%s", no_backend(spec).c_str());
}

// -----------------------------------------------------------------------------------
// TimestampSlots

rt_status TimestampSlots::take(rt_device_impl& device, Slot& slot) {
    std::lock_guard lock(mutex_);
    for (auto entry = returned_.begin(); entry != returned_.end(); ++entry) {
        if (!entry->last_use.settled()) continue;
        slot = entry->slot;
        returned_.erase(entry);
        return RT_OK;
    }
    constexpr uint64_t kPage = 4096;
    enpu_hal_buffer* buffer = nullptr;
    void* host = nullptr;
    RT_TRY(device.allocate_host(kPage, "rt_event_create", &buffer, &host));
    pages_.push_back(buffer);
    for (uint64_t offset = 8; offset < kPage; offset += 8)
        returned_.push_back({{buffer, offset, static_cast<uint64_t*>(host) + offset / 8}, {}});
    slot = {buffer, 0, static_cast<uint64_t*>(host)};
    return RT_OK;
}

void TimestampSlots::give_back(const Slot& slot, const Point& last_use) {
    std::lock_guard lock(mutex_);
    returned_.push_back({slot, last_use});
}

void TimestampSlots::release(const enpu_hal_plugin& hal) {
    returned_.clear();
    for (enpu_hal_buffer* page : pages_) hal.memory->free(page);
    pages_.clear();
}

}  // namespace enpu::rt

using namespace enpu::rt;

// -------------------------------------------------------------------------------------------
// device

rt_device_impl::rt_device_impl(const enpu_hal_plugin& plugin, enpu_hal_device* device)
    : hal(plugin),
      handle(device),
      pool(std::make_unique<Pool>(plugin, device, device_map)),
      fork_generation(enpu::rt::fork_generation()),
      host(std::make_unique<HostThread>(*this)) {
    for (uint32_t op = 0; op < ENPU_OPS; ++op) kernels[op] = {this, enpu::hal::find_op(op)};
}

void rt_device_impl::keep(enpu_hal_buffer* buffer) {
    std::lock_guard lock(streams_mutex);
    kept.push_back(buffer);
}

rt_device_impl::~rt_device_impl() {
    host.reset();
    profile::forget(*this);
    guard.reset();
    for (enpu_hal_buffer* buffer : kept) hal.memory->free(buffer);
    timestamps.release(hal);
    pool.reset();  // its buffers must be gone before the device closes
    hal.device->close(handle);
}

rt_status rt_device_impl::start_host(const char* origin) {
    if (host_started.load()) return RT_OK;
    RT_TRY(host->start(origin));
    host_started.store(true);
    return RT_OK;
}

bool rt_device_impl::resolve_pinned(const void* pointer, uint64_t bytes,
                                    enpu_hal_place& place) const {
    const uint64_t address = reinterpret_cast<uint64_t>(pointer);
    const Range range = host_map.find(address);
    if (range.bytes == 0 || bytes > range.bytes - (address - range.begin)) return false;
    place = {range.buffer, address - range.begin};
    return true;
}

rt_status rt_device_impl::resolve(const void* pointer, uint64_t bytes, const char* origin,
                                  const char* what, enpu_hal_place& place) const {
    const uint64_t address = reinterpret_cast<uint64_t>(pointer);
    const Range range = device_map.find(address);
    if (range.bytes != 0) {
        // Not past the block: its neighbour belongs to somebody else.
        const Slab& slab = *range.slab;
        const uint64_t index = slab.index_of(address);
        const uint64_t in_block = address - range.begin - index * slab.block_bytes;
        if (bytes > slab.block_bytes - in_block)
            return make_status(RT_INVALID_ARGUMENT, origin,
                               "%s: %llu bytes from %p pass the end of the allocation", what,
                               static_cast<unsigned long long>(bytes), pointer);
        if (!slab.live(index))
            return make_status(RT_INVALID_ARGUMENT, origin, "%s: the memory at %p was freed", what,
                               pointer);
        place = {range.buffer, address - range.begin};
        return RT_OK;
    }
    if (resolve_pinned(pointer, bytes, place)) return RT_OK;
    return make_status(RT_INVALID_ARGUMENT, origin,
                       "%s: %p is neither memory nor pinned memory of the device %s", what, pointer,
                       info.spec);
}

rt_status rt_device_impl::allocate_host(uint64_t bytes, const char* origin,
                                        enpu_hal_buffer** buffer, void** pointer) {
    enpu_hal_buffer_desc desc{};
    desc.header = {sizeof(desc), ENPU_HAL_TYPE_BUFFER_DESC, nullptr};
    desc.bytes = bytes;
    desc.alignment = 256;
    desc.memory = ENPU_HAL_MEMORY_HOST;
    enpu_hal_status status{};
    if (hal.memory->alloc(handle, &desc, buffer, &status) != ENPU_HAL_OK)
        return from_hal(status, origin);
    counted.host_allocations.fetch_add(1);
    enpu_hal_buffer_info out{};
    out.header = {sizeof(out), ENPU_HAL_TYPE_BUFFER_INFO, nullptr};
    if (hal.memory->info(*buffer, &out, &status) != ENPU_HAL_OK) {
        hal.memory->free(*buffer);
        return from_hal(status, origin);
    }
    *pointer = out.host;
    return RT_OK;
}

rt_status rt_device_enumerate(uint32_t index, rt_device_info* info) {
    return guarded(__func__, [&]() -> rt_status {
        RT_TRY(check_out(info, "rt_device_enumerate"));
        return enumerate(index, *info);
    });
}

rt_status rt_device_open(const char* spec, rt_device* device) {
    RT_NOT_NULL(spec);
    RT_NOT_NULL(device);
    *device = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        const enpu_hal_plugin* plugin = nullptr;
        enpu_hal_device* handle = nullptr;
        RT_TRY(open_backend(spec, "rt_device_open", &plugin, &handle));
        auto made = std::make_unique<rt_device_impl>(*plugin, handle);
        made->info = empty_info();
        enpu_hal_status status{};
        if (plugin->device->info(handle, &made->info, &status) != ENPU_HAL_OK)
            return from_hal(status, "rt_device_open");
        const auto is_set = [](const char* name) {
            const char* value = std::getenv(name);
            return value && std::string_view(value) == "1";
        };
        made->poison.store(is_set("ENPU_RT_POISON"));
        made->sync_mode.store(is_set("ENPU_RT_SYNC"));
        *device = made.release();
        return RT_OK;
    });
}

void rt_device_close(rt_device device) {
    // A child of fork leaves the parent's device alone: its threads do not exist here.
    if (device && !forked_since(*device)) device->release();
}

rt_status rt_device_set_sync_mode(rt_device device, uint32_t on) {
    RT_NOT_NULL(device);
    device->sync_mode.store(on != 0);
    return RT_OK;
}

rt_status rt_device_check(rt_device device) {
    RT_NOT_NULL(device);
    return guarded(__func__, [&]() -> rt_status {
        RT_TRY(check_fork(*device, "rt_device_check"));
        enpu_hal_status status{};
        if (device->hal.device->check(device->handle, &status) != ENPU_HAL_OK)
            return from_hal(status, "rt_device_check");
        return RT_OK;
    });
}

rt_status rt_device_get_info(rt_device device, rt_device_info* info) {
    RT_NOT_NULL(device);
    RT_TRY(check_out(info, __func__));
    copy_info(device->info, device->hal, *info);
    uint64_t total = 0;
    enpu_hal_status status{};
    if (device->hal.memory->usage(device->handle, &info->local_free, &total, &status) !=
        ENPU_HAL_OK)
        return from_hal(status, __func__);
    return RT_OK;
}

rt_status rt_device_get_counters(rt_device device, rt_counters* counters) {
    RT_NOT_NULL(device);
    RT_TRY(check_out(counters, __func__));
    if (device->info.caps & ENPU_HAL_CAP_PROFILE) {
        enpu_hal_counters from{};
        from.header = {sizeof(from), ENPU_HAL_TYPE_COUNTERS, nullptr};
        enpu_hal_status status{};
        if (device->hal.profile->counters(device->handle, &from, &status) != ENPU_HAL_OK)
            return from_hal(status, __func__);
        counters->from_device = 1;
        static_assert(sizeof(counters->ops) == sizeof(from.ops));
        std::memcpy(counters->ops, from.ops, sizeof(from.ops));
        counters->jobs = from.jobs;
        counters->jobs_failed = from.jobs_failed;
        counters->copies = from.copies;
        counters->copy_bytes = from.copy_bytes;
        counters->busy_compute_ns = from.busy_compute_ns;
        counters->busy_copy_ns = from.busy_copy_ns;
        counters->work = from.work;
        counters->faults = from.faults;
        std::memcpy(counters->library_ops, from.library_ops, sizeof(from.library_ops));
        counters->library_refusals = from.library_refusals;
    }
    const auto& counted = device->counted;
    counters->launches = counted.launches.load();
    counters->submissions = counted.submissions.load();
    counters->bytes_h2d = counted.bytes_h2d.load();
    counters->bytes_d2h = counted.bytes_d2h.load();
    counters->bytes_d2d = counted.bytes_d2d.load();
    counters->copies_enqueued = counted.copies.load();
    counters->copies_merged = counted.copies_merged.load();
    counters->backend_allocations =
        device->pool->backend_allocations() + counted.host_allocations.load();
    return RT_OK;
}

rt_status rt_device_sync(rt_device device, uint64_t deadline_ns) {
    RT_NOT_NULL(device);
    return guarded(__func__, [&]() -> rt_status {
        RT_TRY(check_fork(*device, "rt_device_sync"));
        std::vector<StreamRef> streams;
        {
            std::lock_guard lock(device->streams_mutex);
            for (rt_stream_impl* stream : device->streams) streams.emplace_back(stream);
        }
        rt_status first = RT_OK;
        for (const StreamRef& stream : streams) {
            rt_status status = stream->sync(deadline_ns, "rt_device_sync");
            if (status && first) rt_status_free(status);
            if (!first) first = status;
        }
        return first;
    });
}
