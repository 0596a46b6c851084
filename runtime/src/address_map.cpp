// SPDX-License-Identifier: MIT
#include "address_map.h"

#include <algorithm>
#include <mutex>

namespace enpu::rt {
namespace {

// What a thread found last, by the 2 MiB that the address lies in.
struct Found {
    uint64_t version = 0;  // of the map it was found in
    Range range;
};
constexpr uint64_t kFound = 16;
thread_local Found found_before[kFound];

}  // namespace

uint64_t AddressMap::next_version() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

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
    version_.store(next_version(), std::memory_order_release);
    return true;
}

Range AddressMap::remove(uint64_t begin) {
    std::unique_lock lock(mutex_);
    const Range* found = search(begin);
    if (!found || found->begin != begin) return {};
    const Range result = *found;
    ranges_.erase(ranges_.begin() + (found - ranges_.data()));
    version_.store(next_version(), std::memory_order_release);
    return result;
}

Range AddressMap::find(uint64_t address) const {
    const Found& before = found_before[(address >> 21) % kFound];
    if (before.version == version_.load(std::memory_order_acquire) &&
        address - before.range.begin < before.range.bytes) [[likely]]
        return before.range;
    return find_in_map(address);
}

Range AddressMap::find_in_map(uint64_t address) const {
    std::shared_lock lock(mutex_);
    const Range* found = search(address);
    if (!found) return {};
    found_before[(address >> 21) % kFound] = {version_.load(std::memory_order_relaxed), *found};
    return *found;
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
