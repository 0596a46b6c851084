// SPDX-License-Identifier: MIT
// What the kernel says about NPUs in /sys, /proc and /dev, without opening or waking a device.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace enpu::tools {

struct PciDevice {
    std::string address;  // "0000:01:00.0"
    std::filesystem::path folder;
    std::string driver;  // "" when none is bound
    std::string node;    // "accel0", "" when there is none
    std::string iommu_group;
    std::vector<uint64_t> bar_bytes;  // 6 entries, 0: not there or not assigned
};

// One open file of a device's node, as its fdinfo shows it. A process that has duplicated the file
// appears once.
struct Client {
    int pid = 0;
    std::string command;
    uint64_t client_id = 0;
    std::string pci;                            // drm-pdev
    std::map<std::string, uint64_t> engine_ns;  // drm-engine-NAME
    std::map<std::string, uint64_t> capacity;   // drm-engine-capacity-NAME
    std::map<std::string, uint64_t> memory;     // drm-total-NAME in bytes
};

class System {
  public:
    // `root` stands before /sys, /proc and /dev: tests look at a tree of their own.
    explicit System(std::string root = "") : root_(std::move(root)) {}
    bool real() const { return root_.empty(); }

    std::filesystem::path path(const std::string& absolute) const { return root_ + absolute; }
    // The NPUs on the PCI bus, in order of their addresses.
    std::vector<PciDevice> npus() const;
    bool module_loaded() const;
    // Clients of one device; those of other users are seen only with the right to read their /proc.
    std::vector<Client> clients(const std::string& pci) const;
    // The hwmon folder of a device, empty when it has none.
    std::filesystem::path hwmon(const PciDevice& device) const;

  private:
    std::string root_;
};

// Contents of a file; nothing when it cannot be read.
std::optional<std::string> read_bytes(const std::filesystem::path& file);
// The same without the newline at its end.
std::optional<std::string> read_text(const std::filesystem::path& file);
std::optional<uint64_t> read_number(const std::filesystem::path& file);
// Parses the text of an fdinfo file of driver enpu; nothing when it is of something else.
std::optional<Client> parse_fdinfo(const std::string& text);

}  // namespace enpu::tools
