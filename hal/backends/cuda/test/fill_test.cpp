// SPDX-License-Identifier: MIT
// The fill kernel, on the host: it is no operator, so the operators' tests do not know it.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <iterator>

#include "host_kernels.h"
#include "plan.h"

using namespace enpu::hal::cuda;

TEST_CASE("cuda kernels: fills of every pattern at every address, and nothing around them") {
    constexpr uint64_t kPattern = 0x1122334455667788;
    alignas(16) unsigned char bytes[6000];
    for (uint32_t size : {1u, 2u, 4u, 8u})
        for (uint64_t offset = 0; offset < 17; ++offset) {
            const uint64_t units = 4096 / size;
            std::fill(std::begin(bytes), std::end(bytes), 0xee);
            KernelCall call;
            call.set<FillArgs>(KernelId::kFill, blocks_for(units), kThreads) = {
                reinterpret_cast<uint64_t>(bytes) + offset, units, kPattern, size};
            run_on_host(call);
            for (uint64_t i = 0; i < sizeof(bytes); ++i) {
                const bool in = i >= offset && i < offset + units * size;
                const auto wanted =
                    static_cast<unsigned char>(in ? kPattern >> (8 * ((i - offset) % size)) : 0xee);
                INFO("size " << size << ", offset " << offset << ", byte " << i);
                REQUIRE(bytes[i] == wanted);
            }
        }
}
