// SPDX-License-Identifier: MIT
// The harness on a device that is well, and on devices that are broken in known ways: the stage that
// must notice does, with a reason that leads there. The harness knows none of the ways.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <nlohmann/json.hpp>

#include "enpu_hw_tables.h"
#include "runner.h"

namespace enpu::bringup {
namespace {

using tools::BareDevice;

// A device with something between it and the harness.
class Broken final : public BareDevice {
  public:
    explicit Broken(std::unique_ptr<BareDevice> inner) : inner_(std::move(inner)) {}
    std::string name() const override { return inner_->name(); }
    uint64_t read(uint32_t offset, unsigned bytes) override {
        const uint64_t value = inner_->read(offset, bytes);
        return on_read ? on_read(offset, value) : value;
    }
    void write(uint32_t offset, uint64_t value, unsigned bytes) override {
        if (on_write && !on_write(offset, &value)) return;
        inner_->write(offset, value, bytes);
    }
    void doorbell(uint32_t queue) override { inner_->doorbell(queue ^ doorbell_flip); }
    std::span<std::byte> memory() override { return inner_->memory(); }
    uint64_t memory_bus() const override { return inner_->memory_bus(); }
    std::span<std::byte> local() override { return inner_->local(); }
    uint64_t interrupts(uint32_t vector) override {
        return inner_->interrupts(vector ^ vector_flip);
    }
    void function_reset() override {
        if (!no_flr) inner_->function_reset();
    }

    std::function<uint64_t(uint32_t, uint64_t)> on_read;
    std::function<bool(uint32_t, uint64_t*)> on_write;
    uint32_t doorbell_flip = 0, vector_flip = 0;
    bool no_flr = false;

  private:
    std::unique_ptr<BareDevice> inner_;
};

std::unique_ptr<Broken> broken(
    const std::string& options = "local-mem=32M,cores=1,copy-engines=1") {
    return std::make_unique<Broken>(tools::open_model(options));
}

// The first stage that fails is `stage`, and its reason holds `word`.
void expect(BareDevice& device, const std::string& stage, const std::string& word,
            RunOptions options = {}) {
    options.wait_ms = 1000;
    const auto results = run_bare(device, options);
    std::string failed_stage = "none", reason, evidence;
    bool after = false;
    for (const StageResult& result : results) {
        if (after) REQUIRE(result.verdict == Verdict::kSkipped);
        if (result.verdict != Verdict::kFailed) continue;
        after = true;
        failed_stage = result.stage;
        reason = result.reason;
        evidence = result.evidence;
        REQUIRE_FALSE(result.causes.empty());
    }
    INFO(reason);
    REQUIRE(failed_stage == stage);
    REQUIRE(reason.find(word) != std::string::npos);
    REQUIRE_FALSE(evidence.empty());
}

// Arms a fault when a stage begins: a function-level reset, of a stage before it, would clear it.
RunOptions arm_at(BareDevice& device, const std::string& stage, uint32_t kind, uint32_t target,
                  uint32_t after) {
    RunOptions options;
    options.begins = [=, &device](const Stage& begun, const std::string&) {
        if (begun.name != stage) return;
        device.write(ENPU_REG_FAULT_KIND, kind, 4);
        device.write(ENPU_REG_FAULT_TARGET, target, 4);
        device.write(ENPU_REG_FAULT_AFTER, after, 4);
        device.write(ENPU_REG_FAULT_TIMES, 1, 4);
        device.write(ENPU_REG_FAULT_ARG, 0, 8);
        device.write(ENPU_REG_FAULT_ARM, 1, 4);
    };
    return options;
}

}  // namespace

TEST_CASE("bringup: the model passes every stage, bare and through its driver") {
    for (const char* options : {"", "cores=1,copy-engines=1,local-mem=32M", "cores=4,threads=2"}) {
        CAPTURE(options);
        const auto device = tools::open_model(options);
        for (const StageResult& result : run_bare(*device, {})) {
            INFO(result.stage << ": " << result.reason << "\n" << result.evidence);
            // Four stages need a driver, and say so.
            const bool driver_only = result.stage == "contexts" || result.stage == "timeouts" ||
                                     result.stage == "resets" || result.stage == "suspend";
            REQUIRE(result.verdict == (driver_only ? Verdict::kSkipped : Verdict::kPassed));
        }
    }
    const auto machine = driver_machine("sim:local-mem=64M,fault-injection=on");
    unsigned passed = 0;
    for (const StageResult& result : run_driver(*machine, {}, "")) {
        INFO(result.stage << ": " << result.reason);
        REQUIRE(result.verdict != Verdict::kFailed);
        passed += result.verdict == Verdict::kPassed;
    }
    REQUIRE(passed == 12);
}

TEST_CASE("bringup: faults in front of the device are found at their stage") {
    auto device = broken();
    SECTION("nothing answers") {
        device->on_read = [](uint32_t, uint64_t) { return ~0ull; };
        const auto results = run_bare(*device, {});
        REQUIRE(results[0].verdict == Verdict::kFailed);
        REQUIRE(results[0].reason.find("all ones") != std::string::npos);
    }
    SECTION("another byte order") {
        device->on_read = [](uint32_t offset, uint64_t value) {
            return offset == ENPU_REG_ID ? uint64_t{__builtin_bswap32(uint32_t(value))} : value;
        };
        expect(*device, "identity", "ID is 0x454e5055");
    }
    SECTION("a clock that stands") {
        device->on_read = [](uint32_t offset, uint64_t value) {
            return offset == ENPU_REG_TIMESTAMP ? 5 : value;
        };
        expect(*device, "identity", "TIMESTAMP");
    }
    SECTION("a bit of a register that does not stay") {
        device->on_write = [](uint32_t offset, uint64_t* value) {
            if (offset == ENPU_REG_SCRATCH) *value &= ~(1ull << 37);
            return true;
        };
        expect(*device, "registers", "SCRATCH after writing 0x2000000000");
    }
    SECTION("a block with the wrong stride") {
        device->on_write = [](uint32_t offset, uint64_t*) {
            return offset != ENPU_REG_AS_ROOT(63);
        };
        expect(*device, "registers", "AS_ROOT[63]");
    }
    SECTION("a reset that is not counted") {
        device->on_read = [](uint32_t offset, uint64_t value) {
            return offset == ENPU_REG_RESET_COUNT ? 1 : value;
        };
        expect(*device, "reset", "RESET_COUNT");
    }
    SECTION("a function-level reset that does nothing") {
        device->no_flr = true;
        expect(*device, "reset", "function-level reset");
    }
    SECTION("vectors swapped") {
        device->vector_flip = 1;
        expect(*device, "interrupts", "message of vector 0");
    }
    SECTION("doorbells of the wrong queue") {
        device->doorbell_flip = 1;
        expect(*device, "queue", "NOP on engine 0");
    }
    SECTION("an invalidation that gets lost") {
        device->on_write = [](uint32_t offset, uint64_t*) {
            return offset != ENPU_REG_TLB_INVALIDATE;
        };
        expect(*device, "mmu", "page that moved");
    }
}

TEST_CASE("bringup: faults of the device's own fault block are found at their stage") {
    auto device = broken("local-mem=32M,cores=1,copy-engines=1,fault-injection=on");
    SECTION("an interrupt that is lost") {
        expect(*device, "interrupts", "message of vector 1 after a trigger",
               arm_at(*device, "interrupts", ENPU_FAULT_KIND_IRQ_LOST, 1, 1));
    }
    SECTION("an interrupt that is sent twice") {
        expect(*device, "interrupts", "vector 2",
               arm_at(*device, "interrupts", ENPU_FAULT_KIND_IRQ_REPEATED, 2, 0));
    }
    SECTION("a completion record with a wrong fence") {
        expect(*device, "queue", "fence of the completion record",
               arm_at(*device, "queue", ENPU_FAULT_KIND_COMPLETION_CORRUPTED, ~0u, 0));
    }
    SECTION("a doorbell that is ignored") {
        expect(*device, "queue", "fence is 0",
               arm_at(*device, "queue", ENPU_FAULT_KIND_DOORBELL_IGNORED, ~0u, 0));
    }
    SECTION("an access of guest memory that fails") {
        expect(*device, "copy", "DMA_ERROR",
               arm_at(*device, "copy", ENPU_FAULT_KIND_DMA_READ, 1, 40));
    }
    SECTION("a translation that fails") {
        expect(*device, "copy", "MMU_FAULT",
               arm_at(*device, "copy", ENPU_FAULT_KIND_MMU_FAULT, 1, 40));
    }
    SECTION("a packet refused without reason") {
        expect(*device, "operators", "ILLEGAL_PACKET",
               arm_at(*device, "operators", ENPU_FAULT_KIND_ILLEGAL_PACKET, 0, 7));
    }
    SECTION("an engine that hangs") {
        expect(*device, "graph", "does not end",
               arm_at(*device, "graph", ENPU_FAULT_KIND_ENGINE_HANG, 0, 3));
    }
}

TEST_CASE("bringup: results say the same in every form") {
    const std::vector<StageResult> results = {
        {"identity", "bare", Verdict::kPassed, "", "", "it <answers>", "", 0.5},
        {"queue", "bare", Verdict::kFailed, "fence is 1 & not 2", "CTRL = 0x1\n", "a NOP",
         "doorbell", 1},
        {"model", "bare", Verdict::kSkipped, "stage 'queue' failed", "", "", "", 0}};
    REQUIRE(failed(results));
    const std::string tap = results_tap(results);
    REQUIRE(tap.find("1..3\nok 1 - identity (bare)\nnot ok 2 - queue (bare)\n") !=
            std::string::npos);
    REQUIRE(tap.find("ok 3 - model (bare) # SKIP stage 'queue' failed") != std::string::npos);
    REQUIRE(tap.find("# CTRL = 0x1") != std::string::npos);
    REQUIRE(results_junit(results).find("fence is 1 &amp; not 2") != std::string::npos);
    REQUIRE(results_html("sim", results).find("it &lt;answers&gt;") != std::string::npos);
    const auto json = results_json("sim", results);
    REQUIRE(json["ok"] == false);
    REQUIRE(json["stages"][1]["likely_causes"] == "doorbell");
}

}  // namespace enpu::bringup
