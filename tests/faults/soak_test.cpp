// SPDX-License-Identifier: MIT
// Soak: four processes run jobs and check every result while faults of all kinds are armed, one
// after the other, in an order that depends on ENPU_SEED alone. Writes soak.json to the folder of
// ENPU_RESULTS.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "bench.h"
#include "clients.h"
#include "table.h"
#include "work.h"

namespace enpu::faults {
namespace {

constexpr uint64_t kJobs = 10'000, kFired = 500;
constexpr unsigned kKinds = 12, kSteps = 400;
constexpr int kStuckMs = 60'000, kLimitMs = 25 * 60'000;

// How often a row of the table is drawn; those that stop everything for seconds are rare.
unsigned weight(const Fault& fault) {
    static const std::map<std::string, unsigned> rare = {{"engine-hang", 4},
                                                         {"tlb-stuck", 1},
                                                         {"reset-fails-once", 1},
                                                         {"removed", 1},
                                                         {"reset-fails-always", 0}};
    const auto found = rare.find(fault.name);
    return found == rare.end() ? 12 : found->second;
}

// The order of faults, and after how many events each fires.
struct Step {
    const Fault* fault;
    std::string text;
};

std::vector<Step> plan(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<const Fault*> urn;
    for (const Fault& fault : faults()) urn.insert(urn.end(), weight(fault), &fault);
    std::vector<Step> steps;
    for (unsigned i = 0; i < kSteps; i++) {
        const Fault* fault = urn[random() % urn.size()];
        const std::string text = fault->inject;
        // The options of the table come later in the text and win.
        const size_t name = std::min(text.find_first_of(":;"), text.size());
        const bool harmless = !fault->most_victims && fault->absorbed;
        const uint64_t times = harmless ? 1 + random() % 3 : 1, after = random() % 6;
        std::string options =
            text.find("after=") == text.npos ? ":after=" + std::to_string(after) : "";
        if (text.find("times=") == text.npos) options += ":times=" + std::to_string(times);
        // A reset that fails needs one that is asked for, which comes with the hang behind it.
        if (text.find(';') != text.npos) options.clear();
        steps.push_back({fault, text.substr(0, name) + options + text.substr(name)});
    }
    return steps;
}

struct Soak {
    Clients clients{{"copy", "model", "share", "copy"}, ~0ull};
    unsigned dumps = 0, steps = 0, silent = 0;
    std::string trouble;
    std::vector<uint64_t> ended = clients.ended();
    int64_t ended_ns = monotonic_ns();

    // No client stands still, whatever happens to it.
    bool all_go_on() {
        const auto now = clients.ended();
        bool moved = true;
        for (size_t i = 0; i < now.size(); i++) moved = moved && now[i] > ended[i];
        if (moved) {
            ended = now;
            ended_ns = monotonic_ns();
        }
        return monotonic_ns() - ended_ns < kStuckMs * slower() * 1'000'000LL;
    }

    void wait_fired(const Step& step, uint64_t before) {
        const int64_t end = monotonic_ns() + 3'000'000'000LL * slower();
        while (fired(step.fault->kind).count <= before && monotonic_ns() < end) usleep(2000);
    }

    void run(const Step& step) {
        const uint64_t before = fired(step.fault->kind).count;
        if (!debugfs_write("inject_fault", step.text)) {
            trouble += "could not arm " + step.text + "; ";
            return;
        }
        wait_fired(step, before);
        if (step.fault->heal == Heal::kBusReset) {
            usleep(600'000);
            bus_reset();
        }
        silent += fired(step.fault->kind).count == before;
        if (++steps % 8 == 0) look_at_dumps();
    }

    void look_at_dumps() {
        const Dumps found = take_dumps();
        dumps += found.count;
        if (!found.readable) trouble += "dump: " + found.why + "; ";
    }
};

// Failures that no fault of the table explains.
std::string unexplained(const Clients& clients) {
    std::set<int> known;
    for (const Fault& fault : faults()) known.insert(fault.errors.begin(), fault.errors.end());
    std::string text;
    for (int e = 1; e < Report::kErrors; e++)
        if (clients.errors(-e) && !known.contains(-e))
            text += "errno " + std::to_string(e) + " x" + std::to_string(clients.errors(-e)) + " ";
    return text;
}

using Counts = std::map<std::string, uint64_t>;

// What the device counted since then, by kind; kinds that did not fire are left out.
Counts fired_since(const Counts& before) {
    Counts since;
    for (const auto& [kind, count] : fired_by_kind())
        if (const uint64_t more = count - before.at(kind)) since[kind] = more;
    return since;
}

uint64_t total(const Counts& counts) {
    uint64_t sum = 0;
    for (const auto& [kind, count] : counts) sum += count;
    return sum;
}

void write_result(const Soak& soak, uint64_t seed, const Counts& fired, double seconds) {
    const char* folder = getenv("ENPU_RESULTS");
    if (!folder) return;
    std::ofstream file(std::string(folder) + "/soak.json");
    const Clients& c = soak.clients;
    file << "{\"seed\": " << seed << ", \"seconds\": " << seconds
         << ", \"processes\": " << c.count() << ", \"jobs\": " << c.submitted()
         << ", \"settled\": " << c.settled() << ", \"rounds_right\": " << c.right()
         << ", \"rounds_failed\": " << c.failed() << ", \"rounds_wrong\": " << c.wrong()
         << ", \"faults_fired\": " << total(fired) << ", \"dumps_read\": " << soak.dumps
         << ", \"fired\": {";
    const char* comma = "";
    for (const auto& [kind, count] : fired) {
        file << comma << "\"" << kind << "\": " << count;
        comma = ", ";
    }
    file << "}}\n";
}

TEST_CASE("10,000 jobs of four processes survive 500 faults") {
    if (debugfs("inject_fault").empty()) SKIP("needs a device with fault-injection=on and debugfs");
    const char* text = getenv("ENPU_SEED");
    const uint64_t seed = text ? std::strtoull(text, nullptr, 0) : 1;
    REQUIRE(debugfs_write("inject_fault", "none"));
    make_golden();
    KernelLog log;
    const uint64_t free_before = local_free();
    const Counts fired_before = fired_by_kind();
    const int64_t started = monotonic_ns(), limit = started + kLimitMs * 1'000'000LL * slower();
    Soak soak;
    bool alive = true;
    for (const Step& step : plan(seed)) {
        soak.run(step);
        alive = soak.all_go_on() && monotonic_ns() < limit;
        if (!alive) break;
    }
    debugfs_write("inject_fault", "none");
    while (alive && soak.clients.submitted() < kJobs) {
        usleep(20'000);
        alive = soak.all_go_on() && monotonic_ns() < limit;
    }
    const bool ended = soak.clients.finish(60'000 * slower());
    soak.look_at_dumps();
    const Counts fired = fired_since(fired_before);
    const double seconds = static_cast<double>(monotonic_ns() - started) / 1e9;
    const Clients& c = soak.clients;
    printf(
        "# seed %llu: %llu jobs, %llu faults of %d kinds, %u steps (%u silent) in %.0f s; rounds: "
        "%llu right, %llu failed, %llu wrong; %u dumps read\n",
        static_cast<unsigned long long>(seed), static_cast<unsigned long long>(c.submitted()),
        static_cast<unsigned long long>(total(fired)), static_cast<int>(fired.size()), soak.steps,
        soak.silent, seconds, static_cast<unsigned long long>(c.right()),
        static_cast<unsigned long long>(c.failed()), static_cast<unsigned long long>(c.wrong()),
        soak.dumps);
    write_result(soak, seed, fired, seconds);

    CHECK(alive);  // nothing stood still
    CHECK(ended);
    CHECK(soak.trouble == "");
    CHECK(c.submitted() >= kJobs);
    CHECK(c.settled() == c.submitted());
    CHECK(c.wrong() == 0);
    CHECK(unexplained(c) == "");
    CHECK(total(fired) >= kFired);
    CHECK(fired.size() >= kKinds);
    std::string left;
    for (int i = 0; i < 500 && !(left = leftovers()).empty(); i++) usleep(10'000 * slower());
    CHECK(left == "");
    CHECK(local_free() == free_before);
    CHECK(falls_asleep(5000 * slower()));
    std::string expected;
    for (const Fault& fault : faults()) expected += std::string(fault.log) + "\n";
    CHECK(log.findings(expected) == "");
}

}  // namespace
}  // namespace enpu::faults
