// SPDX-License-Identifier: MIT
// What a case left alive on its device, from the device's own counters.
#include <mutex>
#include <string>
#include <utility>

#include "fixture.h"

namespace enpu::hal::cts {
namespace {

std::mutex leaks_mutex;
std::string leaks;

}  // namespace

void note_leaks(const enpu_hal_plugin& hal, enpu_hal_device* device, uint32_t caps) {
    if (!(caps & ENPU_HAL_CAP_PROFILE)) return;
    auto now = with_header<enpu_hal_counters>(ENPU_HAL_TYPE_COUNTERS);
    if (hal.profile->counters(device, &now, nullptr) != ENPU_HAL_OK) return;
    if (!(now.live_buffers | now.live_queues | now.live_fences | now.live_graphs)) return;
    std::lock_guard lock(leaks_mutex);
    leaks = "leaked: " + std::to_string(now.live_buffers) + " buffers, " +
            std::to_string(now.live_queues) + " queues, " + std::to_string(now.live_fences) +
            " fences, " + std::to_string(now.live_graphs) + " graphs";
}

std::string take_leaks() {
    std::lock_guard lock(leaks_mutex);
    return std::exchange(leaks, {});
}

}  // namespace enpu::hal::cts
