// SPDX-License-Identifier: MIT
#include "device_dump.h"

#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <nlohmann/json.hpp>

#include "dump_report.h"
#include "failure.h"
#include "packets.h"

namespace enpu::tools {
namespace {

void append(std::string& out, const void* bytes, size_t size) {
    out.append(static_cast<const char*>(bytes), size);
}

void section(std::string& out, uint32_t type, uint32_t index, const void* payload, size_t bytes) {
    const enpu_dump_section head{type, index, bytes};
    append(out, &head, sizeof(head));
    append(out, payload, bytes);
    out.resize((out.size() + 7) / 8 * 8);
}

std::string stream() {
    const enpu_packet nop{ENPU_OPCODE_NOP, 0, 16, 0};
    enpu_copy_packet copy{};
    copy.header = {ENPU_OPCODE_COPY, 0, sizeof(copy), 7};
    copy.dst = 0x20000;
    copy.src = 0x777000;
    copy.width = 64;
    copy.height = 1;
    std::string bytes;
    append(bytes, &nop, sizeof(nop));
    append(bytes, &copy, sizeof(copy));
    return bytes;
}

// A fault of the copy in the stream above, at a VA whose walk ends at level 1.
std::string fault_dump() {
    std::string out(sizeof(enpu_dump_header), '\0');
    enpu_dump_info info{};
    info.reason = ENPU_DUMP_REASON_FAULT;
    info.engine = 2;
    info.queue = 5;
    info.compute_engines = 2;
    std::strcpy(reinterpret_cast<char*>(info.pci), "0000:01:00.0");
    section(out, ENPU_DUMP_INFO, 0, &info, sizeof(info));
    const enpu_dump_register reg{ENPU_REG_ID, 4, ENPU_MAGIC};
    section(out, ENPU_DUMP_REGISTERS, 0, &reg, sizeof(reg));
    enpu_error_record record{};
    record.kind = ENPU_STATUS_MMU_FAULT;
    record.engine = 2;
    record.access = ENPU_ACCESS_READ;
    record.cause = ENPU_MMU_CAUSE_NOT_MAPPED;
    record.queue = 5;
    record.va = 0x777000;
    record.packet = 16;
    record.opcode = ENPU_OPCODE_COPY;
    record.fence = 9;
    section(out, ENPU_DUMP_ERRORS, 0, &record, sizeof(record));
    const enpu_dump_job job{3, 0x42, 9, 0x10000, 80, 16, 1000};
    section(out, ENPU_DUMP_JOB, 0, &job, sizeof(job));
    section(out, ENPU_DUMP_PACKETS, 0, stream().data(), stream().size());
    enpu_dump_walk walk{};
    walk.va = 0x777000;
    walk.as_id = 1;
    walk.depth = 3;
    walk.levels[0] = {0x1000, 0x2001, 0, 3};
    walk.levels[1] = {0x2000, 0x3001, 0, 2};
    walk.levels[2] = {0x3000, 0, 3, 1};
    section(out, ENPU_DUMP_WALK, 0, &walk, sizeof(walk));
    section(out, 77, 0, "later", 5);  // of a newer minor version
    section(out, ENPU_DUMP_END, 0, nullptr, 0);
    enpu_dump_header header{};
    std::memcpy(header.magic, ENPU_DUMP_MAGIC, sizeof(header.magic));
    header.major = ENPU_DUMP_MAJOR;
    header.header_bytes = sizeof(header);
    header.bytes = out.size();
    std::memcpy(out.data(), &header, sizeof(header));
    return out;
}

}  // namespace

TEST_CASE("dump: the page says what failed, where, in which packet, and what the tables said") {
    const DeviceDump dump = DeviceDump::parse(fault_dump());
    REQUIRE(dump.complete);
    REQUIRE(dump.unknown_sections == 1);
    const std::string page = report_text(dump);
    INFO(page);
    for (const char* word :
         {"MMU_FAULT", "copy engine 0 (engine 2), queue 5", "READ at VA 0x777000",
          "copy 64 x 1 B 0x777000 -> 0x20000 tag 0x7", "not mapped: nothing at level 1", "id 0x42",
          "> +0x000010", "  +0x000000  nop"})
        REQUIRE(page.find(word) != std::string::npos);
    const auto json = report_json(dump);
    REQUIRE(json["job"]["packet"] == 16);
    REQUIRE(json["walks"][0]["result"] == "not mapped: nothing at level 1");
}

TEST_CASE("dump: bytes that are cut off or damaged never do harm") {
    const std::string whole = fault_dump();
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
        try {
            const DeviceDump dump = DeviceDump::parse(std::string_view(whole).substr(0, bytes));
            REQUIRE_FALSE(dump.complete);
            report_text(dump);
        } catch (const Failure& failure) {
            REQUIRE(bytes < sizeof(enpu_dump_header));
        }
    }
    uint32_t state = 1;
    for (unsigned round = 0; round < 2000; ++round) {
        std::string bytes = whole;
        for (unsigned i = 0; i < 4; ++i) {
            state = state * 1664525 + 1013904223;
            bytes[state % bytes.size()] = static_cast<char>(state >> 24);
        }
        try {
            report_text(DeviceDump::parse(bytes));
        } catch (const Failure&) {
            continue;
        }
    }
    std::string other = whole;
    other[8] = 9;  // major version
    REQUIRE_THROWS_AS(DeviceDump::parse(other), Failure);
}

TEST_CASE("packets: offsets stop at what is no packet; accesses name what is written") {
    std::string bytes = stream();
    REQUIRE(packet_offsets(bytes) == std::vector<uint32_t>{0, 16});
    const auto accesses = packet_accesses(std::string_view(bytes).substr(16));
    REQUIRE(accesses.size() == 2);
    REQUIRE(accesses[0].written);
    REQUIRE(accesses[0].va == 0x20000);
    REQUIRE(accesses[0].bytes == 64);
    REQUIRE_FALSE(accesses[1].written);
    bytes[16] = 99;
    REQUIRE(packet_offsets(bytes) == std::vector<uint32_t>{0});
    REQUIRE(packet_text(std::string_view(bytes).substr(16)).find("opcode 99") == 0);
}

}  // namespace enpu::tools
