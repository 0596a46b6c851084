// SPDX-License-Identifier: MIT
#include "fork.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "device.h"

namespace enpu::rt {
namespace {

std::atomic<uint32_t> generation{0};

void note_fork() {
    generation.fetch_add(1);
}

}  // namespace

uint32_t fork_generation() {
    static const int watching = pthread_atfork(nullptr, nullptr, note_fork);
    (void)watching;
    return generation.load(std::memory_order_relaxed);
}

bool forked_since(const rt_device_impl& device) {
    return device.fork_generation != generation.load(std::memory_order_relaxed);
}

rt_status check_fork(const rt_device_impl& device, const char* origin) {
    if (!forked_since(device)) [[likely]]
        return RT_OK;
    return make_status(RT_FAILED_PRECONDITION, origin,
                       "the device %s was opened before fork(), by a parent of process %d: open it "
                       "anew in this process",
                       device.info.spec, static_cast<int>(getpid()));
}

}  // namespace enpu::rt
