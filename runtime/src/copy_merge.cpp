// SPDX-License-Identifier: MIT
#include "copy_merge.h"

namespace enpu::rt {
namespace {

bool continues(const enpu_hal_place& before, uint64_t bytes, const enpu_hal_place& place) {
    return before.buffer == place.buffer && before.offset + bytes == place.offset;
}

}  // namespace

bool CopyList::add(const enpu_hal_place& dst, const enpu_hal_place& src, uint64_t bytes) {
    if (count_ > 0) {
        enpu_hal_copy& last = commands_[count_ - 1].u.copy;
        // Not inside one buffer: there the joined copy could overlap itself where the two did not.
        if (dst.buffer != src.buffer && continues(last.dst, last.width, dst) &&
            continues(last.src, last.width, src)) {
            last.width += bytes;
            last.dst_pitch = last.src_pitch = last.width;
            ++copies_;
            return true;
        }
    }
    if (count_ == kMost) return false;
    enpu_hal_command& command = commands_[count_++];
    command.kind = ENPU_HAL_COMMAND_COPY;
    command.reserved = 0;
    command.u.copy = {dst, src, bytes, 1, bytes, bytes};
    ++copies_;
    return true;
}

}  // namespace enpu::rt
