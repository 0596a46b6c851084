// SPDX-License-Identifier: MIT
// Recordings: everything is on one clock, and the file can be read back.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

#include "perfetto.h"
#include "profile_kernel.h"
#include "test_support.h"

using namespace enpu::rt::test;

namespace {

constexpr int64_t kCount = 100'000;
constexpr size_t kBytes = kCount * sizeof(float);

// A reader of the protobuf wire format that knows nothing of the writer.
class Message {
  public:
    explicit Message(std::string bytes) {
        size_t at = 0;
        const auto varint = [&]() -> uint64_t {
            uint64_t value = 0;
            for (int shift = 0;; shift += 7) {
                REQUIRE(at < bytes.size());
                const auto byte = static_cast<unsigned char>(bytes[at++]);
                value |= uint64_t(byte & 0x7f) << shift;
                if (!(byte & 0x80)) return value;
            }
        };
        while (at < bytes.size()) {
            const uint64_t key = varint();
            if ((key & 7) == 0) {
                numbers_[key >> 3].push_back(varint());
            } else {
                REQUIRE((key & 7) == 2);
                const uint64_t size = varint();
                REQUIRE(size <= bytes.size() - at);
                texts_[key >> 3].push_back(bytes.substr(at, size));
                at += size;
            }
        }
    }
    uint64_t number(uint32_t field) const {
        const auto found = numbers_.find(field);
        return found == numbers_.end() ? 0 : found->second.front();
    }
    std::string text(uint32_t field) const {
        const auto found = texts_.find(field);
        return found == texts_.end() ? "" : found->second.front();
    }
    std::vector<std::string> all(uint32_t field) const {
        const auto found = texts_.find(field);
        return found == texts_.end() ? std::vector<std::string>() : found->second;
    }
    bool has(uint32_t field) const { return texts_.count(field) != 0; }

  private:
    std::map<uint64_t, std::vector<uint64_t>> numbers_;
    std::map<uint64_t, std::vector<std::string>> texts_;
};

struct Slice {
    std::string name;
    uint64_t start = 0, end = 0;
    std::string note;
};

struct Trace {
    std::map<uint64_t, std::string> tracks;
    std::map<uint64_t, uint64_t> parents;
    std::map<uint64_t, std::vector<Slice>> slices;
    std::map<uint64_t, std::vector<uint64_t>> values;
    bool clocks = false;

    explicit Trace(const std::string& bytes) {
        std::map<uint64_t, std::vector<Slice>> open;
        std::map<uint64_t, uint64_t> last;
        for (const std::string& body : Message(bytes).all(1)) {
            const Message packet(body);
            CHECK(packet.number(10) == 1);
            if (packet.has(6)) clocks = true;
            if (packet.has(60)) {
                const Message track(packet.text(60));
                const std::string thread = Message(track.text(4)).text(5);
                tracks[track.number(1)] = track.has(4) ? "thread " + thread : track.text(2);
                parents[track.number(1)] = track.number(5);
            }
            if (!packet.has(11)) continue;
            CHECK(packet.number(58) == 3);  // CLOCK_MONOTONIC
            const Message event(packet.text(11));
            const uint64_t track = event.number(11), ns = packet.number(8);
            CHECK(tracks.count(track) == 1);  // described before
            CHECK(ns >= last[track]);         // in order
            last[track] = ns;
            if (event.number(9) == 1)
                open[track].push_back({event.text(23), ns, 0, Message(event.text(4)).text(6)});
            if (event.number(9) == 4) values[track].push_back(event.number(30));
            if (event.number(9) == 2) {
                REQUIRE_FALSE(open[track].empty());
                Slice slice = open[track].back();
                open[track].pop_back();
                slice.end = ns;
                slices[track].push_back(slice);
            }
        }
        for (const auto& [track, left] : open) CHECK(left.empty());
    }
    std::vector<Slice> named(const std::string& track, const std::string& slice) const {
        std::vector<Slice> found;
        for (const auto& [id, name] : tracks) {
            if (name.find(track) == std::string::npos || !slices.count(id)) continue;
            for (const Slice& s : slices.at(id))
                if (s.name == slice) found.push_back(s);
        }
        return found;
    }
    uint64_t most(const std::string& counter) const {
        uint64_t most = 0;
        for (const auto& [id, name] : tracks)
            if (name == counter && values.count(id))
                for (uint64_t value : values.at(id)) most = std::max(most, value);
        return most;
    }
};

struct Recorded {
    rt_profile profile = nullptr;
    ~Recorded() { rt_profile_destroy(profile); }
    void start(uint32_t flags = 0) {
        rt_profile_options options{};
        options.struct_size = sizeof(options);
        options.flags = flags;
        MUST(rt_profile_start(&options));
    }
    void stop() { MUST(rt_profile_stop(soon(), &profile)); }
    rt_profile_info info() const {
        rt_profile_info result{};
        result.struct_size = sizeof(result);
        MUST(rt_profile_get_info(profile, &result));
        return result;
    }
    Trace trace() const {
        const std::string path = "/tmp/enpu-profile-test-" + std::to_string(getpid());
        MUST(rt_profile_write(profile, path.c_str()));
        std::ifstream file(path, std::ios::binary);
        std::stringstream bytes;
        bytes << file.rdbuf();
        std::remove(path.c_str());
        return Trace(bytes.str());
    }
    std::map<std::string, rt_profile_kernel> kernels() const {
        uint32_t count = 0;
        MUST(rt_profile_get_kernels(profile, nullptr, 0, &count));
        std::vector<rt_profile_kernel> rows(count);
        MUST(rt_profile_get_kernels(profile, rows.data(), count, &count));
        std::map<std::string, rt_profile_kernel> result;
        for (const auto& row : rows) result[row.name] = row;
        return result;
    }
};

}  // namespace

TEST_CASE("profile: calls, driver and device are on one clock, in the order of cause") {
    Fixture f;
    needs_kernels(f.device);
    void* x = f.upload(std::vector<float>(kCount, 1.0f));
    f.sync();
    Recorded recorded;
    recorded.start();
    const uint64_t begin = rt_now_ns();
    void* y = f.allocate(kBytes);
    for (int i = 0; i < 3; ++i) MUST(launch_double(f.stream, f.kernel("binary"), x, y, kCount));
    f.sync();
    const uint64_t end = rt_now_ns();
    OK(rt_free(f.stream, y));
    recorded.stop();
    const rt_profile_info info = recorded.info();
    CHECK(info.dropped == 0);
    CHECK(info.operations == 3);
    CHECK(info.api_calls >= 5);
    CHECK(info.memory_samples == 2);
    const Trace trace = recorded.trace();
    CHECK(trace.clocks);
    const auto launches = trace.named("thread", "rt_kernel_launch");
    const auto driver = trace.named("driver call", "rt_kernel_launch");
    const auto device = trace.named(": device", "kernel binary");
    const auto syncs = trace.named("thread", "rt_stream_sync");
    REQUIRE(launches.size() == 3);
    REQUIRE(driver.size() == 3);
    REQUIRE(device.size() == 3);
    REQUIRE(syncs.size() == 1);
    // The correlation of the clocks is exact to a few microseconds natively, less so in a guest.
    constexpr uint64_t kSlack = 300'000;
    for (int i = 0; i < 3; ++i) {
        INFO("launch " << i);
        CHECK(launches[i].start >= begin);
        CHECK(driver[i].start >= launches[i].start);
        CHECK(driver[i].end <= launches[i].end);
        CHECK(device[i].start + kSlack >= driver[i].start);
        CHECK(device[i].end > device[i].start);
        CHECK(device[i].end <= syncs[0].end + kSlack);
        CHECK(device[i].end <= end + kSlack);
        if (i) CHECK(device[i].start >= device[i - 1].end);
    }
    CHECK(trace.most("memory used") >= kBytes * 2);
    CHECK(trace.most("memory reserved") >= trace.most("memory used"));
}

TEST_CASE("profile: the table of kernels adds up") {
    Fixture f;
    needs_kernels(f.device);
    void* x = f.upload(std::vector<float>(kCount, 1.0f));
    void* y = f.allocate(kBytes);
    f.sync();
    Recorded recorded;
    recorded.start(RT_PROFILE_DEVICE);
    for (int i = 0; i < 5; ++i) MUST(launch_double(f.stream, f.kernel("binary"), x, y, kCount));
    MUST(rt_memcpy_d2d(f.stream, x, y, kBytes));
    MUST(rt_fill(f.stream, y, 0, 4, kBytes));
    recorded.stop();  // waits for what is in flight
    const auto kernels = recorded.kernels();
    REQUIRE(kernels.size() == 3);
    double share = 0;
    for (const auto& [name, row] : kernels) {
        INFO(name);
        CHECK(row.min_ns > 0);
        CHECK(row.min_ns <= row.mean_ns);
        CHECK(row.mean_ns <= row.max_ns);
        CHECK(row.total_ns >= row.max_ns);
        share += row.share;
    }
    CHECK(kernels.at("kernel binary").count == 5);
    CHECK(kernels.at("copy").count == 1);
    CHECK(kernels.at("fill").count == 1);
    CHECK(std::abs(share - 1) < 1e-6);
    CHECK(recorded.info().api_calls == 0);
}

TEST_CASE("profile: every node of a graph has its own times") {
    Fixture f;
    needs_kernels(f.device);
    void* x = f.upload(std::vector<float>(kCount, 1.0f));
    rt_graph graph = nullptr;
    MUST(rt_graph_create(f.device, &graph));
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    const rt_operand operands[] = {operand(x, ENPU_OP_F32, {kCount}),
                                   operand(x, ENPU_OP_F32, {kCount}),
                                   operand(x, ENPU_OP_F32, {kCount})};
    rt_node node = 0;
    constexpr int kNodes = 300;  // more than one submission holds
    for (int i = 0; i < kNodes; ++i)
        MUST(rt_graph_add_kernel(graph, f.kernel("binary"), &params, sizeof(params), operands, 3,
                                 &node, i ? 1 : 0, &node));
    rt_graph_exec exec = nullptr;
    MUST(rt_graph_instantiate(graph, &exec));
    const uint64_t before = f.counters().submissions;
    MUST(rt_graph_launch(exec, f.stream));
    const uint64_t plain = f.counters().submissions - before;
    Recorded recorded;
    recorded.start(RT_PROFILE_DEVICE);
    MUST(rt_graph_launch(exec, f.stream));
    recorded.stop();
    INFO(plain << " submissions unrecorded");
    // A recording must not take apart what is encoded as one.
    if (plain == 1) CHECK(f.counters().submissions - before == 2);
    CHECK(recorded.kernels().at("kernel binary").count == kNodes);
    CHECK(recorded.info().dropped == 0);
    rt_graph_exec_destroy(exec);
    rt_graph_destroy(graph);
}

TEST_CASE("profile: launches of a graph in flight, updated and destroyed within a recording") {
    Fixture f;
    needs_kernels(f.device);
    void* x = f.upload(std::vector<float>(kCount, 1.0f));
    void* y = f.upload(std::vector<float>(kCount, 5.0f));
    void* z = f.allocate(kBytes);
    rt_graph graph = nullptr;
    MUST(rt_graph_create(f.device, &graph));
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
    const rt_operand operands[] = {operand(x, ENPU_OP_F32, {kCount}),
                                   operand(x, ENPU_OP_F32, {kCount}),
                                   operand(z, ENPU_OP_F32, {kCount})};
    rt_node add = 0, copy = 0;
    MUST(rt_graph_add_kernel(graph, f.kernel("binary"), &params, sizeof(params), operands, 3,
                             nullptr, 0, &add));
    MUST(rt_graph_add_copy(graph, y, z, kBytes, &add, 1, &copy));
    rt_graph_exec exec = nullptr;
    MUST(rt_graph_instantiate(graph, &exec));
    Recorded first;
    first.start(RT_PROFILE_DEVICE);
    constexpr uint64_t kInFlight = 20;  // more than are kept ready at once
    for (uint64_t i = 0; i < kInFlight; ++i) MUST(rt_graph_launch(exec, f.stream));
    f.sync();
    CHECK(f.download<float>(y, kCount)[kCount - 1] == 2.0f);
    // What is ready for recordings is updated with the executable.
    MUST(rt_graph_update_kernel(exec, add, 0, y, soon()));
    MUST(rt_graph_launch(exec, f.stream));
    f.sync();
    CHECK(f.download<float>(y, kCount)[kCount - 1] == 3.0f);
    first.stop();
    CHECK(first.info().dropped == 0);
    CHECK(first.kernels().at("kernel binary").count == kInFlight + 1);
    CHECK(first.kernels().at("kernel binary").min_ns > 0);
    // Off, then another recording, which the executable does not outlive.
    MUST(rt_graph_launch(exec, f.stream));
    Recorded second;
    second.start(RT_PROFILE_DEVICE);
    MUST(rt_graph_launch(exec, f.stream));
    rt_graph_exec_destroy(exec);
    rt_graph_destroy(graph);
    second.stop();
    CHECK(second.info().dropped == 0);
    CHECK(second.kernels().at("kernel binary").count == 1);
    CHECK(f.download<float>(y, kCount)[kCount - 1] == 5.0f);
}

TEST_CASE("profile: what goes on after a device closed and another recording") {
    {
        Fixture probe;  // for device times there has to be a kernel that reads the clock
        needs_kernels(probe.device);
    }
    Recorded first;
    first.start();
    {
        Fixture f;
        void* x = f.upload(std::vector<float>(100, 1.0f));
        f.sync();
        CHECK(failure(rt_profile_start(nullptr)).code == RT_FAILED_PRECONDITION);
        OK(rt_free(f.stream, x));
    }
    first.stop();
    CHECK(first.kernels().at("copy").count == 1);
    Recorded second;
    second.start();
    Fixture f;
    second.stop();
    CHECK(second.info().operations == 0);
    rt_profile none = nullptr;
    CHECK(failure(rt_profile_stop(soon(), &none)).code == RT_FAILED_PRECONDITION);
    CHECK(failure(rt_profile_write(first.profile, "/no/such/folder/x")).code ==
          RT_PERMISSION_DENIED);
    // Off: nothing is submitted but the work itself.
    const uint64_t before = f.counters().submissions;
    void* x = f.allocate(64);
    MUST(rt_fill(f.stream, x, 0, 1, 64));
    f.sync();
    CHECK(f.counters().submissions == before + 1);
}

// Run with ENPU_HAL_LAYERS=trace.
TEST_CASE("profile: calls of the backend lie in the calls of the runtime that made them",
          "[trace]") {
    const char* layers = std::getenv("ENPU_HAL_LAYERS");
    if (!layers || !contains(layers, "trace")) SKIP("unsupported: no trace layer");
    Fixture f;
    Recorded recorded;
    recorded.start(RT_PROFILE_API | RT_PROFILE_HAL);
    void* x = f.upload(std::vector<float>(100, 1.0f));
    f.sync();
    recorded.stop();
    OK(rt_free(f.stream, x));  // no longer recorded
    const Trace trace = recorded.trace();
    const auto submits = trace.named("thread", "queue.submit");
    const auto copies = trace.named("thread", "rt_memcpy_h2d");
    REQUIRE(copies.size() == 1);
    REQUIRE(submits.size() == 1);
    CHECK(submits[0].start >= copies[0].start);
    CHECK(submits[0].end <= copies[0].end);
    INFO(submits[0].note);
    CHECK(contains(submits[0].note, "ok"));
    CHECK(contains(submits[0].note, "\"first\":\"copy\""));
    CHECK(trace.named("thread", "memory.free").empty());
    const rt_profile_info info = recorded.info();
    CHECK(info.hal_calls >= 1);
    CHECK(info.api_calls >= 3);
    CHECK(info.dropped == 0);
    // Not asked for, the calls are not in it.
    Recorded without;
    without.start(RT_PROFILE_API);
    f.sync();
    without.stop();
    CHECK(without.info().hal_calls == 0);
}

TEST_CASE("profile: lines of the kernel's trace") {
    using enpu::rt::profile::KernelEvent;
    using enpu::rt::profile::parse_trace_line;
    KernelEvent event;
    CHECK(parse_trace_line("  rt-tests-71      [001] d..1.    12.345678: enpu_job_run: dev=0 seq=3",
                           event));
    CHECK(event.ns == 12'345'678'000);
    CHECK(event.name == "enpu_job_run");
    CHECK(event.text == "dev=0 seq=3");
    CHECK_FALSE(parse_trace_line("# tracer: nop", event));
    CHECK_FALSE(parse_trace_line("", event));
    CHECK_FALSE(parse_trace_line("x [000] .... 1.5: enpu_irq: short time", event));
    CHECK_FALSE(parse_trace_line("x [000] .... 12.345678: sched_switch: other", event));
}
