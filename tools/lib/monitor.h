// SPDX-License-Identifier: MIT
// What `enpu smi` and `enpu top` share: samples of all devices in turn, as text.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sampler.h"

namespace enpu::tools {

// Sleeps; false when the user asked to end (SIGINT, SIGTERM).
bool pause_ms(unsigned milliseconds);
// Lets SIGINT and SIGTERM end pause_ms instead of the process.
void catch_interrupts();

class Monitor {
  public:
    // `root` as of System; `node` "" for all devices, else a name such as /dev/accel/accel0. Throws
    // Failure when there is none.
    Monitor(const std::string& root, const std::string& node);

    struct Reading {
        const Sampler* sampler = nullptr;
        Sample sample;
        Use use;                      // since the reading before
        std::vector<double> history;  // percent, oldest first
    };
    // The first call takes the samples that the second one compares with, and has no use.
    const std::vector<Reading>& read();
    // Past percents of a client, compute and copy added up.
    std::vector<double> client_history(uint64_t client_id) const;

  private:
    static constexpr size_t kHistory = 40;

    std::unique_ptr<System> system_;
    std::vector<std::unique_ptr<Sampler>> samplers_;
    std::vector<Reading> readings_;
    std::map<uint64_t, std::deque<double>> clients_;
};

// One device's screen.
std::string reading_text(const Monitor& monitor, const Monitor::Reading& reading);

}  // namespace enpu::tools
