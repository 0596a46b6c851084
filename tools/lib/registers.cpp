// SPDX-License-Identifier: MIT
#include "registers.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "enpu_hw_tables.h"
#include "failure.h"
#include "output.h"

namespace enpu::tools {
namespace {

// Fields that hold an enumeration of the data sheet; a NULL field is the whole register.
struct EnumeratedField {
    const char *reg, *field;
    const enpu_name* names;
};
constexpr EnumeratedField kEnumerated[] = {
    {"ENGINE_STATUS", "STATE", enpu_engine_state_names},
    {"ENGINE_STATUS", "KIND", enpu_engine_kind_names},
    {"QUEUE_STATUS", "STATE", enpu_queue_state_names},
    {"QUEUE_STATUS", "ERROR", enpu_status_names},
    {"FAULT_KIND", nullptr, enpu_fault_kind_names},
};

const enpu_name* names_for(const Register& reg, const enpu_field_info* field) {
    for (const EnumeratedField& entry : kEnumerated) {
        if (std::strcmp(entry.reg, reg.info->name) != 0) continue;
        if (!entry.field == !field && (!field || std::strcmp(entry.field, field->name) == 0))
            return entry.names;
    }
    return nullptr;
}

std::string upper(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

uint32_t block_count(const enpu_reg_info& info, RegisterFile& file) {
    const std::string name = info.name;
    if (name.rfind("ENGINE_", 0) == 0) {
        const uint64_t caps = file.read(ENPU_REG_CAP_ENGINES, 4);
        return static_cast<uint32_t>(ENPU_FIELD_GET(ENPU_CAP_ENGINES_CORES, caps) +
                                     ENPU_FIELD_GET(ENPU_CAP_ENGINES_COPY, caps));
    }
    const uint64_t limits = file.read(ENPU_REG_CAP_LIMITS, 4);
    if (name.rfind("AS_", 0) == 0)
        return static_cast<uint32_t>(ENPU_FIELD_GET(ENPU_CAP_LIMITS_AS, limits));
    if (name.rfind("QUEUE_", 0) == 0)
        return static_cast<uint32_t>(ENPU_FIELD_GET(ENPU_CAP_LIMITS_QUEUES, limits));
    return info.count;
}

bool block_in_use(const Register& reg, RegisterFile& file) {
    const std::string name = reg.info->name;
    if (name.rfind("AS_", 0) == 0) {
        const uint32_t root = ENPU_REG_AS_ROOT(reg.index);
        return file.holds(root) && (file.read(root, 8) & ENPU_AS_ROOT_VALID);
    }
    if (name.rfind("QUEUE_", 0) == 0) {
        const uint32_t ctrl = ENPU_REG_QUEUE_CTRL(reg.index);
        const uint32_t status = ENPU_REG_QUEUE_STATUS(reg.index);
        return (file.holds(ctrl) && (file.read(ctrl, 4) & ENPU_QUEUE_CTRL_ENABLE)) ||
               (file.holds(status) && file.read(status, 4) != 0);
    }
    if (name == "CAP_OP_DTYPES") return enpu_opcodes[reg.index].exists;
    if (name == "FAULT_FIRED") return file.holds(reg.offset()) && file.read(reg) != 0;
    return true;
}

// Names that begin like the one that does not exist.
std::string near_names(const std::string& name) {
    std::string text;
    for (size_t length = name.size(); length >= 2 && text.empty(); --length) {
        for (const enpu_reg_info& info : enpu_registers) {
            if (std::strncmp(info.name, name.c_str(), length) == 0)
                text += (text.empty() ? "; near it: " : " ") + std::string(info.name);
        }
    }
    return text;
}

Register by_offset(uint32_t offset) {
    for (const Register& reg : all_registers()) {
        if (reg.offset() == offset) return reg;
    }
    throw Failure(kUsage, "no register has offset " + hex(offset));
}

Register by_name(const std::string& name, const std::string& index) {
    for (const enpu_reg_info& info : enpu_registers) {
        if (name != info.name) continue;
        const auto number = index.empty() ? std::optional<uint64_t>(0) : parse_integer(index);
        if (!number || *number >= info.count)
            throw Failure(kUsage, format("register %s has indices 0 to %u, not '%s'", info.name,
                                         info.count - 1, index.c_str()));
        return {&info, static_cast<uint32_t>(*number)};
    }
    throw Failure(kUsage, "no register is called '" + name + "'" + near_names(name));
}

}  // namespace

uint32_t Register::offset() const {
    return info->offset + index * info->stride;
}
unsigned Register::bytes() const {
    return info->bytes;
}
bool Register::readable() const {
    return info->access != ENPU_WO;
}
bool Register::writable() const {
    return info->access != ENPU_RO;
}
bool Register::is_volatile() const {
    return info->is_volatile != 0;
}
std::string Register::name() const {
    return info->count == 1 ? info->name : format("%s[%u]", info->name, index);
}
std::string Register::access() const {
    static constexpr const char* kNames[] = {"ro", "rw", "wo", "w1c"};
    return kNames[info->access];
}

std::optional<uint64_t> parse_integer(const std::string& text) {
    if (text.empty() || text[0] == '-' || std::isspace(static_cast<unsigned char>(text[0])))
        return std::nullopt;
    char* end = nullptr;
    errno = 0;
    const uint64_t value = std::strtoull(text.c_str(), &end, 0);
    if (errno != 0 || *end != '\0') return std::nullopt;
    return value;
}

RegisterField find_register(const std::string& text) {
    std::string name = upper(text), index, field;
    if (const auto offset = parse_integer(text)) {
        if (*offset > UINT32_MAX) throw Failure(kUsage, text + " is no register offset");
        return {by_offset(static_cast<uint32_t>(*offset)), nullptr};
    }
    if (const size_t dot = name.find('.'); dot != std::string::npos) {
        field = name.substr(dot + 1);
        name.resize(dot);
    }
    if (const size_t bracket = name.find('['); bracket != std::string::npos) {
        const size_t end = name.find(']', bracket);
        if (end != name.size() - 1) throw Failure(kUsage, "'" + text + "': ']' is missing");
        index = text.substr(bracket + 1, end - bracket - 1);
        name.resize(bracket);
    }
    RegisterField target{by_name(name, index), nullptr};
    if (field.empty()) return target;
    std::string fields;
    for (const enpu_field_info* f = target.reg.info->fields; f && f->name; ++f) {
        if (field == f->name) target.field = f;
        fields += std::string(fields.empty() ? "" : " ") + f->name;
    }
    if (target.field) return target;
    throw Failure(kUsage, name + " has no field '" + field + "'; " +
                              (fields.empty() ? "it has none" : "it has " + fields));
}

std::vector<Register> all_registers() {
    std::vector<Register> registers;
    for (const enpu_reg_info& info : enpu_registers)
        for (uint32_t i = 0; i < info.count; ++i) registers.push_back({&info, i});
    std::sort(registers.begin(), registers.end(),
              [](const Register& a, const Register& b) { return a.offset() < b.offset(); });
    return registers;
}

std::vector<Register> registers_of(RegisterFile& file, bool in_use) {
    std::vector<Register> registers;
    for (const Register& reg : all_registers()) {
        if (!file.holds(reg.offset()) || reg.index >= block_count(*reg.info, file)) continue;
        if (in_use && !block_in_use(reg, file)) continue;
        registers.push_back(reg);
    }
    return registers;
}

bool matches(const Register& reg, const std::string& pattern) {
    const std::string wanted = upper(pattern), name = reg.name();
    // Brackets of an index are not those of a pattern.
    if (wanted == name || wanted == reg.info->name) return true;
    return wanted.find('[') == std::string::npos && fnmatch(wanted.c_str(), reg.info->name, 0) == 0;
}

std::string name_of(const enpu_name* names, uint64_t value) {
    for (; names && names->name; ++names) {
        if (names->value == value) return names->name;
    }
    return std::to_string(value);
}

std::string decode(const Register& reg, uint64_t value) {
    if (const enpu_name* names = names_for(reg, nullptr)) return name_of(names, value);
    std::string text;
    for (const enpu_field_info* field = reg.info->fields; field && field->name; ++field) {
        const uint64_t part = ENPU_FIELD_GET(field->mask, value);
        const enpu_name* names = names_for(reg, field);
        // A field of address bits keeps its place.
        const std::string shown = names                    ? name_of(names, part)
                                  : field->mask >> 40 != 0 ? hex(value & field->mask)
                                                           : std::to_string(part);
        text += (text.empty() ? "" : " ") + std::string(field->name) + "=" + shown;
    }
    return text;
}

std::optional<uint64_t> parse_value(const std::string& text, const RegisterField& target) {
    if (const auto number = parse_integer(text)) return number;
    const std::string wanted = upper(text);
    for (const enpu_name* name = names_for(target.reg, target.field); name && name->name; ++name) {
        if (wanted == name->name) return name->value;
    }
    return std::nullopt;
}

std::string describe(const enpu_error_record& record) {
    const char* opcode =
        record.opcode < ENPU_MAX_OPCODES ? enpu_opcodes[record.opcode].name : nullptr;
    std::string text = format("%s on engine %u, queue %u, address space %u, packet +%s (%s)",
                              name_of(enpu_status_names, record.kind).c_str(), record.engine,
                              record.queue, record.as_id, hex(record.packet).c_str(),
                              opcode ? opcode : std::to_string(record.opcode).c_str());
    if (record.kind == ENPU_STATUS_MMU_FAULT)
        text += format(": %s at VA %s, %s", name_of(enpu_access_names, record.access).c_str(),
                       hex(record.va).c_str(), name_of(enpu_mmu_cause_names, record.cause).c_str());
    if (record.rule != 0)
        text += format(", rule %u, value %s", record.rule, hex(record.detail).c_str());
    return text + format(", fence %llu, job %s", (unsigned long long)record.fence,
                         hex(record.job_id).c_str());
}

}  // namespace enpu::tools
