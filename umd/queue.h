// SPDX-License-Identifier: MIT
// A user-mode queue: entries and the tail are written, and completions read, in memory that the
// device shares; the OS is asked to sleep only.
#pragma once

#include <mutex>
#include <vector>

#include "buffer.h"
#include "command/command.h"
#include "context.h"

struct enpu_queue final : enpu::Object {
    enpu_queue(enpu_context* context_in, uint32_t engine_in, uint32_t log2_in)
        : context(context_in), engine(engine_in), entries(1u << log2_in), log2(log2_in) {}

    const enpu::Ref<enpu_context> context;
    const uint32_t engine;
    const uint32_t entries;
    const uint32_t log2;
    enpu::Ref<enpu_buffer> memory;
    enpu_queue_header* header = nullptr;
    enpu_ring_entry* ring = nullptr;
    const enpu_completion* completions = nullptr;
    uint32_t id = 0;
    std::unique_ptr<enpu::os::Doorbell> doorbell;

    std::mutex mutex;                               // guards what follows
    uint64_t tail = 0;                              // entries written; the fence of the last
    uint64_t freed = 0;                             // entries whose commands were let go
    std::vector<enpu::Ref<enpu_command>> commands;  // by ring slot

    // The fence word; a value that was never asked for is not believed.
    uint64_t completed(uint64_t submitted) const {
        const uint64_t fence = __atomic_load_n(&header->fence, __ATOMIC_ACQUIRE);
        return fence <= submitted ? fence : 0;
    }
    bool failed() const { return __atomic_load_n(&header->status, __ATOMIC_RELAXED) != 0; }
    // Lets go of the commands up to `fence`. With the mutex held.
    void release_commands(uint64_t fence);
    int create(enpu_error* error);

  private:
    ~enpu_queue() override;
};
