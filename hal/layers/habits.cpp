// SPDX-License-Identifier: MIT
#include "habits.h"

#include <algorithm>

#include "op_table.h"

namespace enpu::hal {
namespace {

void mix(uint64_t& hash, uint64_t value) {
    hash = (hash ^ value) * 0x100000001b3u;
}

// Kernel and shapes; places do not count.
uint64_t shape_of(const enpu_hal_dispatch& dispatch) {
    uint64_t hash = 0xcbf29ce484222325u;
    mix(hash, dispatch.op);
    const uint32_t count = std::min(dispatch.operand_count, ENPU_OP_MAX_OPERANDS);
    for (uint32_t i = 0; dispatch.operands && i < count; ++i) {
        const enpu_op_tensor& t = dispatch.operands[i].tensor;
        mix(hash, t.dtype);
        mix(hash, t.rank);
        for (uint32_t k = 0; k < std::min(t.rank, ENPU_OP_MAX_RANK); ++k) {
            mix(hash, uint64_t(t.dims[k]));
            mix(hash, uint64_t(t.strides[k]));
        }
    }
    return hash;
}

}  // namespace

bool Habits::again(Repeated& what) {
    if (what.told) return false;
    if (what.rounds != 0 && submissions_ == what.at_submission) return false;  // still setting up
    what.at_submission = submissions_;
    what.told = ++what.rounds >= kRounds;
    return what.told;
}

std::string Habits::allocated(uint64_t bytes, uint32_t memory) {
    Repeated& size = sizes_[{bytes, memory}];
    if (!size.freed) return {};
    size.freed = false;
    if (!again(size)) return {};
    return "a buffer of " + std::to_string(bytes) + " bytes was allocated and freed " +
           std::to_string(size.rounds) +
           " times with submissions in between: keep it, or take it from a pool (rt_malloc), "
           "because allocation goes to the driver each time";
}

void Habits::freed(uint64_t bytes, uint32_t memory) {
    sizes_[{bytes, memory}].freed = true;
}

std::string Habits::asked_about(const enpu_hal_dispatch& dispatch) {
    if (!again(questions_[shape_of(dispatch)])) return {};
    const OpInfo* info = find_op(dispatch.op);
    return std::string(info ? info->name : "a kernel") + " was asked about with the same shapes " +
           std::to_string(kRounds) +
           " times with submissions in between: ask once, when the program is prepared, because "
           "checking shapes costs more than submitting";
}

std::string Habits::graph_made(uint32_t commands) {
    if (!again(graphs_[commands])) return {};
    return "a graph of " + std::to_string(commands) + " commands was made " +
           std::to_string(kRounds) +
           " times with submissions in between: make it once and launch it, or update it in place";
}

std::string Habits::submitted(enpu_hal_device* device, uint32_t commands) {
    ++submissions_;
    Thread& thread = threads_[std::this_thread::get_id()];
    const bool other = thread.device != nullptr && thread.device != device && commands <= 2;
    thread.switches = other ? thread.switches + 1 : 0;
    thread.device = device;
    if (thread.told || thread.switches < kSwitches) return {};
    thread.told = true;
    return "one thread went to and fro between two devices " + std::to_string(thread.switches) +
           " times with a submission of at most 2 commands each: give each device its work in "
           "larger pieces, or its own thread";
}

}  // namespace enpu::hal
