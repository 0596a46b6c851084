// SPDX-License-Identifier: MIT
// The rules of struct enpu_hal_header: who reads or writes how much of a structure.
#pragma once

#include <algorithm>
#include <cstring>

#include "enpu_hal.h"

namespace enpu::hal {

constexpr enpu_hal_header table_header(size_t size, enpu_hal_type type) {
    return {static_cast<uint32_t>(size), static_cast<uint32_t>(type), nullptr};
}

// Whether it is there, of this type, and at least as large as ABI 1.0 made it.
template <typename T>
bool is_a(const T* value, enpu_hal_type type, size_t least = sizeof(T)) {
    return value && value->header.type == static_cast<uint32_t>(type) &&
           value->header.size >= least;
}

// Writes as much of `from` as the owner of *out knows; its header stays.
template <typename T>
void give(T* out, const T& from) {
    constexpr size_t kHeader = sizeof(enpu_hal_header);
    const size_t end = std::min<size_t>(out->header.size, sizeof(T));
    std::memcpy(reinterpret_cast<char*>(out) + kHeader,
                reinterpret_cast<const char*>(&from) + kHeader, end - kHeader);
}

}  // namespace enpu::hal
