// SPDX-License-Identifier: MIT
#include "faults.h"

namespace enpu::model {
namespace {

// splitmix64: one step of 64 bits a draw, good from any seed.
uint64_t draw(uint64_t& state) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

}  // namespace

bool Faults::fire(enpu_fault_kind kind, uint32_t target, uint64_t* argument) {
    if (!armed()) return false;
    std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < state_.count; ++i) {
        enpu_fault& fault = state_.armed[i];
        if (fault.kind != static_cast<uint32_t>(kind)) continue;
        if (fault.target != kAnyTarget && fault.target != target) continue;
        if (fault.after > 0) {
            --fault.after;
            continue;
        }
        if (fault.every > 1 && draw(fault.seed) % fault.every != 0) continue;
        if (argument) *argument = fault.argument;
        ++state_.fired[kind];
        state_.last_ns = state_.fired_ns[kind] = host_.now();
        if (fault.times != ENPU_FAULT_ALWAYS && --fault.times == 0) {
            fault = state_.armed[--state_.count];
            count_.store(state_.count, std::memory_order_relaxed);
        }
        host_.trace(ENPU_MODEL_EVENT_FAULT_FIRED, target, kNone, kind, 0);
        return true;
    }
    return false;
}

bool Faults::arm(const enpu_fault& fault) {
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

uint64_t Faults::fired_ns(unsigned kind) const {
    std::lock_guard lock(mutex_);
    return state_.fired_ns[kind];
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
