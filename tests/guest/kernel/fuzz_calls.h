// SPDX-License-Identifier: MIT
// Random calls of the kernel interface: each knows its structure, so most are sound, and some of
// their words are then changed. Threads share files, and whatever the calls made is used by all.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernel_device.h"

namespace enpu::test {

constexpr unsigned kFuzzFiles = 3, kFuzzSlots = 24;
// Commands lie here in each file; the other mappings of the grid follow.
constexpr uint64_t kFuzzCommands = 0x2000'0000, kFuzzGrid = 0x4000'0000;

// Handles that were given out once. They may be stale: that is the point.
class Slots {
  public:
    // The one that made place.
    uint32_t put(uint32_t value) { return values_[next_++ % kFuzzSlots].exchange(value); }
    uint32_t at(uint64_t random) const { return values_[random % kFuzzSlots]; }
    void clear() {
        for (auto& value : values_) value = 0;
    }

  private:
    std::array<std::atomic<uint32_t>, kFuzzSlots> values_{};
    std::atomic<uint32_t> next_{0};
};

struct FuzzFile {
    std::atomic<int> fd{-1};
    Slots buffers, contexts, queues, syncobjs;
    std::atomic<uint64_t> mmap_offset{0};
};

// What the threads share.
class FuzzWorld {
  public:
    FuzzWorld();
    ~FuzzWorld();
    FuzzWorld(const FuzzWorld&) = delete;
    FuzzWorld& operator=(const FuzzWorld&) = delete;
    // Closes a file, with all that it holds, and opens it anew.
    void reopen(FuzzFile& file);

    std::array<FuzzFile, kFuzzFiles> files;  // the last is of the second device, where there is one
    std::vector<std::string> nodes;
    std::atomic<int> shared_fd{-1};  // a dma-buf
    std::atomic<bool> stop{false};
    uint8_t* memory = nullptr;  // ordinary memory of the process
    uint32_t engines = 0, copy_engine = 0;
    static constexpr uint64_t kMemoryBytes = 1 << 20;

  private:
    void open_file(FuzzFile& file);
};

// The calls of one thread.
class Caller {
  public:
    Caller(FuzzWorld& world, uint64_t seed);
    // One call, or two that belong together.
    void step();

    uint64_t calls() const { return calls_; }
    // When the call under way began, 0 between calls; may be read by other threads, as its name.
    std::atomic<int64_t> began_ns{0};
    std::atomic<const char*> name{""};
    // Calls by name and result (0 or -errno).
    const std::map<std::string, std::map<int, uint64_t>>& results() const { return results_; }

  private:
    uint64_t pick(uint64_t limit) { return random_() % limit; }
    bool one_in(uint64_t n) { return pick(n) == 0; }
    uint64_t odd_number();
    int64_t short_timeout();
    uint64_t address();
    uint64_t bytes();

    // Sends a structure, now and then damaged. 0 or -errno.
    template <class Args>
    int call(const char* what, unsigned long request, Args& args);
    int send(const char* what, unsigned long request, void* args, size_t size, bool waits = false);
    void keep_off(__u64& pointer) const;
    void damage(void* args, size_t size);
    int count(const char* what, int ret);

    void query();
    void make_buffer();
    void make_userptr();
    void look_at_buffer();
    void wait_for_buffer();
    void map();
    void unmap();
    void make_context();
    void end_context();
    void look_at_context();
    void write_commands(uint64_t at, uint32_t bytes);
    void submit();
    void make_queue();
    void end_queue();
    void wait_for_queue();
    void close_buffer();
    void share();
    void syncobj();
    void touch(uint64_t offset);
    void nonsense();

    FuzzWorld& world_;
    std::mt19937_64 random_;
    FuzzFile* file_ = nullptr;
    uint64_t calls_ = 0;
    std::map<std::string, std::map<int, uint64_t>> results_;
    alignas(8) std::array<uint8_t, 16384> raw_{};
};

}  // namespace enpu::test
