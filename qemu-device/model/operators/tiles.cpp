// SPDX-License-Identifier: MIT
#include "tiles.h"

#include <algorithm>
#include <memory>

#include <tbb/info.h>
#include <tbb/task_arena.h>

#include "parallel.h"

namespace enpu::ops {
namespace {

// Making an arena costs more than a small operator, so each engine thread keeps its last one.
tbb::task_arena& arena_of(unsigned threads) {
    thread_local std::unique_ptr<tbb::task_arena> arena;
    thread_local unsigned slots = 0;
    if (!arena || slots != threads) {
        arena = std::make_unique<tbb::task_arena>(static_cast<int>(threads));
        slots = threads;
    }
    return *arena;
}

void parallel(unsigned threads, int64_t begin, int64_t end, int64_t grain, RangeFunction function,
              void* context) {
    arena_of(threads).execute([&] {
        parallel_ranges(begin, end, grain,
                        [&](int64_t from, int64_t to) { function(context, from, to); });
    });
}

}  // namespace

Outcome for_tiles(Progress& progress, int64_t count, int64_t tile, RangeFunction function,
                  void* context) {
    tile = std::max<int64_t>(tile, 1);
    const auto cores = static_cast<unsigned>(tbb::info::default_concurrency());
    const unsigned threads = std::clamp(progress.threads(), 1u, std::max(cores, 1u));
    // Below this a second thread does not pay for its wake-up.
    const int64_t grain = std::max<int64_t>(tile / 4, 1);
    for (int64_t begin = 0; begin < count;) {
        if (begin > 0 && !progress.proceed()) return Outcome::kStopped;
        const int64_t end = begin + std::min(count - begin, tile * threads);
        if (threads == 1 || end - begin <= grain) {
            function(context, begin, end);
        } else {
            parallel(threads, begin, end, grain, function, context);
        }
        begin = end;
    }
    return Outcome::kDone;
}

void in_arena(unsigned threads, void (*function)(void*), void* context) {
    arena_of(std::clamp(threads, 1u, 64u)).execute([&] { function(context); });
}

}  // namespace enpu::ops
