// SPDX-License-Identifier: MIT
// A device with what every measurement needs: a context, a timeline, words for its own clock, and the
// list of results that goes out as JSON.
#pragma once

#include <chrono>
#include <cstdint>
#include <enpu/enpu.hpp>
#include <functional>
#include <string>
#include <vector>

namespace enpu::bench {

constexpr uint64_t kDeadlineNs = 120'000'000'000;

inline double now_ns() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<double>(std::chrono::nanoseconds(now).count());
}

// What the command line chose.
struct Options {
    std::string device = "sim:cores=1,threads=1";
    std::string what;
    unsigned runs = 9;
    bool quick = false;
    bool peer = true;
    std::string only;  // operators whose names hold it
};

// One line of the result: samples of ours and, where there is a peer, of the peer, taken in turns.
struct Result {
    std::string name, unit;
    double x = 0;  // size, number of contexts, …
    std::vector<double> ours, peer;
    std::string note = {};
};

// A measurement that can be repeated: one sample a call.
struct Case {
    Result result;
    std::function<double()> ours, peer;
};
// Takes `runs` samples of every case, case after case and ours and the peer in turns, after one that does
// not count.
std::vector<Result> measure(std::vector<Case> cases, unsigned runs);
void print(const std::vector<Result>& results);

class Stand {
  public:
    explicit Stand(const std::string& spec);
    const Device& device() const { return device_; }
    const Context& context() const { return context_; }
    uint32_t copy_engine() const { return device_.info().compute_engines; }

    Buffer buffer(uint64_t bytes, uint32_t flags) const {
        return Buffer::create(device_, bytes, flags);
    }
    // A command of `count` times what `build` appends, between two readings of the device's clock.
    Command timed(uint32_t engine_kind, unsigned count,
                  const std::function<void(enpu_builder*)>& build) const;
    // Runs a command to its end; ns from submission to the return of the wait.
    double run(uint32_t engine, const Command& command);
    // ns between the two readings of the timed command that ran last.
    double device_ns() const;

  private:
    Device device_;
    Context context_;
    Timeline timeline_;
    Buffer words_;
    uint64_t point_ = 0;
};

std::vector<Result> bench_copies(const Options& options);
std::vector<Result> bench_operators(const Options& options);
std::vector<Result> bench_cores(const Options& options);
std::vector<Result> bench_fairness(const Options& options);
std::vector<Result> bench_growth(const Options& options);
std::vector<Result> bench_idle(const Options& options);

}  // namespace enpu::bench
