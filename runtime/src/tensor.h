// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "stream.h"

struct rt_tensor_impl {
    std::atomic<uint32_t> references{1};
    rt_device_impl* device = nullptr;
    rt_stream_impl* home = nullptr;  // holds a reference
    void* data = nullptr;
    uint64_t bytes = 0;
    enpu_op_tensor desc{};

    std::mutex mutex;
    std::vector<enpu::rt::Point> uses;  // last operation of each other stream that got it

    // An operation at `value` of the stream's timeline uses the tensor.
    void note_use(rt_stream_impl& stream, uint64_t value);
};
