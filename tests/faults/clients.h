// SPDX-License-Identifier: MIT
// Client processes and what they tell: right, wrong and failed rounds, and when the first failed.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "work.h"

namespace enpu::faults {

int64_t monotonic_ns();

// In memory that the processes share.
struct Report {
    static constexpr int kErrors = 256;  // by -errno
    std::atomic<uint64_t> right, wrong, failed;
    std::atomic<int64_t> first_failure_ns;
    std::array<std::atomic<uint32_t>, kErrors> errors;
    std::atomic<uint64_t> rounds_left;  // the client ends by itself when it reaches 0
    Tally jobs;
};

class Clients {
  public:
    // One process for each kind of work. At most `rounds` right rounds each.
    Clients(const std::vector<std::string>& works, uint64_t rounds);
    ~Clients();  // kills what is left
    Clients(const Clients&) = delete;
    Clients& operator=(const Clients&) = delete;

    size_t count() const { return children_.size(); }
    const Report& report(size_t i) const { return shared_->reports[i]; }
    uint64_t right() const;
    uint64_t wrong() const;
    uint64_t failed() const;
    uint64_t submitted() const;
    uint64_t settled() const;
    // Rounds that have ended, one way or the other, by client.
    std::vector<uint64_t> ended() const;
    // Clients with a failed round; the time of the first one, 0 if none.
    unsigned victims() const;
    int64_t first_failure_ns() const;
    uint32_t errors(int code) const;  // rounds that failed with this negative errno

    // Every client has done `more` right rounds since `before` (from marks()).
    std::vector<uint64_t> marks() const;
    bool went_on(const std::vector<uint64_t>& before, uint64_t more) const;
    bool wait_went_on(const std::vector<uint64_t>& before, uint64_t more, int limit_ms) const;
    // Asks all to end; false when one had to be killed or ended badly.
    bool finish(int limit_ms);
    bool wait_ended(int limit_ms);

  private:
    static constexpr size_t kMost = 8;
    struct Shared {
        std::atomic<bool> stop;
        std::array<Report, kMost> reports;
    };
    [[noreturn]] static void live(Shared& shared, size_t index, const std::string& work);
    bool reap();
    uint64_t sum(uint64_t (*of)(const Report&)) const;

    Shared* shared_;
    std::vector<pid_t> children_;  // 0: ended
    bool well_ = true;
};

}  // namespace enpu::faults
