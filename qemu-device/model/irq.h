// SPDX-License-Identifier: MIT
// Interrupt state: pending and enabled vectors, coalescing. Sends nothing itself: messages are
// collected and sent by whoever holds no lock.
#pragma once

#include <array>
#include <cstdint>

#include "enpu_hw.h"
#include "faults.h"

namespace enpu::model {

// Under the device's lock.
class Irq {
  public:
    explicit Irq(Faults& faults) : faults_(faults) {}

    // Asserts a vector now.
    void assert_vector(uint32_t vector);
    // A completion for the vector at device time `now`: asserted at once or later, as coalescing
    // says.
    void completion(uint32_t vector, uint64_t now);
    // A message without a reason (fault IRQ_SPURIOUS).
    void spurious(uint32_t vector);

    void write_enable(uint32_t mask);
    void clear_pending(uint32_t mask) { state_.pending &= ~mask; }
    void write_coalesce(uint32_t value, uint64_t now);

    // When expire() has something to do; kNever without coalesced completions.
    uint64_t next_deadline() const;
    void expire(uint64_t now);

    // Messages to send since the last call, by vector, at most kBurst of each: what is left comes
    // with the next call. False: none.
    static constexpr uint32_t kBurst = 1000;
    using Messages = std::array<uint32_t, ENPU_MAX_VECTORS>;
    bool take_messages(Messages& messages);
    bool has_messages() const;

    // All but the power-on counter.
    void reset();

    struct State {
        uint32_t enable = 0, pending = 0, coalesce = 0;
        uint64_t raised = 0;
        std::array<uint32_t, ENPU_MAX_VECTORS> waiting{};   // completions held back
        std::array<uint64_t, ENPU_MAX_VECTORS> first_ns{};  // time of the first of them
        Messages messages{};
    };
    const State& state() const { return state_; }
    void set_state(const State& state) { state_ = state; }

  private:
    void send(uint32_t vector);
    bool due(uint32_t vector, uint64_t now) const;
    void release(uint32_t vector);

    Faults& faults_;
    State state_;
};

}  // namespace enpu::model
