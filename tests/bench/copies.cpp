// SPDX-License-Identifier: MIT
// Copies between host and local memory, by the device's own clock and end to end, beside memcpy of as many
// bytes.
#include <algorithm>
#include <cstring>
#include <memory>

#include "stand.h"

namespace enpu::bench {
namespace {

constexpr uint64_t kSizes[] = {4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
constexpr uint64_t kTogether = 4 << 20;  // bytes that a measured command moves at least

struct Direction {
    const char* name;
    uint32_t from, to;
};
constexpr Direction kDirections[] = {{"H2D", ENPU_BUFFER_HOST, ENPU_BUFFER_LOCAL},
                                     {"D2H", ENPU_BUFFER_LOCAL, ENPU_BUFFER_HOST},
                                     {"D2D", ENPU_BUFFER_LOCAL, ENPU_BUFFER_LOCAL}};

// The peer's two pieces of memory: as large as the device's, touched, and as far apart.
struct Memory {
    explicit Memory(uint64_t bytes)
        : from(std::make_unique<std::byte[]>(bytes)), to(std::make_unique<std::byte[]>(bytes)) {
        std::memset(from.get(), 1, bytes);
        std::memset(to.get(), 2, bytes);
    }
    std::unique_ptr<std::byte[]> from, to;
};

void copy_memory(Memory& memory, uint64_t bytes) {
    std::memcpy(memory.to.get(), memory.from.get(), bytes);
    // Somebody reads it: without this the compiler may drop the copy.
    asm volatile("" : : "r"(memory.to.get()) : "memory");
}

void add_cases(std::vector<Case>& cases, const std::shared_ptr<Stand>& stand, const Direction& d,
               uint64_t bytes, bool with_peer) {
    const auto count = static_cast<unsigned>(std::clamp<uint64_t>(kTogether / bytes, 1, 256));
    const Buffer from = stand->buffer(bytes, d.from), to = stand->buffer(bytes, d.to);
    std::memset(from.map().data(), 3, bytes);
    std::memset(to.map().data(), 4, bytes);
    const auto build = [from, to, bytes](enpu_builder* builder) {
        check([&](enpu_error* e) {
            return enpu_build_copy(builder, to.get(), 0, from.get(), 0, bytes, e);
        });
    };
    const Command many = stand->timed(ENPU_ENGINE_KIND_COPY, count, build);
    const Command one = stand->timed(ENPU_ENGINE_KIND_COPY, 1, build);
    auto memory = std::make_shared<Memory>(bytes);
    const auto peer = [=](unsigned times) {
        return [=] {
            const double begin = now_ns();
            for (unsigned i = 0; i < times; ++i) copy_memory(*memory, bytes);
            return (now_ns() - begin) / times;
        };
    };
    Case device{{std::string("copy engine ") + d.name, "ns", static_cast<double>(bytes), {}, {}},
                [=] {
                    stand->run(stand->copy_engine(), many);
                    return stand->device_ns() / count;
                },
                {}};
    Case whole{{std::string("copy end to end ") + d.name, "ns", static_cast<double>(bytes), {}, {}},
               [=] { return stand->run(stand->copy_engine(), one); },
               {}};
    if (with_peer) {
        device.peer = peer(count);
        whole.peer = peer(1);
    }
    cases.push_back(std::move(device));
    cases.push_back(std::move(whole));
}

}  // namespace

std::vector<Result> bench_copies(const Options& options) {
    const auto stand = std::make_shared<Stand>(options.device);
    std::vector<Case> cases;
    for (const uint64_t bytes : kSizes) {
        if (options.quick && bytes != 64 << 10 && bytes != 1 << 20 && bytes != 16 << 20) continue;
        for (const Direction& d : kDirections) {
            if (4 * bytes > stand->device().info().local_bytes) continue;
            add_cases(cases, stand, d, bytes, options.peer);
        }
    }
    return measure(std::move(cases), options.runs);
}

}  // namespace enpu::bench
