// SPDX-License-Identifier: MIT
#include "dump_reader.h"

#include <catch2/catch_test_macros.hpp>
#include <random>

namespace enpu::dump {
namespace {

// Builds a dump as the kernel module does.
class Builder {
  public:
    Builder() { bytes_.resize(sizeof(enpu_dump_header)); }

    Builder& add(uint32_t type, uint32_t index, const void* payload, size_t bytes) {
        const enpu_dump_section head{type, index, bytes};
        append(&head, sizeof(head));
        append(payload, bytes);
        bytes_.resize((bytes_.size() + 7) / 8 * 8);
        sections_++;
        return *this;
    }
    template <typename T>
    Builder& add(uint32_t type, const T& payload) {
        return add(type, 0, &payload, sizeof(payload));
    }
    std::vector<uint8_t> finish() {
        add(ENPU_DUMP_END, 0, nullptr, 0);
        enpu_dump_header header{};
        memcpy(header.magic, ENPU_DUMP_MAGIC, sizeof(header.magic));
        header.major = ENPU_DUMP_MAJOR;
        header.header_bytes = sizeof(header);
        header.bytes = bytes_.size();
        header.sections = sections_;
        memcpy(bytes_.data(), &header, sizeof(header));
        return bytes_;
    }

  private:
    void append(const void* from, size_t bytes) {
        const auto* p = static_cast<const uint8_t*>(from);
        bytes_.insert(bytes_.end(), p, p + bytes);
    }
    std::vector<uint8_t> bytes_;
    uint32_t sections_ = 0;
};

std::vector<uint8_t> sample() {
    enpu_dump_info info{};
    info.reason = ENPU_DUMP_REASON_HANG;
    info.engine = 1;
    info.queue = ENPU_DUMP_NONE;
    memcpy(info.pci, "0000:01:00.0", 13);
    enpu_dump_walk walk{};
    walk.va = 0x1234000;
    walk.depth = 2;
    walk.levels[1] = {0x8000, 0, 3, 2};
    const enpu_dump_register registers[] = {{ENPU_REG_ID, 4, ENPU_MAGIC},
                                            {ENPU_REG_QUEUE_HEAD(3), 8, 17}};
    const enpu_packet packets[] = {{ENPU_OPCODE_NOP, 0, 16, 7}, {ENPU_OPCODE_BARRIER, 0, 16, 8}};
    return Builder()
        .add(ENPU_DUMP_INFO, info)
        .add(ENPU_DUMP_REGISTERS, registers)
        .add(ENPU_DUMP_WALK, walk)
        .add(ENPU_DUMP_PACKETS, 64, packets, sizeof(packets))
        .add(77, 1, "new", 3)
        .finish();
}

std::string error_of(std::span<const uint8_t> bytes) {
    Dump dump;
    std::string error;
    CHECK_FALSE(Dump::parse(bytes, &dump, &error));
    return error;
}

TEST_CASE("a dump is read back as it was written") {
    Dump dump;
    std::string error;
    REQUIRE(Dump::parse(sample(), &dump, &error));
    enpu_dump_info info{};
    REQUIRE(dump.get(ENPU_DUMP_INFO, &info));
    CHECK(info.reason == ENPU_DUMP_REASON_HANG);
    uint64_t value = 0;
    REQUIRE(dump.reg(ENPU_REG_QUEUE_HEAD(3), &value));
    CHECK(value == 17);
    CHECK_FALSE(dump.reg(ENPU_REG_QUEUE_HEAD(4), &value));
    CHECK(dump.find(ENPU_DUMP_PACKETS)->index == 64);
    CHECK(dump.find(77)->payload.size() == 3);
    enpu_dump_job job{};
    CHECK_FALSE(dump.get(ENPU_DUMP_JOB, &job));
}

TEST_CASE("the text has the names of the data sheet") {
    Dump dump;
    std::string error;
    REQUIRE(Dump::parse(sample(), &dump, &error));
    const std::string text = describe(dump);
    INFO(text);
    for (const char* part : {"reason hang, engine 1, queue -1", "0000:01:00.0", "QUEUE_HEAD[3]",
                             "+0x40 NOP", "+0x50 BARRIER", "va 0x1234000", "(not valid)"})
        CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("what is no whole dump is refused with the reason") {
    const auto good = sample();
    auto bad = good;
    bad[0] ^= 1;
    CHECK(error_of(bad) == "not a dump: wrong magic");
    bad = good;
    bad[8] = ENPU_DUMP_MAJOR + 1;
    CHECK(error_of(bad).find("version 2.0") != std::string::npos);
    bad = good;
    bad.resize(good.size() - 8);
    CHECK(error_of(bad).find("the header says") != std::string::npos);
    bad = good;
    bad[24]++;
    CHECK(error_of(bad).find("sections") != std::string::npos);
    CHECK(error_of({}) == "0 bytes are no dump");

    enpu_dump_job job{};
    const auto short_job =
        Builder().add(ENPU_DUMP_INFO, enpu_dump_info{}).add(ENPU_DUMP_JOB, 0, &job, 8).finish();
    CHECK(error_of(short_job).find("too short") != std::string::npos);
    CHECK(error_of(Builder().finish()) == "no INFO section");
}

TEST_CASE("no change of a dump makes the reader leave it") {
    std::mt19937 random(7);
    const auto good = sample();
    int refused = 0, taken = 0;
    for (int round = 0; round < 20'000; ++round) {
        auto bytes = good;
        for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
        if (round % 4 == 0)
            bytes.erase(bytes.end() - static_cast<std::ptrdiff_t>(random() % bytes.size()),
                        bytes.end());
        // Kept alive in memory of its own size, so that a sanitizer sees a step beyond.
        Dump dump;
        std::string error;
        if (Dump::parse(bytes, &dump, &error)) {
            CHECK_FALSE(describe(dump).empty());
            ++taken;
        } else {
            CHECK_FALSE(error.empty());
            ++refused;
        }
    }
    CHECK(refused > 1000);
    CHECK(taken > 1000);
}

}  // namespace
}  // namespace enpu::dump
