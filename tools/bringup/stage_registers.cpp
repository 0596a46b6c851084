// SPDX-License-Identifier: MIT
#include <cstring>

#include "bench.h"
#include "enpu_hw_tables.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::Register;

// Registers whose writes start something, or which are kept only in some states.
bool has_effect(const Register& reg) {
    for (const char* name :
         {"CTRL", "ENGINE_CTRL", "QUEUE_CTRL", "QUEUE_HEAD", "QUEUE_RESUME", "QUEUE_ADDR"})
        if (std::strcmp(reg.info->name, name) == 0) return true;
    return false;
}

bool needs_faults(const Register& reg) {
    return std::strncmp(reg.info->name, "FAULT_", 6) == 0;
}

uint64_t all_fields(const Register& reg) {
    uint64_t mask = 0;
    for (const enpu_field_info* field = reg.info->fields; field && field->name; ++field)
        mask |= field->mask;
    return mask ? mask : reg.bytes() == 8 ? ~0ull : 0xffffffffull;
}

void check_resets(Bench& bench) {
    for (const Register& reg : tools::registers_of(bench.device(), false)) {
        if (!reg.readable() || !reg.info->has_reset || reg.is_volatile()) continue;
        require_equal(reg.name() + " after a reset", bench.device().read(reg), reg.info->reset);
    }
}

void check_read_only(Bench& bench) {
    for (const Register& reg : tools::registers_of(bench.device(), false)) {
        if (reg.writable() || reg.is_volatile()) continue;
        const uint64_t before = bench.device().read(reg);
        bench.device().write(reg, ~before);
        require_equal("read-only " + reg.name() + " after a write", bench.device().read(reg),
                      before);
    }
}

// Each bit of each field by itself, then all: kept, and no other bit moves.
void check_writes(Bench& bench) {
    const bool faults = bench.read32(ENPU_REG_CAP_FEATURES) & ENPU_CAP_FEATURES_FAULT_INJECTION;
    const uint32_t vectors = bench.vectors();
    for (const Register& reg : tools::registers_of(bench.device(), false)) {
        if (reg.info->access != ENPU_RW || has_effect(reg)) continue;
        if (needs_faults(reg) && !faults) continue;
        uint64_t mask = all_fields(reg);
        if (reg.offset() == ENPU_REG_IRQ_ENABLE && vectors < 32) mask = (1u << vectors) - 1;
        for (unsigned bit = 0; bit <= 64; ++bit) {
            const uint64_t value = bit == 64 ? mask : (uint64_t{1} << bit) & mask;
            if (value == 0) continue;
            bench.device().write(reg, value);
            require_equal(
                tools::format("%s after writing %s", reg.name().c_str(), tools::hex(value).c_str()),
                bench.device().read(reg) & mask, value);
        }
        bench.device().write(reg, reg.info->reset);
        require_equal(reg.name() + " put back", bench.device().read(reg), reg.info->reset);
    }
}

// Neighbours keep apart: the offset and stride of every block are right.
void check_blocks(Bench& bench) {
    const uint32_t spaces = ENPU_FIELD_GET(ENPU_CAP_LIMITS_AS, bench.read32(ENPU_REG_CAP_LIMITS));
    const uint32_t queues =
        ENPU_FIELD_GET(ENPU_CAP_LIMITS_QUEUES, bench.read32(ENPU_REG_CAP_LIMITS));
    auto value = [](uint32_t i) { return (uint64_t{i} + 1) << 12; };
    for (uint32_t i = 0; i < spaces; ++i) bench.write64(ENPU_REG_AS_ROOT(i), value(i));
    for (uint32_t i = 0; i < queues; ++i) bench.write64(ENPU_REG_QUEUE_ADDR(i), value(i));
    for (uint32_t i = 0; i < spaces; ++i)
        require_equal(tools::format("AS_ROOT[%u], all written", i),
                      bench.read64(ENPU_REG_AS_ROOT(i)), value(i));
    for (uint32_t i = 0; i < queues; ++i)
        require_equal(tools::format("QUEUE_ADDR[%u], all written", i),
                      bench.read64(ENPU_REG_QUEUE_ADDR(i)), value(i));
}

void check_widths(Bench& bench) {
    bench.write64(ENPU_REG_SCRATCH, 0x0123'4567'89ab'cdefull);
    require_equal("a 4-byte read of SCRATCH", bench.device().read(ENPU_REG_SCRATCH, 4), 0);
    bench.device().write(ENPU_REG_SCRATCH, 0, 4);
    require_equal("SCRATCH after a 4-byte write", bench.read64(ENPU_REG_SCRATCH),
                  0x0123'4567'89ab'cdefull);
    require_equal("an 8-byte read of ID", bench.device().read(ENPU_REG_ID, 8), 0);
    bench.write64(ENPU_REG_SCRATCH, 0);
}

void run(Bench& bench) {
    bench.start_over();
    check_resets(bench);
    check_read_only(bench);
    check_writes(bench);
    check_blocks(bench);
    check_widths(bench);
    bench.start_over();
    check_resets(bench);
}

}  // namespace

const Stage kRegisters = {
    "registers",
    "reset values, read-only registers, fields that keep what is written, block strides",
    "wrong reset value or mask, a block with the wrong stride, an access of the wrong width let in",
    run, nullptr};

}  // namespace enpu::bringup
