// SPDX-License-Identifier: MIT
#include "system.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "enpu_hw.h"

namespace enpu::tools {
namespace fs = std::filesystem;
namespace {

std::optional<uint64_t> parse_number(std::string_view text) {
    int base = 10;
    if (text.substr(0, 2) == "0x") {
        text.remove_prefix(2);
        base = 16;
    }
    uint64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (code != std::errc() || end == text.data()) return std::nullopt;
    return value;
}

std::string link_name(const fs::path& link) {
    std::error_code code;
    const fs::path target = fs::read_symlink(link, code);
    return code ? "" : target.filename().string();
}

// One line "start end flags" a BAR.
std::vector<uint64_t> bar_sizes(const fs::path& folder) {
    std::vector<uint64_t> sizes(6, 0);
    std::istringstream lines(read_text(folder / "resource").value_or(""));
    std::string start, end, flags;
    for (size_t bar = 0; bar < sizes.size() && lines >> start >> end >> flags; ++bar) {
        const uint64_t first = parse_number(start).value_or(0),
                       last = parse_number(end).value_or(0);
        if (first != 0 && last >= first) sizes[bar] = last - first + 1;
    }
    return sizes;
}

std::string first_entry(const fs::path& folder, const std::string& prefix) {
    std::vector<std::string> names;
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(folder, code)) {
        const std::string name = entry.path().filename();
        if (name.rfind(prefix, 0) == 0) names.push_back(name);
    }
    return names.empty() ? "" : *std::min_element(names.begin(), names.end());
}

// "12 ns", "4 KiB", "3": in ns or bytes.
std::optional<uint64_t> with_unit(const std::string& text) {
    const auto value = parse_number(text);
    if (!value) return std::nullopt;
    if (text.find("KiB") != std::string::npos) return *value << 10;
    if (text.find("MiB") != std::string::npos) return *value << 20;
    if (text.find("GiB") != std::string::npos) return *value << 30;
    return value;
}

void take_key(Client& client, const std::string& key, const std::string& text) {
    static const std::string kEngine = "drm-engine-", kCapacity = "drm-engine-capacity-",
                             kTotal = "drm-total-";
    const auto value = with_unit(text);
    if (key == "drm-pdev")
        client.pci = text;
    else if (!value)
        return;
    else if (key == "drm-client-id")
        client.client_id = *value;
    else if (key.rfind(kCapacity, 0) == 0)
        client.capacity[key.substr(kCapacity.size())] = *value;
    else if (key.rfind(kEngine, 0) == 0)
        client.engine_ns[key.substr(kEngine.size())] = *value;
    else if (key.rfind(kTotal, 0) == 0 && key.rfind("drm-total-cycles-", 0) != 0)
        client.memory[key.substr(kTotal.size())] = *value;
}

// Calls with an open folder and each name in it; a folder that cannot be read has none. Thousands of
// files are looked at in this way once a second, so nothing is allocated.
template <typename Call>
void for_each_name(const std::string& folder, Call&& call) {
    DIR* open = opendir(folder.c_str());
    if (open == nullptr) return;
    const std::unique_ptr<DIR, int (*)(DIR*)> closes(open, closedir);
    while (const dirent* entry = readdir(open)) call(dirfd(open), entry->d_name);
}

}  // namespace

std::optional<std::string> read_bytes(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return std::nullopt;
    std::ostringstream out;
    out << in.rdbuf();
    if (in.bad()) return std::nullopt;
    return out.str();
}

std::optional<std::string> read_text(const fs::path& file) {
    auto read = read_bytes(file);
    if (!read) return std::nullopt;
    std::string& text = *read;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return read;
}

std::optional<uint64_t> read_number(const fs::path& file) {
    const auto text = read_text(file);
    return text ? parse_number(*text) : std::nullopt;
}

std::optional<Client> parse_fdinfo(const std::string& text) {
    Client client;
    bool ours = false;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const size_t value = line.find_first_not_of(" \t", colon + 1);
        if (value == std::string::npos) continue;
        const std::string key = line.substr(0, colon);
        if (key == "drm-driver") ours = line.substr(value) == "enpu";
        take_key(client, key, line.substr(value));
    }
    if (!ours) return std::nullopt;
    return client;
}

std::vector<PciDevice> System::npus() const {
    std::vector<PciDevice> found;
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(path("/sys/bus/pci/devices"), code)) {
        const fs::path& folder = entry.path();
        if (read_number(folder / "vendor") != ENPU_PCI_VENDOR ||
            read_number(folder / "device") != ENPU_PCI_DEVICE)
            continue;
        found.push_back({folder.filename(), folder, link_name(folder / "driver"),
                         first_entry(folder / "accel", "accel"), link_name(folder / "iommu_group"),
                         bar_sizes(folder)});
    }
    std::sort(found.begin(), found.end(),
              [](const PciDevice& a, const PciDevice& b) { return a.address < b.address; });
    return found;
}

bool System::module_loaded() const {
    return fs::exists(path("/sys/module/enpu"));
}

fs::path System::hwmon(const PciDevice& device) const {
    const std::string name = first_entry(device.folder / "hwmon", "hwmon");
    return name.empty() ? fs::path() : device.folder / "hwmon" / name;
}

std::vector<Client> System::clients(const std::string& pci) const {
    std::vector<Client> found;
    std::set<uint64_t> seen;
    const std::string root = path("/proc");
    for_each_name(root, [&](int, const char* process) {
        const auto pid = parse_number(process);
        if (!pid || std::strspn(process, "0123456789") != std::strlen(process)) return;
        const std::string folder = root + "/" + process;
        for_each_name(folder + "/fd", [&](int fds, const char* fd) {
            char target[64];  // a longer one is no node of ours
            const ssize_t length = readlinkat(fds, fd, target, sizeof(target));
            if (length <= 0 ||
                std::string_view(target, static_cast<size_t>(length)).find("/accel") ==
                    std::string_view::npos)
                return;
            const auto text = read_text(folder + "/fdinfo/" + fd);
            auto client = text ? parse_fdinfo(*text) : std::nullopt;
            if (!client || client->pci != pci || !seen.insert(client->client_id).second) return;
            client->pid = static_cast<int>(*pid);
            client->command = read_text(folder + "/comm").value_or("?");
            found.push_back(std::move(*client));
        });
    });
    return found;
}

}  // namespace enpu::tools
