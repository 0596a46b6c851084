// SPDX-License-Identifier: MIT
// One list of jobs on two devices: in the guest the real one and the simulator, natively two
// simulators of different shape. Bytes, packets, operator counters and fault records must be the
// same. What each device did is written as JSON to $ENPU_RESULTS (default: nowhere).
#include <cstdio>
#include <functional>
#include <random>
#include <sstream>

#include "tests/device_fixture.h"

using namespace enpu;
using namespace enpu::test;

namespace {

struct Record {
    std::string packets;  // as they were built, addresses included
    std::vector<uint8_t> output;
    std::vector<uint64_t> counters;
    std::string failure;
    enpu_context_status status{};
};

// Counters that depend on the job alone, not on time or on the shape of the device.
constexpr uint32_t kCompared[] = {ENPU_COUNTER_JOBS,        ENPU_COUNTER_PACKETS,
                                  ENPU_COUNTER_WORK,        ENPU_COUNTER_FAULTS,
                                  ENPU_COUNTER_JOBS_FAILED, ENPU_COUNTER_COPY_BYTES};

struct Job {
    const char* name;
    uint32_t kind;
    std::function<void(const Fixture&, enpu_builder*, const Buffer& in, const Buffer& out)> build;
};

void call(const std::function<int(enpu_error*)>& body) {
    check(body);
}

std::vector<Job> jobs() {
    std::vector<Job> list;
    list.push_back({"copy", ENPU_ENGINE_KIND_COPY,
                    [](const Fixture&, enpu_builder* b, const Buffer& in, const Buffer& out) {
                        call([&](enpu_error* e) {
                            return enpu_build_copy(b, out.get(), 3, in.get(), 100, 5000, e);
                        });
                        call([&](enpu_error* e) {
                            return enpu_build_fill(b, out.get(), 6000, 800, 0x0102030405060708, 8,
                                                   e);
                        });
                    }});
    list.push_back(
        {"conv2d f32", ENPU_ENGINE_KIND_COMPUTE,
         [](const Fixture&, enpu_builder* b, const Buffer& in, const Buffer& out) {
             const auto x = operand(in, ENPU_DTYPE_F32, {1, 3, 10, 10}),
                        w = operand(in, ENPU_DTYPE_F32, {4, 3, 3, 3}, 4096);
             const auto y = operand(out, ENPU_DTYPE_F32, {1, 4, 8, 8});
             const enpu_conv2d_params p = {{1, 1}, {0, 0, 0, 0}, {1, 1}, 1, ENPU_UNARY_RELU, 0, 0};
             call([&](enpu_error* e) {
                 return enpu_build_conv2d(b, &p, &x, &w, nullptr, nullptr, nullptr, &y, e);
             });
         }});
    list.push_back({"matmul i8", ENPU_ENGINE_KIND_COMPUTE,
                    [](const Fixture&, enpu_builder* b, const Buffer& in, const Buffer& out) {
                        const auto x = operand(in, ENPU_DTYPE_I8, {9, 40}),
                                   w = operand(in, ENPU_DTYPE_I8, {40, 7}, 4096);
                        const auto y = operand(out, ENPU_DTYPE_I32, {9, 7});
                        const enpu_matmul_params p = {ENPU_UNARY_IDENTITY, 0, 0, 0};
                        call([&](enpu_error* e) {
                            return enpu_build_matmul(b, &p, &x, &w, nullptr, nullptr, nullptr, &y,
                                                     e);
                        });
                    }});
    list.push_back({"softmax and move", ENPU_ENGINE_KIND_COMPUTE,
                    [](const Fixture&, enpu_builder* b, const Buffer& in, const Buffer& out) {
                        const auto x = operand(in, ENPU_DTYPE_F32, {6, 20}),
                                   y = operand(out, ENPU_DTYPE_F32, {6, 20});
                        auto from = operand(out, ENPU_DTYPE_F32, {20, 6});
                        from.tensor.strides[0] = 1, from.tensor.strides[1] = 20;
                        const auto to = operand(out, ENPU_DTYPE_F32, {20, 6}, 4096);
                        const enpu_softmax_params p = {1, 0};
                        call([&](enpu_error* e) { return enpu_build_softmax(b, &p, &x, &y, e); });
                        call([&](enpu_error* e) { return enpu_build_move(b, &from, &to, e); });
                    }});
    list.push_back({"gather out of range", ENPU_ENGINE_KIND_COMPUTE,
                    [](const Fixture&, enpu_builder* b, const Buffer& in, const Buffer& out) {
                        const auto x = operand(in, ENPU_DTYPE_F32, {2}),
                                   i = operand(in, ENPU_DTYPE_I32, {3}, 8192);
                        const auto y = operand(out, ENPU_DTYPE_F32, {3});
                        const enpu_gather_params p = {ENPU_GATHER_MODE_TAKE, 0};
                        call([&](enpu_error* e) { return enpu_build_nop(b, e); });
                        call(
                            [&](enpu_error* e) { return enpu_build_gather(b, &p, &x, &i, &y, e); });
                    }});
    return list;
}

// Small numbers that are good f32 values too, so that no job meets a NaN.
std::vector<float> input() {
    std::mt19937 random(11);
    std::vector<float> values(4096);
    for (float& value : values)
        value = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 512;
    return values;
}

Record run(const char* spec, const Job& job) {
    setenv("ENPU_DEVICE", spec, 1);
    Fixture f;
    const auto in = f.host(16384), out = f.host(16384);
    put(in, input());
    Builder builder(f.device, job.kind);
    job.build(f, builder.get(), in, out);
    Record record;
    record.packets.assign(static_cast<const char*>(enpu_builder_packets(builder.get())),
                          enpu_builder_bytes(builder.get()));
    const auto command = builder.finish();
    const auto before = f.device.counters();
    f.context.submit(job.kind == ENPU_ENGINE_KIND_COMPUTE ? 0 : f.copy_engine(), command, {},
                     {f.timeline.at(1)}, 4711);
    enpu_error error = {};
    enpu_context_wait(f.context.get(), f.timeline.get(), 1, soon(), &error);
    const auto after = f.device.counters();
    for (size_t i = 0; i < ENPU_MAX_OPCODES; ++i) record.counters.push_back(after[i] - before[i]);
    for (const uint32_t i : kCompared) record.counters.push_back(after[i] - before[i]);
    record.output = take<uint8_t>(out, out.bytes());
    record.failure = error.message;
    record.status = f.context.status();
    return record;
}

std::string json(const char* spec, const Job& job, const Record& record) {
    std::ostringstream text;
    uint64_t hash = 1469598103934665603u;
    for (const uint8_t byte : record.output) hash = (hash ^ byte) * 1099511628211u;
    text << "{\"device\": \"" << spec << "\", \"job\": \"" << job.name
         << "\", \"packet_bytes\": " << record.packets.size() << ", \"output_fnv1a\": " << hash
         << ", \"counters\": [";
    for (size_t i = 0; i < record.counters.size(); ++i)
        text << (i != 0 ? ", " : "") << record.counters[i];
    text << "], \"error\": " << record.status.code << ", \"hw_status\": " << record.status.hw_status
         << ", \"rule\": " << record.status.rule << ", \"operand\": " << record.status.operand
         << ", \"opcode\": " << record.status.opcode << ", \"packet\": " << record.status.packet
         << "}\n";
    return text.str();
}

void write_results(const std::string& text) {
    const char* folder = std::getenv("ENPU_RESULTS");
    if (folder == nullptr) return;
    const std::string path = std::string(folder) + "/umd-compare.json";
    std::FILE* file = std::fopen(path.c_str(), "a");
    if (file == nullptr) return;
    std::fputs(text.c_str(), file);
    std::fclose(file);
}

}  // namespace

TEST_CASE("one job list gives the same packets, bytes, counters and faults on both devices") {
    const std::string first = spec();
    const std::string second =
        first.rfind("sim", 0) == 0 ? "sim:cores=1,threads=2,copy-engines=1" : "sim";
    for (const Job& job : jobs()) {
        CAPTURE(job.name, first, second);
        const Record a = run(first.c_str(), job), b = run(second.c_str(), job);
        setenv("ENPU_DEVICE", first.c_str(), 1);
        write_results(json(first.c_str(), job, a) + json(second.c_str(), job, b));
        REQUIRE(a.packets == b.packets);
        REQUIRE(a.output == b.output);
        REQUIRE(a.counters == b.counters);
        REQUIRE(a.failure == b.failure);
        REQUIRE(a.status.code == b.status.code);
        REQUIRE(a.status.hw_status == b.status.hw_status);
        REQUIRE(a.status.rule == b.status.rule);
        REQUIRE(a.status.operand == b.status.operand);
        REQUIRE(a.status.opcode == b.status.opcode);
        REQUIRE(a.status.packet == b.status.packet);
    }
}
