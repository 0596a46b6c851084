// SPDX-License-Identifier: MIT
// Habits that cost time and are right otherwise: seen over many calls, told once each.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "enpu_hal.h"

namespace enpu::hal {

// Each function gives a sentence the first time that the habit is clear, else "".
class Habits {
  public:
    std::string allocated(uint64_t bytes, uint32_t memory);
    void freed(uint64_t bytes, uint32_t memory);
    std::string asked_about(const enpu_hal_dispatch& dispatch);
    std::string graph_made(uint32_t commands);
    std::string submitted(enpu_hal_device* device, uint32_t commands);

    static constexpr uint32_t kRounds = 16;    // of allocation, question or graph
    static constexpr uint32_t kSwitches = 32;  // in a row

  private:
    // Something that is done again and again, with submissions in between.
    struct Repeated {
        uint32_t rounds = 0;
        uint64_t at_submission = 0;
        bool freed = false, told = false;
    };
    bool again(Repeated& what);

    uint64_t submissions_ = 0;
    std::map<std::pair<uint64_t, uint32_t>, Repeated> sizes_;
    std::map<uint64_t, Repeated> questions_;
    std::map<uint32_t, Repeated> graphs_;
    struct Thread {
        enpu_hal_device* device = nullptr;
        uint32_t switches = 0;
        bool told = false;
    };
    std::map<std::thread::id, Thread> threads_;
};

}  // namespace enpu::hal
