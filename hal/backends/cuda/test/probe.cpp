// SPDX-License-Identifier: MIT
// The cuda kernels, compiled for the host, behind the C function of the operators' Python tests.
#include <cstdio>
#include <cstring>

#include "command.h"
#include "host_kernels.h"
#include "kernels/args.h"
#include "op_table.h"

namespace {

using namespace enpu::hal;

// enpu::ops::Outcome, and what the tests take for "refused" and "unsupported".
enum Answer { kDone = 0, kBadOperand = 3, kRefused = -1, kUnsupported = -2 };

}  // namespace

// Tells the tests that this is not the functional model.
extern "C" __attribute__((visibility("default"))) const int enpu_probe_is_backend = 1;

extern "C" __attribute__((visibility("default"))) int enpu_probe_run(
    const void* packet, size_t bytes, void* const* data, unsigned operands, unsigned, int64_t,
    int64_t* detail, char* message, size_t message_bytes) {
    PacketStorage storage;
    if (bytes > sizeof(storage)) return kRefused;
    std::memcpy(&storage, packet, bytes);
    enpu_hal_status status{};
    int answer = kDone;
    if (check_rules(storage, &status) != ENPU_HAL_OK) {
        answer = kRefused;
    } else {
        for (unsigned i = 0; i < operands; ++i)
            storage.packet().operands[i].addr = reinterpret_cast<uint64_t>(data[i]);
        cuda::Offence offence{};
        cuda::KernelCall call;
        if (cuda::plan_kernel(storage, reinterpret_cast<uint64_t>(&offence), call, &status) !=
            ENPU_HAL_OK) {
            answer = kUnsupported;
        } else {
            cuda::run_on_host(call);
            if (offence.found) answer = kBadOperand;
            detail[0] = offence.found ? offence.operand : -1;
            detail[1] = offence.value;
        }
    }
    std::snprintf(message, message_bytes, "%s", status.message);
    return answer;
}
