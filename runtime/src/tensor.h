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
    bool wrapped = false;  // memory of the caller
    enpu_op_tensor desc{};

    std::mutex mutex;
    std::vector<enpu::rt::Point> uses;  // last operation of each other stream that got it

    // An operation of another stream than `home` uses the tensor.
    void note_use(const enpu::rt::Point& operation);
};
