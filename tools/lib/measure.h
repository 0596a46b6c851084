// SPDX-License-Identifier: MIT
// Measurements through libenpu that `enpu validate` and `enpu bench` share.
#pragma once

#include <cstdint>
#include <enpu/enpu.hpp>
#include <string>
#include <vector>

namespace enpu::tools {

struct Spread {
    double median = 0, lowest = 0, highest = 0;
    unsigned samples = 0;
};
Spread spread_of(std::vector<double> values);

enum class Place { kHost, kLocal };

class Measure {
  public:
    explicit Measure(const std::string& spec);
    const Device& device() const { return device_; }

    // ns from submit to the return of the wait, one NOP at a time.
    Spread latency(unsigned jobs);
    // Jobs of one NOP each, a second, `depth` in flight.
    double throughput(unsigned jobs, unsigned depth);
    // ns of one job of `packets` NOPs, submit to wait.
    Spread chain_latency(unsigned packets, unsigned jobs);
    // Bytes a second of a copy engine. The job waits on the device until everything is queued, and
    // the device's own clock says when it began and ended, so that the host's time is not in it.
    Spread copy_rate(Place from, Place to, uint64_t bytes, unsigned copies, unsigned samples);
    // Both directions at the same time on two copy engines; their rates added up.
    Spread duplex_rate(uint64_t bytes, unsigned samples);
    // Multiply-accumulates a second of f32 matmul on one core; throws Failure when the result is
    // wrong.
    Spread gemm_rate(uint32_t size, unsigned samples);
    // ns from a completion on the device to the wake-up of the waiter.
    Spread wakeup(unsigned jobs);

  private:
    uint32_t copy_engine(uint32_t index) const {
        return device_.info().compute_engines + index % device_.info().copy_engines;
    }
    int64_t deadline() const;

    Device device_;
    Context context_;
    Timeline timeline_;
    uint64_t point_ = 0;
};

}  // namespace enpu::tools
