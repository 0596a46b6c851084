// SPDX-License-Identifier: MIT
// The text form of faults (enpu_fault.h), which driver, monitor, simulator and tools share.
#include <cstring>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "enpu_fault.h"
#include "enpu_hw_tables.h"

namespace {

struct Parsed {
    enpu_fault fault{};
    const char* wrong = nullptr;
    std::string rest;

    explicit Parsed(const char* text) {
        std::memset(&fault, 0xee, sizeof(fault));
        wrong = enpu_fault_parse(&text, &fault);
        rest = text;
    }
};

}  // namespace

TEST_CASE("A kind alone has defaults") {
    for (uint32_t kind = 0; kind < ENPU_FAULT_KINDS; ++kind) {
        const Parsed parsed(enpu_faults[kind].name);
        INFO(enpu_faults[kind].name);
        CHECK(parsed.wrong == nullptr);
        CHECK(parsed.rest.empty());
        const enpu_fault& f = parsed.fault;
        CHECK(f.kind == kind);
        CHECK(f.target == ENPU_FAULT_ANY);
        CHECK(f.times == 1);
        CHECK((f.after | f.every | f.reserved | f.argument | f.seed) == 0);
    }
}

TEST_CASE("Keys are read in any order, colon or comma") {
    const Parsed parsed(
        "  dma-read:every=50,seed=0xFfffffffffffffff:times=always:"
        "arg=18446744073709551615:after=4294967295:engine=0x2\n");
    CHECK(parsed.wrong == nullptr);
    CHECK(parsed.rest.empty());
    CHECK(parsed.fault.kind == ENPU_FAULT_KIND_DMA_READ);
    CHECK(parsed.fault.every == 50);
    CHECK(parsed.fault.seed == UINT64_MAX);
    CHECK(parsed.fault.argument == UINT64_MAX);
    CHECK(parsed.fault.after == UINT32_MAX);
    CHECK(parsed.fault.times == ENPU_FAULT_ALWAYS);
    CHECK(parsed.fault.target == 2);
}

TEST_CASE("Each kind's target has its name") {
    CHECK(Parsed("irq-lost:vector=3").fault.target == 3);
    CHECK(Parsed("doorbell-ignored:queue=255").fault.target == 255);
    CHECK(Parsed("tlb-stuck:as=1").fault.target == 1);
    CHECK(Parsed("tlb-stuck:target=any").fault.target == ENPU_FAULT_ANY);
    CHECK(Parsed("irq-lost:engine=3").wrong != nullptr);
    CHECK(Parsed("removed:engine=3").wrong != nullptr);
}

TEST_CASE("Several faults follow each other") {
    const char* text = "irq-lost:times=2; mmu-fault\tnone";
    const enpu_fault_kind kinds[] = {ENPU_FAULT_KIND_IRQ_LOST, ENPU_FAULT_KIND_MMU_FAULT,
                                     ENPU_FAULT_KIND_NONE};
    for (enpu_fault_kind kind : kinds) {
        enpu_fault fault;
        REQUIRE(*text != '\0');
        REQUIRE(enpu_fault_parse(&text, &fault) == nullptr);
        CHECK(fault.kind == static_cast<uint32_t>(kind));
    }
    CHECK(*text == '\0');
}

TEST_CASE("What cannot be read is refused where it stands") {
    static const struct {
        const char *text, *rest;
    } kBad[] = {
        {"", ""},
        {" ", ""},
        {"1", "1"},
        {"engine-han", "engine-han"},
        {"engine-hangs", "engine-hangs"},
        {"none none=", "="},
        {"engine-hang:", ""},
        {"engine-hang:after", ""},
        {"engine-hang:after=", ""},
        {"engine-hang:after=-1", "-1"},
        {"engine-hang:after=x", "x"},
        {"engine-hang:after=0x", "0x"},
        {"engine-hang:after=1f", "1f"},
        {"engine-hang:after=4294967296", "4294967296"},
        {"engine-hang:arg=18446744073709551616", "18446744073709551616"},
        {"engine-hang:arg=0x10000000000000000", "0x10000000000000000"},
        {"engine-hang:after=always", "always"},
        {"engine-hang:speed=1", "speed=1"},
        {"engine-hang=1", "=1"},
        {"engine-hang:times=0", ""},
        {"engine-hang:engine=1=2", "=2"},
    };
    for (const auto& bad : kBad) {
        INFO(bad.text);
        const char* text = bad.text;
        enpu_fault fault;
        const char* wrong = enpu_fault_parse(&text, &fault);
        if (!wrong && *text) wrong = enpu_fault_parse(&text, &fault);
        CHECK(wrong != nullptr);
        CHECK(std::string(text) == bad.rest);
    }
}
