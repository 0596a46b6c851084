// SPDX-License-Identifier: MIT
// enpu reg: registers by name, with decoded fields, of a device, a simulator or a saved dump.
#include <time.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "enpu_hw_tables.h"
#include "lib/failure.h"
#include "lib/output.h"
#include "lib/register_sources.h"

namespace enpu::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string device;
    std::vector<std::string> names;
    std::string name, value, output, other;
    bool json = false, all = false;
    unsigned interval_ms = 500, count = 0;
};

Json entry(const Register& reg, uint64_t value) {
    return {{"name", reg.name()},
            {"offset", reg.offset()},
            {"value", value},
            {"decoded", decode(reg, value)}};
}

uint64_t field_of(const RegisterField& wanted, uint64_t value) {
    return wanted.field ? ENPU_FIELD_GET(wanted.field->mask, value) : value;
}

std::vector<Register> chosen(const std::vector<Register>& registers,
                             const std::vector<std::string>& patterns) {
    if (patterns.empty()) return registers;
    std::vector<Register> kept;
    for (const Register& reg : registers) {
        for (const std::string& pattern : patterns) {
            if (!matches(reg, pattern)) continue;
            kept.push_back(reg);
            break;
        }
    }
    if (kept.empty()) throw Failure(kUsage, "no register matches " + patterns[0]);
    return kept;
}

int list(const Options& options) {
    Table table({"offset", "name", ">bits", "access", ">reset", "fields"});
    for (const enpu_reg_info& info : enpu_registers) {
        const Register reg{&info, 0};
        if (!options.name.empty() && !matches(reg, options.name)) continue;
        std::string fields;
        for (const enpu_field_info* f = info.fields; f && f->name; ++f)
            fields += std::string(fields.empty() ? "" : " ") + f->name;
        table.add({hex(info.offset, 5),
                   info.count == 1 ? info.name : format("%s[0-%u]", info.name, info.count - 1),
                   std::to_string(info.bytes * 8), reg.access(),
                   info.has_reset ? hex(info.reset) : "-", fields});
    }
    table.print();
    return kOk;
}

int read(const Options& options) {
    const auto file = open_registers(options.device);
    Json values = Json::array();
    Table table({"", "", ">", ""});
    for (const std::string& name : options.names) {
        const RegisterField wanted = find_register(name);
        if (!wanted.reg.readable()) throw Failure(kUsage, wanted.reg.name() + " is write only");
        const uint64_t value = file->read(wanted.reg);
        if (wanted.field) {
            table.add({hex(wanted.reg.offset(), 5), wanted.reg.name() + "." + wanted.field->name,
                       std::to_string(field_of(wanted, value)), ""});
        } else {
            table.add({hex(wanted.reg.offset(), 5), wanted.reg.name(), hex(value),
                       decode(wanted.reg, value)});
        }
        Json made = entry(wanted.reg, value);
        if (wanted.field)
            made["field"] = wanted.field->name, made["field_value"] = field_of(wanted, value);
        values.push_back(made);
    }
    if (options.json)
        print_json("reg", {{"source", file->name()}, {"registers", values}});
    else
        table.print();
    return kOk;
}

// A field is changed in the value that the register has; the rest of it stays.
int write(const Options& options) {
    const RegisterField wanted = find_register(options.name);
    if (!wanted.reg.writable()) throw Failure(kUsage, wanted.reg.name() + " is read only");
    const auto number = parse_value(options.value, wanted);
    if (!number)
        throw Failure(kUsage,
                      "'" + options.value + "' is no number and no value of " + options.name);
    uint64_t value = *number;
    const auto file = open_registers(options.device);
    if (wanted.field) {
        const uint64_t placed = ENPU_FIELD_PREP(wanted.field->mask, value);
        if (field_of(wanted, placed) != value)
            throw Failure(kUsage, options.value + " does not fit into " + options.name);
        const uint64_t rest = wanted.reg.readable() ? file->read(wanted.reg) : 0;
        value = (rest & ~wanted.field->mask) | placed;
    } else if (wanted.reg.bytes() == 4 && value > UINT32_MAX) {
        throw Failure(kUsage, options.value + " does not fit into 32 bits");
    }
    file->write(wanted.reg, value);
    if (wanted.reg.readable()) {
        const uint64_t now = file->read(wanted.reg);
        std::printf("%s = %s  %s\n", wanted.reg.name().c_str(), hex(now).c_str(),
                    decode(wanted.reg, now).c_str());
    }
    return kOk;
}

std::vector<std::pair<Register, uint64_t>> snapshot(RegisterFile& file, const Options& options) {
    std::vector<std::pair<Register, uint64_t>> values;
    for (const Register& reg :
         chosen(registers_of(file, !options.all && options.names.empty()), options.names)) {
        if (reg.readable()) values.push_back({reg, file.read(reg)});
    }
    return values;
}

int dump(const Options& options) {
    const auto file = open_registers(options.device);
    Json registers = Json::array();
    Table table({"offset", "register", ">value", "fields"});
    for (const auto& [reg, value] : snapshot(*file, options)) {
        registers.push_back(entry(reg, value));
        table.add({hex(reg.offset(), 5), reg.name(), hex(value), decode(reg, value)});
    }
    const Json document = {{"source", file->name()}, {"registers", registers}};
    if (!options.output.empty()) {
        std::ofstream out(options.output);
        out << document.dump(1) << '\n';
        if (!out.flush()) throw Failure(kUsage, options.output + " cannot be written");
    } else if (options.json) {
        print_json("reg", document);
    } else {
        table.print();
    }
    return kOk;
}

int diff(const Options& options) {
    const auto one = open_registers(options.device), other = open_registers(options.other);
    Json differences = Json::array();
    Table table({"register", ">" + one->name(), ">" + other->name(), "fields of the second"});
    for (const Register& reg : chosen(registers_of(*one, false), options.names)) {
        if (!reg.readable() || !other->holds(reg.offset())) continue;
        if (reg.is_volatile() && !options.all) continue;
        const uint64_t a = one->read(reg), b = other->read(reg);
        if (a == b) continue;
        table.add({reg.name(), hex(a), hex(b), decode(reg, b)});
        differences.push_back({{"name", reg.name()}, {"first", a}, {"second", b}});
    }
    if (options.json)
        print_json(
            "reg",
            {{"first", one->name()}, {"second", other->name()}, {"differences", differences}});
    else if (differences.empty())
        std::printf("no difference\n");
    else
        table.print();
    return differences.empty() ? kOk : kCheckFailed;
}

// Prints a line whenever a value changes; `count` looks, 0: until interrupted.
int watch(const Options& options) {
    const auto file = open_registers(options.device);
    std::map<std::string, uint64_t> last;
    for (unsigned look = 0; options.count == 0 || look < options.count; ++look) {
        if (look != 0) {
            const timespec pause = {options.interval_ms / 1000,
                                    static_cast<long>(options.interval_ms % 1000) * 1'000'000};
            nanosleep(&pause, nullptr);
        }
        for (const std::string& name : options.names) {
            const RegisterField wanted = find_register(name);
            const uint64_t value = field_of(wanted, file->read(wanted.reg));
            const auto before = last.find(name);
            if (before != last.end() && before->second == value) continue;
            timespec now = {};
            clock_gettime(CLOCK_MONOTONIC, &now);
            const bool moved = before != last.end() && value > before->second;
            const std::string what = wanted.field ? "" : "  " + decode(wanted.reg, value);
            std::printf(
                "%lld.%06ld  %s = %s%s%s\n", (long long)now.tv_sec, now.tv_nsec / 1000,
                name.c_str(), hex(value).c_str(),
                moved ? format("  (+%llu)", (unsigned long long)(value - before->second)).c_str()
                      : "",
                what.c_str());
            last[name] = value;
        }
        std::fflush(stdout);
    }
    return kOk;
}

int decode_value(const Options& options) {
    const RegisterField wanted = find_register(options.name);
    const auto value = parse_integer(options.value);
    if (!value) throw Failure(kUsage, "'" + options.value + "' is no number");
    std::printf("%s = %s  %s\n", wanted.reg.name().c_str(), hex(*value).c_str(),
                decode(wanted.reg, *value).c_str());
    return kOk;
}

using Run = int (*)(const Options&);

CLI::App* add(CLI::App* parent, const char* name, const char* help, Run run,
              const std::shared_ptr<Options>& options, int* status) {
    CLI::App* command = parent->add_subcommand(name, help);
    command->callback([=] { *status = run(*options); });
    return command;
}

void source_option(CLI::App* command, const std::shared_ptr<Options>& options) {
    command->add_option("-d,--device", options->device,
                        "npu, /dev/accel/accelN, pci:ADDRESS, sim[:OPTIONS] or a dump file; "
                        "default: $ENPU_DEVICE, else npu");
}

}  // namespace

void add_reg(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* reg = app.add_subcommand(
        "reg", "registers by name: NAME, NAME[INDEX], NAME.FIELD, or an offset such as 0x104");
    reg->require_subcommand(1);

    CLI::App* command = add(reg, "list", "what the data sheet has", list, options, status);
    command->add_option("pattern", options->name, "such as 'QUEUE_*'");

    command = add(reg, "read", "read registers or fields", read, options, status);
    command->add_option("name", options->names)->required();
    command->add_flag("--json", options->json, "as JSON");
    source_option(command, options);

    command = add(reg, "write", "write a register or one field of it", write, options, status);
    command->add_option("name", options->name)->required();
    command->add_option("value", options->value, "a number or the name of a value")->required();
    source_option(command, options);

    command = add(reg, "dump", "all registers that are in use, or those that match", dump, options,
                  status);
    command->add_option("pattern", options->names);
    command->add_flag("-a,--all", options->all, "idle queues and address spaces too");
    command->add_option("-o,--output", options->output, "into a file, for diff");
    command->add_flag("--json", options->json, "as JSON");
    source_option(command, options);

    command = add(reg, "diff", "registers that differ between two devices or dumps", diff, options,
                  status);
    command->add_option("first", options->device)->required();
    command->add_option("second", options->other)->required();
    command->add_option("-r,--register", options->names, "only those that match");
    command->add_flag("-a,--all", options->all, "those that change by themselves too");
    command->add_flag("--json", options->json, "as JSON");

    command =
        add(reg, "watch", "print registers or fields when they change", watch, options, status);
    command->add_option("name", options->names)->required();
    command->add_option("-i,--interval", options->interval_ms, "ms between looks")
        ->check(CLI::Range(1, 3600000));
    command->add_option("-c,--count", options->count, "looks; 0: until interrupted");
    source_option(command, options);

    command =
        add(reg, "decode", "fields of a value, without a device", decode_value, options, status);
    command->add_option("name", options->name)->required();
    command->add_option("value", options->value)->required();
}

}  // namespace enpu::tools
