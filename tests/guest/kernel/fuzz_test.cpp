// SPDX-License-Identifier: MIT
// Random calls from several threads on several files, at the same time, while one program that does
// nothing wrong works on. Nothing may get stuck, stay behind, show in the kernel log, or disturb that
// program. ENPU_FUZZ_SECONDS and ENPU_FUZZ_SEED choose how long and which.
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "fuzz_calls.h"
#include "recovery.h"

namespace enpu::test {
namespace {

constexpr unsigned kThreads = 4;
constexpr auto kStuck = std::chrono::seconds(60);
constexpr uint64_t kInnocentVa = 0x3000'0000;

uint64_t number(const char* name, uint64_t otherwise) {
    const char* text = getenv(name);
    return text ? strtoull(text, nullptr, 0) : otherwise;
}

// The program beside them: copies, and looks at what came.
class Innocent {
  public:
    Innocent() : from_(fixture_.device, 4 * kPage), to_(fixture_.device, 4 * kPage) {
        from_.at(kInnocentVa);
        to_.at(kInnocentVa + kLargePage);
    }
    void copy() {
        const auto value = static_cast<uint8_t>(++copies_);
        memset(from_.data(), value, from_.size());
        fixture_.run(fixture_.copy,
                     Commands().copy(kInnocentVa + kLargePage, kInnocentVa, from_.size()));
        const auto status = fixture_.device.status(fixture_.ctx);
        INFO("copy " << copies_ << ", status " << status.error);
        REQUIRE(status.error == 0);
        REQUIRE(to_.data()[0] == value);
        REQUIRE(memcmp(to_.data(), from_.data(), from_.size()) == 0);
    }
    uint64_t copies() const { return copies_; }

  private:
    Fixture fixture_;
    Buffer from_, to_;
    uint64_t copies_ = 0;
};

// The name of a call that does not come back, or null.
const char* stuck(const std::vector<std::unique_ptr<Caller>>& callers) {
    for (const auto& caller : callers) {
        const int64_t began = caller->began_ns;
        if (began != 0 && deadline(-kStuck) > began) return caller->name;
    }
    return nullptr;
}

void print(const std::vector<std::unique_ptr<Caller>>& callers, uint64_t copies) {
    std::map<std::string, std::map<int, uint64_t>> all;
    uint64_t calls = 0;
    for (const auto& caller : callers) {
        calls += caller->calls();
        for (const auto& [name, results] : caller->results())
            for (const auto& [result, count] : results) all[name][result] += count;
    }
    printf("%llu calls, %llu copies beside them\n", static_cast<unsigned long long>(calls),
           static_cast<unsigned long long>(copies));
    for (const auto& [name, results] : all) {
        printf("  %-16s", name.c_str());
        for (const auto& [result, count] : results)
            printf(" %s %llu", result ? strerrorname_np(-result) : "ok",
                   static_cast<unsigned long long>(count));
        printf("\n");
    }
    fflush(stdout);
}

bool nothing_lives() {
    for (const auto& [name, count] : live_objects())
        if (count != 0) return false;
    return true;
}

TEST_CASE("random calls from several threads and files") {
    const uint64_t seconds = number("ENPU_FUZZ_SECONDS", 8), seed = number("ENPU_FUZZ_SEED", 1);
    printf("seed %llu, %llu s\n", static_cast<unsigned long long>(seed),
           static_cast<unsigned long long>(seconds));
    std::vector<std::string> nodes;
    {
        FuzzWorld world;
        nodes = world.nodes;
        printf("%zu devices\n", nodes.size());
        Innocent innocent;
        std::vector<std::unique_ptr<Caller>> callers;
        std::vector<std::thread> threads;
        for (unsigned i = 0; i < kThreads; ++i) {
            callers.push_back(std::make_unique<Caller>(world, seed * kThreads + i));
            threads.emplace_back([&world, caller = callers.back().get()] {
                while (!world.stop) caller->step();
            });
        }
        const int64_t end = deadline(std::chrono::seconds(seconds));
        const char* waits = nullptr;
        while (deadline({}) < end && !waits) {
            innocent.copy();
            usleep(20000);
            waits = stuck(callers);
        }
        world.stop = true;
        if (waits) {
            fprintf(stderr, "a call does not come back: %s\n", waits);
            abort();
        }
        for (auto& thread : threads) thread.join();
        print(callers, innocent.copies());
        for (const auto& caller : callers) CHECK(caller->calls() > 0);
        CHECK(innocent.copies() > 0);
    }
    const std::string first = nodes.front();
    for (const std::string& node : nodes) {
        INFO(node);
        REQUIRE(setenv("ENPU_DEVICE", node.c_str(), 1) == 0);
        CHECK(eventually(nothing_lives));
    }
    REQUIRE(setenv("ENPU_DEVICE", first.c_str(), 1) == 0);
}

}  // namespace
}  // namespace enpu::test
