// SPDX-License-Identifier: MIT
// The suite's own main: tells what a device can never do (unsupported) from what it does wrong, and
// from what is known to be wrong (expected failure); an unexpected pass fails the run.
//   ENPU_DEVICE        the device, "cpu" when not set
//   ENPU_CTS_EXPECTED  a file of known failures, a line each: NAME OF THE CASE | reason
//   ENPU_CTS_OUT       where the results go, as JSON
//   ENPU_CTS_NAME      their name; default: the backend's
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_case_info.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

struct Outcome {
    std::string name, status, reason;
};
std::vector<Outcome> outcomes;

class Listener final : public Catch::EventListenerBase {
  public:
    using EventListenerBase::EventListenerBase;

    void testCaseStarting(const Catch::TestCaseInfo&) override { reason_.clear(); }
    void assertionEnded(const Catch::AssertionStats& stats) override {
        const auto& result = stats.assertionResult;
        const bool skip = result.getResultType() == Catch::ResultWas::ExplicitSkip;
        if ((result.isOk() && !skip) || !reason_.empty()) return;
        if (result.hasMessage()) reason_ = std::string(result.getMessage());
        if (result.hasExpression()) reason_ += result.getExpandedExpression();
        if (skip) return;
        for (const auto& info : stats.infoMessages) reason_ += " (" + info.message + ")";
    }
    void testCaseEnded(const Catch::TestCaseStats& stats) override {
        Outcome outcome{stats.testInfo->name, "passed", reason_};
        const std::string leaks = take_leaks();
        if (stats.totals.assertions.failed) {
            outcome.status = "failed";
        } else if (!leaks.empty()) {
            outcome.status = "failed";
            outcome.reason = leaks;
            std::fprintf(stderr, "%s: %s\n", outcome.name.c_str(), leaks.c_str());
        } else if (stats.totals.testCases.skipped || reason_.starts_with("unsupported")) {
            outcome.status = "unsupported";
        }
        outcomes.push_back(std::move(outcome));
    }

  private:
    std::string reason_;
};
CATCH_REGISTER_LISTENER(Listener)

size_t entries(const char* folder) {
    std::error_code error;
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error))
        count += !entry.path().empty();
    return count;
}

// What the process and the device hold. The suite takes it before and after.
struct Held {
    size_t descriptors = 0, threads = 0;
    uint64_t local_free = 0;
    size_t workers = 0;  // threads that compute may stay for the next device
};

Held held(const enpu_hal_plugin& hal) {
#ifdef __SANITIZE_THREAD__
    std::thread([] {}).join();  // the sanitizer begins one of its own with the first
#endif
    Held now;
    enpu_hal_device* device = nullptr;
    if (hal.driver->open(device_spec(), &device, nullptr) == ENPU_HAL_OK) {
        auto info = with_header<enpu_hal_device_info>(ENPU_HAL_TYPE_DEVICE_INFO);
        uint64_t total = 0;
        if (hal.device->info(device, &info, nullptr) == ENPU_HAL_OK && info.local_bytes)
            hal.memory->usage(device, &now.local_free, &total, nullptr);
        now.workers = info.threads;
        hal.device->close(device);
    }
    now.descriptors = entries("/proc/self/fd");
    now.threads = entries("/proc/self/task");
    return now;
}

void add_exit_case(const Held& before, const Held& after) {
    Outcome outcome{"exit: no descriptor, thread or device memory is left behind", "passed", ""};
    if (after.descriptors > before.descriptors || after.threads > before.threads + before.workers ||
        after.local_free < before.local_free) {
        outcome.status = "failed";
        outcome.reason = "descriptors " + std::to_string(before.descriptors) + " -> " +
                         std::to_string(after.descriptors) + ", threads " +
                         std::to_string(before.threads) + " -> " + std::to_string(after.threads) +
                         ", free device memory " + std::to_string(before.local_free) + " -> " +
                         std::to_string(after.local_free);
        std::fprintf(stderr, "%s: %s\n", outcome.name.c_str(), outcome.reason.c_str());
    }
    outcomes.push_back(std::move(outcome));
}

std::map<std::string, std::string> expected_failures() {
    std::map<std::string, std::string> result;
    const char* path = std::getenv("ENPU_CTS_EXPECTED");
    if (!path) return result;
    std::ifstream file(path);
    if (!file) std::fprintf(stderr, "hal-cts: %s cannot be read\n", path);
    for (std::string line; std::getline(file, line);) {
        const size_t bar = line.find(" | ");
        if (line.empty() || line[0] == '#') continue;
        if (bar == std::string::npos)
            std::fprintf(stderr, "hal-cts: %s: a line without a reason: %s\n", path, line.c_str());
        else
            result[line.substr(0, bar)] = line.substr(bar + 3);
    }
    return result;
}

void apply_expectations() {
    const auto expected = expected_failures();
    for (Outcome& outcome : outcomes) {
        const auto found = expected.find(outcome.name);
        if (found == expected.end()) continue;
        if (outcome.status == "failed") {
            outcome = {outcome.name, "expected_failure", found->second};
        } else if (outcome.status == "passed") {
            outcome = {outcome.name, "failed",
                       "unexpected pass: take it off the list of known failures"};
            std::fprintf(stderr, "%s: %s\n", outcome.name.c_str(), outcome.reason.c_str());
        }
    }
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c >= 0 && c < 32 ? ' ' : c;
    }
    return out + "\"";
}

size_t count(const char* status) {
    size_t result = 0;
    for (const Outcome& outcome : outcomes) result += outcome.status == status;
    return result;
}

constexpr const char* kStatuses[] = {"passed", "failed", "unsupported", "expected_failure"};

void write(const char* path, const std::string& name) {
    std::ofstream file(path);
    file << "{\n \"backend\": " << quoted(name) << ",\n \"device\": " << quoted(device_spec());
    for (const char* status : kStatuses) file << ",\n \"" << status << "\": " << count(status);
    file << ",\n \"cases\": [";
    for (size_t i = 0; i < outcomes.size(); ++i)
        file << (i ? ",\n  " : "\n  ") << "{\"name\": " << quoted(outcomes[i].name)
             << ", \"status\": " << quoted(outcomes[i].status)
             << ", \"reason\": " << quoted(outcomes[i].reason) << "}";
    file << "\n ]\n}\n";
    if (!file) std::fprintf(stderr, "hal-cts: %s cannot be written\n", path);
}

}  // namespace

int main(int argc, char* argv[]) {
    const char* path = std::getenv("ENPU_CTS_OUT");
    if (path) std::remove(path);  // of a run before, should this one die
    Catch::Session session;
    const int refused = session.applyCommandLine(argc, argv);
    if (refused != 0) return refused;
    const enpu_hal_plugin* hal = nullptr;
    for (const Backend& backend : backends().loaded)
        if (backend.plugin->driver->accepts(device_spec())) hal = backend.plugin;
    if (!hal) {
        std::fprintf(stderr, "hal-cts: no backend takes the device '%s'\n", device_spec());
        return 1;
    }
    held(*hal);  // what is made once for the process
    const Held before = held(*hal);
    const int result = session.run();
    if (outcomes.empty()) return result;  // a list was asked for, or nothing matched
    add_exit_case(before, held(*hal));
    apply_expectations();
    const char* name = std::getenv("ENPU_CTS_NAME");
    if (path) write(path, name ? name : hal->name);
    std::printf("%s: %zu passed, %zu failed, %zu unsupported, %zu expected failures\n",
                device_spec(), count("passed"), count("failed"), count("unsupported"),
                count("expected_failure"));
    return count("failed") ? 1 : 0;
}
