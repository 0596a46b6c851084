// SPDX-License-Identifier: MIT
#include "irq.h"

#include <algorithm>

namespace enpu::model {
namespace {

constexpr uint64_t kNsPerUs = 1000;
constexpr uint64_t kDefaultStorm = 1000;
constexpr uint64_t kMaxStorm = 100000;

}  // namespace

// A message a time, also while the vector is pending: one that gets lost must not silence the
// vector.
void Irq::send(uint32_t vector) {
    if (!(state_.enable & (1u << vector))) return;
    uint64_t count = 1;
    if (faults_.armed()) {
        uint64_t argument = 0;
        if (faults_.fire(ENPU_FAULT_KIND_IRQ_LOST, vector)) return;
        if (faults_.fire(ENPU_FAULT_KIND_IRQ_REPEATED, vector)) count = 2;
        if (faults_.fire(ENPU_FAULT_KIND_IRQ_STORM, vector, &argument))
            count = std::min(argument ? argument : kDefaultStorm, kMaxStorm);
    }
    state_.messages[vector] += static_cast<uint32_t>(count);
    state_.raised += count;
}

void Irq::assert_vector(uint32_t vector) {
    state_.pending |= 1u << vector;
    send(vector);
}

void Irq::spurious(uint32_t vector) {
    if (!(state_.enable & (1u << vector))) return;
    ++state_.messages[vector];
    ++state_.raised;
}

bool Irq::due(uint32_t vector, uint64_t now) const {
    const uint64_t count = ENPU_FIELD_GET(ENPU_IRQ_COALESCE_COUNT, state_.coalesce);
    const uint64_t usec = ENPU_FIELD_GET(ENPU_IRQ_COALESCE_USEC, state_.coalesce);
    if (count == 0 && usec == 0) return true;
    if (count != 0 && state_.waiting[vector] >= count) return true;
    return usec != 0 && now - state_.first_ns[vector] >= usec * kNsPerUs;
}

void Irq::release(uint32_t vector) {
    state_.waiting[vector] = 0;
    assert_vector(vector);
}

void Irq::completion(uint32_t vector, uint64_t now) {
    if (state_.waiting[vector]++ == 0) state_.first_ns[vector] = now;
    if (due(vector, now)) release(vector);
}

void Irq::write_enable(uint32_t mask) {
    const uint32_t risen = mask & ~state_.enable;
    state_.enable = mask;
    for (uint32_t v = 0; v < ENPU_MAX_VECTORS; ++v)
        if (risen & state_.pending & (1u << v)) send(v);
}

void Irq::write_coalesce(uint32_t value, uint64_t now) {
    state_.coalesce = value;
    expire(now);
}

uint64_t Irq::next_deadline() const {
    const uint64_t usec = ENPU_FIELD_GET(ENPU_IRQ_COALESCE_USEC, state_.coalesce);
    uint64_t deadline = kNever;
    if (usec == 0) return deadline;
    for (uint32_t v = 0; v < ENPU_MAX_VECTORS; ++v)
        if (state_.waiting[v] != 0)
            deadline = std::min(deadline, state_.first_ns[v] + usec * kNsPerUs);
    return deadline;
}

void Irq::expire(uint64_t now) {
    for (uint32_t v = 0; v < ENPU_MAX_VECTORS; ++v)
        if (state_.waiting[v] != 0 && due(v, now)) release(v);
}

bool Irq::take_messages(Messages& messages) {
    if (!has_messages()) return false;
    for (uint32_t v = 0; v < ENPU_MAX_VECTORS; ++v) {
        messages[v] = std::min(state_.messages[v], kBurst);
        state_.messages[v] -= messages[v];
    }
    return true;
}

bool Irq::has_messages() const {
    return std::any_of(state_.messages.begin(), state_.messages.end(),
                       [](uint32_t n) { return n != 0; });
}

void Irq::reset() {
    const uint64_t raised = state_.raised;
    state_ = {};
    state_.raised = raised;
}

}  // namespace enpu::model
