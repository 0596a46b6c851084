// SPDX-License-Identifier: MIT
// Sleep of the whole system, by the kernel's own test mode: all devices go through their paces, the
// processor stays on. Runs in a guest of its own, whose shares are lost by it (their driver cannot
// sleep), so it runs from a copy of itself in memory and tells its results on the console only.
#include <unistd.h>

#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "recovery.h"

namespace enpu::test {
namespace {

// Lets a job that waits for the word at kVa go on, by a job on the copy engine.
void let_go(const Fixture& f) {
    const uint32_t go = Commands().signal(kVa, 1).write_to(f.commands.data() + kPage);
    REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + kPage, go).send(f.device) == 0);
}

TEST_CASE("jobs in flight go on after the system slept") {
    if (access("/sys/power/pm_test", W_OK) != 0) SKIP("the kernel has no pm_test");
    Fixture f;
    Buffer words(f.device, kPage), big(f.device, 8 * kLargePage, DRM_ENPU_BO_LOCAL);
    words.at(kVa);
    big.at(kVa + kLargePage);
    REQUIRE(write_file("/sys/power/pm_test", "devices") == 0);
    write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
    for (int round = 0; round < 2; round++) {
        memset(words.data(), 0, words.size());
        const uint32_t copied = f.device.syncobj();
        REQUIRE(f.submit(0, Commands().wait(kVa, 1, 60'000'000).fill(kVa + 64, 8, 3)) == 0);
        // And many that may be anywhere: done, running, in the ring, in the scheduler.
        const uint32_t fill = Commands()
                                  .fill(kVa + kLargePage, big.size(), 0x11)
                                  .fill(kVa + 128, 8, 0x22)
                                  .write_to(f.commands.data() + 2 * kPage);
        for (int i = 0; i < 10; i++)
            REQUIRE(Submit(f.ctx, f.copy, Fixture::kCmdVa + 2 * kPage, fill)
                        .signal(copied)
                        .send(f.device) == 0);
        REQUIRE(write_file("/sys/power/state", round ? "freeze" : "mem") == 0);
        REQUIRE(f.device.syncobj_wait(copied) == 0);
        let_go(f);
        REQUIRE(f.device.syncobj_wait(f.done) == 0);
        CHECK(f.device.status(f.ctx).error == 0);
        CHECK(words.data()[64] == 3);
        CHECK(words.data()[128] == 0x22);
        CHECK(big.data()[big.size() - 1] == 0x11);
        f.device.syncobj_destroy(copied);
    }
    REQUIRE(write_file("/sys/power/pm_test", "none") == 0);
}

constexpr const char* kCopy = "/tmp/suspend-test";

// Copies the program and its libraries off the share and runs the copy. Returns only on failure.
int run_copy(int argc, char** argv) {
    namespace fs = std::filesystem;
    const std::string loader = "ld-linux-x86-64.so.2";
    fs::create_directories(kCopy);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const size_t at = line.find('/');
        if (at == std::string::npos) continue;
        const fs::path file = line.substr(at);
        fs::copy_file(file, kCopy / file.filename(), fs::copy_options::overwrite_existing);
    }
    const std::string to = std::string(kCopy) + "/";
    std::vector<std::string> words{to + loader, "--library-path", kCopy,
                                   to + fs::read_symlink("/proc/self/exe").filename().string()};
    words.insert(words.end(), argv + 1, argv + argc);
    std::vector<char*> args;
    for (auto& word : words) args.push_back(word.data());
    args.push_back(nullptr);
    execv(args[0], args.data());
    perror(args[0]);
    return 1;
}

}  // namespace
}  // namespace enpu::test

int main(int argc, char** argv) {
    if (std::string(argv[0]).find(enpu::test::kCopy) != 0) return enpu::test::run_copy(argc, argv);
    return Catch::Session().run(argc, argv);
}
