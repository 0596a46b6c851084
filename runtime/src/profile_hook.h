// SPDX-License-Identifier: MIT
// What the hot paths see of profiling: one relaxed load and a branch.
#pragma once

#include <atomic>
#include <cstdint>

#include "rt.h"

namespace enpu::rt::profile {

extern std::atomic<uint32_t> active;  // enum rt_profile_flags; 0: off

inline bool on(uint32_t what) {
    return (active.load(std::memory_order_relaxed) & what) != 0;
}

void note_api(const char* name, uint64_t start_ns);

// A call of a public function.
class ApiSpan {
  public:
    explicit ApiSpan(const char* name) {
        if (on(RT_PROFILE_API)) [[unlikely]] {
            name_ = name;
            start_ns_ = rt_now_ns();
        }
    }
    ~ApiSpan() {
        if (name_) [[unlikely]]
            note_api(name_, start_ns_);
    }
    ApiSpan(const ApiSpan&) = delete;

  private:
    const char* name_ = nullptr;
    uint64_t start_ns_ = 0;
};

}  // namespace enpu::rt::profile
