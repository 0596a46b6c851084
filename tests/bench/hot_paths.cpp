// SPDX-License-Identifier: MIT
// hot-paths [COUNT]: runs what every job goes through, COUNT times each, and prints how many allocations one
// took. guard_test.py runs it under callgrind, which counts the instructions of the same calls.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "operands.h"

namespace {

std::atomic<uint64_t> allocations{0};

}  // namespace

// Every allocation of the process, those of the libraries too, comes by here.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* malloc(size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_realloc(memory, bytes);
}
}

namespace enpu::bench {
namespace {

struct Path {
    const char* name;
    std::function<void()> once;
    std::function<void()> between;  // not counted
};

void measure_allocations(const Path& path, unsigned count) {
    for (unsigned i = 0; i < 8; ++i) {
        path.once();
        if (path.between) path.between();
    }
    uint64_t total = 0;
    for (unsigned i = 0; i < count; ++i) {
        const uint64_t before = allocations;
        path.once();
        total += allocations - before;
        if (path.between) path.between();
    }
    std::printf("%s %.3f\n", path.name, static_cast<double>(total) / count);
}

int run(unsigned count) {
    Stand stand("sim:cores=1,threads=1,local-mem=16M");
    const Timeline timeline = Timeline::create(stand.device());
    uint64_t point = 0;
    const auto finish = [&] {
        stand.context().wait(timeline, point, enpu_deadline_after(kDeadlineNs));
    };
    const Tensor a = make_tensor(stand, ENPU_DTYPE_F32, {64}),
                 b = make_tensor(stand, ENPU_DTYPE_F32, {64}),
                 y = make_tensor(stand, ENPU_DTYPE_F32, {64});
    const enpu_binary_params params{ENPU_BINARY_ADD, ENPU_UNARY_IDENTITY, 0, 0};
    Builder builder(stand.device(), ENPU_ENGINE_KIND_COMPUTE);
    const auto build = [&] {
        check([&](enpu_error* e) {
            return enpu_build_binary(builder.get(), &params, &a.operand, &b.operand, &y.operand, e);
        });
    };
    build();
    const Command command = builder.finish();
    const auto submit = [&] { stand.context().submit(0, command, {}, {timeline.at(++point)}); };
    // The whole of a job: the engine's thread takes part.
    measure_allocations({"job",
                         [&] {
                             submit();
                             finish();
                         },
                         {}},
                        count);
    measure_allocations({"submit", submit, finish}, count);
    measure_allocations({"wait", finish, {}}, count);
    measure_allocations({"build", build, [&] { enpu_builder_reset(builder.get()); }}, count);
    measure_allocations({"patch", [&] { command.patch(0, 0, a.buffer, 0); }, {}}, count);
    return 0;
}

}  // namespace
}  // namespace enpu::bench

int main(int argc, char** argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 100;
    if (count < 1 || count > 1'000'000) {
        std::fprintf(stderr, "hot-paths: the count is 1 to 1000000\n");
        return 2;
    }
    try {
        return enpu::bench::run(static_cast<unsigned>(count));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "hot-paths: %s\n", error.what());
        return 1;
    }
}
