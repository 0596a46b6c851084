// SPDX-License-Identifier: MIT
// The contract of the tables: sizes, types, required slots, and capability bits against optional
// slots.
#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "loader.h"

namespace enpu::hal {
namespace {

struct Slot {
    const char* name;
    bool present;
    uint32_t cap;  // 0: required
};

std::string sentence(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string sentence(const char* format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return text;
}

std::string check_header(const char* table, const enpu_hal_header& header, uint32_t type,
                         size_t size) {
    if (header.type != type)
        return sentence("%s table: header.type is %u, must be %u", table, header.type, type);
    if (header.size < size)
        return sentence("%s table: header.size is %u, ABI %u.0 has %zu bytes", table, header.size,
                        ENPU_HAL_ABI_MAJOR, size);
    return {};
}

std::string check_slots(const char* table, uint32_t caps, std::initializer_list<Slot> slots) {
    for (const Slot& slot : slots) {
        if (slot.cap == 0 && !slot.present)
            return sentence("%s.%s is null, but required", table, slot.name);
        if (slot.cap != 0 && slot.present != ((caps & slot.cap) != 0))
            return sentence("%s.%s is %s, but capability bit 0x%x is %s", table, slot.name,
                            slot.present ? "set" : "null", slot.cap,
                            caps & slot.cap ? "set" : "clear");
    }
    return {};
}

#define SLOT(table, name) \
    { #name, (table).name != nullptr, 0 }
#define OPTIONAL(table, name, cap) \
    { #name, (table).name != nullptr, cap }
#define TRY(expression) \
    if (std::string reason = (expression); !reason.empty()) return reason

std::string check_required(const enpu_hal_plugin& plugin) {
    const uint32_t caps = plugin.caps;
    TRY(check_header("driver", plugin.driver->header, ENPU_HAL_TYPE_DRIVER_TABLE,
                     sizeof(*plugin.driver)));
    TRY(check_slots("driver", caps,
                    {SLOT(*plugin.driver, enumerate), SLOT(*plugin.driver, accepts),
                     SLOT(*plugin.driver, open)}));
    TRY(check_header("device", plugin.device->header, ENPU_HAL_TYPE_DEVICE_TABLE,
                     sizeof(*plugin.device)));
    TRY(check_slots(
        "device", caps,
        {SLOT(*plugin.device, close), SLOT(*plugin.device, info), SLOT(*plugin.device, check)}));
    TRY(check_header("memory", plugin.memory->header, ENPU_HAL_TYPE_MEMORY_TABLE,
                     sizeof(*plugin.memory)));
    TRY(check_slots(
        "memory", caps,
        {SLOT(*plugin.memory, alloc), SLOT(*plugin.memory, free), SLOT(*plugin.memory, info),
         SLOT(*plugin.memory, usage), OPTIONAL(*plugin.memory, wrap, ENPU_HAL_CAP_USERPTR),
         OPTIONAL(*plugin.memory, export_fd, ENPU_HAL_CAP_SHARE),
         OPTIONAL(*plugin.memory, import_fd, ENPU_HAL_CAP_SHARE)}));
    TRY(check_header("queue", plugin.queue->header, ENPU_HAL_TYPE_QUEUE_TABLE,
                     sizeof(*plugin.queue)));
    TRY(check_slots(
        "queue", caps,
        {SLOT(*plugin.queue, create), SLOT(*plugin.queue, destroy), SLOT(*plugin.queue, submit)}));
    TRY(check_header("fence", plugin.fence->header, ENPU_HAL_TYPE_FENCE_TABLE,
                     sizeof(*plugin.fence)));
    TRY(check_slots(
        "fence", caps,
        {SLOT(*plugin.fence, create), SLOT(*plugin.fence, destroy), SLOT(*plugin.fence, query),
         SLOT(*plugin.fence, wait), SLOT(*plugin.fence, signal),
         OPTIONAL(*plugin.fence, export_fd, ENPU_HAL_CAP_FENCE_SHARE),
         OPTIONAL(*plugin.fence, import_fd, ENPU_HAL_CAP_FENCE_SHARE)}));
    TRY(check_header("kernel", plugin.kernel->header, ENPU_HAL_TYPE_KERNEL_TABLE,
                     sizeof(*plugin.kernel)));
    return check_slots("kernel", caps,
                       {SLOT(*plugin.kernel, supported), SLOT(*plugin.kernel, packed_size)});
}

std::string check_optional(const enpu_hal_plugin& plugin) {
    TRY(check_slots("plugin", plugin.caps,
                    {OPTIONAL(plugin, graph, ENPU_HAL_CAP_GRAPH),
                     OPTIONAL(plugin, profile, ENPU_HAL_CAP_PROFILE)}));
    if (plugin.graph) {
        TRY(check_header("graph", plugin.graph->header, ENPU_HAL_TYPE_GRAPH_TABLE,
                         sizeof(*plugin.graph)));
        TRY(check_slots("graph", plugin.caps,
                        {SLOT(*plugin.graph, create), SLOT(*plugin.graph, destroy),
                         SLOT(*plugin.graph, update), SLOT(*plugin.graph, launch)}));
    }
    if (plugin.profile) {
        TRY(check_header("profile", plugin.profile->header, ENPU_HAL_TYPE_PROFILE_TABLE,
                         sizeof(*plugin.profile)));
        TRY(check_slots("profile", plugin.caps,
                        {SLOT(*plugin.profile, counters), SLOT(*plugin.profile, clock)}));
    }
    return {};
}

}  // namespace

std::string check_plugin(const enpu_hal_plugin* plugin) {
    if (!plugin) return "plugin is null";
    if (plugin->header.type != ENPU_HAL_TYPE_PLUGIN || plugin->header.size < sizeof(*plugin))
        return sentence("plugin: header.type is %u and size %u, must be %u and at least %zu",
                        plugin->header.type, plugin->header.size, ENPU_HAL_TYPE_PLUGIN,
                        sizeof(*plugin));
    if (plugin->abi_major != ENPU_HAL_ABI_MAJOR)
        return sentence("speaks HAL ABI %u.%u, this library %u.%u: rebuild the older one",
                        plugin->abi_major, plugin->abi_minor, ENPU_HAL_ABI_MAJOR,
                        ENPU_HAL_ABI_MINOR);
    if (!plugin->name || !plugin->name[0] || !plugin->version)
        return "plugin has no name or version";
    TRY(check_slots("plugin", plugin->caps,
                    {SLOT(*plugin, driver), SLOT(*plugin, device), SLOT(*plugin, memory),
                     SLOT(*plugin, queue), SLOT(*plugin, fence), SLOT(*plugin, kernel)}));
    TRY(check_required(*plugin));
    return check_optional(*plugin);
}

}  // namespace enpu::hal
