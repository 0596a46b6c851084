// SPDX-License-Identifier: MIT
#include "device_dump.h"

#include <algorithm>
#include <cstring>

#include "failure.h"
#include "output.h"

namespace enpu::tools {
namespace {

constexpr size_t kAlign = 8;

// A longer payload is one of a newer minor version, a shorter one leaves zeroes.
template <typename T>
T take(std::string_view payload) {
    T value = {};
    std::memcpy(&value, payload.data(), std::min(payload.size(), sizeof(value)));
    return value;
}

template <typename T>
std::vector<T> take_array(std::string_view payload) {
    std::vector<T> values(payload.size() / sizeof(T));
    std::memcpy(values.data(), payload.data(), values.size() * sizeof(T));
    return values;
}

void take_section(DeviceDump& dump, const enpu_dump_section& section, std::string_view payload) {
    switch (section.type) {
        case ENPU_DUMP_INFO:
            dump.info = take<enpu_dump_info>(payload);
            break;
        case ENPU_DUMP_REGISTERS:
            dump.registers = take_array<enpu_dump_register>(payload);
            break;
        case ENPU_DUMP_ERRORS:
            dump.errors = take_array<enpu_error_record>(payload);
            break;
        case ENPU_DUMP_QUEUE:
            dump.queues.push_back(take<enpu_dump_queue>(payload));
            break;
        case ENPU_DUMP_RING:
            dump.rings[section.index] = payload;
            break;
        case ENPU_DUMP_JOB:
            dump.job = take<enpu_dump_job>(payload);
            break;
        case ENPU_DUMP_PACKETS:
            dump.packets = payload;
            dump.packets_at = section.index;
            break;
        case ENPU_DUMP_WALK:
            dump.walks.push_back(take<enpu_dump_walk>(payload));
            dump.walks.back().depth =
                std::min<uint32_t>(dump.walks.back().depth, std::size(dump.walks.back().levels));
            break;
        case ENPU_DUMP_CONTEXT:
            dump.context = take<enpu_dump_context>(payload);
            break;
        case ENPU_DUMP_END:
            dump.complete = true;
            break;
        default:
            ++dump.unknown_sections;
    }
}

}  // namespace

bool DeviceDump::is_dump(std::string_view bytes) {
    return bytes.substr(0, sizeof(enpu_dump_header::magic)) == ENPU_DUMP_MAGIC;
}

DeviceDump DeviceDump::parse(std::string_view bytes) {
    DeviceDump dump;
    if (!is_dump(bytes))
        throw Failure(kUsage,
                      "this is no device coredump: it does not begin with " ENPU_DUMP_MAGIC);
    if (bytes.size() < sizeof(dump.header))
        throw Failure(kUsage, "the dump ends inside its header");
    dump.header = take<enpu_dump_header>(bytes);
    if (dump.header.major != ENPU_DUMP_MAJOR)
        throw Failure(kUnsupported, format("the dump has version %u.%u, this tool reads %u.x",
                                           dump.header.major, dump.header.minor, ENPU_DUMP_MAJOR));
    if (dump.header.header_bytes < sizeof(dump.header) || dump.header.header_bytes > bytes.size())
        throw Failure(kUsage, format("header_bytes is %u", dump.header.header_bytes));
    size_t at = dump.header.header_bytes;
    while (!dump.complete && bytes.size() - at >= sizeof(enpu_dump_section)) {
        const auto section = take<enpu_dump_section>(bytes.substr(at));
        at += sizeof(section);
        if (section.bytes > bytes.size() - at) break;  // cut off inside the payload
        take_section(dump, section, bytes.substr(at, section.bytes));
        const size_t padded = (section.bytes + kAlign - 1) / kAlign * kAlign;
        at += std::min<size_t>(padded, bytes.size() - at);
    }
    return dump;
}

}  // namespace enpu::tools
