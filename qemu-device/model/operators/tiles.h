// SPDX-License-Identifier: MIT
// Runs independent pieces of work in tiles: in parallel inside a tile, with a look at Progress
// between tiles.
#pragma once

#include <cstdint>
#include <type_traits>

#include "operator.h"

namespace enpu::ops {

using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);

// Calls function(context, begin, end) so that [0, count) is covered once. `tile` is the number of
// items one thread does in a tile (a few ms); ranges may run on Progress::threads() threads at
// once. kDone or kStopped.
Outcome for_tiles(Progress& progress, int64_t count, int64_t tile, RangeFunction function,
                  void* context);

template <class Body>
Outcome for_tiles(Progress& progress, int64_t count, int64_t tile, Body&& body) {
    return for_tiles(
        progress, count, tile,
        [](void* context, int64_t begin, int64_t end) {
            (*static_cast<std::remove_reference_t<Body>*>(context))(begin, end);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
}

// Calls function(context) where parallel loops, those of libraries too, use at most `threads`
// threads.
void in_arena(unsigned threads, void (*function)(void*), void* context);

template <class Body>
void in_arena(unsigned threads, Body&& body) {
    in_arena(
        threads, [](void* context) { (*static_cast<std::remove_reference_t<Body>*>(context))(); },
        const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace enpu::ops
