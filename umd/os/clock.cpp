// SPDX-License-Identifier: MIT
#include <time.h>

#include "os/os.h"

int64_t enpu::os::now_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}
