// SPDX-License-Identifier: MIT
// The checks of copies, fills, timestamps and operands that are the same for every backend whose
// buffers are ranges of addresses.
#pragma once

#include <cstdint>

#include "enpu_hal.h"
#include "packet.h"

namespace enpu::hal {

// A buffer as the checks see it; none given: bytes is 0.
struct Extent {
    uint64_t address = 0;
    uint64_t bytes = 0;
};

// Whether [offset, offset + bytes) lies in the buffer.
bool inside(const Extent& buffer, uint64_t offset, uint64_t bytes);

// The regions lie in their buffers and do not overlap. Gives the addresses of the first bytes.
struct CopyAddresses {
    uint64_t dst, src;
};
uint32_t check_copy(const enpu_hal_copy& copy, const Extent& dst, const Extent& src,
                    CopyAddresses& out, enpu_hal_status* status);
uint32_t check_fill(const enpu_hal_fill& fill, const Extent& dst, uint64_t& address,
                    enpu_hal_status* status);
uint32_t check_timestamp(const enpu_hal_timestamp& timestamp, const Extent& dst, uint64_t& address,
                         enpu_hal_status* status);

// Gives the operands of a translated packet their addresses, after the span of each was found inside
// its buffer (of ENPU_OP_MAX_OPERANDS, by operand) and the packet keeps the hardware's rules.
uint32_t place_operands(PacketStorage& storage, const enpu_hal_dispatch& dispatch,
                        const Extent* buffers, enpu_hal_status* status);

// Translates a dispatch whose operands need no buffers and checks it by the rules, as if they lay far
// from each other: for kernel.supported.
uint32_t check_dispatch(const enpu_hal_dispatch& dispatch, PacketStorage& storage,
                        enpu_hal_status* status);

// The hardware's rules for a packet whose addresses are set, or whose addresses are all 0.
uint32_t check_rules(const PacketStorage& storage, enpu_hal_status* status);

}  // namespace enpu::hal
