// SPDX-License-Identifier: MIT
// Faults that were armed on purpose. An event of the device asks whether a fault is due; the answer
// depends on the events so far and the seed alone, so a test sees the same each time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "enpu_fault.h"
#include "host.h"

namespace enpu::model {

constexpr uint32_t kAnyTarget = ENPU_FAULT_ANY;
constexpr unsigned kFaultKinds = 32;  // FAULT_FIRED has that many words

// Has a lock of its own, taken last: events happen with and without the device's lock.
class Faults {
  public:
    static constexpr unsigned kMaxArmed = 16;

    explicit Faults(const Host& host) : host_(host) {}

    // Cheap question before fire().
    bool armed() const { return count_.load(std::memory_order_relaxed) != 0; }
    // An event of this kind happens at the target. True: the fault fires; its argument is given.
    bool fire(enpu_fault_kind kind, uint32_t target, uint64_t* argument = nullptr);

    // False when no more can be armed.
    bool arm(const enpu_fault& fault);
    void clear();

    uint32_t fired(unsigned kind) const;
    uint64_t fired_ns(unsigned kind) const;
    uint64_t last_ns() const;
    // Something that can be armed.
    static bool valid(const enpu_fault& fault) {
        return fault.kind != ENPU_FAULT_KIND_NONE && fault.kind < ENPU_FAULT_KINDS &&
               fault.times != 0;
    }

    struct State {
        // In use, `seed` is where the random numbers of the fault stand.
        std::array<enpu_fault, kMaxArmed> armed{};
        uint32_t count = 0;
        std::array<uint32_t, kFaultKinds> fired{};
        std::array<uint64_t, kFaultKinds> fired_ns{};
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
