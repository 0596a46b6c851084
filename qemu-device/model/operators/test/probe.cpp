// SPDX-License-Identifier: MIT
// The operators behind one C function, for the Python tests: checks a packet by the rules and runs
// it on host memory.
#include <array>
#include <cstdio>
#include <cstring>

#include "operator.h"
#include "rules.h"

namespace {

class Runner : public enpu::ops::Progress {
  public:
    Runner(unsigned threads, int64_t tiles) : threads_(threads), tiles_(tiles) {}
    bool proceed() override { return tiles_ < 0 || tiles_-- > 0; }
    void detail(unsigned operand, int64_t value) override {
        operand_ = operand;
        value_ = value;
    }
    unsigned threads() const override { return threads_; }
    void report(int64_t* detail) const {
        detail[0] = operand_;
        detail[1] = value_;
    }

  private:
    unsigned threads_;
    int64_t tiles_;
    int64_t operand_ = -1;
    int64_t value_ = 0;
};

}  // namespace

extern "C" {

// Runs the packet; data[i] is the element with all indices 0 of operand i, null for one that is
// left out. `tiles` is how often proceed() says yes (-1: always). Gives the enpu::ops::Outcome,
// with operand and value in detail[2], or -1 with a sentence in message when the rules refuse.
__attribute__((visibility("default"))) int enpu_probe_run(const void* packet, size_t bytes,
                                                          void* const* data, unsigned operands,
                                                          unsigned threads, int64_t tiles,
                                                          int64_t* detail, char* message,
                                                          size_t message_bytes) {
    if (const auto violation = enpu::rules::check_packet(packet, bytes, ENPU_ENGINE_KIND_COMPUTE)) {
        const std::string text = enpu::rules::describe(packet, bytes, violation);
        std::snprintf(message, message_bytes, "%s", text.c_str());
        return -1;
    }
    const auto& operation = *static_cast<const enpu_operator_packet*>(packet);
    std::array<enpu::ops::Operand, ENPU_MAX_OPERANDS> list;
    if (operands > list.size()) return -1;
    for (unsigned i = 0; i < operands; ++i) {
        list[i].desc = &operation.operands[i];
        list[i].data = static_cast<std::byte*>(data[i]);
    }
    Runner runner(threads, tiles);
    const auto outcome = enpu::ops::run(operation, {list.data(), operands}, runner);
    runner.report(detail);
    return static_cast<int>(outcome);
}

}  // extern "C"
