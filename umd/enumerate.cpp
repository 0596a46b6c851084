// SPDX-License-Identifier: MIT
// Finds devices: the class folder of the kernel, where no device has to be opened or woken up.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

using namespace enpu;

namespace {

constexpr const char* kClass = "/sys/class/accel";
constexpr std::string_view kPrefix = "accel";

struct Node {
    unsigned number;
    std::string address;
};

std::vector<Node> find_nodes() {
    std::vector<Node> nodes;
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(kClass, code)) {
        const std::string name = entry.path().filename();
        unsigned number = 0;
        if (name.rfind(kPrefix, 0) != 0) continue;
        const auto [end, parsed] =
            std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
        if (parsed != std::errc() || end != name.data() + name.size()) continue;
        const auto driver = std::filesystem::read_symlink(entry.path() / "device/driver", code);
        if (code || driver.filename() != "enpu") continue;
        const auto device = std::filesystem::read_symlink(entry.path() / "device", code);
        nodes.push_back({number, code ? std::string("?") : device.filename().string()});
    }
    std::sort(nodes.begin(), nodes.end(),
              [](const Node& a, const Node& b) { return a.number < b.number; });
    return nodes;
}

}  // namespace

int enpu_enumerate(enpu_device_entry* entries, size_t capacity, enpu_error* error) {
    if (entries == nullptr && capacity != 0)
        return fail(error, -EINVAL, "enpu_enumerate: entries is NULL");
    return guard(error, [&] {
        const std::vector<Node> nodes = find_nodes();
        for (size_t i = 0; i < std::min(nodes.size(), capacity); ++i) {
            entries[i] = {};
            std::snprintf(entries[i].spec, sizeof(entries[i].spec), "/dev/accel/accel%u",
                          nodes[i].number);
            std::snprintf(entries[i].name, sizeof(entries[i].name), "enpu %s",
                          nodes[i].address.c_str());
        }
        if (nodes.size() < capacity) {
            entries[nodes.size()] = {};
            std::snprintf(entries[nodes.size()].spec, sizeof(entries->spec), "sim");
            std::snprintf(entries[nodes.size()].name, sizeof(entries->name),
                          "enpu simulator in this process");
        }
        return static_cast<int>(nodes.size()) + 1;
    });
}
