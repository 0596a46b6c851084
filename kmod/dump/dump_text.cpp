// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "dump_reader.h"
#include "enpu_hw_tables.h"

namespace enpu::dump {
namespace {

[[gnu::format(printf, 2, 3)]] void print(std::string& out, const char* format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    out += line;
}

// Text of a fixed array that need not be terminated.
template <size_t N>
std::string text(const uint8_t (&bytes)[N]) {
    const auto* p = reinterpret_cast<const char*>(bytes);
    std::string all(p, strnlen(p, N));
    std::replace_if(
        all.begin(), all.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return all;
}

const char* name_of(const enpu_name* names, uint32_t value) {
    for (; names->name; ++names)
        if (names->value == value) return names->name;
    return "?";
}

const char* reason_name(uint32_t reason) {
    static constexpr const char* kNames[] = {"?",     "hang", "evict", "request",
                                             "fault", "tlb",  "gone"};
    return reason < std::size(kNames) ? kNames[reason] : "?";
}

// "QUEUE_HEAD[3]" for an offset.
std::string register_name(uint32_t offset) {
    for (const auto& reg : enpu_registers) {
        const uint32_t from = offset - reg.offset;
        if (offset < reg.offset || from % reg.stride || from / reg.stride >= reg.count) continue;
        return reg.name + (reg.count > 1 ? "[" + std::to_string(from / reg.stride) + "]" : "");
    }
    return "?";
}

void describe_info(std::string& out, const enpu_dump_info& info) {
    print(out, "reason %s, engine %d, queue %d\n", reason_name(info.reason),
          static_cast<int32_t>(info.engine), static_cast<int32_t>(info.queue));
    print(out, "device %s, hardware %u.%u, features %#x, %u compute and %u copy engines\n",
          text(info.pci).c_str(), info.hw_version >> 16, info.hw_version & 0xffff, info.features,
          info.compute_engines, info.copy_engines);
    print(out, "kernel %s, uapi minor %u\n", text(info.kernel).c_str(), info.uapi_minor);
    print(out, "engine resets %u, device resets %u, hangs %u, faults %u\n", info.engine_resets,
          info.device_resets, info.hangs, info.faults);
    print(out, "device clock %" PRIu64 " ns, monotonic %" PRIu64 " ns, realtime %" PRIu64 " ns\n",
          static_cast<uint64_t>(info.device_ns), static_cast<uint64_t>(info.monotonic_ns),
          static_cast<uint64_t>(info.realtime_ns));
}

void describe_registers(std::string& out, const Section& section) {
    for (const auto& reg : Dump::elements<enpu_dump_register>(section))
        if (reg.value)
            print(out, "  %05x %-24s %#" PRIx64 "\n", reg.offset, register_name(reg.offset).c_str(),
                  static_cast<uint64_t>(reg.value));
}

void describe_errors(std::string& out, const Section& section) {
    for (const auto& e : Dump::elements<enpu_error_record>(section))
        print(out,
              "  %s queue %u engine %u as %u va %#" PRIx64
              " packet +%#x opcode %u rule %u fence %" PRIu64 " job %#" PRIx64 " at %" PRIu64
              " ns\n",
              name_of(enpu_status_names, e.kind), e.queue, e.engine, e.as_id, e.va, e.packet,
              e.opcode, e.rule, e.fence, e.job_id, e.time_ns);
}

void describe_queue(std::string& out, const enpu_dump_queue& q) {
    print(out,
          "  engine %u as %u context %u pid %u tail %" PRIu64 " done %" PRIu64
          " jobs %u dead %d at %#" PRIx64 "\n",
          q.engine, q.as_id, q.ctx_id, q.pid, static_cast<uint64_t>(q.tail),
          static_cast<uint64_t>(q.done), q.jobs, q.dead, static_cast<uint64_t>(q.bus));
}

// Entries that were written and not completed.
void describe_ring(std::string& out, const Section& section) {
    enpu_queue_header header{};
    if (section.payload.size() < ENPU_QUEUE_RING_OFFSET) return;
    memcpy(&header, section.payload.data(), sizeof(header));
    const size_t slots = (section.payload.size() - ENPU_QUEUE_RING_OFFSET) /
                         (sizeof(enpu_ring_entry) + sizeof(enpu_completion));
    print(out, "  tail %" PRIu64 " head %" PRIu64 " fence %" PRIu64 " status %s\n", header.tail,
          header.head, header.fence, name_of(enpu_status_names, header.status));
    for (uint64_t n = header.fence; n < header.tail && n - header.fence < slots; ++n) {
        enpu_ring_entry entry{};
        memcpy(&entry, section.payload.data() + ENPU_QUEUE_RING_OFFSET + n % slots * sizeof(entry),
               sizeof(entry));
        print(out,
              "  entry %" PRIu64 ": va %#" PRIx64 " bytes %u fence %" PRIu64 " job %#" PRIx64 "\n",
              n, entry.cmd_va, entry.cmd_bytes, entry.fence, entry.job_id);
    }
}

void describe_job(std::string& out, const enpu_dump_job& job) {
    print(out,
          "  seqno %" PRIu64 " job %#" PRIx64 " fence %" PRIu64 " command buffer %#" PRIx64
          " + %u, at packet +%#x, running for %" PRIu64 " us\n",
          static_cast<uint64_t>(job.seqno), static_cast<uint64_t>(job.job_id),
          static_cast<uint64_t>(job.fence), static_cast<uint64_t>(job.cmd_va), job.cmd_bytes,
          job.packet, static_cast<uint64_t>(job.running_ns) / 1000);
}

void describe_packets(std::string& out, const Section& section) {
    size_t offset = 0;
    while (section.payload.size() - offset >= sizeof(enpu_packet)) {
        enpu_packet packet{};
        memcpy(&packet, section.payload.data() + offset, sizeof(packet));
        const char* name = packet.opcode < ENPU_MAX_OPCODES && enpu_opcodes[packet.opcode].exists
                               ? enpu_opcodes[packet.opcode].name
                               : "?";
        print(out, "  +%#zx %s size %u flags %#x tag %#" PRIx64 "\n", section.index + offset, name,
              packet.size, packet.flags, packet.tag);
        // Where the window begins inside a packet, or a program wrote nonsense, there is no next.
        if (packet.size < sizeof(packet) || packet.size % ENPU_PACKET_ALIGN ||
            packet.size > section.payload.size() - offset)
            return;
        offset += packet.size;
    }
}

void describe_walk(std::string& out, const enpu_dump_walk& walk) {
    print(out, "  va %#" PRIx64 " as %u\n", static_cast<uint64_t>(walk.va), walk.as_id);
    for (uint32_t i = 0; i < std::min<uint32_t>(walk.depth, std::size(walk.levels)); ++i)
        print(out, "    level %u table %#" PRIx64 " [%u] = %#" PRIx64 "%s\n", walk.levels[i].level,
              static_cast<uint64_t>(walk.levels[i].table), walk.levels[i].index,
              static_cast<uint64_t>(walk.levels[i].entry),
              walk.levels[i].entry & ENPU_PTE_VALID ? "" : " (not valid)");
}

void describe_context(std::string& out, const enpu_dump_context& ctx) {
    print(out,
          "  context %u of client %" PRIu64
          ", process %u (%s), priority %u, timeout %u ms, %u unfinished, error %d\n",
          ctx.ctx_id, static_cast<uint64_t>(ctx.client_id), ctx.pid, text(ctx.comm).c_str(),
          ctx.priority, ctx.timeout_ms, ctx.unfinished, ctx.error);
}

template <typename T>
T structure(const Section& section) {
    T out{};
    memcpy(&out, section.payload.data(), std::min(sizeof(T), section.payload.size()));
    return out;
}

void describe_section(std::string& out, const Section& section) {
    static constexpr const char* kNames[] = {"?",    "INFO", "REGISTERS", "ERRORS", "QUEUE",
                                             "RING", "JOB",  "PACKETS",   "WALK",   "CONTEXT"};
    if (section.type == ENPU_DUMP_END) return;
    print(out, "%s %u (%zu bytes)\n", section.type < std::size(kNames) ? kNames[section.type] : "?",
          section.index, section.payload.size());
    switch (section.type) {
        case ENPU_DUMP_INFO:
            return describe_info(out, structure<enpu_dump_info>(section));
        case ENPU_DUMP_REGISTERS:
            return describe_registers(out, section);
        case ENPU_DUMP_ERRORS:
            return describe_errors(out, section);
        case ENPU_DUMP_QUEUE:
            return describe_queue(out, structure<enpu_dump_queue>(section));
        case ENPU_DUMP_RING:
            return describe_ring(out, section);
        case ENPU_DUMP_JOB:
            return describe_job(out, structure<enpu_dump_job>(section));
        case ENPU_DUMP_PACKETS:
            return describe_packets(out, section);
        case ENPU_DUMP_WALK:
            return describe_walk(out, structure<enpu_dump_walk>(section));
        case ENPU_DUMP_CONTEXT:
            return describe_context(out, structure<enpu_dump_context>(section));
    }
}

}  // namespace

std::string describe(const Dump& dump) {
    std::string out;
    print(out, "enpu dump %u.%u, %" PRIu64 " bytes%s\n", dump.header().major, dump.header().minor,
          static_cast<uint64_t>(dump.header().bytes), dump.complete() ? "" : ", incomplete");
    for (const auto& section : dump.sections()) describe_section(out, section);
    return out;
}

}  // namespace enpu::dump
