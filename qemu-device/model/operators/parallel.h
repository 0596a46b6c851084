// SPDX-License-Identifier: MIT
// Loops that share the threads of the arena they run in (tiles.h: in_arena) with the loops of the library.
#pragma once

#include <cstdint>

#ifdef __SANITIZE_THREAD__
#include <thread>
#else
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#endif

namespace enpu::ops {

// Calls body(from, to) for ranges that cover [begin, end), none much smaller than `grain`, in any order and at the same time. Returns
// when all have ended.
template <class Body>
void parallel_ranges(int64_t begin, int64_t end, int64_t grain, Body&& body) {
#ifdef __SANITIZE_THREAD__
    // ThreadSanitizer cannot see how the TBB library hands work over and would report each hand-over. Plain threads run halves.
    const int64_t middle = begin + (end - begin) / 2;
    if (middle - begin < grain || middle == begin) return body(begin, end);
    std::thread other([&] { body(begin, middle); });
    body(middle, end);
    other.join();
#else
    tbb::parallel_for(tbb::blocked_range<int64_t>(begin, end, grain),
                      [&](const auto& range) { body(range.begin(), range.end()); });
#endif
}

// The same for one number at a time.
template <class Body>
void parallel_each(int64_t begin, int64_t end, Body&& body) {
    parallel_ranges(begin, end, 1, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) body(i);
    });
}

}  // namespace enpu::ops
