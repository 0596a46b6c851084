// SPDX-License-Identifier: MIT
// Each allocation of the kernel itself fails, one after the other, inside each call of the
// interface: by failslab and fail_page_alloc, which only a kernel made for it has. What of it is the
// module's own is in kmod-limits, on every kernel.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "every_call.h"
#include "recovery.h"

namespace enpu::test {
namespace {

constexpr const char* kDebug = "/sys/kernel/debug/";

void set(const std::string& file, const std::string& value) {
    INFO(file);
    REQUIRE(write_file(kDebug + file, value) == 0);
}

// Allocations that may sleep fail, too, of whatever size, and nobody writes a line for each. Copies
// do not: the DRM core copies a result out when the call has had its effect.
void make_allocations_fail() {
    set("failslab/ignore-gfp-wait", "N");
    set("failslab/verbose", "0");
    set("fail_page_alloc/ignore-gfp-wait", "N");
    set("fail_page_alloc/ignore-gfp-highmem", "N");
    set("fail_page_alloc/min-order", "0");
    set("fail_page_alloc/verbose", "0");
    // No call stack lies there.
    set("fail_usercopy/require-start", "1");
    set("fail_usercopy/require-end", "1");
}

// Makes an allocation of this thread fail.
class FailNth {
  public:
    FailNth() : fd_(open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC)) {}
    ~FailNth() { close(fd_); }
    FailNth(const FailNth&) = delete;
    FailNth& operator=(const FailNth&) = delete;
    bool there() const { return fd_ >= 0; }
    // Runs a call with the n-th allocation failing; whether it has failed. Between the two files'
    // calls nothing of this program allocates.
    bool during(int n, const std::function<int()>& call, int* ret) const {
        char text[16] = {};
        const int length = snprintf(text, sizeof(text), "%d", n);
        const bool armed = pwrite(fd_, text, static_cast<size_t>(length), 0) == length;
        *ret = call();
        memset(text, 0, sizeof(text));
        const bool told = pread(fd_, text, sizeof(text) - 1, 0) > 0;
        const bool disarmed = pwrite(fd_, "0", 1, 0) == 1;
        REQUIRE(armed);
        REQUIRE(told);
        REQUIRE(disarmed);
        return atoi(text) == 0;
    }

  private:
    int fd_;
};

struct Count {
    int failures = 0, absorbed = 0;
};

Count sweep(const FailNth& fail, const Call& call) {
    Count count;
    INFO(call.name);
    for (int n = 1; n < 1000; n++) {
        const auto before = live_objects();
        int ret = 0;
        const bool fired = fail.during(n, call.call, &ret);
        INFO("allocation " << n << ", returned " << ret);
        if (!fired) {
            REQUIRE(ret == 0);
            return count;
        }
        // Not every allocation is needed: some are tried again in another way.
        REQUIRE((ret == 0 || ret == -ENOMEM));
        (ret ? count.failures : count.absorbed)++;
        if (ret == 0 && call.undo) call.undo();
        // After a job that ran, buffers hold its fence; what that leaves is looked at in the end.
        if (ret) CHECK(difference(live_objects(), before, call.kept) == "");
    }
    FAIL("it never succeeds");
    return count;
}

TEST_CASE("any allocation of the kernel fails inside any call") {
    const FailNth fail;
    debugfs_read("live");  // mounts it
    if (!fail.there()) SKIP("this kernel has no fail-nth: run ENPU_KERNEL=debug");
    make_allocations_fail();
    Count all;
    every_call([&](const Call& call) {
        const Count count = sweep(fail, call);
        printf("# %-16s %3d failures, %2d made up for\n", call.name, count.failures,
               count.absorbed);
        // A call that makes something needs memory. BO_INFO, with one hook, makes an offset only.
        CHECK((call.hooks < 2 || count.failures > 0));
        all.failures += count.failures;
        all.absorbed += count.absorbed;
    });
    printf("# together %d failures, %d made up for\n", all.failures, all.absorbed);
    CHECK(all.failures > 40);
    CHECK(eventually([] {
        for (const auto& [name, count] : live_objects())
            if (count != 0) return false;
        return true;
    }));
}

}  // namespace
}  // namespace enpu::test
