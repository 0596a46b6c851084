// SPDX-License-Identifier: MIT
// A timeline syncobj: points in the order they were added; the value reached is the last point
// before which none is open.
#pragma once

#include <cstdint>
#include <deque>

#include "base/object.h"

namespace enpu::sim {

class Timeline final : public Object {
  public:
    uint64_t reached() const { return reached_; }
    uint64_t last() const { return points_.empty() ? reached_ : points_.back().value; }

    // `value` is larger than last().
    void add(uint64_t value) { points_.push_back({value, false}); }
    // Closes a point that was added. True when reached() has grown.
    bool finish(uint64_t value) {
        for (Point& point : points_) {
            if (point.value != value) continue;
            point.done = true;
            break;
        }
        const uint64_t before = reached_;
        while (!points_.empty() && points_.front().done) {
            reached_ = points_.front().value;
            points_.pop_front();
        }
        return reached_ != before;
    }

  private:
    ~Timeline() override = default;

    struct Point {
        uint64_t value;
        bool done;
    };
    std::deque<Point> points_;
    uint64_t reached_ = 0;
};

}  // namespace enpu::sim
