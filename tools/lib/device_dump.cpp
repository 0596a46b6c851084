// SPDX-License-Identifier: MIT
#include "device_dump.h"

#include <algorithm>
#include <cstring>

#include "dump_reader.h"
#include "failure.h"

namespace enpu::tools {
namespace {

// A longer payload is one of a newer minor version.
template <typename T>
T take(const dump::Section& section) {
    T value = {};
    std::memcpy(&value, section.payload.data(), std::min(section.payload.size(), sizeof(value)));
    return value;
}

std::string bytes_of(const dump::Section& section) {
    return {reinterpret_cast<const char*>(section.payload.data()), section.payload.size()};
}

void take_section(DeviceDump& out, const dump::Section& section) {
    switch (section.type) {
        case ENPU_DUMP_INFO:
            out.info = take<enpu_dump_info>(section);
            break;
        case ENPU_DUMP_REGISTERS:
            out.registers = dump::Dump::elements<enpu_dump_register>(section);
            break;
        case ENPU_DUMP_ERRORS:
            out.errors = dump::Dump::elements<enpu_error_record>(section);
            break;
        case ENPU_DUMP_QUEUE:
            out.queues.push_back(take<enpu_dump_queue>(section));
            break;
        case ENPU_DUMP_RING:
            out.rings[section.index] = bytes_of(section);
            break;
        case ENPU_DUMP_JOB:
            out.job = take<enpu_dump_job>(section);
            break;
        case ENPU_DUMP_PACKETS:
            out.packets = bytes_of(section);
            out.packets_at = section.index;
            break;
        case ENPU_DUMP_WALK:
            out.walks.push_back(take<enpu_dump_walk>(section));
            out.walks.back().depth =
                std::min<uint32_t>(out.walks.back().depth, std::size(out.walks.back().levels));
            break;
        case ENPU_DUMP_CONTEXT:
            out.context = take<enpu_dump_context>(section);
            break;
        case ENPU_DUMP_END:
            out.complete = true;
            break;
        default:
            ++out.unknown_sections;
    }
}

}  // namespace

bool DeviceDump::is_dump(std::string_view bytes) {
    return bytes.substr(0, sizeof(enpu_dump_header::magic)) == ENPU_DUMP_MAGIC;
}

DeviceDump DeviceDump::parse(std::string_view bytes) {
    dump::Dump read;
    std::string error;
    const std::span all(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    if (!dump::Dump::parse(all, &read, &error, dump::Accept::kCutOff))
        throw Failure(kUsage, "this is no device coredump: " + error);
    DeviceDump out;
    out.header = read.header();
    for (const dump::Section& section : read.sections()) take_section(out, section);
    return out;
}

}  // namespace enpu::tools
