// SPDX-License-Identifier: MIT
#include "address_map.h"

#include <algorithm>
#include <mutex>

namespace enpu::rt {

bool AddressMap::insert(const Range& range) {
    std::unique_lock lock(mutex_);
    const auto after = std::upper_bound(
        ranges_.begin(), ranges_.end(), range.begin,
        [](uint64_t address, const Range& other) { return address < other.begin; });
    if (after != ranges_.end() && after->begin - range.begin < range.bytes) return false;
    if (after != ranges_.begin()) {
        const Range& before = *(after - 1);
        if (range.begin - before.begin < before.bytes) return false;
    }
    ranges_.insert(after, range);
    return true;
}

Range AddressMap::remove(uint64_t begin) {
    std::unique_lock lock(mutex_);
    const Range* found = search(begin);
    if (!found || found->begin != begin) return {};
    const Range result = *found;
    ranges_.erase(ranges_.begin() + (found - ranges_.data()));
    return result;
}

Range AddressMap::find(uint64_t address) const {
    std::shared_lock lock(mutex_);
    const Range* found = search(address);
    return found ? *found : Range{};
}

const Range* AddressMap::search(uint64_t address) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address,
                         [](uint64_t value, const Range& other) { return value < other.begin; });
    if (after == ranges_.begin()) return nullptr;
    const Range& range = *(after - 1);
    return address - range.begin < range.bytes ? &range : nullptr;
}

}  // namespace enpu::rt
