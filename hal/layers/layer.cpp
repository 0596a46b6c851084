// SPDX-License-Identifier: MIT
#include "layer.h"

#include <array>
#include <mutex>
#include <utility>

#include "structure.h"

namespace enpu::hal {

// ---------------------------------------------------------------------------- passing on

uint32_t Layer::enumerate(uint32_t a, enpu_hal_device_info* b, enpu_hal_status* c) {
    return next.driver->enumerate(a, b, c);
}

uint32_t Layer::accepts(const char* a) {
    return next.driver->accepts(a);
}

uint32_t Layer::open(const char* a, enpu_hal_device** b, enpu_hal_status* c) {
    return next.driver->open(a, b, c);
}

void Layer::close(enpu_hal_device* a) {
    next.device->close(a);
}

uint32_t Layer::device_info(enpu_hal_device* a, enpu_hal_device_info* b, enpu_hal_status* c) {
    return next.device->info(a, b, c);
}

uint32_t Layer::device_check(enpu_hal_device* a, enpu_hal_status* b) {
    return next.device->check(a, b);
}

uint32_t Layer::alloc(enpu_hal_device* a, const enpu_hal_buffer_desc* b, enpu_hal_buffer** c,
                      enpu_hal_status* d) {
    return next.memory->alloc(a, b, c, d);
}

void Layer::free(enpu_hal_buffer* a) {
    next.memory->free(a);
}

uint32_t Layer::buffer_info(enpu_hal_buffer* a, enpu_hal_buffer_info* b, enpu_hal_status* c) {
    return next.memory->info(a, b, c);
}

uint32_t Layer::usage(enpu_hal_device* a, uint64_t* b, uint64_t* c, enpu_hal_status* d) {
    return next.memory->usage(a, b, c, d);
}

uint32_t Layer::wrap(enpu_hal_device* a, void* b, uint64_t c, enpu_hal_buffer** d,
                     enpu_hal_status* e) {
    return next.memory->wrap(a, b, c, d, e);
}

uint32_t Layer::buffer_export(enpu_hal_buffer* a, int* b, enpu_hal_status* c) {
    return next.memory->export_fd(a, b, c);
}

uint32_t Layer::buffer_import(enpu_hal_device* a, int b, enpu_hal_buffer** c, enpu_hal_status* d) {
    return next.memory->import_fd(a, b, c, d);
}

uint32_t Layer::queue_create(enpu_hal_device* a, const enpu_hal_queue_desc* b, enpu_hal_queue** c,
                             enpu_hal_status* d) {
    return next.queue->create(a, b, c, d);
}

void Layer::queue_destroy(enpu_hal_queue* a) {
    next.queue->destroy(a);
}

uint32_t Layer::submit(enpu_hal_queue* a, const enpu_hal_submission* b, uint64_t c,
                       enpu_hal_status* d) {
    return next.queue->submit(a, b, c, d);
}

uint32_t Layer::fence_create(enpu_hal_device* a, uint64_t b, enpu_hal_fence** c,
                             enpu_hal_status* d) {
    return next.fence->create(a, b, c, d);
}

void Layer::fence_destroy(enpu_hal_fence* a) {
    next.fence->destroy(a);
}

uint32_t Layer::fence_query(enpu_hal_fence* a, uint64_t* b, enpu_hal_status* c) {
    return next.fence->query(a, b, c);
}

uint32_t Layer::fence_wait(enpu_hal_device* a, const enpu_hal_point* b, uint32_t c, uint32_t d,
                           uint64_t e, enpu_hal_status* f) {
    return next.fence->wait(a, b, c, d, e, f);
}

uint32_t Layer::fence_signal(enpu_hal_fence* a, uint64_t b, enpu_hal_status* c) {
    return next.fence->signal(a, b, c);
}

uint32_t Layer::fence_export(enpu_hal_fence* a, int* b, enpu_hal_status* c) {
    return next.fence->export_fd(a, b, c);
}

uint32_t Layer::fence_import(enpu_hal_device* a, int b, enpu_hal_fence** c, enpu_hal_status* d) {
    return next.fence->import_fd(a, b, c, d);
}

uint32_t Layer::supported(enpu_hal_device* a, const enpu_hal_dispatch* b, enpu_hal_status* c) {
    return next.kernel->supported(a, b, c);
}

uint32_t Layer::packed_size(enpu_hal_device* a, const enpu_op_tensor* b,
                            const enpu_op_pack_params* c, uint64_t* d, enpu_hal_status* e) {
    return next.kernel->packed_size(a, b, c, d, e);
}

uint32_t Layer::graph_create(enpu_hal_device* a, const enpu_hal_command* b, uint32_t c,
                             enpu_hal_graph** d, enpu_hal_status* e) {
    return next.graph->create(a, b, c, d, e);
}

void Layer::graph_destroy(enpu_hal_graph* a) {
    next.graph->destroy(a);
}

uint32_t Layer::graph_update(enpu_hal_graph* a, uint32_t b, const enpu_hal_command* c,
                             enpu_hal_status* d) {
    return next.graph->update(a, b, c, d);
}

uint32_t Layer::graph_launch(enpu_hal_queue* a, enpu_hal_graph* b, const enpu_hal_submission* c,
                             uint64_t d, enpu_hal_status* e) {
    return next.graph->launch(a, b, c, d, e);
}

uint32_t Layer::counters(enpu_hal_device* a, enpu_hal_counters* b, enpu_hal_status* c) {
    return next.profile->counters(a, b, c);
}

uint32_t Layer::clock(enpu_hal_device* a, uint64_t* b, uint64_t* c, enpu_hal_status* d) {
    return next.profile->clock(a, b, c, d);
}

// ------------------------------------------------------------------------------- tables

namespace {

Layer* layers[kMostLayers];

// Slot functions have no argument that could name the layer, so there is one set of them for each
// layer of the process.
template <unsigned kIndex, auto kMethod>
struct Thunk;
template <unsigned kIndex, typename Result, typename... Arguments,
          Result (Layer::*kMethod)(Arguments...)>
struct Thunk<kIndex, kMethod> {
    static Result call(Arguments... arguments) { return (layers[kIndex]->*kMethod)(arguments...); }
};

struct Tables {
    enpu_hal_driver_table driver;
    enpu_hal_device_table device;
    enpu_hal_memory_table memory;
    enpu_hal_queue_table queue;
    enpu_hal_fence_table fence;
    enpu_hal_kernel_table kernel;
    enpu_hal_graph_table graph;
    enpu_hal_profile_table profile;
    enpu_hal_plugin plugin;
};

template <unsigned kIndex, auto kMethod>
constexpr auto kSlot = &Thunk<kIndex, kMethod>::call;

template <typename Table>
constexpr enpu_hal_header head(enpu_hal_type type) {
    return table_header(sizeof(Table), type);
}

template <unsigned kIndex>
const enpu_hal_plugin* make(const enpu_hal_plugin& below, uint32_t caps) {
    constexpr unsigned I = kIndex;
    static Tables t;
    const auto has = [caps](uint32_t bit) { return (caps & bit) != 0; };
    t.driver = {head<enpu_hal_driver_table>(ENPU_HAL_TYPE_DRIVER_TABLE),
                kSlot<I, &Layer::enumerate>, kSlot<I, &Layer::accepts>, kSlot<I, &Layer::open>};
    t.device = {head<enpu_hal_device_table>(ENPU_HAL_TYPE_DEVICE_TABLE), kSlot<I, &Layer::close>,
                kSlot<I, &Layer::device_info>, kSlot<I, &Layer::device_check>};
    t.memory = {head<enpu_hal_memory_table>(ENPU_HAL_TYPE_MEMORY_TABLE),
                kSlot<I, &Layer::alloc>,
                kSlot<I, &Layer::free>,
                kSlot<I, &Layer::buffer_info>,
                kSlot<I, &Layer::usage>,
                has(ENPU_HAL_CAP_USERPTR) ? kSlot<I, &Layer::wrap> : nullptr,
                has(ENPU_HAL_CAP_SHARE) ? kSlot<I, &Layer::buffer_export> : nullptr,
                has(ENPU_HAL_CAP_SHARE) ? kSlot<I, &Layer::buffer_import> : nullptr};
    t.queue = {head<enpu_hal_queue_table>(ENPU_HAL_TYPE_QUEUE_TABLE),
               kSlot<I, &Layer::queue_create>, kSlot<I, &Layer::queue_destroy>,
               kSlot<I, &Layer::submit>};
    t.fence = {head<enpu_hal_fence_table>(ENPU_HAL_TYPE_FENCE_TABLE),
               kSlot<I, &Layer::fence_create>,
               kSlot<I, &Layer::fence_destroy>,
               kSlot<I, &Layer::fence_query>,
               kSlot<I, &Layer::fence_wait>,
               kSlot<I, &Layer::fence_signal>,
               has(ENPU_HAL_CAP_FENCE_SHARE) ? kSlot<I, &Layer::fence_export> : nullptr,
               has(ENPU_HAL_CAP_FENCE_SHARE) ? kSlot<I, &Layer::fence_import> : nullptr};
    t.kernel = {head<enpu_hal_kernel_table>(ENPU_HAL_TYPE_KERNEL_TABLE),
                kSlot<I, &Layer::supported>, kSlot<I, &Layer::packed_size>};
    t.graph = {head<enpu_hal_graph_table>(ENPU_HAL_TYPE_GRAPH_TABLE),
               kSlot<I, &Layer::graph_create>, kSlot<I, &Layer::graph_destroy>,
               kSlot<I, &Layer::graph_update>, kSlot<I, &Layer::graph_launch>};
    t.profile = {head<enpu_hal_profile_table>(ENPU_HAL_TYPE_PROFILE_TABLE),
                 kSlot<I, &Layer::counters>, kSlot<I, &Layer::clock>};
    t.plugin = below;
    t.plugin.header = head<enpu_hal_plugin>(ENPU_HAL_TYPE_PLUGIN);
    t.plugin.caps = caps;
    t.plugin.driver = &t.driver;
    t.plugin.device = &t.device;
    t.plugin.memory = &t.memory;
    t.plugin.queue = &t.queue;
    t.plugin.fence = &t.fence;
    t.plugin.kernel = &t.kernel;
    t.plugin.graph = has(ENPU_HAL_CAP_GRAPH) ? &t.graph : nullptr;
    t.plugin.profile = has(ENPU_HAL_CAP_PROFILE) ? &t.profile : nullptr;
    return &t.plugin;
}

using Make = const enpu_hal_plugin* (*)(const enpu_hal_plugin&, uint32_t);
template <unsigned... kIndex>
constexpr std::array<Make, sizeof...(kIndex)> makers(std::integer_sequence<unsigned, kIndex...>) {
    return {make<kIndex>...};
}
constexpr auto kMakers = makers(std::make_integer_sequence<unsigned, kMostLayers>());

}  // namespace

const enpu_hal_plugin* interpose(std::unique_ptr<Layer> layer, const enpu_hal_plugin& below,
                                 uint32_t caps) {
    static std::mutex mutex;
    static unsigned used = 0;
    std::lock_guard lock(mutex);
    if (used == kMostLayers) return nullptr;
    layers[used] = layer.release();
    return kMakers[used++](below, caps);
}

}  // namespace enpu::hal
