// SPDX-License-Identifier: MIT
// Each finding of the validation layer is provoked, and correct code is silent; traces are JSON;
// faults come when they are ordered.
#include "layers.h"

#include <algorithm>
#include <mutex>

#include "../cts/fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

void enpu::hal::cts::note_leaks(const enpu_hal_plugin&, enpu_hal_device*, uint32_t) {}

namespace {

const enpu_hal_plugin& raw_cpu() {
    for (const Backend& backend : backends().loaded)
        if (std::string(backend.plugin->name) == "cpu") return *backend.raw;
    FAIL("the cpu backend was not found");
    std::abort();
}

std::mutex found_mutex;
std::vector<std::pair<Finding, std::string>> found;

const enpu_hal_plugin* validated() {
    static const enpu_hal_plugin* plugin = [] {
        std::string reason;
        return with_layers(raw_cpu(), "validate", reason);
    }();
    set_finding_sink([](Finding finding, const char* message) {
        std::lock_guard lock(found_mutex);
        found.emplace_back(finding, message);
    });
    std::lock_guard lock(found_mutex);
    found.clear();
    return plugin;
}

// How often a finding was reported, and that its message names what to do.
int count(Finding finding, const char* part) {
    std::lock_guard lock(found_mutex);
    int result = 0;
    for (const auto& [kind, message] : found) {
        INFO(finding_name(kind) << ": " << message);
        if (kind != finding) continue;
        CHECK(message.find(part) != std::string::npos);
        ++result;
    }
    return result;
}

std::string everything() {
    std::lock_guard lock(found_mutex);
    std::string text;
    for (const auto& [kind, message] : found)
        text += std::string(finding_name(kind)) + ": " + message + "\n";
    return text;
}

const enpu_hal_plugin* faulty(const char* order) {
    setenv("ENPU_HAL_FAULTS", order, 1);
    std::string reason;
    const enpu_hal_plugin* plugin = with_layers(raw_cpu(), "fault", reason);
    INFO(reason);
    REQUIRE(plugin);
    return plugin;
}

}  // namespace

TEST_CASE("validate: correct code is silent") {
    {
        Fixture f(validated(), "cpu");
        auto& status = f.status;
        enpu_hal_queue* other = f.make_queue();
        enpu_hal_fence* back = f.make_fence(0);
        auto* a = f.make_buffer(4096);
        auto* b = f.make_buffer(4096);
        for (uint64_t i = 1; i <= 40; ++i) {
            HAL_OK(f.submit({f.fill(a, 0, 4096, i, 4)}, {{back, i - 1}}));
            HAL_OK(
                f.submit_to(other, {{back, i}}, {f.copy(b, 0, a, 0, 4096)}, {{f.fence, f.value}}));
        }
        HAL_OK(f.wait(back, 40));
        note_host_access(f.host<char>(b), 4096, false);
        f.drop_buffer(a);
        f.run({f.fill(b, 0, 64, 1, 1)});  // another queue, but the host has waited
    }
    CHECK(everything() == "");
}

TEST_CASE("validate: a buffer used after its free is refused") {
    Fixture f(validated(), "cpu");
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    f.drop_buffer(a);
    HAL_FAILS(f.submit({f.copy(b, 0, a, 0, 64)}), ENPU_HAL_INVALID_ARGUMENT);
    CHECK(std::string(status.message).find("use after free") == 0);
    CHECK(count(Finding::kUseAfterFree, "waited for") == 1);
}

TEST_CASE("validate: a destroyed fence or queue is refused") {
    Fixture f(validated(), "cpu");
    auto& status = f.status;
    enpu_hal_fence* fence = nullptr;
    HAL_OK(f.hal->fence->create(f.device, 0, &fence, &status));
    f.hal->fence->destroy(fence);
    HAL_FAILS(f.hal->fence->signal(fence, 1, &status), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.wait(fence, 1, 0), ENPU_HAL_INVALID_ARGUMENT);
    enpu_hal_queue* queue = f.make_queue();
    f.drop_queue(queue);
    HAL_FAILS(f.submit_to(queue, {{f.fence, 1}}, {}), ENPU_HAL_INVALID_ARGUMENT);
    CHECK(count(Finding::kUseAfterFree, "destroyed") == 3);
}

TEST_CASE("validate: a double free is told and ignored") {
    Fixture f(validated(), "cpu");
    auto* a = f.make_buffer(64);
    f.drop_buffer(a);
    f.hal->memory->free(a);
    CHECK(count(Finding::kDoubleFree, "before") == 1);
    f.make_buffer(64);  // the address may come again, and is then good
    CHECK(count(Finding::kUseAfterFree, "") == 0);
}

TEST_CASE("validate: objects of another device are refused") {
    Fixture f(validated(), "cpu"), g(f.hal, "cpu");
    auto& status = f.status;
    auto* mine = f.make_buffer(64);
    auto* theirs = g.make_buffer(64);
    HAL_FAILS(f.submit({f.copy(mine, 0, theirs, 0, 64)}), ENPU_HAL_INVALID_ARGUMENT);
    CHECK(count(Finding::kWrongDevice, "host memory") == 1);
    HAL_FAILS(f.submit({}, {{g.fence, 1}}), ENPU_HAL_INVALID_ARGUMENT);
    CHECK(count(Finding::kWrongDevice, "") == 2);
}

TEST_CASE("validate: the host looks at what is still written") {
    Fixture f(validated(), "cpu");
    auto& status = f.status;
    auto* a = f.make_buffer(4096);
    enpu_hal_fence* gate = f.make_fence(0);
    HAL_OK(f.submit({f.fill(a, 0, 2048, 1, 1)}, {{gate, 1}}));
    note_host_access(f.host<char>(a) + 2048, 10, false);  // the other half
    CHECK(count(Finding::kHostAccess, "") == 0);
    note_host_access(f.host<char>(a) + 100, 10, false);
    CHECK(count(Finding::kHostAccess, "wait for that operation's signal") == 1);
    HAL_OK(f.hal->fence->signal(gate, 1, &status));
    HAL_OK(f.wait(f.fence, f.value));
    note_host_access(f.host<char>(a) + 100, 10, true);
    CHECK(count(Finding::kHostAccess, "") == 1);
}

TEST_CASE("validate: a buffer that is freed while work uses it") {
    Fixture f(validated(), "cpu");
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    enpu_hal_fence* gate = f.make_fence(0);
    HAL_OK(f.submit({f.fill(b, 0, 64, 1, 1)}));
    HAL_OK(f.submit({}, {{gate, 1}}));
    HAL_OK(f.submit({f.copy(b, 0, a, 0, 64)}));
    HAL_OK(f.hal->fence->signal(gate, 1, &status));
    HAL_OK(f.wait(f.fence, f.value));
    f.drop_buffer(a);
    CHECK(count(Finding::kFreeInFlight, "") == 0);
    enpu_hal_fence* second = f.make_fence(0);
    enpu_hal_queue* doomed = f.make_queue();
    HAL_OK(f.submit_to(doomed, {{f.fence, f.value + 1}}, {f.fill(b, 0, 64, 2, 1)}, {{second, 1}}));
    f.drop_buffer(b);  // the queue is destroyed before anything touches it
    f.drop_queue(doomed);
    CHECK(count(Finding::kFreeInFlight, "signal first") == 1);
}

TEST_CASE("validate: two queues write the same bytes and nothing orders them") {
    Fixture f(validated(), "cpu");
    auto& status = f.status;
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* done = f.make_fence(0);
    auto* a = f.make_buffer(4096);
    HAL_OK(f.submit({f.fill(a, 0, 2048, 1, 1)}));
    HAL_OK(f.submit_to(other, {{done, 1}}, {f.fill(a, 2048, 2048, 1, 1)}));
    CHECK(count(Finding::kMissingSync, "") == 0);
    HAL_OK(f.submit_to(other, {{done, 2}}, {f.fill(a, 2000, 100, 1, 1)}));
    CHECK(count(Finding::kMissingSync, "let the second wait") == 1);
    HAL_OK(f.wait(f.fence, f.value));
    HAL_OK(f.submit_to(other, {{done, 3}}, {f.fill(a, 0, 100, 1, 1)}));
    CHECK(count(Finding::kMissingSync, "") == 1);
    HAL_OK(f.wait(done, 3));
}

TEST_CASE("validate: order through a third queue counts") {
    Fixture f(validated(), "cpu");
    auto& status = f.status;
    enpu_hal_queue* middle = f.make_queue();
    enpu_hal_queue* last = f.make_queue();
    enpu_hal_fence* a = f.make_fence(0);
    enpu_hal_fence* b = f.make_fence(0);
    auto* buffer = f.make_buffer(64);
    HAL_OK(f.submit({f.fill(buffer, 0, 64, 1, 1)}));
    HAL_OK(f.submit_to(middle, {{a, 1}}, {}, {{f.fence, f.value}}));
    HAL_OK(f.submit_to(last, {{b, 1}}, {f.fill(buffer, 0, 64, 2, 1)}, {{a, 1}}));
    HAL_OK(f.wait(b, 1));
    CHECK(everything() == "");
}

TEST_CASE("validate: allocation in a loop of submissions") {
    Fixture f(validated(), "cpu");
    auto* kept = f.make_buffer(5000);
    for (int i = 0; i < 40; ++i) {
        auto* scratch = f.make_buffer(5000);
        f.run({f.copy(kept, 0, scratch, 0, 5000)});
        f.drop_buffer(scratch);
    }
    CHECK(count(Finding::kAllocationLoop, "pool") == 1);
}

TEST_CASE("validate: setting up many equal buffers is no loop") {
    Fixture f(validated(), "cpu");
    for (int i = 0; i < 100; ++i) f.drop_buffer(f.make_buffer(777));
    CHECK(everything() == "");
}

TEST_CASE("validate: shapes asked about, and graphs made, in a loop") {
    Fixture f(validated(), "cpu");
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    const Kernel move(ENPU_OP_MOVE, {tensor(a, ENPU_OP_F32, {16}), tensor(b, ENPU_OP_F32, {16})});
    for (int i = 0; i < 40; ++i) {
        HAL_OK(f.hal->kernel->supported(f.device, &move.dispatch, &status));
        f.run({move.command()});
    }
    CHECK(count(Finding::kShapeLoop, "ask once") == 1);
    validated();  // clears
    for (int i = 0; i < 40; ++i) {
        enpu_hal_graph* graph = nullptr;
        const enpu_hal_command command = move.command();
        HAL_OK(f.hal->graph->create(f.device, &command, 1, &graph, &status));
        f.launch(graph);
        f.hal->graph->destroy(graph);
    }
    CHECK(count(Finding::kShapeLoop, "update it in place") == 1);
}

TEST_CASE("validate: one thread goes to and fro between devices") {
    Fixture f(validated(), "cpu"), g(f.hal, "cpu");
    auto* a = f.make_buffer(64);
    auto* b = g.make_buffer(64);
    for (int i = 0; i < 10; ++i) f.run({f.fill(a, 0, 64, 1, 1)});
    for (int i = 0; i < 10; ++i) g.run({g.fill(b, 0, 64, 1, 1)});
    CHECK(everything() == "");
    for (int i = 0; i < 40; ++i) {
        f.run({f.fill(a, 0, 64, 1, 1)});
        g.run({g.fill(b, 0, 64, 1, 1)});
    }
    CHECK(count(Finding::kDeviceSwitching, "larger pieces") == 1);
}

TEST_CASE("validate: objects that outlive their device are told") {
    const enpu_hal_plugin& hal = *validated();
    enpu_hal_status status{};
    enpu_hal_device* device = nullptr;
    enpu_hal_fence* fence = nullptr;
    HAL_OK(hal.driver->open("cpu", &device, &status));
    HAL_OK(hal.fence->create(device, 0, &fence, &status));
    raw_cpu().fence->destroy(fence);  // behind the layer's back, so that nothing really leaks
    hal.device->close(device);
    CHECK(count(Finding::kLeak, "1 fences") == 1);
}

TEST_CASE("layers: off, the tables are the backend's own") {
    std::string reason;
    const enpu_hal_plugin& raw = raw_cpu();
    CHECK(with_layers(raw, "", reason) == &raw);  // it lacks nothing that is emulated
    CHECK(with_layers(raw, "raw", reason) == &raw);
    CHECK(with_layers(raw, "no-such-layer", reason) == nullptr);
    CHECK(reason.find("validate, trace and fault") != std::string::npos);
}

namespace {
std::vector<std::string> lines;
}

TEST_CASE("trace: what a recording keeps is no line, unless one is asked for") {
    std::string reason;
    static const enpu_hal_plugin* plugin = with_layers(raw_cpu(), "trace", reason);
    REQUIRE(plugin);
    static std::vector<std::string> kept, lines;
    static bool keeps = true;
    set_trace_recorder([](const TracedCall& call) {
        if (!keeps) return false;
        kept.push_back(std::string(call.name) + ": " + call.arguments);
        CHECK(call.end_ns >= call.start_ns);
        return true;
    });
    enpu_hal_status status{};
    enpu_hal_device* device = nullptr;
    REQUIRE(plugin->driver->open("cpu", &device, &status) == ENPU_HAL_OK);
    REQUIRE(kept.size() == 1);
    CHECK(kept[0] == "driver.open: \"spec\":\"cpu\"");
    set_trace_sink([](const char* line) { lines.emplace_back(line); });
    plugin->device->close(device);
    CHECK(kept.size() == 2);
    CHECK(lines.size() == 1);
    keeps = false;
    CHECK(plugin->driver->open("none", &device, &status) != ENPU_HAL_OK);
    CHECK(kept.size() == 2);
    CHECK(lines.size() == 2);
    set_trace_recorder(nullptr);
    set_trace_sink(nullptr);
}

TEST_CASE("trace: each call is a line with arguments, time and result") {
    std::string reason;
    static const enpu_hal_plugin* plugin = with_layers(raw_cpu(), "trace", reason);
    REQUIRE(plugin);
    lines.clear();
    set_trace_sink([](const char* line) { lines.emplace_back(line); });
    const uint64_t before = now_ns();
    {
        Fixture f(plugin, "cpu");
        auto& status = f.status;
        auto* a = f.make_buffer(640);
        f.run({f.fill(a, 0, 640, 1, 1)});
        HAL_FAILS(f.wait(f.fence, f.value + 1, 1), ENPU_HAL_DEADLINE_EXCEEDED);
    }
    set_trace_sink(nullptr);
    const auto line_with = [](const char* part) {
        for (const std::string& line : lines)
            if (line.find(part) != std::string::npos) return line;
        return std::string();
    };
    CHECK(line_with("\"memory.alloc\"").find("\"bytes\":640") != std::string::npos);
    CHECK(line_with("\"queue.submit\"").find("\"first\":\"fill\"") != std::string::npos);
    CHECK(line_with("deadline-exceeded").find("\"fence.wait\"") != std::string::npos);
    CHECK(!line_with("\"device.close\"").empty());
    const std::string submit = line_with("\"queue.submit\"");
    const double ts = std::strtod(submit.c_str() + submit.find("\"ts\":") + 5, nullptr);
    CHECK(ts * 1000 >= double(before));
    CHECK(ts * 1000 <= double(now_ns()));
}

TEST_CASE("fault: out of memory comes after the calls that are spared, and goes") {
    Fixture f(faulty("oom:after=2,count=1"), "cpu");
    auto& status = f.status;
    f.make_buffer(64);
    f.make_buffer(64);
    auto desc = with_header<enpu_hal_buffer_desc>(ENPU_HAL_TYPE_BUFFER_DESC);
    desc.bytes = 64;
    enpu_hal_buffer* buffer = nullptr;
    HAL_FAILS(f.hal->memory->alloc(f.device, &desc, &buffer, &status), ENPU_HAL_RESOURCE_EXHAUSTED);
    f.make_buffer(64);
}

TEST_CASE("fault: a refused submission, and a lost completion") {
    Fixture f(faulty("submit:count=1;drop:count=1"), "cpu");
    auto& status = f.status;
    auto* a = f.make_buffer(64);
    HAL_FAILS(f.submit({f.fill(a, 0, 64, 1, 1)}), ENPU_HAL_UNAVAILABLE);
    HAL_OK(f.submit({f.fill(a, 0, 64, 2, 1)}));
    HAL_FAILS(f.wait(f.fence, f.value, now_ns() + 50'000'000), ENPU_HAL_DEADLINE_EXCEEDED);
    f.run({f.fill(a, 0, 64, 3, 1)});
    CHECK(f.host<char>(a)[0] == 3);
}

TEST_CASE("fault: a wait that lies, and a delay") {
    Fixture f(faulty("wait:count=1;delay:count=1,ms=40"), "cpu");
    auto& status = f.status;
    const uint64_t start = now_ns();
    HAL_OK(f.submit({}));
    CHECK(now_ns() - start >= 40'000'000);
    HAL_FAILS(f.wait(f.fence, f.value), ENPU_HAL_WORK_FAILED);
    HAL_OK(f.wait(f.fence, f.value));
}

TEST_CASE("fault: a lost device stays lost") {
    Fixture f(faulty("lost:after=1"), "cpu");
    auto& status = f.status;
    HAL_OK(f.submit({}));
    HAL_FAILS(f.submit({}), ENPU_HAL_DEVICE_LOST);
    HAL_FAILS(f.hal->device->check(f.device, &status), ENPU_HAL_DEVICE_LOST);
    HAL_FAILS(f.wait(f.fence, 1), ENPU_HAL_DEVICE_LOST);
}

TEST_CASE("fault: the same seed gives the same faults") {
    std::vector<bool> runs[2];
    for (auto& run : runs) {
        Fixture f(faulty("seed=42;submit:count=0,chance=0.3"), "cpu");
        for (int i = 0; i < 60; ++i) run.push_back(f.submit({}) == ENPU_HAL_OK);
    }
    CHECK(runs[0] == runs[1]);
    const auto hits = std::count(runs[0].begin(), runs[0].end(), false);
    CHECK(hits > 5);
    CHECK(hits < 40);
}

TEST_CASE("fault: an order that cannot be read is refused with the reason") {
    for (const char* order : {"", "fire", "oom:often=1", "oom:chance=7", "delay:ms=-4"}) {
        setenv("ENPU_HAL_FAULTS", order, 1);
        std::string reason;
        CHECK(with_layers(raw_cpu(), "fault", reason) == nullptr);
        CHECK(reason.find("fault: ") == 0);
    }
}
