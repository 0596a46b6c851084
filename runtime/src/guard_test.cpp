// SPDX-License-Identifier: MIT
// Kernels that hang, engines that fault, a device that disappears: what the caller is told, and what a
// policy makes of it. The device takes injected faults: the simulator by libenpu, the real one by the
// debugfs of its driver.
#include "guard.h"

#include <glob.h>

#include <algorithm>
#include <cstdio>

#include "backends/npu/npu.h"
#include "device.h"
#include "enpu/enpu.h"
#include "test_support.h"

using namespace enpu::rt::test;

namespace {

constexpr uint64_t kHangNs = 600'000'000;
constexpr int64_t kCount = 4096;

bool in_simulator() {
    return std::string(device_spec()).starts_with("sim");
}

bool write_debugfs(const std::string& text) {
    glob_t found{};
    bool written = false;
    for (const char* pattern :
         {"/sys/kernel/debug/accel/*/inject_fault", "/sys/kernel/debug/dri/*/inject_fault"}) {
        if (glob(pattern, 0, nullptr, &found) == 0 && found.gl_pathc != 0) {
            if (std::FILE* file = std::fopen(found.gl_pathv[0], "w")) {
                written = std::fputs(text.c_str(), file) >= 0;
                written &= std::fclose(file) == 0;
            }
        }
        globfree(&found);
        if (written) break;
    }
    return written;
}

// A device whose faults can be armed, with a policy or without.
struct Rig {
    rt_device device = nullptr;
    rt_stream stream = nullptr;
    rt_kernel binary = nullptr;
    void *x = nullptr, *y = nullptr;
    std::string notices;

    static void note(void* context, const char* text) {
        static_cast<Rig*>(context)->notices += std::string(text) + "\n";
    }
    explicit Rig(const rt_policy* policy, uint64_t hang_ns = kHangNs) {
        MUST(rt_device_open(in_simulator()
                                ? "sim:cores=2,threads=1,local-mem=64M,fault-injection=on"
                                : device_spec(),
                            &device));
        if (policy) {
            rt_policy mine = *policy;
            mine.notice = note;
            mine.context = this;
            MUST(rt_device_set_policy(device, &mine));
        }
        rt_stream_options options{};
        options.struct_size = sizeof(options);
        options.name = "guarded";
        options.hang_ns = hang_ns;
        MUST(rt_stream_create(device, &options, &stream));
        MUST(rt_kernel_lookup(device, "binary", &binary));
        MUST(rt_malloc(stream, kCount * 4, &x));
        MUST(rt_malloc(stream, kCount * 4, &y));
        MUST(rt_fill(stream, x, 0x40400000, 4, kCount * 4));  // 3.0f
        MUST(rt_stream_sync(stream, soon()));
    }
    ~Rig() {
        inject("none");
        rt_stream_destroy(stream);
        rt_device_close(device);
    }
    void inject(const std::string& faults) {
        enpu_error error{};
        if (in_simulator())
            CHECK(enpu_device_inject_faults(device->handle->handle, faults.c_str(), &error) == 0);
        else
            CHECK(write_debugfs(faults));
    }
    rt_policy_report report() {
        rt_policy_report result{};
        result.struct_size = sizeof(result);
        MUST(rt_device_policy_report(device, &result));
        return result;
    }
    std::vector<float> result() {
        std::vector<float> values(kCount);
        MUST(rt_memcpy_d2h(stream, values.data(), y, kCount * 4));
        return values;
    }
    rt_status launch() { return launch_double(stream, binary, x, y, kCount); }
};

rt_policy policy(uint32_t retries, const char* fallback, bool retain = false) {
    rt_policy result{};
    result.struct_size = sizeof(result);
    result.retries = retries;
    result.fallbacks[0] = fallback;
    result.retain = retain;
    return result;
}

const std::vector<float> kSixes(kCount, 6.0f);

}  // namespace

TEST_CASE("guard: an output that overlaps an input or an earlier one's cannot be made again") {
    auto* buffer = reinterpret_cast<enpu_hal_buffer*>(uint64_t{1});
    const auto copy = [&](uint64_t dst, uint64_t src, uint64_t bytes) {
        enpu_hal_command command{};
        command.kind = ENPU_HAL_COMMAND_COPY;
        command.u.copy = {{buffer, dst}, {buffer, src}, bytes, 1, bytes, bytes};
        return command;
    };
    const enpu_hal_command apart[] = {copy(100, 0, 50), copy(200, 0, 50)};
    CHECK(enpu::rt::inputs_survive(apart, 2));
    const enpu_hal_command chained[] = {copy(100, 0, 50), copy(0, 200, 50)};
    CHECK_FALSE(enpu::rt::inputs_survive(chained, 2));
    const enpu_hal_command inside[] = {copy(0, 49, 50)};
    CHECK_FALSE(enpu::rt::inputs_survive(inside, 1));
    const enpu_hal_command rows = [&] {
        enpu_hal_command command = copy(1000, 0, 10);
        command.u.copy.height = 5;
        command.u.copy.src_pitch = 300;  // the last row begins at 1200
        command.u.copy.dst_pitch = 10;
        return command;
    }();
    CHECK_FALSE(enpu::rt::inputs_survive(&rows, 1));
}

TEST_CASE("guard: a policy is checked, and comes before streams and memory") {
    rt_device device = nullptr;
    MUST(rt_device_open("cpu", &device));
    rt_policy_report report{};
    report.struct_size = sizeof(report);
    CHECK(failure(rt_device_policy_report(device, &report)).code == RT_FAILED_PRECONDITION);
    rt_policy wrong = policy(99, "cpu");
    CHECK(failure(rt_device_set_policy(device, &wrong)).code == RT_INVALID_ARGUMENT);
    wrong = policy(1, "no-such-device");
    const Failure none = failure(rt_device_set_policy(device, &wrong));
    CHECK(none.code == RT_UNAVAILABLE);
    CHECK(contains(none.message, "no-such-device"));
    wrong = policy(1, nullptr, true);
    CHECK(failure(rt_device_set_policy(device, &wrong)).code == RT_INVALID_ARGUMENT);
    rt_stream stream = nullptr;
    MUST(rt_stream_create(device, nullptr, &stream));
    const rt_policy good = policy(1, "cpu");
    CHECK(failure(rt_device_set_policy(device, &good)).code == RT_FAILED_PRECONDITION);
    rt_stream_destroy(stream);
    rt_device_close(device);
}

TEST_CASE("guard: a kernel that hangs is told before the deadline, and a reset heals the stream") {
    Rig rig(nullptr);
    rig.inject("engine-hang:times=1");
    MUST(rig.launch());
    const uint64_t start = rt_now_ns();
    rt_status status = rt_stream_sync(rig.stream, soon());
    CHECK(rt_status_code(status) == RT_WORK_TIMEOUT);
    CHECK(std::string(rt_status_operation_name(status)) == "kernel binary");
    CHECK(std::string(rt_status_stream(status)) == "guarded");
    CHECK(rt_status_elapsed_ns(status) >= kHangNs / 2);
    CHECK(rt_now_ns() - start < 15'000'000'000);
    rt_status_free(status);
    CHECK(failure(rig.launch()).code == RT_STREAM_POISONED);
    OK(rt_stream_reset(rig.stream));
    MUST(rig.launch());
    CHECK(rig.result() == kSixes);
}

TEST_CASE("guard: a call ends at its own deadline while the kernel hangs, and a reset ends that") {
    Rig rig(nullptr, 5'000'000'000);
    rig.inject("engine-hang:times=1");
    MUST(rig.launch());
    const uint64_t start = rt_now_ns();
    const Failure late = failure(rt_stream_sync(rig.stream, rt_deadline_ms(100)));
    CHECK(late.code == RT_DEADLINE_EXCEEDED);
    CHECK(contains(late.message, "kernel binary"));
    CHECK(rt_now_ns() - start < 3'000'000'000);
    OK(rt_stream_reset(rig.stream));
    MUST(rig.launch());
    CHECK(rig.result() == kSixes);
}

TEST_CASE("guard: an operation that failed once is done again on its device") {
    const rt_policy again = policy(2, nullptr);
    Rig rig(&again);
    rig.inject("engine-hang:times=1");
    MUST(rig.launch());
    CHECK(rig.result() == kSixes);
    const rt_policy_report report = rig.report();
    CHECK(report.failures == 1);
    CHECK(report.retries == 1);
    CHECK(report.repaired == 1);
    CHECK(report.fallback_ops == 0);
    CHECK(contains(rig.notices, "kernel binary on stream guarded failed (work-timeout"));
}

TEST_CASE("guard: an engine that keeps faulting is left for the next backend") {
    const rt_policy degrade = policy(1, "cpu");
    Rig rig(&degrade);
    rig.inject("illegal-packet:times=2");
    MUST(rig.launch());
    CHECK(rig.result() == kSixes);
    const rt_policy_report report = rig.report();
    CHECK(report.failures == 2);
    CHECK(report.retries == 1);
    CHECK(report.fallback_ops == 1);
    CHECK(report.device_lost == 0);
    CHECK(contains(rig.notices, "ran on cpu instead"));
    // The device does the next one itself.
    MUST(rt_fill(rig.stream, rig.x, 0x40000000, 4, kCount * 4));
    MUST(rig.launch());
    CHECK(rig.result() == std::vector<float>(kCount, 4.0f));
    CHECK(rig.report().fallback_ops == 1);
}

TEST_CASE("guard: work in place is not done again after it began") {
    const rt_policy degrade = policy(3, "cpu");
    Rig rig(&degrade);
    rig.inject("engine-hang:times=1");
    const Failure failed = failure(launch_double(rig.stream, rig.binary, rig.x, rig.x, kCount));
    CHECK(failed.code == RT_WORK_TIMEOUT);
    CHECK(rig.report().refused == 1);
    CHECK(rig.report().retries == 0);
    CHECK(contains(rig.notices, "it writes what it reads"));
    CHECK(failure(rig.launch()).code == RT_STREAM_POISONED);
}

TEST_CASE("guard: a device that is pulled out under a kernel ends the wait for it, and says so") {
    if (!in_simulator()) SKIP("unsupported: only a simulator is pulled out from in here");
    Rig rig(nullptr, 30'000'000'000);
    rig.inject("engine-hang:times=1");
    MUST(rig.launch());
    const uint64_t start = rt_now_ns();
    CHECK(failure(rt_stream_sync(rig.stream, rt_deadline_ms(50))).code == RT_DEADLINE_EXCEEDED);
    rig.inject("removed");
    rt_status status = rt_stream_sync(rig.stream, soon());
    CHECK(rt_status_code(status) == RT_DEVICE_LOST);
    CHECK(contains(rt_status_message(status), "removed"));
    CHECK(std::string(rt_status_operation_name(status)) == "kernel binary");
    CHECK(rt_now_ns() - start < 10'000'000'000);
    rt_status_free(status);
    CHECK(failure(rig.launch()).code == RT_STREAM_POISONED);
    CHECK(failure(rt_device_check(rig.device)).code == RT_DEVICE_LOST);
}

TEST_CASE("guard: what a pulled out device was to compute is computed by the next backend") {
    if (!in_simulator()) SKIP("unsupported: only a simulator is pulled out from in here");
    const rt_policy degrade = policy(2, "cpu", true);
    Rig rig(&degrade);
    rig.inject("engine-hang:times=1;removed:after=60");
    MUST(rig.launch());
    CHECK(rig.result() == kSixes);
    const rt_policy_report report = rig.report();
    CHECK(report.device_lost == 1);
    CHECK(report.fallback_ops >= 1);
    CHECK(contains(rig.notices, "ran on cpu instead"));
}

TEST_CASE("guard: a stream goes at once when a kernel that has a minute left hangs") {
    uint64_t start = 0;
    {
        Rig rig(nullptr, 60'000'000'000);
        rig.inject("engine-hang:times=1");
        MUST(rig.launch());
        CHECK(failure(rt_stream_sync(rig.stream, rt_deadline_ms(50))).code == RT_DEADLINE_EXCEEDED);
        start = rt_now_ns();
    }
    CHECK(rt_now_ns() - start < 15'000'000'000);
}

TEST_CASE("guard: the CUDA backend takes over what it can, and says what it cannot") {
    if (!in_simulator() || !std::getenv("ENPU_CUDA_LIBRARY"))
        SKIP("unsupported: needs a simulator and the double of the CUDA driver");
    const rt_policy degrade = policy(0, "cuda");
    Rig rig(&degrade);
    rig.inject("ecc-uncorrected:times=1");
    MUST(rt_fill(rig.stream, rig.x, 0x40000000, 4, kCount * 4));  // 2.0f
    std::vector<float> seen(kCount);
    MUST(rt_memcpy_d2h(rig.stream, seen.data(), rig.x, kCount * 4));
    CHECK(seen == std::vector<float>(kCount, 2.0f));
    CHECK(std::string(rig.report().fallback) == "cuda");
    CHECK(rig.report().fallback_ops == 1);
    CHECK(contains(rig.notices, "ran on cuda instead"));
    // The double has no kernels: the failure tells both reasons, and that nothing was computed.
    rig.inject("ecc-uncorrected:times=1");
    const Failure failed = failure(rig.launch());
    CHECK(failed.code == RT_WORK_FAILED);
    CHECK(contains(failed.message, "and elsewhere"));
    CHECK(contains(rig.notices, "elsewhere: binary: the cuda backend has no kernels"));
    CHECK(rig.report().refused == 1);
    CHECK(rig.report().fallback_ops == 1);
}
