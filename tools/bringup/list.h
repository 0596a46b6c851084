// SPDX-License-Identifier: MIT
// The stages, one a file.
#pragma once

#include "stage.h"

namespace enpu::bringup {

extern const Stage kIdentity, kRegisters, kReset, kInterrupts, kQueue, kRing, kCopy, kMmu, kPackets,
    kFaults, kLocal, kOperators, kEngines, kSpaces, kContexts, kTimeouts, kResets, kSuspend, kGraph,
    kModel;

}  // namespace enpu::bringup
