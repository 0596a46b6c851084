// SPDX-License-Identifier: MIT
// The serving case: requests to a small model, served naively and properly, and the same jobs
// submitted one at a time and asynchronously. No delay is added anywhere.
//
//   rt-serve [--device SPEC] [--requests N] [--json FILE] [--trace PREFIX]
//            [--side PIXELS]
//
// naive:  per request it allocates, copies pageable memory piece by piece, and waits after each step
// proper: memory from the pool once, pinned inputs, the pieces of an input merged into one submission,
//         the kernels as a graph, requests in a pipeline of double-buffered streams
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "serve_model.h"

namespace {

using namespace enpu;
using bench::Model;

// Being loaded, computed and stored, and one more that hides wake-ups.
constexpr uint32_t kSlots = 4;

struct Options {
    std::string device = "npu", json, trace;
    int requests = 100;
    uint32_t side = 0;  // 0: chosen
};

// A side of the comparison, per request.
struct Times {
    double latency_us = 0;
    double kernel_us = 0;  // on the device
    double copy_us = 0;    // on the device
    double busy = 0;       // share of the wall time in which the device computed or copied

    double other_us() const { return latency_us - kernel_us - copy_us; }
};

double seconds_now() {
    return double(rt_now_ns()) * 1e-9;
}

// Device time of kernels and copies in a recording.
void split(rt_profile profile, int requests, Times& times) {
    rt_profile_kernel rows[32];
    uint32_t count = 0;
    rt::check(rt_profile_get_kernels(profile, rows, 32, &count));
    for (uint32_t i = 0; i < std::min<uint32_t>(count, 32); ++i) {
        const bool kernel = std::strncmp(rows[i].name, "kernel ", 7) == 0;
        (kernel ? times.kernel_us : times.copy_us) += double(rows[i].total_ns) * 1e-3 / requests;
    }
}

// Serves the requests in blocks, of which the median counts (others use the machine too), and once
// recorded, for how the time divides.
template <typename Serve>
Times measure(const Model& model, int requests, Serve serve, const std::string& trace = "") {
    constexpr int kBlocks = 7;
    const int block = std::max(requests / kBlocks, 5);
    serve(block);                                   // warm
    std::vector<std::pair<double, double>> blocks;  // latency, busy share
    for (int i = 0; i < kBlocks; ++i) {
        const rt_counters before = model.device().counters();
        const double start = seconds_now();
        serve(block);
        const double wall = seconds_now() - start;
        const rt_counters after = model.device().counters();
        blocks.emplace_back(wall * 1e6 / block,
                            double(after.busy_compute_ns - before.busy_compute_ns) * 1e-9 / wall);
    }
    std::sort(blocks.begin(), blocks.end());
    Times times;
    times.latency_us = blocks[kBlocks / 2].first;
    times.busy = blocks[kBlocks / 2].second;
    rt_profile_options options{};
    options.struct_size = sizeof(options);
    options.flags = trace.empty() ? uint32_t{RT_PROFILE_DEVICE} : 0;
    rt::check(rt_profile_start(&options));
    serve(block);
    rt_profile profile = nullptr;
    rt::check(rt_profile_stop(rt_deadline_ms(20'000), &profile));
    split(profile, block, times);
    if (!trace.empty()) rt::check(rt_profile_write(profile, trace.c_str()));
    rt_profile_destroy(profile);
    return times;
}

// ---- the two ways

void serve_naive(const Model& model, int requests, std::vector<float>& answers) {
    for (int i = 0; i < requests; ++i) model.naive(i, answers.data());
}

// Until the last answer is out; keeps the answer of the last request.
void serve_proper(const Model& model, rt_pipeline pipeline, int requests,
                  std::vector<float>& answers) {
    const auto pop = [&] {
        const void* output = nullptr;
        rt::check(rt_pipeline_pop(pipeline, rt_deadline_ms(20'000), &output));
        std::memcpy(answers.data(), output, model.output_bytes());
    };
    for (int i = 0; i < requests; ++i) {
        while (rt_pipeline_free_slots(pipeline) == 0) pop();
        const auto pieces = model.pieces(i);
        rt::check(rt_pipeline_push(pipeline, pieces.data(), uint32_t(pieces.size())));
    }
    while (rt_pipeline_in_flight(pipeline)) pop();
}

// ---- one at a time against asynchronous: graphs of the model, no copies

double busy_share(const Model& model, int jobs, bool wait_each) {
    const rt_counters before = model.device().counters();
    const double start = seconds_now();
    for (int i = 0; i < jobs; ++i) {
        model.run(unsigned(i) % 2);
        if (wait_each) model.stream().sync(rt_deadline_ms(20'000));
    }
    model.stream().sync(rt_deadline_ms(20'000));
    const double wall = seconds_now() - start;
    const rt_counters after = model.device().counters();
    return double(after.busy_compute_ns - before.busy_compute_ns) * 1e-9 / wall;
}

void print(const char* name, const Times& t) {
    std::printf(
        "%-7s %9.1f us a request: kernels %7.1f (%2.0f%%), copies %6.1f (%2.0f%%), waiting "
        "and host %7.1f (%2.0f%%); device busy %3.0f%%\n",
        name, t.latency_us, t.kernel_us, 100 * t.kernel_us / t.latency_us, t.copy_us,
        100 * t.copy_us / t.latency_us, t.other_us(), 100 * t.other_us() / t.latency_us,
        100 * t.busy);
}

std::string json(const char* name, const Times& t) {
    char text[300];
    std::snprintf(text, sizeof(text),
                  "\"%s\": {\"latency_us\": %.2f, \"kernel_us\": %.2f, \"copy_us\": %.2f, "
                  "\"other_us\": %.2f, \"busy\": %.4f}",
                  name, t.latency_us, t.kernel_us, t.copy_us, t.other_us(), t.busy);
    return text;
}

// The naive way at the side of the picture at which it spends a quarter of its time in kernels: their
// time grows with the area, the rest hardly does. Others use the machine too, so what is measured
// decides, and is measured again until it is near.
Times measure_naive(const Options& options, const rt::Device& device, uint32_t& side,
                    std::vector<float>& answers) {
    constexpr int kRounds = 8;
    constexpr double kWanted = 0.25, kNear = 0.04;
    side = options.side ? options.side : 96;
    for (int round = 1;; ++round) {
        const Model model(device, side);
        answers.assign(model.output_bytes() / sizeof(float), 0);
        const Times times =
            measure(model, options.requests / 2, [&](int n) { serve_naive(model, n, answers); });
        const double share = times.kernel_us / times.latency_us;
        if (options.side || std::abs(share - kWanted) < kNear || round == kRounds) return times;
        const double others = times.latency_us - times.kernel_us;
        const double scale =
            std::sqrt(others * kWanted / (1 - kWanted) / std::max(times.kernel_us, 0.1));
        const double next = std::round(side * std::clamp(scale, 0.5, 2.0) / 8) * 8;
        side = static_cast<uint32_t>(std::clamp(next, 16.0, 512.0));
    }
}

int serve(const Options& options) {
    const rt::Device device(options.device.c_str());
    uint32_t side = 0;
    std::vector<float> naive_answers;
    const Times naive = measure_naive(options, device, side, naive_answers);
    const Model model(device, side);
    std::printf("%s: a picture of %ux%u, %zu pieces of input, %u kernels\n", device.info().name,
                side, side, model.pieces(0).size(), Model::kKernels);

    std::vector<float> answers(naive_answers.size());
    rt_pipeline pipeline = model.make_pipeline(kSlots);
    const Times proper =
        measure(model, options.requests, [&](int n) { serve_proper(model, pipeline, n, answers); });
    // Both ways the same requests, of which the last one's answer is kept.
    serve_proper(model, pipeline, Model::kRequests + 1, answers);
    serve_naive(model, Model::kRequests + 1, naive_answers);
    rt_pipeline_destroy(pipeline);
    const bool same = answers == naive_answers;
    const int jobs = options.requests * 2;
    busy_share(model, 10, false);
    const double one_at_a_time = busy_share(model, jobs, true);
    const double asynchronous = busy_share(model, jobs, false);

    print("naive", naive);
    print("proper", proper);
    std::printf("proper is %.2f times faster; answers %s\n", naive.latency_us / proper.latency_us,
                same ? "are the same" : "DIFFER");
    std::printf("busy share of the same jobs: one at a time %.1f%%, asynchronous %.1f%%\n",
                100 * one_at_a_time, 100 * asynchronous);
    if (!options.json.empty()) {
        std::FILE* file = std::fopen(options.json.c_str(), "w");
        if (!file) {
            std::perror(options.json.c_str());
            return 1;
        }
        std::fprintf(file,
                     "{\"device\": \"%s\", \"side\": %u, %s, %s, \"same\": %s, "
                     "\"one_at_a_time_busy\": %.4f, \"asynchronous_busy\": %.4f}\n",
                     device.info().name, side, json("naive", naive).c_str(),
                     json("proper", proper).c_str(), same ? "true" : "false", one_at_a_time,
                     asynchronous);
        std::fclose(file);
    }
    return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--device") options.device = argv[i + 1];
        if (name == "--requests") options.requests = std::max(10, std::atoi(argv[i + 1]));
        if (name == "--json") options.json = argv[i + 1];
        if (name == "--side") options.side = uint32_t(std::clamp(std::atoi(argv[i + 1]), 8, 512));
        if (name == "--trace") options.trace = argv[i + 1];
    }
    try {
        return serve(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rt-serve: %s\n", error.what());
        return 1;
    }
}
