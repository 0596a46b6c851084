// SPDX-License-Identifier: MIT
#include "clients.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <enpu/enpu.hpp>
#include <new>
#include <stdexcept>

namespace enpu::faults {

int64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

namespace {

void note_failure(Report& report, int code) {
    const int index = std::clamp(-code, 0, Report::kErrors - 1);
    report.errors[static_cast<size_t>(index)]++;
    int64_t none = 0;
    report.first_failure_ns.compare_exchange_strong(none, monotonic_ns());
    report.failed++;
}

}  // namespace

// A round that fails ends the client's objects; it begins anew with the next, as a program would.
void Clients::live(Shared& shared, size_t index, const std::string& name) {
    Report& report = shared.reports[index];
    tally() = &report.jobs;
    uint64_t number = 0;
    while (!shared.stop && report.rounds_left) {
        try {
            const auto work = make_work(name, static_cast<unsigned>(index));
            while (!shared.stop && report.rounds_left) {
                if (!work->round(++number)) {
                    report.wrong++;
                } else {
                    report.right++;
                    report.rounds_left--;
                }
            }
        } catch (const Error& error) {
            note_failure(report, error.code());
            usleep(2000);
        }
    }
    _exit(0);
}

Clients::Clients(const std::vector<std::string>& works, uint64_t rounds) {
    if (works.size() > kMost) throw std::logic_error("too many clients");
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_ = new (memory) Shared{};
    for (size_t i = 0; i < works.size(); i++) {
        shared_->reports[i].rounds_left = rounds;
        const pid_t child = fork();
        if (child == 0) live(*shared_, i, works[i]);
        children_.push_back(child);
    }
}

Clients::~Clients() {
    for (pid_t child : children_)
        if (child > 0) {
            kill(child, SIGKILL);
            waitpid(child, nullptr, 0);
        }
    munmap(shared_, sizeof(Shared));
}

uint64_t Clients::sum(uint64_t (*of)(const Report&)) const {
    uint64_t sum = 0;
    for (size_t i = 0; i < count(); i++) sum += of(report(i));
    return sum;
}

uint64_t Clients::right() const {
    return sum([](const Report& r) -> uint64_t { return r.right; });
}

uint64_t Clients::wrong() const {
    return sum([](const Report& r) -> uint64_t { return r.wrong; });
}

uint64_t Clients::failed() const {
    return sum([](const Report& r) -> uint64_t { return r.failed; });
}

uint64_t Clients::submitted() const {
    return sum([](const Report& r) -> uint64_t { return r.jobs.submitted; });
}

uint64_t Clients::settled() const {
    return sum([](const Report& r) -> uint64_t { return r.jobs.settled; });
}

std::vector<uint64_t> Clients::ended() const {
    std::vector<uint64_t> rounds;
    for (size_t i = 0; i < count(); i++)
        rounds.push_back(report(i).right + report(i).wrong + report(i).failed);
    return rounds;
}

unsigned Clients::victims() const {
    unsigned sum = 0;
    for (size_t i = 0; i < count(); i++) sum += report(i).failed != 0;
    return sum;
}

int64_t Clients::first_failure_ns() const {
    int64_t first = 0;
    for (size_t i = 0; i < count(); i++) {
        const int64_t at = report(i).first_failure_ns;
        if (at && (!first || at < first)) first = at;
    }
    return first;
}

uint32_t Clients::errors(int code) const {
    uint32_t sum = 0;
    for (size_t i = 0; i < count(); i++) sum += report(i).errors[static_cast<size_t>(-code)];
    return sum;
}

std::vector<uint64_t> Clients::marks() const {
    std::vector<uint64_t> marks;
    for (size_t i = 0; i < count(); i++) marks.push_back(report(i).right);
    return marks;
}

bool Clients::went_on(const std::vector<uint64_t>& before, uint64_t more) const {
    for (size_t i = 0; i < count(); i++)
        if (report(i).right < before[i] + more) return false;
    return true;
}

bool Clients::wait_went_on(const std::vector<uint64_t>& before, uint64_t more, int limit_ms) const {
    const int64_t end = monotonic_ns() + limit_ms * 1'000'000LL;
    while (!went_on(before, more)) {
        if (monotonic_ns() > end) return false;
        usleep(2000);
    }
    return true;
}

// True when all have ended.
bool Clients::reap() {
    bool all = true;
    for (pid_t& child : children_) {
        int status = 0;
        if (child <= 0) continue;
        if (waitpid(child, &status, WNOHANG) == child) {
            well_ = well_ && WIFEXITED(status) && WEXITSTATUS(status) == 0;
            child = 0;
        } else {
            all = false;
        }
    }
    return all;
}

bool Clients::wait_ended(int limit_ms) {
    const int64_t end = monotonic_ns() + limit_ms * 1'000'000LL;
    while (!reap()) {
        if (monotonic_ns() > end) return false;
        usleep(5000);
    }
    return well_;
}

bool Clients::finish(int limit_ms) {
    shared_->stop = true;
    return wait_ended(limit_ms);
}

}  // namespace enpu::faults
