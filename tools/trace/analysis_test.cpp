// SPDX-License-Identifier: MIT
// Traces as the runtime writes them, read back, explained and put on a page.
#include "analysis.h"

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>

#include "lib/failure.h"
#include "perfetto.h"
#include "timeline.h"

namespace enpu::tools {
namespace {

// Two streams: on the first, a kernel waits for the copy of the second, then one for the host.
std::string two_streams() {
    rt::PerfettoTrace trace;
    trace.process(1, 42, "enpu");
    trace.thread(2, 1, 42, 43, "main");
    trace.track(3, 1, "npu");
    trace.track(4, 3, "stream 1: driver call");
    trace.track(5, 3, "stream 1: device");
    trace.track(6, 3, "stream 2: device");
    trace.counter(7, 3, "memory used", "bytes");
    trace.begin(2, 100, "rt_graph_launch");
    trace.begin(2, 110, "rt_kernel_launch");
    trace.end(2, 140);
    trace.end(2, 150);
    trace.begin(6, 200, "copy", "operation 1");
    trace.end(6, 700);
    const struct {
        uint64_t from, to, call;
        const char* name;
        const char* note;
    } kernels[] = {{150, 300, 140, "gemm", "operation 1"},
                   {720, 800, 350, "gemm", "operation 2"},
                   {1000, 1100, 990, "<add>", "operation 3"}};
    for (const auto& kernel : kernels) {
        trace.begin(4, kernel.call - 10, "rt_kernel_launch", kernel.note);
        trace.end(4, kernel.call);
        trace.begin(5, kernel.from, kernel.name, kernel.note);
        trace.end(5, kernel.to);
    }
    trace.value(7, 120, 4096);
    trace.value(7, 900, 0);
    trace.begin(2, 1200, "never ends");
    return trace.bytes();
}

nlohmann::json data_of(const std::string& page) {
    const std::string begin = "<script id=\"data\" type=\"application/json\">";
    const size_t at = page.find(begin);
    REQUIRE(at != std::string::npos);
    const size_t from = at + begin.size();
    return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

const Lane& lane_of(const Analysis& analysis, std::string_view name) {
    for (const Lane& lane : analysis.lanes)
        if (lane.name == name) return lane;
    FAIL("no lane " << name);
    throw 0;
}

}  // namespace

TEST_CASE("trace report: gaps are waits for the host, for a copy, for the queue") {
    const Analysis analysis = analyse(read_trace(two_streams()));
    REQUIRE(analysis.begin_ns == 100);
    REQUIRE(analysis.end_ns == 1100);
    REQUIRE(analysis.unfinished == 1);
    const Lane& stream = lane_of(analysis, "npu: stream 1: device");
    const std::vector<std::tuple<uint64_t, uint64_t, Gap>> expected = {{300, 350, Gap::kHost},
                                                                       {350, 700, Gap::kCopy},
                                                                       {700, 720, Gap::kQueue},
                                                                       {800, 990, Gap::kHost},
                                                                       {990, 1000, Gap::kQueue}};
    REQUIRE(stream.gaps.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        REQUIRE(std::tuple(stream.gaps[i].from_ns, stream.gaps[i].to_ns, stream.gaps[i].reason) ==
                expected[i]);
    }
    REQUIRE(lane_of(analysis, "enpu: main").slices[1].depth == 1);
}

TEST_CASE("trace report: kernels and calls are added up by name") {
    const Analysis analysis = analyse(read_trace(two_streams()));
    REQUIRE(analysis.kernels.at(0).name == "copy");
    REQUIRE(analysis.kernels.at(1).name == "gemm");
    REQUIRE(analysis.kernels[1].count == 2);
    REQUIRE(analysis.kernels[1].total_ns == 230);
    REQUIRE(analysis.kernels[1].shortest_ns == 80);
    REQUIRE(analysis.kernels[1].longest_ns == 150);
    REQUIRE(analysis.calls.at(0).name == "rt_kernel_launch");
    REQUIRE(analysis.calls[0].count == 4);
}

TEST_CASE("trace report: the page holds all of it and asks for nothing else") {
    const Analysis analysis = analyse(read_trace(two_streams()));
    const std::string page = timeline_page("a </script> <test>", analysis);
    REQUIRE(page.find("a &lt;/script&gt; &lt;test&gt;") != std::string::npos);
    for (const char* word : {"http", "src=", "@import", "url("})
        REQUIRE(page.find(word) == std::string::npos);
    REQUIRE(page.find("<td>gemm<td>2<td>230 ns") != std::string::npos);
    REQUIRE(page.find("<td>&lt;add&gt;<td>1") != std::string::npos);
    const auto data = data_of(page);
    REQUIRE(data["end_ns"] == 1100);
    size_t slices = 0, gaps = 0;
    for (const auto& lane : data["lanes"])
        for (const auto& box : lane["boxes"]) {
            const std::string kind = data["kinds"].at(box[3].get<size_t>());
            (kind == "host" || kind == "copy" || kind == "queue" ? gaps : slices) += 1;
            REQUIRE(box[1] >= box[0]);
            REQUIRE(box[1] <= 1000);
            REQUIRE(box[4] < data["strings"].size());
        }
    REQUIRE(slices == 9);
    REQUIRE(gaps == 5);
    REQUIRE(data["series"][0]["values"] == nlohmann::json::parse("[[20, 4096], [800, 0]]"));
    REQUIRE(timeline_page("nothing", analyse({})).find("\"lanes\":[]") != std::string::npos);
}

TEST_CASE("trace report: what is no trace is refused, damaged ones too") {
    for (const std::string bytes : {"garbage", "\x0a\xff", "\x0a\x02\x08", "{\"traceEvents\": []}"})
        REQUIRE_THROWS_AS(read_trace(bytes), Failure);
    REQUIRE(read_trace("").slices.empty());
    const std::string whole = two_streams();
    std::mt19937 random(1);
    for (unsigned i = 0; i < 3000; ++i) {
        std::string bytes = whole.substr(0, i % 3 ? whole.size() : random() % whole.size());
        for (unsigned change = 0; !bytes.empty() && change < 3; ++change)
            bytes[random() % bytes.size()] = static_cast<char>(random());
        try {
            timeline_page("damaged", analyse(read_trace(bytes)));
        } catch (const Failure&) {
        }
    }
}

}  // namespace enpu::tools
