// SPDX-License-Identifier: MIT
// What clients do while faults are injected: each round runs jobs and says whether the result is
// right. All of them go through libenpu, as programs do.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace enpu::faults {

// Hung jobs are given up after this long without progress.
constexpr uint32_t kTimeoutMs = 500;
constexpr uint64_t kRoundLimitNs = 25'000'000'000;

// Jobs of this process: given to the device, and come to an end that was told. Made by the process
// that watches, in memory that both share.
struct Tally {
    std::atomic<uint64_t> submitted, settled;
};
Tally*& tally();

class Work {
  public:
    virtual ~Work() = default;
    // One piece of work with other data each time; false when its result is wrong. Throws
    // enpu::Error when a job failed or the device is away.
    virtual bool round(uint64_t number) = 0;
};

// "copy", "model" or "share". Opens the device anew. `client` keeps the data of clients apart.
std::unique_ptr<Work> make_work(const std::string& name, unsigned client);

// The model's right results, for `kModelInputs` inputs: made before any fault is armed, by the
// process that starts the clients, which find them here.
constexpr unsigned kModelInputs = 4, kModelOutputs = 10;
using Golden = std::vector<std::vector<float>>;
Golden& golden();
void make_golden();

}  // namespace enpu::faults
