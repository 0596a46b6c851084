// SPDX-License-Identifier: MIT
// Registers by name, from the tables that are generated from the hardware description; nothing here
// knows a register of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "enpu_hw.h"

struct enpu_reg_info;
struct enpu_field_info;
struct enpu_name;

namespace enpu::tools {

// One register: `index` counts within a block (engine, queue …).
struct Register {
    const enpu_reg_info* info = nullptr;
    uint32_t index = 0;

    uint32_t offset() const;
    unsigned bytes() const;
    bool readable() const;
    bool writable() const;
    bool is_volatile() const;
    std::string name() const;  // "QUEUE_CTRL[3]"
    std::string access() const;
};

// Where registers are read and written. Every call may throw Failure.
class RegisterFile {
  public:
    virtual ~RegisterFile() = default;
    virtual std::string name() const = 0;
    virtual uint64_t read(uint32_t offset, unsigned bytes) = 0;
    virtual void write(uint32_t offset, uint64_t value, unsigned bytes) = 0;
    // False when it holds no value of that register (a dump has those that were saved).
    virtual bool holds(uint32_t /*offset*/) const { return true; }

    uint64_t read(const Register& reg) { return read(reg.offset(), reg.bytes()); }
    void write(const Register& reg, uint64_t value) { write(reg.offset(), value, reg.bytes()); }
};

// A register and, for "NAME.FIELD", one of its fields.
struct RegisterField {
    Register reg;
    const enpu_field_info* field = nullptr;
};
// "CTRL", "QUEUE_CTRL[3]", "QUEUE_CTRL[3].AS", "0x8180". Throws Failure(kUsage) with names that are
// near.
RegisterField find_register(const std::string& text);
// All registers that exist on a device with these capabilities, in order of offset. `in_use`: of
// blocks those that do something (an address space with a root, a queue that is enabled or
// faulted).
std::vector<Register> registers_of(RegisterFile& file, bool in_use);
// Every register of the data sheet.
std::vector<Register> all_registers();
// Whether the name matches a shell pattern ("ENGINE_*", "QUEUE_CTRL[3]"; a block's name without an
// index stands for all of it).
bool matches(const Register& reg, const std::string& pattern);

// "ENABLE=1 RING_LOG2=4", with the names of enumerations; "" when there is nothing to add.
std::string decode(const Register& reg, uint64_t value);
// The name of a value, or the value in decimal.
std::string name_of(const enpu_name* names, uint64_t value);
// The value of a name or a number; nothing when it is neither.
std::optional<uint64_t> parse_value(const std::string& text, const RegisterField& target);
std::optional<uint64_t> parse_integer(const std::string& text);
// An error record in one line.
std::string describe(const enpu_error_record& record);

}  // namespace enpu::tools
