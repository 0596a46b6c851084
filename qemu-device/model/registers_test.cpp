// SPDX-License-Identifier: MIT
// Every register of the data sheet, from the generated table.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "enpu_hw_tables.h"
#include "test/pattern.h"

using namespace enpu::test;

namespace {

uint64_t mask_of(const enpu_reg_info& reg) {
    if (!reg.fields) return reg.bytes == 8 ? ~0ull : 0xffffffffull;
    uint64_t mask = 0;
    for (const enpu_field_info* field = reg.fields; field->name; ++field) mask |= field->mask;
    return mask;
}

bool is_fault_block(const enpu_reg_info& reg) {
    return reg.offset >= ENPU_REG_FAULT_KIND && reg.offset < ENPU_REG_CAP_OP_DTYPES(0);
}

}  // namespace

TEST_CASE("Registers have their reset values, widths and accesses") {
    Rig rig(mode(GENERATE(true, false)));
    for (const enpu_reg_info& reg : enpu_registers) {
        for (uint32_t n = 0; n < reg.count; ++n) {
            const uint32_t at = reg.offset + n * reg.stride;
            INFO(reg.name << " " << n);
            const uint64_t value = enpu_model_read(rig.model, at, reg.bytes);
            if (reg.has_reset) CHECK(value == reg.reset);
            if (reg.access == ENPU_WO) CHECK(value == 0);
            CHECK(enpu_model_read(rig.model, at, reg.bytes == 8 ? 4 : 8) == 0);
            CHECK(enpu_model_read(rig.model, at, 1) == 0);
            CHECK(enpu_model_read(rig.model, at + 1, reg.bytes) == 0);
            if (reg.access == ENPU_RO && !reg.is_volatile) {
                enpu_model_write(rig.model, at, ~value, reg.bytes);
                CHECK(enpu_model_read(rig.model, at, reg.bytes) == value);
            }
        }
    }
}

TEST_CASE("What can be written keeps the bits of its fields, until a reset") {
    const bool power_on = GENERATE(false, true);
    Rig rig(mode(true));
    const auto skip = [](const enpu_reg_info& reg) {
        return reg.access != ENPU_RW || reg.offset == ENPU_REG_CTRL ||
               reg.offset == ENPU_REG_ENGINE_CTRL(0) || reg.offset == ENPU_REG_QUEUE_CTRL(0);
    };
    for (const enpu_reg_info& reg : enpu_registers) {
        if (skip(reg)) continue;
        INFO(reg.name);
        const uint32_t last = reg.offset + (reg.count - 1) * reg.stride;
        const uint64_t pattern = 0xa5a5a5a55a5a5a5aull & mask_of(reg);
        enpu_model_write(rig.model, last, 0xa5a5a5a55a5a5a5aull, reg.bytes);
        CHECK(enpu_model_read(rig.model, last, reg.bytes) == pattern);
        enpu_model_write(rig.model, last, ~0ull, reg.bytes == 8 ? 4 : 8);
        CHECK(enpu_model_read(rig.model, last, reg.bytes) == pattern);
    }
    // An address space that points nowhere is no harm.
    if (power_on)
        enpu_model_reset(rig.model);
    else
        rig.reset_device();
    for (const enpu_reg_info& reg : enpu_registers) {
        if (skip(reg)) continue;
        INFO(reg.name);
        CHECK(enpu_model_read(rig.model, reg.offset + (reg.count - 1) * reg.stride, reg.bytes) ==
              reg.reset);
    }
    CHECK(rig.read32(ENPU_REG_RESET_COUNT) == 1);
}

TEST_CASE("Capabilities say what the device was made of") {
    Options options;
    options.cores = 3;
    options.copy_engines = 2;
    options.threads = 4;
    options.faults = false;
    Rig rig(options);
    const uint32_t engines = rig.read32(ENPU_REG_CAP_ENGINES);
    CHECK(ENPU_FIELD_GET(ENPU_CAP_ENGINES_CORES, engines) == 3);
    CHECK(ENPU_FIELD_GET(ENPU_CAP_ENGINES_COPY, engines) == 2);
    CHECK(ENPU_FIELD_GET(ENPU_CAP_ENGINES_THREADS, engines) == 4);
    CHECK(rig.read64(ENPU_REG_LOCAL_MEM_SIZE) == options.local_bytes);
    CHECK(rig.read32(ENPU_REG_CAP_FEATURES) ==
          (ENPU_CAP_FEATURES_USER_QUEUES | ENPU_CAP_FEATURES_IRQ_FENCE));
    CHECK(rig.read64(ENPU_REG_CAP_OPCODES) >> ENPU_OPCODE_CONV2D & 1);
    CHECK(rig.read32(ENPU_REG_CAP_OP_DTYPES(ENPU_OPCODE_SOFTMAX)) == 0xe);
    for (uint32_t i = 0; i < 5; ++i)
        CHECK(ENPU_FIELD_GET(ENPU_ENGINE_STATUS_KIND, rig.read32(ENPU_REG_ENGINE_STATUS(i))) ==
              (i < 3 ? ENPU_ENGINE_KIND_COMPUTE : ENPU_ENGINE_KIND_COPY));
    CHECK(rig.wait_for([&] { return rig.threads == 6; }));  // five engines and the timer
}

TEST_CASE("Without fault injection there is no fault block") {
    Options options = mode(true);
    options.faults = false;
    Rig rig(options);
    for (const enpu_reg_info& reg : enpu_registers) {
        if (!is_fault_block(reg)) continue;
        INFO(reg.name);
        enpu_model_write(rig.model, reg.offset, ~0ull, reg.bytes);
        CHECK(enpu_model_read(rig.model, reg.offset, reg.bytes) == 0);
    }
    CHECK_FALSE(rig.inject(ENPU_FAULT_KIND_ENGINE_HANG));
}

TEST_CASE("Offsets where nothing is read as zero and take nothing") {
    Rig rig(mode(true));
    for (uint64_t at :
         {0x50ull, 0xffcull, 0x2000ull + 0x1000, 0x3fff8ull, 0x40000ull, 1ull << 40}) {
        for (uint32_t bytes : {1u, 2u, 4u, 8u}) {
            enpu_model_write(rig.model, at, ~0ull, bytes);
            CHECK(enpu_model_read(rig.model, at, bytes) == 0);
        }
    }
    enpu_model_doorbell(rig.model, ENPU_MAX_QUEUES);
    enpu_model_doorbell(rig.model, ~0u);
    CHECK(rig.read32(ENPU_REG_ERR_COUNT) == 0);
}

TEST_CASE("A device is not made of what it cannot be") {
    alignas(4096) static std::byte memory[4096];
    Rig rig(mode(true));  // for a valid host
    const auto refused = [&](auto change) {
        enpu_model_host host{};
        host.struct_size = sizeof(host);
        host.dma_read = [](void*, uint64_t, void*, uint64_t) { return -1; };
        host.dma_write = [](void*, uint64_t, const void*, uint64_t) { return -1; };
        host.raise_irq = [](void*, uint32_t) {};
        host.clock_ns = [](void*) -> uint64_t { return 1; };
        enpu_model_config config{};
        config.struct_size = sizeof(config);
        config.abi = ENPU_MODEL_ABI;
        config.cores = config.threads = config.copy_engines = 1;
        config.sync = true;
        config.local_bytes = 2 << 20;
        config.local_memory = memory;
        change(config, host);
        char error[64] = "x";
        enpu_model* model = enpu_model_create(&config, &host, error, sizeof(error));
        const bool made = model != nullptr;
        enpu_model_destroy(model);
        CHECK((error[0] == 0) == made);
        return !made;
    };
    using Config = enpu_model_config;
    using Host = enpu_model_host;
    CHECK_FALSE(refused([](Config&, Host&) {}));
    CHECK(refused([](Config& c, Host&) { c.struct_size = 8; }));
    CHECK(refused([](Config& c, Host&) { c.abi = ENPU_MODEL_ABI + 1; }));
    CHECK(refused([](Config& c, Host&) { c.cores = 0; }));
    CHECK(refused([](Config& c, Host&) { c.cores = 17; }));
    CHECK(refused([](Config& c, Host&) { c.threads = 65; }));
    CHECK(refused([](Config& c, Host&) { c.copy_engines = 5; }));
    CHECK(refused([](Config& c, Host&) { c.local_bytes = (2 << 20) + 4096; }));
    CHECK(refused([](Config& c, Host&) { c.local_memory = memory + 8; }));
    CHECK(refused([](Config&, Host& h) { h.raise_irq = nullptr; }));
    CHECK(refused([](Config&, Host& h) { h.struct_size = 16; }));
}
