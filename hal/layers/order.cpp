// SPDX-License-Identifier: MIT
#include "order.h"

#include <algorithm>

namespace enpu::hal {
namespace {

std::string describe(uint64_t op_id, const Order::Touch& touch) {
    return "operation " + std::to_string(op_id) + (touch.writes ? " writes" : " reads") +
           " bytes " + std::to_string(touch.begin) + " to " + std::to_string(touch.end);
}

bool overlap(const Order::Touch& a, const Order::Touch& b) {
    return a.buffer == b.buffer && a.begin < b.end && b.begin < a.end;
}

}  // namespace

void Order::join(Clock& into, const Clock& other) {
    for (const auto& [queue, number] : other) {
        uint64_t& own = into[queue];
        own = std::max(own, number);
    }
}

bool Order::before(const Work& work, const Clock& clock) const {
    const auto found = clock.find(work.queue);
    return found != clock.end() && found->second >= work.number;
}

const Order::Clock* Order::clock_of(const enpu_hal_point& point) const {
    const auto found = fences_.find(point.fence);
    if (found == fences_.end()) return nullptr;
    for (const Signal& signal : found->second)
        if (signal.value >= point.value) return &signal.clock;
    return nullptr;
}

std::string Order::submitted(enpu_hal_queue* queue, uint64_t op_id, std::vector<Touch> touches,
                             const enpu_hal_point* waits, uint32_t wait_count,
                             const enpu_hal_point* signals, uint32_t signal_count) {
    Clock& clock = queues_[queue];
    join(clock, host_);
    bool all_known = true;
    for (uint32_t i = 0; i < wait_count; ++i)
        if (const Clock* known = clock_of(waits[i]))
            join(clock, *known);
        else
            all_known = false;  // what it will order is not known yet
    std::string race;
    for (const Work& work : work_) {
        if (!all_known || work.queue == queue || before(work, clock)) continue;
        for (const Touch& a : work.touches)
            for (const Touch& b : touches)
                if (overlap(a, b) && (a.writes || b.writes) && race.empty())
                    race = describe(work.op_id, a) + " of a buffer, " + describe(op_id, b) +
                           " of it on another queue, and nothing orders the two: let the second "
                           "wait for a point that the first signals";
    }
    const uint64_t number = ++clock[queue];
    work_.push_back({queue, number, op_id, std::move(touches), {signals, signals + signal_count}});
    for (uint32_t i = 0; i < signal_count; ++i) {
        auto& known = fences_[signals[i].fence];
        known.push_back({signals[i].value, clock});
        if (known.size() > kMostSignals) known.pop_front();
    }
    prune();
    return race;
}

void Order::seen(const enpu_hal_point& point) {
    if (const Clock* known = clock_of(point)) join(host_, *known);
    prune();
}

void Order::prune() {
    while (!work_.empty() && (work_.size() > kMostWork || before(work_.front(), host_)))
        work_.pop_front();
}

std::string Order::in_flight(enpu_hal_buffer* buffer, uint64_t begin, uint64_t end,
                             bool writes_only, const enpu_hal_plugin& below) {
    const Touch asked{buffer, begin, end, false};
    for (const Work& work : work_) {
        if (before(work, host_)) continue;
        for (const Touch& touch : work.touches) {
            if (!overlap(touch, asked) || (writes_only && !touch.writes)) continue;
            // The host need not have waited when the work has ended by itself.
            bool ended = false;
            for (const enpu_hal_point& point : work.signals) {
                uint64_t value = 0;
                ended |=
                    below.fence->query(point.fence, &value, nullptr) != 0 || value >= point.value;
            }
            if (!ended) return describe(work.op_id, touch);
        }
    }
    return {};
}

void Order::forget_buffer(enpu_hal_buffer* buffer) {
    for (Work& work : work_)
        std::erase_if(work.touches, [buffer](const Touch& t) { return t.buffer == buffer; });
}

void Order::forget_queue(enpu_hal_queue* queue) {
    std::erase_if(work_, [queue](const Work& work) { return work.queue == queue; });
    queues_.erase(queue);
    host_.erase(queue);
    for (auto& [other, clock] : queues_) clock.erase(queue);
    for (auto& [fence, known] : fences_)
        for (Signal& signal : known) signal.clock.erase(queue);
}

void Order::forget_fence(enpu_hal_fence* fence) {
    fences_.erase(fence);
    for (Work& work : work_)
        std::erase_if(work.signals, [fence](const enpu_hal_point& p) { return p.fence == fence; });
}

}  // namespace enpu::hal
