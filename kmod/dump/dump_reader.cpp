// SPDX-License-Identifier: MIT
#include "dump_reader.h"

#include <algorithm>

namespace enpu::dump {
namespace {

bool fail(std::string* error, const std::string& why) {
    *error = why;
    return false;
}

// Sizes of the structures that have one, as of the first version.
size_t least_bytes(uint32_t type) {
    switch (type) {
        case ENPU_DUMP_INFO:
            return sizeof(enpu_dump_info);
        case ENPU_DUMP_QUEUE:
            return sizeof(enpu_dump_queue);
        case ENPU_DUMP_JOB:
            return sizeof(enpu_dump_job);
        case ENPU_DUMP_WALK:
            return sizeof(enpu_dump_walk);
        case ENPU_DUMP_CONTEXT:
            return sizeof(enpu_dump_context);
        default:
            return 0;
    }
}

std::string at(size_t offset) {
    return " at offset " + std::to_string(offset);
}

bool check_header(const enpu_dump_header& header, size_t bytes, Accept accept, std::string* error) {
    if (memcmp(header.magic, ENPU_DUMP_MAGIC, sizeof(header.magic)) != 0)
        return fail(error, "not a dump: wrong magic");
    if (header.major != ENPU_DUMP_MAJOR)
        return fail(error, "version " + std::to_string(header.major) + "." +
                               std::to_string(header.minor) + ", this reader knows " +
                               std::to_string(ENPU_DUMP_MAJOR) + ".x");
    if (header.header_bytes < sizeof(header) || header.header_bytes > bytes ||
        header.header_bytes % 8)
        return fail(error, "header of " + std::to_string(header.header_bytes) + " bytes");
    if (header.bytes != bytes && accept == Accept::kWhole)
        return fail(error, "the header says " + std::to_string(header.bytes) +
                               " bytes, there are " + std::to_string(bytes));
    return true;
}

}  // namespace

bool Dump::parse(std::span<const uint8_t> bytes, Dump* dump, std::string* error, Accept accept) {
    Dump out;
    out.bytes_.assign(bytes.begin(), bytes.end());
    if (bytes.size() < sizeof(out.header_))
        return fail(error, std::to_string(bytes.size()) + " bytes are no dump");
    memcpy(&out.header_, bytes.data(), sizeof(out.header_));
    if (!check_header(out.header_, bytes.size(), accept, error)) return false;

    const std::span<const uint8_t> all(out.bytes_);
    size_t offset = out.header_.header_bytes;
    while (!out.whole_) {
        enpu_dump_section head{};
        if (all.size() - offset < sizeof(head)) {
            if (accept == Accept::kCutOff) break;
            return fail(error, "cut off" + at(offset));
        }
        memcpy(&head, all.data() + offset, sizeof(head));
        const size_t payload = offset + sizeof(head), left = all.size() - payload;
        if (head.bytes > left || (head.bytes + 7) / 8 * 8 > left) {
            if (accept == Accept::kCutOff) break;
            return fail(error, "section " + std::to_string(head.type) + at(offset) +
                                   " passes the end of the dump");
        }
        if (head.bytes < least_bytes(head.type))
            return fail(error, "section " + std::to_string(head.type) + at(offset) +
                                   " is too short: " + std::to_string(head.bytes) + " bytes");
        out.sections_.push_back({head.type, head.index, all.subspan(payload, head.bytes)});
        offset = payload + (head.bytes + 7) / 8 * 8;
        out.whole_ = head.type == ENPU_DUMP_END;
    }
    if (accept == Accept::kWhole && !out.check_whole(offset, error)) return false;
    // Moving a vector keeps its bytes where they are, and so the spans into it.
    *dump = std::move(out);
    return true;
}

bool Dump::check_whole(size_t end, std::string* error) const {
    if (end != bytes_.size()) return fail(error, "something follows the last section" + at(end));
    if (sections_.size() != header_.sections)
        return fail(error, "the header says " + std::to_string(header_.sections) +
                               " sections, there are " + std::to_string(sections_.size()));
    if (!find(ENPU_DUMP_INFO)) return fail(error, "no INFO section");
    return true;
}

const Section* Dump::find(uint32_t type) const {
    const auto it = std::find_if(sections_.begin(), sections_.end(),
                                 [&](const Section& s) { return s.type == type; });
    return it == sections_.end() ? nullptr : &*it;
}

bool Dump::reg(uint32_t offset, uint64_t* value) const {
    const Section* section = find(ENPU_DUMP_REGISTERS);
    if (!section) return false;
    for (const auto& entry : elements<enpu_dump_register>(*section)) {
        if (entry.offset != offset) continue;
        *value = entry.value;
        return true;
    }
    return false;
}

}  // namespace enpu::dump
