// SPDX-License-Identifier: MIT
#include "os/record/memory_log.h"

#include <algorithm>
#include <cstring>

#include "enpu_hw_tables.h"
#include "rules/rules.h"

namespace enpu::record {
namespace {

constexpr size_t kPage = 4096;

}  // namespace

void MemoryLog::add(uint64_t va, std::span<const std::byte> bytes, uint32_t handle) {
    mappings_[va] = {va, bytes, std::vector<std::byte>(bytes.size()), handle};
}

void MemoryLog::remove(uint64_t va, uint64_t size) {
    for (auto it = mappings_.lower_bound(va); it != mappings_.end() && it->first < va + size;)
        it = mappings_.erase(it);
}

MemoryLog::Mapping* MemoryLog::find(uint64_t va, uint64_t size) {
    auto it = mappings_.upper_bound(va);
    if (it == mappings_.begin()) return nullptr;
    Mapping& mapping = (--it)->second;
    const uint64_t offset = va - mapping.va;
    if (offset > mapping.bytes.size() || size > mapping.bytes.size() - offset) return nullptr;
    return &mapping;
}

std::span<const std::byte> MemoryLog::at(uint64_t va, uint64_t size) const {
    const Mapping* mapping = const_cast<MemoryLog*>(this)->find(va, size);
    return mapping ? mapping->bytes.subspan(va - mapping->va, size) : std::span<const std::byte>();
}

void MemoryLog::changes(const Changed& changed) {
    for (auto& [va, logged] : mappings_) {
        Mapping& mapping = logged;  // of which the lambda may take hold
        const size_t size = mapping.bytes.size();
        const auto differs = [&mapping, size](size_t at) {
            return std::memcmp(mapping.bytes.data() + at, mapping.seen.data() + at,
                               std::min(kPage, size - at)) != 0;
        };
        for (size_t from = 0; from < size;) {
            if (!differs(from)) {
                from += kPage;
                continue;
            }
            size_t to = from + kPage;
            while (to < size && differs(to)) to += kPage;
            to = std::min(to, size);
            std::memcpy(mapping.seen.data() + from, mapping.bytes.data() + from, to - from);
            // Of the copy: the program may write on meanwhile.
            changed(va + from, std::span(mapping.seen).subspan(from, to - from));
            from = to;
        }
    }
}

void MemoryLog::see(uint64_t va, uint64_t size) {
    Mapping* mapping = find(va, size);
    if (mapping == nullptr) return;
    std::memcpy(mapping->seen.data() + (va - mapping->va),
                mapping->bytes.data() + (va - mapping->va), size);
}

std::vector<Range> written_by(std::span<const std::byte> packet) {
    enpu_packet header;
    if (packet.size() < sizeof(header)) return {};
    std::memcpy(&header, packet.data(), sizeof(header));
    const auto as = [&packet](auto* as_packet) {
        if (packet.size() < sizeof(*as_packet)) return false;
        std::memcpy(as_packet, packet.data(), sizeof(*as_packet));
        return true;
    };
    if (header.opcode >= ENPU_MAX_OPCODES) return {};
    const enpu_opcode_info& info = enpu_opcodes[header.opcode];
    if (info.is_operator) {
        const size_t last = ENPU_OPERATOR_PACKET_BYTES(info.num_operands) - sizeof(enpu_tensor);
        enpu_tensor tensor;
        rules::Span span;
        if (packet.size() < last + sizeof(tensor)) return {};
        std::memcpy(&tensor, packet.data() + last, sizeof(tensor));
        if (!rules::tensor_span(tensor, span)) return {};
        return {{tensor.addr + static_cast<uint64_t>(span.offset), span.bytes}};
    }
    switch (header.opcode) {
        case ENPU_OPCODE_COPY: {
            enpu_copy_packet copy;
            uint64_t rows = 0;
            if (!as(&copy) || copy.height == 0 ||
                __builtin_mul_overflow(uint64_t{copy.height} - 1, copy.dst_pitch, &rows))
                return {};
            return {{copy.dst, rows + copy.width}};
        }
        case ENPU_OPCODE_FILL: {
            enpu_fill_packet fill;
            return as(&fill) ? std::vector<Range>{{fill.dst, fill.bytes}} : std::vector<Range>{};
        }
        case ENPU_OPCODE_SIGNAL: {
            enpu_signal_packet signal;
            return as(&signal) ? std::vector<Range>{{signal.addr, sizeof(uint64_t)}}
                               : std::vector<Range>{};
        }
        case ENPU_OPCODE_TIMESTAMP: {
            enpu_timestamp_packet stamp;
            return as(&stamp) ? std::vector<Range>{{stamp.addr, sizeof(uint64_t)}}
                              : std::vector<Range>{};
        }
        default:
            return {};
    }
}

}  // namespace enpu::record
