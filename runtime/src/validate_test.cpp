// SPDX-License-Identifier: MIT
// The validation layer below the runtime: what the host does with pinned memory, right and wrong.
#include <atomic>
#include <mutex>
#include <utility>

#include "layers/layers.h"
#include "test_support.h"

using namespace enpu::rt::test;
using enpu::hal::Finding;

namespace {

std::mutex found_mutex;
std::vector<std::pair<Finding, std::string>> found;

void note(Finding finding, const char* message) {
    std::lock_guard lock(found_mutex);
    found.emplace_back(finding, message);
}
std::vector<std::pair<Finding, std::string>> take_found() {
    std::lock_guard lock(found_mutex);
    return std::exchange(found, {});
}

struct Validated : Fixture {
    Validated() {
        const char* layers = std::getenv("ENPU_HAL_LAYERS");
        if (!layers || !contains(layers, "validate")) SKIP("unsupported: no validation layer");
        take_found();
        enpu::hal::set_finding_sink(note);
    }
    ~Validated() { enpu::hal::set_finding_sink(nullptr); }
};

}  // namespace

TEST_CASE("validate: pinned memory that work in flight writes is not to be read", "[validate]") {
    Validated f;
    constexpr size_t kBytes = 64u << 20;  // takes a while
    void* device = f.allocate(kBytes);
    void* host = f.pinned(kBytes);
    MUST(rt_fill(f.stream, device, 7, 4, kBytes));
    std::vector<std::pair<Finding, std::string>> seen;
    for (int i = 0; i < 20 && seen.empty(); ++i) {  // the copy may be faster than this thread
        MUST(rt_memcpy_d2h_async(f.stream, host, device, kBytes));
        rt_note_host_access(host, 4, 0);
        f.sync();
        seen = take_found();
    }
    REQUIRE(!seen.empty());
    CHECK(seen.front().first == Finding::kHostAccess);
    CHECK(seen.front().second.size() > 40);  // a sentence
    rt_note_host_access(host, 4, 0);         // after the wait all is well
    CHECK(take_found().empty());
    OK(rt_host_free(f.device, host));
}

TEST_CASE("validate: copies of pageable memory and pipelines look when they may", "[validate]") {
    Validated f;
    std::vector<int> sent(300'000, 5);
    void* device = f.upload(sent);  // through the ring of pinned memory, several times round
    CHECK(f.download<int>(device, sent.size()) == sent);
    rt_pipeline_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.slots = 2;
    desc.input_bytes = desc.output_bytes = 4096;
    desc.compute = [](void*, rt_stream stream, const rt_pipeline_slot* slot) {
        return rt_memcpy_d2d(stream, slot->output, slot->input, 4096);
    };
    rt_pipeline pipeline = nullptr;
    MUST(rt_pipeline_create(f.device, &desc, &pipeline));
    for (int i = 0; i < 8; ++i) {
        void* input = nullptr;
        const void* output = nullptr;
        MUST(rt_pipeline_input(pipeline, soon(), &input));
        MUST(rt_pipeline_push(pipeline, nullptr, 0));
        MUST(rt_pipeline_pop(pipeline, soon(), &output));
    }
    rt_pipeline_destroy(pipeline);
    for (const auto& [finding, message] : take_found()) {
        INFO(message);
        CHECK(finding != Finding::kHostAccess);
        CHECK(finding != Finding::kMissingSync);
    }
}
