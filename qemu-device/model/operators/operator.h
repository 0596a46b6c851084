// SPDX-License-Identifier: MIT
// The interface between the command processor and the operators. An operator works on host pointers
// that the processor resolved through the MMU, tile by tile, and knows nothing of queues, page
// tables or guests. The CPU backend of the HAL runs the same operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "enpu_hw.h"

namespace enpu::ops {

// One operand: its descriptor, checked by rules::check_packet, and a host pointer to the element
// with all indices 0 (strides may reach to both sides of it). `data` is null for an operand that is
// left out.
struct Operand {
    const enpu_tensor* desc = nullptr;
    std::byte* data = nullptr;

    explicit operator bool() const { return data != nullptr; }
};

enum class Outcome {
    kDone,         // everything written
    kStopped,      // proceed() said no: outputs may be half written
    kOutOfMemory,  // scratch could not be had
    kBadOperand,   // a value in memory broke a rule (an index out of range); see Progress::detail
};

// What an operator needs from whoever runs it.
class Progress {
  public:
    virtual ~Progress() = default;
    // Called between tiles of about 10 ms at most. False: return kStopped at once and touch no
    // operand again.
    virtual bool proceed() = 0;
    // Which operand and which value made the outcome kBadOperand.
    virtual void detail(unsigned operand, int64_t value) = 0;
    // Host threads this operator may use, the caller's included.
    virtual unsigned threads() const = 0;
};

// Runs an operator packet whose header, parameters and descriptors passed rules::check_packet. The
// operands are in the order of the packet. Blocks until it is done or stopped. May be called from
// several threads for different packets.
Outcome run(const enpu_operator_packet& packet, std::span<const Operand> operands,
            Progress& progress);

}  // namespace enpu::ops
