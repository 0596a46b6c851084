// SPDX-License-Identifier: MIT
// For deadlines of tests: the runner knows what kernel the guest has, and how patient it shall be.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace enpu::test {

// How many times slower than the usual guest this one is.
inline int slower() {
    const char* times = getenv("ENPU_SLOWER");
    return times ? std::max(1, atoi(times)) : 1;
}

}  // namespace enpu::test
