// SPDX-License-Identifier: MIT
// Recordings of this process, run again on the same device and on the simulator, and with
// differences planted into them.
#include "replayer.h"

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>
#include <enpu/enpu.hpp>
#include <filesystem>
#include <random>

#include "enpu_hw_tables.h"
#include "lib/failure.h"
#include "lib/system.h"

namespace enpu::tools {
namespace {

namespace fs = std::filesystem;

std::string device() {
    const char* spec = std::getenv("ENPU_DEVICE");
    return spec && *spec ? spec : "sim";
}

// A file that no other recording of this process went to.
fs::path fresh_file() {
    static unsigned count = 0;
    return fs::temp_directory_path() /
           ("enpu-replay-" + std::to_string(getpid()) + "." + std::to_string(count++));
}

Device open_recording(const fs::path& file) {
    setenv("ENPU_RECORD", file.c_str(), 1);
    const Device opened = Device::open(device().c_str());
    unsetenv("ENPU_RECORD");
    return opened;
}

std::vector<std::byte> load(const fs::path& file) {
    const std::string text = read_bytes(file).value();
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    return {from, from + text.size()};
}

// Two jobs on a copy engine; the second has six packets that build on each other. Host writes stand
// between them, and a clock word that no run repeats.
std::vector<std::byte> record_copies() {
    const fs::path file = fresh_file();
    {
        const Device opened = open_recording(file);
        const Context context = Context::create(opened);
        const Timeline timeline = Timeline::create(opened);
        const Buffer a = Buffer::create(opened, 64 << 10, ENPU_BUFFER_HOST);
        const Buffer b = Buffer::create(opened, 64 << 10, ENPU_BUFFER_LOCAL);
        const uint32_t engine = opened.info().compute_engines;
        uint64_t point = 0;
        for (unsigned round = 1; round <= 2; ++round) {
            std::memset(a.map().data(), int(0x10 * round), 4096);
            Builder builder(opened, ENPU_ENGINE_KIND_COPY);
            const auto copy = [&](const Buffer& to, uint64_t at, const Buffer& from, uint64_t of) {
                check([&](enpu_error* e) {
                    return enpu_build_copy(builder.get(), to.get(), at, from.get(), of, 4096, e);
                });
            };
            copy(b, 0, a, 0);
            if (round == 2) {
                copy(b, 4096, b, 0);
                check([&](enpu_error* e) {
                    return enpu_build_timestamp(builder.get(), a.get(), 60 << 10, e);
                });
                copy(b, 8192, b, 4096);
                copy(b, 12288, b, 8192);
                copy(a, 8192, b, 12288);
            }
            const Command command = builder.finish();
            context.submit(engine, command, {}, {timeline.at(++point)});
            context.wait(timeline, point, enpu_deadline_after(20'000'000'000));
        }
        REQUIRE(a.map()[8192] == std::byte{0x20});
    }
    auto bytes = load(file);
    fs::remove(file);
    return bytes;
}

ReplayResult replay_on(const std::string& spec, const Recording& recording, bool all = false) {
    const auto below = open_below(spec);
    ReplayOptions options;
    options.keep_going = all;
    return replay(recording, *below, options);
}

// Where a recorded range lies in the file.
size_t offset_of(const Recording& recording, const RecordedRange& range) {
    return static_cast<size_t>(range.bytes.data() - recording.file.data());
}

}  // namespace

TEST_CASE("replay: a recording is the same on the device and on the simulator") {
    const Recording recording = read_recording(record_copies());
    REQUIRE(recording.stopped.empty());
    REQUIRE(recording.jobs.size() == 2);
    REQUIRE(recording.jobs[0].packets.size() == 1);
    REQUIRE(recording.jobs[1].packets.size() == 6);
    REQUIRE(recording.jobs[1].packets[2].opcode == ENPU_OPCODE_TIMESTAMP);
    for (const std::string& spec : {device(), std::string("sim:cores=1,copy-engines=1")}) {
        CAPTURE(spec);
        const ReplayResult result = replay_on(spec, recording);
        REQUIRE(result.jobs == 2);
        REQUIRE(result.packets == 7);
        REQUIRE(result.bytes == 6 * 4096 + 8);
        REQUIRE(result.differences.empty());
    }
}

TEST_CASE("replay: the first packet whose output differs is found") {
    const std::vector<std::byte> file = record_copies();
    const Recording recording = read_recording(file);
    const RecordedJob& job = recording.jobs[1];
    SECTION("in what was recorded of one packet") {
        for (const size_t packet : {0u, 3u, 5u}) {
            auto changed = file;
            changed[offset_of(recording, job.packets[packet].after[0]) + 100] ^= std::byte{1};
            const auto result = replay_on(device(), read_recording(changed));
            REQUIRE(result.differences.size() == 1);
            const Difference& difference = result.differences[0];
            CAPTURE(packet, difference.what);
            REQUIRE(difference.job == 1);
            REQUIRE(difference.found_again);
            REQUIRE(difference.packet == job.packets[packet].offset);
            REQUIRE(difference.opcode == enpu_opcodes[ENPU_OPCODE_COPY].name);
            REQUIRE(difference.va == job.packets[packet].after[0].va + 100);
            REQUIRE(difference.bytes == 1);
        }
    }
    SECTION("in a packet: what builds on it is not blamed") {
        // The width of the fourth packet's copy, in the command buffer that the host wrote.
        auto changed = file;
        const uint64_t at = job.cmd_va + job.packets[3].offset + offsetof(enpu_copy_packet, width);
        bool found = false;
        for (const RecordedRange& range : job.before) {
            if (at < range.va || at >= range.va + range.bytes.size()) continue;
            const uint64_t width = 2048;
            std::memcpy(changed.data() + offset_of(recording, range) + (at - range.va), &width,
                        sizeof(width));
            found = true;
        }
        REQUIRE(found);
        const auto result = replay_on(device(), read_recording(changed));
        REQUIRE(result.differences.size() == 1);
        REQUIRE(result.differences[0].packet == job.packets[3].offset);
        REQUIRE(result.differences[0].bytes == 2048);
    }
    SECTION("in every job, when asked for") {
        auto changed = file;
        for (const RecordedJob& one : recording.jobs)
            changed[offset_of(recording, one.packets[0].after[0])] ^= std::byte{0x80};
        REQUIRE(replay_on(device(), read_recording(changed)).differences.size() == 1);
        REQUIRE(replay_on(device(), read_recording(changed), true).differences.size() == 2);
    }
    SECTION("a job that fails says why") {
        auto changed = file;
        for (const RecordedRange& range : job.before) {
            if (job.cmd_va < range.va || job.cmd_va >= range.va + range.bytes.size()) continue;
            const uint16_t opcode = 63;
            std::memcpy(changed.data() + offset_of(recording, range) + (job.cmd_va - range.va),
                        &opcode, sizeof(opcode));
        }
        const auto result = replay_on(device(), read_recording(changed));
        REQUIRE(result.differences.size() == 1);
        REQUIRE(result.differences[0].failed);
        REQUIRE(result.differences[0].what.find("ILLEGAL_PACKET") != std::string::npos);
    }
}

TEST_CASE("replay: a recording ends where a job fails, and says so") {
    const fs::path file = fresh_file();
    {
        const Device opened = open_recording(file);
        const Context context = Context::create(opened);
        const Timeline timeline = Timeline::create(opened);
        const Buffer commands = Buffer::create(opened, 4096, ENPU_BUFFER_HOST);
        const enpu_packet packets[2] = {{ENPU_OPCODE_NOP, 0, 16, 0}, {63, 0, 16, 0}};
        std::memcpy(commands.map().data(), packets, sizeof(packets));
        const enpu_point signal = timeline.at(1);
        enpu_error error = {};
        REQUIRE(enpu_submit_raw(context.get(), opened.info().compute_engines, commands.va(),
                                sizeof(packets), nullptr, 0, &signal, 1, 7, nullptr, &error) == 0);
        // The program sees the failure as without the recording.
        REQUIRE(enpu_context_wait(context.get(), timeline.get(), 1,
                                  enpu_deadline_after(20'000'000'000), &error) == -EBADMSG);
    }
    const Recording recording = read_recording(load(file));
    fs::remove(file);
    REQUIRE(recording.stopped == "a job failed");
    REQUIRE(recording.jobs.empty());
}

TEST_CASE("replay: damaged recordings are refused or read as far as they go") {
    const std::vector<std::byte> file = record_copies();
    REQUIRE_THROWS_AS(read_recording({}), Failure);
    REQUIRE(read_recording({file.begin(), file.end() - 1}).stopped.find("cut off") !=
            std::string::npos);
    std::mt19937 random(3);
    const auto below = open_below("sim:local-mem=64M");
    for (unsigned i = 0; i < 60; ++i) {
        auto bytes = file;
        for (unsigned change = 0; change < 4; ++change)
            bytes[random() % (i % 2 ? 400 : bytes.size())] = std::byte(random());
        try {
            replay(read_recording(bytes), *below, {});
        } catch (const Failure&) {
        }
    }
}

}  // namespace enpu::tools
