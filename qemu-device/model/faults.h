// SPDX-License-Identifier: MIT
// Faults that were armed on purpose. An event of the device asks whether a fault is due; the answer
// depends on the number of events alone, so a test sees the same each time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "enpu_hw.h"
#include "host.h"

namespace enpu::model {

constexpr uint32_t kAnyTarget = 0xffffffff;
constexpr uint32_t kForever = 0xffffffff;
constexpr unsigned kFaultKinds = 32;  // FAULT_FIRED has that many words

struct ArmedFault {
    uint32_t kind = ENPU_FAULT_KIND_NONE;
    uint32_t target = kAnyTarget;
    uint32_t after = 0;
    uint32_t times = 0;
    uint64_t argument = 0;
};

// Has a lock of its own, taken last: events happen with and without the device's lock.
class Faults {
  public:
    static constexpr unsigned kMaxArmed = 16;

    explicit Faults(const Host& host) : host_(host) {}

    // Cheap question before fire().
    bool armed() const { return count_.load(std::memory_order_relaxed) != 0; }
    // An event of this kind happens at the target. True: the fault fires; its argument is given.
    bool fire(enpu_fault_kind kind, uint32_t target, uint64_t* argument = nullptr);

    // False when the kind is unknown or no more can be armed.
    bool arm(const ArmedFault& fault);
    void clear();

    uint32_t fired(unsigned kind) const;
    uint64_t last_ns() const;

    struct State {
        std::array<ArmedFault, kMaxArmed> armed{};
        uint32_t count = 0;
        std::array<uint32_t, kFaultKinds> fired{};
        uint64_t last_ns = 0;
    };
    State state() const;
    void set_state(const State& state);

  private:
    const Host& host_;
    mutable std::mutex mutex_;
    std::atomic<uint32_t> count_{0};
    State state_;
};

}  // namespace enpu::model
