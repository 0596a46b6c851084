// SPDX-License-Identifier: MIT
// Which submissions are ordered after which, as far as fences, queues and waits of the host say so,
// and which touch the same bytes without that.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "ranges.h"

namespace enpu::hal {

class Order {
  public:
    struct Touch {
        enpu_hal_buffer* buffer;
        uint64_t begin, end;
        bool writes;
    };
    // A submission that the backend took. A sentence when it races with an earlier one, else "".
    std::string submitted(enpu_hal_queue* queue, uint64_t op_id, std::vector<Touch> touches,
                          const enpu_hal_point* waits, uint32_t wait_count,
                          const enpu_hal_point* signals, uint32_t signal_count);
    // The host has seen the point, or signalled it.
    void seen(const enpu_hal_point& point);
    void signalled(const enpu_hal_point& point) {
        fences_[point.fence].push_back({point.value, host_});
    }

    // The submission in flight that touches these bytes (only writes when `writes_only`), described;
    // "" when none. In flight is what the host has not seen the end of.
    std::string in_flight(enpu_hal_buffer* buffer, uint64_t begin, uint64_t end, bool writes_only,
                          const enpu_hal_plugin& below);
    void forget_buffer(enpu_hal_buffer* buffer);
    void forget_queue(enpu_hal_queue* queue);
    void forget_fence(enpu_hal_fence* fence);

  private:
    // How many submissions of each queue come before.
    using Clock = std::map<enpu_hal_queue*, uint64_t>;
    struct Work {
        enpu_hal_queue* queue;
        uint64_t number, op_id;
        std::vector<Touch> touches;
        std::vector<enpu_hal_point> signals;
    };
    struct Signal {
        uint64_t value;
        Clock clock;
    };
    static constexpr size_t kMostWork = 512, kMostSignals = 256;

    static void join(Clock& into, const Clock& other);
    bool before(const Work& work, const Clock& clock) const;
    const Clock* clock_of(const enpu_hal_point& point) const;
    void prune();

    std::map<enpu_hal_queue*, Clock> queues_;
    std::map<enpu_hal_fence*, std::deque<Signal>> fences_;
    Clock host_;
    std::deque<Work> work_;
};

}  // namespace enpu::hal
