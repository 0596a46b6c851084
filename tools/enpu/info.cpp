// SPDX-License-Identifier: MIT
// enpu info: what the device is and can do, on one screen.
#include <cstdio>
#include <enpu/enpu.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "enpu_hw_tables.h"
#include "lib/failure.h"
#include "lib/output.h"

namespace enpu::tools {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string device;
    bool json = false;
    bool list = false;
};

std::string version_text(uint32_t version) {
    return format("%u.%u", static_cast<unsigned>(ENPU_FIELD_GET(ENPU_VERSION_MAJOR, version)),
                  static_cast<unsigned>(ENPU_FIELD_GET(ENPU_VERSION_MINOR, version)));
}

std::vector<std::string> features_of(const enpu_device_info& info) {
    std::vector<std::string> names;
    for (const enpu_field_info* field = enpu_fields_cap_features; field->name; ++field) {
        if (info.features & field->mask) names.push_back(field->name);
    }
    return names;
}

Json operators_of(const enpu_device_info& info) {
    Json operators = Json::array();
    for (unsigned op = 0; op < ENPU_MAX_OPCODES; ++op) {
        if (!(info.opcodes >> op & 1) || !enpu_opcodes[op].exists) continue;
        Json dtypes = Json::array();
        for (const enpu_name* name = enpu_dtype_names; name->name; ++name) {
            if (info.dtypes[op] >> name->value & 1) dtypes.push_back(name->name);
        }
        operators.push_back({{"name", enpu_opcodes[op].name}, {"opcode", op}, {"dtypes", dtypes}});
    }
    return operators;
}

Json describe(const Device& device) {
    const enpu_device_info& info = device.info();
    enpu_memory_info memory = {};
    check([&](enpu_error* e) { return enpu_device_get_memory(device.get(), &memory, e); });
    return {{"device", info.spec},
            {"simulator", info.simulator != 0},
            {"hardware_version", version_text(info.hw_version)},
            {"features", features_of(info)},
            {"compute_engines", info.compute_engines},
            {"copy_engines", info.copy_engines},
            {"threads_per_core", info.threads},
            {"local_memory",
             {{"total", memory.local_total},
              {"free", memory.local_free},
              {"largest_free", memory.local_largest}}},
            {"limits",
             {{"command_bytes", info.max_command_bytes},
              {"tensor_bytes", info.max_tensor_bytes},
              {"packet_work", info.max_packet_work},
              {"page_bytes", info.page_size}}},
            {"default_timeout_ms", info.default_timeout_ms},
            {"resets", info.reset_count},
            {"versions", {{"tool", ENPU_TOOLS_VERSION}, {"libenpu_api", ENPU_API_VERSION}}},
            {"operators", operators_of(info)}};
}

std::string joined(const Json& words) {
    std::string text;
    for (const auto& word : words) text += (text.empty() ? "" : " ") + word.get<std::string>();
    return text.empty() ? "none" : text;
}

void print_screen(const Json& d) {
    auto number = [](const Json& value) { return value.get<uint64_t>(); };
    Table table({"", ""});
    table.add({"device", d["device"].get<std::string>() +
                             (d["simulator"].get<bool>() ? " (simulator in this process)" : "")});
    table.add({"hardware version", d["hardware_version"]});
    table.add({"features", joined(d["features"])});
    table.add({"engines", format("%llu compute of %llu threads, %llu copy",
                                 (unsigned long long)number(d["compute_engines"]),
                                 (unsigned long long)number(d["threads_per_core"]),
                                 (unsigned long long)number(d["copy_engines"]))});
    const Json& memory = d["local_memory"];
    table.add({"local memory", bytes_text(number(memory["total"])) + ", free " +
                                   bytes_text(number(memory["free"])) + ", largest piece " +
                                   bytes_text(number(memory["largest_free"]))});
    const Json& limits = d["limits"];
    table.add({"limits", "command " + bytes_text(number(limits["command_bytes"])) + ", tensor " +
                             bytes_text(number(limits["tensor_bytes"])) + ", work of a packet " +
                             hex(number(limits["packet_work"]))});
    table.add({"hang timeout", time_text(number(d["default_timeout_ms"]) * 1e6)});
    table.add({"resets so far", std::to_string(number(d["resets"]))});
    table.add({"enpu tool", d["versions"]["tool"]});
    table.add({"libenpu API", std::to_string(number(d["versions"]["libenpu_api"]))});
    table.print();
    std::printf("\n");
    Table operators({"packet", ">opcode", "dtypes"});
    for (const auto& op : d["operators"])
        operators.add({op["name"], std::to_string(number(op["opcode"])),
                       op["dtypes"].empty() ? "" : joined(op["dtypes"])});
    operators.print();
}

// -L: the devices of this machine, without opening one.
int list_devices(bool json) {
    std::vector<enpu_device_entry> entries(64);
    const int count =
        check([&](enpu_error* e) { return enpu_enumerate(entries.data(), entries.size(), e); });
    entries.resize(std::min<size_t>(entries.size(), static_cast<size_t>(count)));
    Json devices = Json::array();
    Table table({"device", "name"});
    for (const auto& entry : entries) {
        devices.push_back({{"device", entry.spec}, {"name", entry.name}});
        table.add({entry.spec, entry.name});
    }
    if (json)
        print_json("info", {{"devices", devices}});
    else
        table.print();
    return kOk;
}

int run(const Options& options) {
    if (options.list) return list_devices(options.json);
    const Json document = describe(Device::open(options.device.c_str()));
    if (options.json)
        print_json("info", document);
    else
        print_screen(document);
    return kOk;
}

}  // namespace

void add_info(CLI::App& app, int* status) {
    auto options = std::make_shared<Options>();
    CLI::App* command = app.add_subcommand("info", "device, capabilities, versions and limits");
    add_device_option(command, &options->device);
    command->add_flag("-L,--list", options->list, "only list the devices");
    command->add_flag("--json", options->json, "as JSON");
    command->callback([options, status] { *status = run(*options); });
}

}  // namespace enpu::tools
