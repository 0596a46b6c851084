// SPDX-License-Identifier: MIT
#include "dump_report.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "enpu_hw_tables.h"
#include "output.h"
#include "packets.h"
#include "registers.h"

namespace enpu::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr unsigned kPacketsBefore = 3, kPacketsAfter = 2;

const char* reason_text(uint32_t reason) {
    switch (reason) {
        case ENPU_DUMP_REASON_HANG:
            return "an engine made no progress for the timeout of its context";
        case ENPU_DUMP_REASON_EVICT:
            return "a job of a context that ended did not leave its engine";
        case ENPU_DUMP_REASON_REQUEST:
            return "somebody asked for a reset";
        case ENPU_DUMP_REASON_FAULT:
            return "a job failed; nothing was reset";
        case ENPU_DUMP_REASON_TLB:
            return "an invalidation of the TLB did not end";
        case ENPU_DUMP_REASON_GONE:
            return "the device reads as all ones: it is gone";
        default:
            return "unknown";
    }
}

// Fixed-size text of the kernel, which may lack its terminating zero.
template <size_t N>
std::string text_of(const __u8 (&bytes)[N]) {
    const auto* text = reinterpret_cast<const char*>(bytes);
    return std::string(text, strnlen(text, N));
}

std::string engine_name(const DeviceDump& dump, uint32_t engine) {
    if (engine == ENPU_DUMP_NONE) return "no engine";
    if (engine < dump.info.compute_engines) return format("compute engine %u", engine);
    return format("copy engine %u (engine %u)", engine - dump.info.compute_engines, engine);
}

// The packet the job was at: its text, or why it is not known.
std::string packet_at(const DeviceDump& dump) {
    if (!dump.job) return "";
    if (dump.packets.empty()) return "its bytes are not in the dump";
    if (dump.job->packet < dump.packets_at ||
        dump.job->packet - dump.packets_at >= dump.packets.size())
        return "it lies outside the bytes that were kept";
    return packet_text(std::string_view(dump.packets).substr(dump.job->packet - dump.packets_at));
}

// Error record of the job that is blamed, else the newest.
const enpu_error_record* blamed_record(const DeviceDump& dump) {
    for (auto record = dump.errors.rbegin(); record != dump.errors.rend(); ++record) {
        if (!dump.job || (record->fence == dump.job->fence && record->queue == dump.info.queue))
            return &*record;
    }
    return dump.info.reason == ENPU_DUMP_REASON_FAULT && !dump.errors.empty() ? &dump.errors.back()
                                                                              : nullptr;
}

std::string pte_flags(uint64_t entry) {
    if (!(entry & ENPU_PTE_VALID)) return "not valid";
    std::string text;
    for (const auto& [bit, name] : {std::pair<uint64_t, const char*>{ENPU_PTE_READ, "read"},
                                    {ENPU_PTE_WRITE, "write"},
                                    {ENPU_PTE_LOCAL, "local"},
                                    {ENPU_PTE_LARGE, "2 MiB"}})
        if (entry & bit) text += (text.empty() ? "" : " ") + std::string(name);
    return text.empty() ? "table" : text;
}

std::string walk_end(const enpu_dump_walk& walk) {
    if (walk.depth == 0) return "the address space has no root table";
    const enpu_dump_level& last = walk.levels[walk.depth - 1];
    if (!(last.entry & ENPU_PTE_VALID))
        return format("not mapped: nothing at level %u", last.level);
    const bool leaf = last.level == 0 || (last.entry & ENPU_PTE_LARGE);
    if (!leaf) return format("the table of level %u could not be read", last.level - 1);
    const uint64_t page = last.level == 0 ? ENPU_PAGE_SIZE : ENPU_LARGE_PAGE_SIZE;
    return format("mapped to %s %s, %s",
                  last.entry & ENPU_PTE_LOCAL ? "local memory" : "bus address",
                  hex((last.entry & ENPU_PTE_ADDR) + (walk.va & (page - 1))).c_str(),
                  pte_flags(last.entry).c_str());
}

void add_header(const DeviceDump& dump, std::string& out) {
    const enpu_dump_info& info = dump.info;
    Table table({"", ""});
    table.add({"reason", reason_text(info.reason)});
    table.add({"verdict", verdict(dump)});
    table.add(
        {"where", engine_name(dump, info.engine) +
                      (info.queue == ENPU_DUMP_NONE ? "" : format(", queue %u", info.queue))});
    if (dump.context)
        table.add(
            {"whose",
             format("process %u (%s), context %u, client %llu, timeout %u ms", dump.context->pid,
                    text_of(dump.context->comm).c_str(), dump.context->ctx_id,
                    (unsigned long long)dump.context->client_id, dump.context->timeout_ms)});
    if (dump.job) {
        table.add({"job", format("sequence %llu, id %s, fence %llu, running for %s",
                                 (unsigned long long)dump.job->seqno, hex(dump.job->job_id).c_str(),
                                 (unsigned long long)dump.job->fence,
                                 time_text(static_cast<double>(dump.job->running_ns)).c_str())});
        table.add(
            {"packet", format("+%s of %s: %s", hex(dump.job->packet).c_str(),
                              bytes_text(dump.job->cmd_bytes).c_str(), packet_at(dump).c_str())});
    }
    table.add({"device", format("%s, hardware %u.%u, kernel %s", text_of(info.pci).c_str(),
                                info.hw_version >> 16, info.hw_version & 0xffff,
                                text_of(info.kernel).c_str())});
    table.add({"before", format("%u engine resets, %u device resets, %u hangs, %u faults",
                                info.engine_resets, info.device_resets, info.hangs, info.faults)});
    if (!dump.complete) table.add({"note", "the dump was cut off"});
    if (dump.header.flags & ENPU_DUMP_INCOMPLETE)
        table.add({"note", "something did not fit or could not be read without waiting"});
    out += table.text();
}

void add_packets(const DeviceDump& dump, std::string& out) {
    if (!dump.job || dump.packets.empty()) return;
    out += "\nCommand buffer around the packet\n";
    const uint32_t wanted = dump.job->packet - dump.packets_at;
    // One that is no packet ends the list, and may be the one that is blamed.
    std::vector<uint32_t> offsets = packet_offsets(dump.packets);
    auto here = std::find(offsets.begin(), offsets.end(), wanted);
    if (here == offsets.end() && wanted < dump.packets.size()) {
        offsets.erase(std::upper_bound(offsets.begin(), offsets.end(), wanted), offsets.end());
        offsets.push_back(wanted);
        here = offsets.end() - 1;
    }
    for (auto at = offsets.begin(); at != offsets.end(); ++at) {
        if (at + kPacketsBefore < here || at > here + kPacketsAfter) continue;
        out +=
            format(" %s +%s  %s\n", at == here ? ">" : " ", hex(*at + dump.packets_at, 6).c_str(),
                   packet_text(std::string_view(dump.packets).substr(*at)).c_str());
    }
}

void add_lists(const DeviceDump& dump, std::string& out) {
    if (!dump.walks.empty()) out += "\nPage tables\n";
    for (const enpu_dump_walk& walk : dump.walks) out += walk_text(walk);
    if (!dump.errors.empty()) out += "\nError records, oldest first\n";
    for (const enpu_error_record& record : dump.errors) out += "  " + describe(record) + "\n";
    out += "\nQueues\n";
    Table queues(
        {">queue", "engine", ">as", ">context", ">pid", ">tail", ">done", ">jobs", "state"});
    for (const enpu_dump_queue& queue : dump.queues)
        queues.add({std::to_string(queue.id), engine_name(dump, queue.engine),
                    std::to_string(queue.as_id), std::to_string(queue.ctx_id),
                    std::to_string(queue.pid), std::to_string(queue.tail),
                    std::to_string(queue.done), std::to_string(queue.jobs),
                    queue.dead ? format("dead, errno %d", -queue.dead) : "healthy"});
    out += queues.text(2);
    out += format("\n%zu registers; 'enpu reg dump --device FILE' shows them\n",
                  dump.registers.size());
}

}  // namespace

std::string walk_text(const enpu_dump_walk& walk) {
    std::string out = format("  VA %s in address space %u: %s\n", hex(walk.va).c_str(), walk.as_id,
                             walk_end(walk).c_str());
    for (unsigned i = 0; i < walk.depth; ++i) {
        const enpu_dump_level& level = walk.levels[i];
        out +=
            format("    level %u  table %s [%u] = %s  %s\n", level.level, hex(level.table).c_str(),
                   level.index, hex(level.entry).c_str(), pte_flags(level.entry).c_str());
    }
    return out;
}

std::string verdict(const DeviceDump& dump) {
    const enpu_error_record* record = blamed_record(dump);
    if (dump.info.reason == ENPU_DUMP_REASON_HANG)
        return engine_name(dump, dump.info.engine) + " stood still in " +
               (dump.job ? packet_at(dump) : "an unknown packet") +
               ": an operator that never ends, or a device that does not answer";
    if (record && record->kind == ENPU_STATUS_MMU_FAULT) {
        for (const enpu_dump_walk& walk : dump.walks)
            if (walk.va == record->va || walk.va == (record->va & ~uint64_t{ENPU_PAGE_SIZE - 1}))
                return describe(*record) + "; the tables say: " + walk_end(walk);
        return describe(*record);
    }
    if (record) return describe(*record);
    return reason_text(dump.info.reason);
}

Json report_json(const DeviceDump& dump) {
    Json json = {{"reason", reason_text(dump.info.reason)},
                 {"verdict", verdict(dump)},
                 {"engine", dump.info.engine == ENPU_DUMP_NONE ? Json() : Json(dump.info.engine)},
                 {"queue", dump.info.queue == ENPU_DUMP_NONE ? Json() : Json(dump.info.queue)},
                 {"complete", dump.complete},
                 {"pci", text_of(dump.info.pci)},
                 {"kernel", text_of(dump.info.kernel)}};
    if (dump.context)
        json["context"] = {{"id", dump.context->ctx_id},
                           {"pid", dump.context->pid},
                           {"comm", text_of(dump.context->comm)},
                           {"client_id", dump.context->client_id}};
    if (dump.job)
        json["job"] = {{"seqno", dump.job->seqno},  {"job_id", dump.job->job_id},
                       {"fence", dump.job->fence},  {"packet", dump.job->packet},
                       {"opcode", packet_at(dump)}, {"running_ns", dump.job->running_ns}};
    json["errors"] = Json::array();
    for (const auto& record : dump.errors) json["errors"].push_back(describe(record));
    json["walks"] = Json::array();
    for (const auto& walk : dump.walks)
        json["walks"].push_back({{"va", walk.va}, {"as", walk.as_id}, {"result", walk_end(walk)}});
    json["registers"] = Json::array();
    for (const auto& reg : dump.registers)
        json["registers"].push_back({{"offset", reg.offset}, {"value", reg.value}});
    return json;
}

std::string report_text(const DeviceDump& dump) {
    std::string out;
    add_header(dump, out);
    add_packets(dump, out);
    add_lists(dump, out);
    return out;
}

}  // namespace enpu::tools
