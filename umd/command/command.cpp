// SPDX-License-Identifier: MIT
#include "command/command.h"

#include <algorithm>
#include <cstring>

using namespace enpu;

namespace {

constexpr size_t kUsualFlights = 8;

const Reference* find(const std::vector<Reference>& references, uint32_t packet, uint32_t operand) {
    for (const Reference& reference : references) {
        if (reference.packet == packet && reference.operand == operand) return &reference;
    }
    return nullptr;
}

}  // namespace

int enpu_command::list_shared(enpu_error* error) {
    shared.clear();
    for (const Reference& reference : references) {
        if (!reference.buffer->shared()) continue;
        const uint32_t handle = reference.buffer->remains.handle;
        auto it = std::find_if(shared.begin(), shared.end(),
                               [&](const auto& bo) { return bo.handle == handle; });
        if (it == shared.end()) it = shared.insert(it, {handle, 0});
        it->flags |= reference.output ? DRM_ENPU_SUBMIT_BO_WRITE : DRM_ENPU_SUBMIT_BO_READ;
    }
    if (shared.size() > ENPU_MAX_SUBMIT_BOS) {
        return fail(error, -EINVAL, "the command names %zu shared buffers, at most %u are allowed",
                    shared.size(), ENPU_MAX_SUBMIT_BOS);
    }
    return 0;
}

int enpu_command::in_flight(bool* result, enpu_error* error) {
    int code = 0;
    std::erase_if(flights, [&](const Flight& flight) {
        uint64_t value = 0;
        const int r = device->os->sync_query(flight.timeline->handle, &value);
        if (r != 0) code = r;
        return r == 0 && value >= flight.value;
    });
    if (code != 0) return fail(error, code, "timeline query failed: %s", errno_text(code).c_str());
    *result = !flights.empty() || queued.load(std::memory_order_acquire) != 0;
    return 0;
}

int enpu_command::make_room(enpu_error* error) {
    if (flights.size() < flights.capacity()) return 0;
    bool busy = false;
    if (int r = in_flight(&busy, error)) return r;
    flights.reserve(2 * flights.size() + kUsualFlights);
    return 0;
}

void enpu_command::fly(enpu_timeline* timeline, uint64_t value) {
    for (Flight& flight : flights) {
        if (flight.timeline.get() != timeline) continue;
        flight.value = std::max(flight.value, value);
        return;
    }
    flights.push_back({Ref<enpu_timeline>(timeline), value});
}

int enpu_builder_finish(enpu_builder* builder, enpu_command** command, enpu_error* error) {
    if (builder == nullptr || command == nullptr)
        return fail(error, -EINVAL, "enpu_builder_finish: an argument is NULL");
    *command = nullptr;
    if (builder->packets.empty())
        return fail(error, -EINVAL, "enpu_builder_finish: the builder has no packet");
    return guard(error, [&] {
        enpu_device* device = builder->device.get();
        auto made = Ref<enpu_command>::adopt(new enpu_command(device, builder->kind));
        enpu_buffer* storage = nullptr;
        if (int r = enpu_buffer_create(device, builder->bytes.size(),
                                       ENPU_BUFFER_HOST | ENPU_BUFFER_READ_ONLY, &storage, error))
            return r;
        made->storage = Ref<enpu_buffer>::adopt(storage);
        void* cpu = nullptr;
        if (int r = enpu_buffer_map(storage, &cpu, error)) return r;
        made->cpu = static_cast<std::byte*>(cpu);
        made->bytes = static_cast<uint32_t>(builder->bytes.size());
        std::memcpy(made->cpu, builder->bytes.data(), builder->bytes.size());
        made->references = builder->references;
        made->packets = builder->packets;
        made->flights.reserve(kUsualFlights);
        if (int r = made->list_shared(error)) return r;
        builder->reset();
        *command = made.leak();
        return 0;
    });
}

enpu_command* enpu_command_retain(enpu_command* command) {
    if (command != nullptr) command->retain();
    return command;
}

void enpu_command_release(enpu_command* command) {
    if (command != nullptr) command->release();
}

uint64_t enpu_command_va(const enpu_command* command) {
    return command->storage->va;
}
uint32_t enpu_command_bytes(const enpu_command* command) {
    return command->bytes;
}
uint32_t enpu_command_packets(const enpu_command* command) {
    return static_cast<uint32_t>(command->packets.size());
}

int enpu_command_patch(enpu_command* command, uint32_t packet, uint32_t operand,
                       enpu_buffer* buffer, uint64_t offset, enpu_error* error) {
    if (command == nullptr || buffer == nullptr)
        return fail(error, -EINVAL, "enpu_command_patch: an argument is NULL");
    return guard(error, [&] {
        std::lock_guard lock(command->mutex);
        const Reference* reference = find(command->references, packet, operand);
        if (reference == nullptr) {
            return fail(error, -EINVAL,
                        "enpu_command_patch: packet %u has no operand %u with a buffer", packet,
                        operand);
        }
        bool busy = false;
        if (int r = command->in_flight(&busy, error)) return r;
        if (busy) return fail(error, -EBUSY, "enpu_command_patch: a job still runs the command");

        // The rules see a copy of the whole packet with the new address; what the device reads
        // changes only when they agree.
        const uint32_t start = command->packets[packet];
        alignas(16) std::byte copy[kMaxPacketBytes];
        const uint32_t bytes = reinterpret_cast<const enpu_packet*>(command->cpu + start)->size;
        std::memcpy(copy, command->cpu + start, bytes);
        const Target target = {operand, reference->field - start, buffer, offset};
        if (int r = resolve(command->device.get(), copy, {&target, 1}, error)) return r;
        if (int r = check_resolved(copy, bytes, command->kind, {&target, 1}, error)) return r;

        auto& changed = command->references[reference - command->references.data()];
        Ref<enpu_buffer> before = std::exchange(changed.buffer, Ref<enpu_buffer>(buffer));
        if (before->shared() || buffer->shared()) {
            if (int r = command->list_shared(error)) {
                changed.buffer = std::move(before);
                command->list_shared(nullptr);
                return r;
            }
        }
        std::memcpy(command->cpu + start, copy, bytes);
        return 0;
    });
}
