// SPDX-License-Identifier: MIT
#include "command/builder.h"

#include <cstring>

#include "command/names.h"

using namespace enpu;

int enpu_builder::append(enpu_packet* packet, std::span<const Target> targets, enpu_error* error) {
    return guard(error, [&] {
        auto* raw = reinterpret_cast<std::byte*>(packet);
        packet->tag = tag;
        if (packet->size > device->info.max_command_bytes - bytes.size()) {
            return fail(error, -EINVAL, "%s: the command would pass the device's limit of %u bytes",
                        opcode_name(packet->opcode).c_str(), device->info.max_command_bytes);
        }
        if (int r = resolve(device.get(), raw, targets, error)) return r;
        if (int r = check_capability(device.get(), raw, error)) return r;
        if (int r = check_resolved(raw, packet->size, kind, targets, error)) return r;

        const auto index = static_cast<uint32_t>(packets.size());
        const auto start = static_cast<uint32_t>(bytes.size());
        // Room first: from the first change on nothing may throw.
        packets.reserve(packets.size() + 1 > packets.capacity() ? packets.size() * 2 + 16 : 0);
        references.reserve(references.size() + targets.size() > references.capacity()
                               ? references.size() * 2 + 32
                               : 0);
        bytes.insert(bytes.end(), raw, raw + packet->size);
        packets.push_back(start);
        for (const Target& target : targets) {
            references.push_back({index, target.operand, start + target.field,
                                  operand_is_output(packet->opcode, target.operand),
                                  Ref<enpu_buffer>(target.buffer)});
        }
        return static_cast<int>(index);
    });
}

void enpu_builder::reset() {
    bytes.clear();
    packets.clear();
    references.clear();
}

int enpu_builder_create(enpu_device* device, uint32_t engine_kind, enpu_builder** builder,
                        enpu_error* error) {
    if (device == nullptr || builder == nullptr)
        return fail(error, -EINVAL, "enpu_builder_create: an argument is NULL");
    *builder = nullptr;
    if (engine_kind != ENPU_ENGINE_KIND_COMPUTE && engine_kind != ENPU_ENGINE_KIND_COPY) {
        return fail(error, -EINVAL, "enpu_builder_create: engine kind %u is not known",
                    engine_kind);
    }
    return guard(error, [&] {
        *builder = new enpu_builder(device, engine_kind);
        return 0;
    });
}

void enpu_builder_release(enpu_builder* builder) {
    delete builder;
}
void enpu_builder_set_tag(enpu_builder* builder, uint64_t tag) {
    builder->tag = tag;
}
void enpu_builder_reset(enpu_builder* builder) {
    builder->reset();
}
size_t enpu_builder_bytes(const enpu_builder* builder) {
    return builder->bytes.size();
}
const void* enpu_builder_packets(const enpu_builder* builder) {
    return builder->bytes.data();
}
