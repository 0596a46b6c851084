// SPDX-License-Identifier: MIT
#include "pipeline.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "layers/layers.h"
#include "stream.h"

using namespace enpu::rt;

namespace {

rt_status make_stream(rt_device_impl* device, const char* name, uint32_t flags, uint64_t timeout_ns,
                      rt_stream* stream) {
    rt_stream_options options{};
    options.struct_size = sizeof(options);
    options.name = name;
    options.flags = flags;
    options.timeout_ns = timeout_ns;
    return rt_stream_create(device, &options, stream);
}

rt_status check_desc(const rt_pipeline_desc* desc, const char* origin) {
    if (!desc || desc->struct_size < sizeof(*desc))
        return make_status(RT_INVALID_ARGUMENT, origin,
                           "desc is null or its struct_size less than %zu", sizeof(*desc));
    if (desc->slots < 1 || desc->slots > RT_PIPELINE_MAX_SLOTS)
        return make_status(RT_INVALID_ARGUMENT, origin, "slots is %u, must be 1 … %u", desc->slots,
                           RT_PIPELINE_MAX_SLOTS);
    if (desc->input_bytes == 0 || desc->output_bytes == 0 || !desc->compute)
        return make_status(RT_INVALID_ARGUMENT, origin,
                           "input_bytes, output_bytes and compute must be given");
    return RT_OK;
}

}  // namespace

// -----------------------------------------------------------------------------------------
// set-up

rt_status rt_pipeline_impl::open_slot(uint32_t index) {
    Slot& slot = slots[index];
    rt_pipeline_slot& memory = slot.memory;
    memory.index = index;
    RT_TRY(rt_host_alloc(device, desc.input_bytes, &memory.host_input));
    memory.input = memory.host_input;
    if (!desc.input_in_place) {
        memory.input = nullptr;
        RT_TRY(rt_malloc(compute_stream, desc.input_bytes, &memory.input));
    }
    if (desc.output_in_place) {
        RT_TRY(rt_host_alloc(device, desc.output_bytes, &memory.host_output));
        memory.output = memory.host_output;
    } else {
        RT_TRY(rt_malloc(compute_stream, desc.output_bytes, &memory.output));
    }
    RT_TRY(rt_event_create(device, 0, &slot.loaded));
    RT_TRY(rt_event_create(device, 0, &slot.computed));
    return rt_event_create(device, 0, &slot.stored);
}

rt_status rt_pipeline_impl::open() {
    RT_TRY(
        make_stream(device, "pipeline load", RT_STREAM_COPY_ENGINE, desc.timeout_ns, &load_stream));
    RT_TRY(make_stream(device, "pipeline compute", 0, desc.timeout_ns, &compute_stream));
    RT_TRY(make_stream(device, "pipeline store", RT_STREAM_COPY_ENGINE, desc.timeout_ns,
                       &store_stream));
    slots.resize(desc.slots);
    for (uint32_t i = 0; i < desc.slots; ++i) RT_TRY(open_slot(i));
    outputs_.resize(desc.output_in_place ? 0 : desc.slots + 1);
    for (void*& output : outputs_) RT_TRY(rt_host_alloc(device, desc.output_bytes, &output));
    return RT_OK;
}

rt_pipeline_impl::~rt_pipeline_impl() {
    for (rt_stream stream : {load_stream, compute_stream, store_stream})
        if (stream) rt_status_free(stream->sync(stream->deadline(), "rt_pipeline_destroy"));
    for (Slot& slot : slots) {
        for (rt_event event : {slot.loaded, slot.computed, slot.stored}) rt_event_destroy(event);
        if (!desc.input_in_place) rt_status_free(rt_free(compute_stream, slot.memory.input));
        if (!desc.output_in_place) rt_status_free(rt_free(compute_stream, slot.memory.output));
    }
    // What is stuck in flight ends with its stream, before the pinned memory goes.
    for (rt_stream stream : {load_stream, compute_stream, store_stream}) rt_stream_destroy(stream);
    for (Slot& slot : slots) {
        rt_status_free(rt_host_free(device, slot.memory.host_input));
        rt_status_free(rt_host_free(device, slot.memory.host_output));
    }
    for (void* output : outputs_) rt_status_free(rt_host_free(device, output));
}

// ---------------------------------------------------------------------------------------
// items

rt_status rt_pipeline_impl::load(const Slot& slot, const rt_pipeline_piece* pieces,
                                 uint32_t count) {
    constexpr const char* kOrigin = "rt_pipeline_push";
    const rt_pipeline_slot& memory = slot.memory;
    if (!pieces) {
        if (desc.input_in_place) return RT_OK;
        const rt_copy whole{memory.input, memory.host_input, desc.input_bytes};
        return rt_prefetch(load_stream, &whole, 1, slot.computed, slot.loaded);
    }
    // Waits for the item that had the slot before; then the pieces, a submission at a time.
    RT_TRY(rt_stream_wait_event(load_stream, slot.computed));
    constexpr uint32_t kAtOnce = 64;
    rt_copy copies[kAtOnce];
    for (uint32_t i = 0; i < count; ++i) {
        const rt_pipeline_piece& piece = pieces[i];
        if (piece.offset > desc.input_bytes || piece.bytes > desc.input_bytes - piece.offset)
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "piece %u: %zu bytes at offset %llu pass the input of %llu", i,
                               piece.bytes, static_cast<unsigned long long>(piece.offset),
                               static_cast<unsigned long long>(desc.input_bytes));
    }
    for (uint32_t first = 0; first < count; first += kAtOnce) {
        const uint32_t here = std::min(kAtOnce, count - first);
        for (uint32_t i = 0; i < here; ++i)
            copies[i] = {static_cast<std::byte*>(memory.input) + pieces[first + i].offset,
                         pieces[first + i].src, pieces[first + i].bytes};
        RT_TRY(rt_memcpy_batch(load_stream, copies, here));
    }
    return rt_event_record(slot.loaded, load_stream);
}

rt_status rt_pipeline_impl::compute(const Slot& slot) {
    RT_TRY(rt_stream_wait_event(compute_stream, slot.loaded));
    // The store of the item before reads the output.
    RT_TRY(rt_stream_wait_event(compute_stream, slot.stored));
    RT_TRY(desc.compute(desc.context, compute_stream, &slot.memory));
    return rt_event_record(slot.computed, compute_stream);
}

rt_status rt_pipeline_impl::store(const Slot& slot, void* host) {
    if (desc.output_in_place) return rt_event_record(slot.stored, compute_stream);
    RT_TRY(rt_stream_wait_event(store_stream, slot.computed));
    RT_TRY(rt_memcpy_d2h_async(store_stream, host, slot.memory.output, desc.output_bytes));
    return rt_event_record(slot.stored, store_stream);
}

uint32_t rt_pipeline_impl::free_slots() {
    std::lock_guard lock(mutex_);
    return free_locked();
}

uint32_t rt_pipeline_impl::in_flight() {
    std::lock_guard lock(mutex_);
    return static_cast<uint32_t>(pushed_ - popped_);
}

rt_status rt_pipeline_impl::input(uint64_t deadline_ns, void** host) {
    std::unique_lock lock(mutex_);
    const std::chrono::steady_clock::time_point deadline{
        std::chrono::nanoseconds(std::min<uint64_t>(deadline_ns, INT64_MAX))};
    if (!changed_.wait_until(lock, deadline, [&] { return free_locked() > 0; }))
        return make_status(RT_DEADLINE_EXCEEDED, "rt_pipeline_input",
                           "all %zu slots are in flight or being read: nobody popped",
                           slots.size());
    *host = at(pushed_).memory.host_input;
    enpu::hal::note_host_access(*host, desc.input_bytes, true);
    return RT_OK;
}

rt_status rt_pipeline_impl::push(const rt_pipeline_piece* pieces, uint32_t count) {
    std::lock_guard one(pushing_);
    Slot* slot = nullptr;
    void* host = nullptr;
    {
        std::lock_guard lock(mutex_);
        if (free_locked() == 0)
            return make_status(RT_FAILED_PRECONDITION, "rt_pipeline_push",
                               "all %zu slots are in flight or being read: pop first",
                               slots.size());
        slot = &at(pushed_);
        host = host_output(pushed_);
    }
    RT_TRY(load(*slot, pieces, count));
    RT_TRY(compute(*slot));
    RT_TRY(store(*slot, host));
    std::lock_guard lock(mutex_);
    ++pushed_;
    return RT_OK;
}

rt_status rt_pipeline_impl::pop(uint64_t deadline_ns, const void** host) {
    Slot* slot = nullptr;
    {
        std::lock_guard lock(mutex_);
        reading_ = 0;  // the caller is done with the item before
        if (pushed_ == popped_)
            return make_status(RT_NOT_FOUND, "rt_pipeline_pop", "nothing is in flight");
        slot = &at(popped_);
    }
    changed_.notify_all();
    rt_status status = rt_event_wait(slot->stored, deadline_ns);
    if (rt_status_code(status) == RT_DEADLINE_EXCEEDED) return status;
    std::lock_guard lock(mutex_);
    if (!status) {
        *host = host_output(popped_);
        enpu::hal::note_host_access(*host, desc.output_bytes, false);
    }
    ++popped_;
    reading_ = desc.output_in_place ? 1 : 0;
    changed_.notify_all();
    return status;
}

void rt_pipeline_impl::release_output() {
    std::lock_guard lock(mutex_);
    reading_ = 0;
    changed_.notify_all();
}

rt_status rt_pipeline_impl::reset() {
    std::lock_guard one(pushing_);
    for (rt_stream stream : {load_stream, compute_stream, store_stream})
        RT_TRY(rt_stream_reset(stream));
    std::lock_guard lock(mutex_);
    popped_ = pushed_;
    reading_ = 0;
    // The old events stand for work that was dropped.
    for (Slot& slot : slots)
        for (auto [event, stream] :
             {std::pair{slot.loaded, load_stream},
              {slot.computed, compute_stream},
              {slot.stored, desc.output_in_place ? compute_stream : store_stream}})
            RT_TRY(rt_event_record(event, stream));
    changed_.notify_all();
    return RT_OK;
}

// -----------------------------------------------------------------------------------------
// public

rt_status rt_pipeline_create(rt_device device, const rt_pipeline_desc* desc,
                             rt_pipeline* pipeline) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(pipeline);
    *pipeline = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        RT_TRY(check_desc(desc, "rt_pipeline_create"));
        auto made = std::make_unique<rt_pipeline_impl>(device, *desc);
        RT_TRY(made->open());
        *pipeline = made.release();
        return RT_OK;
    });
}

void rt_pipeline_destroy(rt_pipeline pipeline) {
    delete pipeline;
}

rt_status rt_pipeline_get_slot(rt_pipeline pipeline, uint32_t index, rt_pipeline_slot* slot) {
    RT_NOT_NULL(pipeline);
    RT_NOT_NULL(slot);
    if (index >= pipeline->slots.size())
        return make_status(RT_INVALID_ARGUMENT, __func__, "index is %u, there are %zu slots", index,
                           pipeline->slots.size());
    *slot = pipeline->slots[index].memory;
    return RT_OK;
}

uint32_t rt_pipeline_slots(rt_pipeline pipeline) {
    return pipeline ? static_cast<uint32_t>(pipeline->slots.size()) : 0;
}
uint32_t rt_pipeline_free_slots(rt_pipeline pipeline) {
    return pipeline ? pipeline->free_slots() : 0;
}
uint32_t rt_pipeline_in_flight(rt_pipeline pipeline) {
    return pipeline ? pipeline->in_flight() : 0;
}

rt_status rt_pipeline_input(rt_pipeline pipeline, uint64_t deadline_ns, void** host) {
    RT_NOT_NULL(pipeline);
    RT_NOT_NULL(host);
    *host = nullptr;
    return guarded(__func__, [&] { return pipeline->input(deadline_ns, host); });
}

rt_status rt_pipeline_push(rt_pipeline pipeline, const rt_pipeline_piece* pieces, uint32_t count) {
    RT_NOT_NULL(pipeline);
    return guarded(__func__, [&] { return pipeline->push(pieces, count); });
}

rt_status rt_pipeline_pop(rt_pipeline pipeline, uint64_t deadline_ns, const void** host) {
    RT_NOT_NULL(pipeline);
    RT_NOT_NULL(host);
    *host = nullptr;
    return guarded(__func__, [&] { return pipeline->pop(deadline_ns, host); });
}

void rt_pipeline_release(rt_pipeline pipeline) {
    if (pipeline) pipeline->release_output();
}

rt_status rt_pipeline_reset(rt_pipeline pipeline) {
    RT_NOT_NULL(pipeline);
    return guarded(__func__, [&] { return pipeline->reset(); });
}
