// SPDX-License-Identifier: MIT
// Each fault of the table under each workload. Prints a line a cell, and with ENPU_ROWS the row for
// faults.json. ENPU_FAULTS and ENPU_WORKLOADS, lists of names, choose some.
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "bench.h"
#include "clients.h"
#include "own_copy.h"
#include "table.h"
#include "work.h"

namespace enpu::faults {
namespace {

bool chosen(const char* variable, const std::string& name) {
    const char* list = getenv(variable);
    return !list || ("," + std::string(list) + ",").find("," + name + ",") != std::string::npos;
}

struct Cell {
    std::string fault, workload;
    std::optional<double> detected_ms;  // none: nothing to detect
    bool fired = false, in_time = false, contained = false, recovered = false,
         innocents_right = false, leak_free = false, log_as_expected = false, upset = true;
    std::optional<bool> dump_decodes;  // none: the fault makes no dump
    std::string why;                   // of what is not as promised

    bool good() const {
        return fired && in_time && upset && contained && recovered && innocents_right &&
               leak_free && log_as_expected && dump_decodes.value_or(true);
    }
};

// A fault that did not fire, or was noticed too late, is not contained.
std::string json(const Cell& cell) {
    const auto flag = [](bool b) { return b ? "true" : "false"; };
    return std::string("{\"fault\": \"") + cell.fault + "\", \"workload\": \"" + cell.workload +
           "\", \"detected_ms\": " +
           (cell.detected_ms ? std::to_string(*cell.detected_ms) : "null") +
           ", \"contained\": " + flag(cell.contained && cell.fired && cell.in_time) +
           ", \"recovered\": " + flag(cell.recovered && cell.upset) +
           ", \"innocents_right\": " + flag(cell.innocents_right) +
           ", \"dump_decodes\": " + (cell.dump_decodes ? flag(*cell.dump_decodes) : "null") +
           ", \"leak_free\": " + flag(cell.leak_free) +
           ", \"log_as_expected\": " + flag(cell.log_as_expected) + "}";
}

void print(const Cell& cell) {
    const auto mark = [](bool b) { return b ? "yes" : "NO"; };
    char detected[32] = "-";
    if (cell.detected_ms) snprintf(detected, sizeof(detected), "%.0f ms", *cell.detected_ms);
    printf(
        "# %-20s %-10s detected %-9s%s contained %-3s recovered %-3s right %-3s dump %-3s "
        "leak-free %-3s log %-3s%s%s\n",
        cell.fault.c_str(), cell.workload.c_str(), cell.fired ? detected : "NOT FIRED",
        cell.in_time ? "" : " LATE", mark(cell.contained), mark(cell.recovered),
        mark(cell.innocents_right), cell.dump_decodes ? mark(*cell.dump_decodes) : "-",
        mark(cell.leak_free), mark(cell.log_as_expected), cell.good() ? "" : "  ",
        cell.good() ? "" : cell.why.c_str());
    if (getenv("ENPU_ROWS")) printf("@faults.json %s\n", json(cell).c_str());
    fflush(stdout);
}

bool wait_for(int limit_ms, const auto& condition) {
    const int64_t end = monotonic_ns() + limit_ms * 1'000'000LL;
    while (!condition()) {
        if (monotonic_ns() > end) return false;
        usleep(1000);
    }
    return true;
}

// Waits for the first sign of the fault, a failed job or the driver's counter: when, 0 if there was
// none. A fault that needs none, or was made up for, is in time already.
int64_t wait_detected(const Fault& fault, uint64_t counter_before, const Clients& clients,
                      Cell& cell) {
    cell.in_time = !fault.counter && !fault.least_victims;
    int64_t seen = 0;
    const auto marks = clients.marks();
    wait_for(fault.limit_ms * slower() + 10'000, [&] {
        if (cell.in_time) return true;
        seen = clients.first_failure_ns();
        if (!seen && fault.counter && counter(fault.counter) > counter_before)
            seen = monotonic_ns();
        if (!seen) cell.in_time = fault.absorbed && clients.went_on(marks, 3);
        return seen != 0;
    });
    if (!seen && !cell.in_time) cell.why += "not detected; ";
    return seen;
}

// From the device's own time of the fault to the first sign.
void judge_time(const Fault& fault, int64_t fired_ns, int64_t seen_ns, Cell& cell) {
    if (!seen_ns) return;
    cell.detected_ms = std::max<double>(0, static_cast<double>(seen_ns - fired_ns) / 1e6);
    cell.in_time = fired_ns && *cell.detected_ms <= fault.limit_ms * slower();
}

// The victims are as many as promised, and every failure is one that the fault may cause.
void judge(const Fault& fault, const Workload& workload, const Clients& clients, Cell& cell) {
    // A reset by the bus, or by waking up, may tear a job of anybody.
    std::vector<int> errors = fault.errors;
    unsigned most = fault.most_victims;
    if (workload.upset != Upset::kNone) {
        errors.push_back(-ESTALE);
        most = static_cast<unsigned>(clients.count());
    }
    uint64_t explained = 0;
    for (int error : errors) explained += clients.errors(error);
    cell.contained = clients.failed() == explained && clients.victims() >= fault.least_victims &&
                     clients.victims() <= most;
    cell.innocents_right = clients.wrong() == 0;
    if (!cell.contained || !cell.innocents_right) {
        cell.why += std::to_string(clients.victims()) + " clients failed, " +
                    std::to_string(clients.wrong()) + " wrong results;";
        for (int e = 1; e < Report::kErrors; e++)
            if (clients.errors(-e))
                cell.why +=
                    " errno " + std::to_string(e) + " x" + std::to_string(clients.errors(-e));
        cell.why += "; ";
    }
}

// Clears what is still armed, and lets the bus reset a device that is lost.
void heal(const Fault& fault) {
    debugfs_write("inject_fault", "none");
    if (fault.heal == Heal::kBusReset) {
        usleep(600'000);
        bus_reset();
    }
}

void after(const Fault& fault, KernelLog& log, uint64_t free_before, Cell& cell) {
    std::string left;
    cell.leak_free = wait_for(5000 * slower(), [&] { return (left = leftovers()).empty(); }) &&
                     local_free() == free_before && falls_asleep(5000 * slower());
    if (!cell.leak_free) cell.why += "left: " + left.substr(0, 200) + "or kept awake; ";
    const std::string found = log.findings(fault.log);
    cell.log_as_expected = found.empty();
    if (!found.empty()) cell.why += "log: " + found.substr(0, 300) + "; ";
    const Dumps dumps = take_dumps();
    if (fault.dump) {
        cell.dump_decodes = dumps.count > 0 && dumps.readable;
        if (!*cell.dump_decodes)
            cell.why += dumps.count ? "dump: " + dumps.why + "; " : "no dump; ";
    } else if (dumps.count) {
        cell.dump_decodes = dumps.readable;
    }
}

bool upset(Upset what) {
    switch (what) {
        case Upset::kBusReset:
            return bus_reset();
        case Upset::kSuspend:
            return test::sleep_devices("mem") == 0;
        default:
            return true;
    }
}

Cell run_cell(const Fault& fault, const Workload& workload) {
    Cell cell;
    cell.fault = fault.name;
    cell.workload = workload.name;
    // Dumps of mere faults are made at most twice a second.
    if (fault.dump) usleep(600'000);
    take_dumps();
    KernelLog log;
    const uint64_t free_before = local_free();
    const uint64_t count_before = fault.counter ? counter(fault.counter) : 0;
    const uint64_t fired_before = fired(fault.kind).count;
    Clients clients(workload.clients, ~0ull);
    if (!clients.wait_went_on(std::vector<uint64_t>(clients.count()), 2, 60'000 * slower())) {
        cell.why = "the clients did not start";
        return cell;
    }
    const bool armed = debugfs_write("inject_fault", fault.inject);
    Fired at;
    cell.fired = armed && wait_for(15'000 * slower(), [&] {
                     at = fired(fault.kind);
                     return at.count > fired_before || clients.failed() > 0;
                 });
    int64_t seen_ns = 0;
    if (cell.fired) {
        seen_ns = wait_detected(fault, count_before, clients, cell);
        cell.upset = upset(workload.upset);
        if (!cell.upset) cell.why += "no reset by the bus, or no sleep; ";
    } else {
        cell.why += armed ? "did not fire; " : "could not be armed; ";
    }
    heal(fault);
    // A device that was away could not tell before.
    if (!at.at_ns) at = fired(fault.kind);
    cell.fired = cell.fired && at.count > fired_before;
    judge_time(fault, at.at_ns, seen_ns, cell);
    const auto marks = clients.marks();
    cell.recovered = clients.wait_went_on(marks, 3, 40'000 * slower());
    cell.recovered = clients.finish(40'000 * slower()) && cell.recovered;
    if (!cell.recovered) cell.why += "clients do not go on; ";
    judge(fault, workload, clients, cell);
    after(fault, log, free_before, cell);
    return cell;
}

TEST_CASE("faults are detected, contained and recovered from") {
    if (debugfs("inject_fault").empty()) SKIP("needs a device with fault-injection=on and debugfs");
    REQUIRE(debugfs_write("inject_fault", "none"));
    make_golden();
    unsigned cells = 0;
    for (const Workload& workload : workloads()) {
        if (!chosen("ENPU_WORKLOADS", workload.name)) continue;
        for (const Fault& fault : faults()) {
            if (!chosen("ENPU_FAULTS", fault.name)) continue;
            const Cell cell = run_cell(fault, workload);
            print(cell);
            INFO(cell.fault << " under " << cell.workload << ": " << cell.why);
            CHECK(cell.good());
            cells++;
        }
    }
    REQUIRE(cells > 0);
}

}  // namespace
}  // namespace enpu::faults

// The copy is for the workload that puts the system to sleep.
int main(int argc, char** argv) {
    const bool sleeps = enpu::faults::chosen("ENPU_WORKLOADS", "suspend");
    if (sleeps && access("/sys/power/pm_test", W_OK) != 0) {
        puts("1..0 # SKIP this kernel has no test mode for sleep");
        return 0;
    }
    if (sleeps && !enpu::test::is_own_copy(argv[0])) return enpu::test::run_own_copy(argc, argv);
    return Catch::Session().run(argc, argv);
}
