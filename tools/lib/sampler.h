// SPDX-License-Identifier: MIT
// What a device and its clients do, from sysfs, hwmon, fdinfo and (for root) debugfs. A sample opens
// no device, wakes none, and keeps none awake.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "system.h"

namespace enpu::tools {

struct Sample {
    uint64_t monotonic_ns = 0;
    uint64_t busy_ns = 0;  // all engines added up, since the driver was bound
    std::optional<uint64_t> memory_total, memory_used;
    std::vector<std::pair<std::string, uint64_t>> events;  // counters of the driver
    std::optional<double> celsius, watt, megahertz;        // emulated sensors
    std::optional<uint64_t> queued;  // jobs in hardware queues, not done; needs root
    std::vector<Client> clients;
};

// What engines there are; read once, by opening the node, since it never changes.
struct Engines {
    uint32_t compute = 0, copy = 0;
    uint32_t all() const { return compute + copy; }
};

class Sampler {
  public:
    Sampler(const System& system, PciDevice device);
    const PciDevice& device() const { return device_; }
    const Engines& engines() const { return engines_; }
    Sample take() const;

  private:
    const System& system_;
    PciDevice device_;
    Engines engines_;
};

// Shares of the time between two samples.
struct ClientUse {
    const Client* client = nullptr;
    double compute_percent = 0, copy_percent = 0;  // of all engines of the kind
};
struct Use {
    double seconds = 0;
    double percent = 0;  // of all engines
    std::vector<ClientUse> clients;
};
Use use_between(const Sample& before, const Sample& after, const Engines& engines);

nlohmann::ordered_json sample_json(const Sampler& sampler, const Sample& sample, const Use& use);

}  // namespace enpu::tools
