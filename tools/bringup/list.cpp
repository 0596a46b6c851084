// SPDX-License-Identifier: MIT
#include "list.h"

namespace enpu::bringup {

const std::vector<Stage>& stages() {
    static const std::vector<Stage> kStages = {
        kIdentity, kRegisters, kReset,   kInterrupts, kQueue,   kRing,   kCopy,
        kMmu,      kLocal,     kPackets, kFaults,     kEngines, kSpaces, kContexts,
        kTimeouts, kResets,    kSuspend, kOperators,  kGraph,   kModel};
    return kStages;
}

}  // namespace enpu::bringup
