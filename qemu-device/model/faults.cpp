// SPDX-License-Identifier: MIT
#include "faults.h"

namespace enpu::model {

bool Faults::fire(enpu_fault_kind kind, uint32_t target, uint64_t* argument) {
    if (!armed()) return false;
    std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < state_.count; ++i) {
        ArmedFault& fault = state_.armed[i];
        if (fault.kind != static_cast<uint32_t>(kind)) continue;
        if (fault.target != kAnyTarget && fault.target != target) continue;
        if (fault.after > 0) {
            --fault.after;
            continue;
        }
        if (argument) *argument = fault.argument;
        ++state_.fired[kind];
        state_.last_ns = host_.now();
        if (fault.times != kForever && --fault.times == 0) {
            fault = state_.armed[--state_.count];
            count_.store(state_.count, std::memory_order_relaxed);
        }
        host_.trace(ENPU_MODEL_EVENT_FAULT_FIRED, target, kNone, kind, 0);
        return true;
    }
    return false;
}

bool Faults::arm(const ArmedFault& fault) {
    if (fault.kind == ENPU_FAULT_KIND_NONE || fault.kind > ENPU_FAULT_KIND_REMOVED ||
        fault.times == 0)
        return false;
    std::lock_guard lock(mutex_);
    if (state_.count == kMaxArmed) return false;
    state_.armed[state_.count++] = fault;
    count_.store(state_.count, std::memory_order_relaxed);
    return true;
}

void Faults::clear() {
    std::lock_guard lock(mutex_);
    state_.count = 0;
    count_.store(0, std::memory_order_relaxed);
}

uint32_t Faults::fired(unsigned kind) const {
    std::lock_guard lock(mutex_);
    return state_.fired[kind];
}

uint64_t Faults::last_ns() const {
    std::lock_guard lock(mutex_);
    return state_.last_ns;
}

Faults::State Faults::state() const {
    std::lock_guard lock(mutex_);
    return state_;
}

void Faults::set_state(const State& state) {
    std::lock_guard lock(mutex_);
    state_ = state;
    count_.store(state_.count, std::memory_order_relaxed);
}

}  // namespace enpu::model
