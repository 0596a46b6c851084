// SPDX-License-Identifier: MIT
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "layers.h"
#include "status.h"

namespace enpu::hal {
namespace {

constexpr const char* kKinds[] = {"oom", "submit", "delay", "drop", "wait", "lost"};
enum Kind { kOom, kSubmit, kDelay, kDrop, kWait, kLost, kKindCount };

struct Rule {
    Kind kind = kOom;
    uint64_t after = 0, count = 1, ms = 10;
    double chance = 1;
    uint64_t seen = 0, hits = 0;
};

class Fault final : public Layer {
  public:
    Fault(const enpu_hal_plugin& below, std::vector<Rule> rules, uint64_t seed)
        : Layer(below), rules_(std::move(rules)), state_(seed * 2 + 1) {}

    uint32_t alloc(enpu_hal_device* device, const enpu_hal_buffer_desc* desc,
                   enpu_hal_buffer** buffer, enpu_hal_status* status) override {
        if (uint32_t code = lost(status)) return code;
        if (hit(kOom))
            return fail(status, ENPU_HAL_RESOURCE_EXHAUSTED, "injected: no memory for this buffer");
        return next.memory->alloc(device, desc, buffer, status);
    }
    uint32_t submit(enpu_hal_queue* queue, const enpu_hal_submission* submission, uint64_t deadline,
                    enpu_hal_status* status) override {
        enpu_hal_submission changed{};
        if (uint32_t code = disturb(submission, changed, status)) return code;
        return next.queue->submit(queue, submission, deadline, status);
    }
    uint32_t graph_launch(enpu_hal_queue* queue, enpu_hal_graph* graph,
                          const enpu_hal_submission* submission, uint64_t deadline,
                          enpu_hal_status* status) override {
        enpu_hal_submission changed{};
        if (uint32_t code = disturb(submission, changed, status)) return code;
        return next.graph->launch(queue, graph, submission, deadline, status);
    }
    uint32_t fence_wait(enpu_hal_device* device, const enpu_hal_point* points, uint32_t count,
                        uint32_t any, uint64_t deadline, enpu_hal_status* status) override {
        if (uint32_t code = lost(status)) return code;
        const uint32_t code = next.fence->wait(device, points, count, any, deadline, status);
        if (code == ENPU_HAL_OK && hit(kWait))
            return fail(status, ENPU_HAL_WORK_FAILED, "injected: the wait says that work failed");
        return code;
    }
    uint32_t fence_query(enpu_hal_fence* fence, uint64_t* value, enpu_hal_status* status) override {
        if (uint32_t code = is_lost(status)) return code;
        return next.fence->query(fence, value, status);
    }
    uint32_t device_check(enpu_hal_device* device, enpu_hal_status* status) override {
        if (uint32_t code = is_lost(status)) return code;
        return next.device->check(device, status);
    }

  private:
    // May point `submission` to a copy without signals.
    uint32_t disturb(const enpu_hal_submission*& submission, enpu_hal_submission& changed,
                     enpu_hal_status* status) {
        if (uint32_t code = lost(status)) return code;
        if (hit(kSubmit))
            return fail(status, ENPU_HAL_UNAVAILABLE, "injected: the submission is refused");
        uint64_t ms = 0;
        if (hit(kDelay, &ms)) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        if (submission && submission->signal_count && hit(kDrop)) {
            changed = *submission;
            changed.signals = nullptr;
            changed.signal_count = 0;
            submission = &changed;
        }
        return ENPU_HAL_OK;
    }

    bool hit(Kind kind, uint64_t* ms = nullptr) {
        std::lock_guard lock(mutex_);
        for (Rule& rule : rules_) {
            if (rule.kind != kind || rule.seen++ < rule.after) continue;
            if (rule.count != 0 && rule.hits == rule.count) continue;
            if (draw() >= rule.chance) continue;
            ++rule.hits;
            if (ms) *ms = rule.ms;
            std::fprintf(stderr, "enpu: fault: %s, hit %llu\n", kKinds[kind],
                         static_cast<unsigned long long>(rule.hits));
            return true;
        }
        return false;
    }
    double draw() {  // xorshift: the same seed gives the same faults
        state_ ^= state_ << 13, state_ ^= state_ >> 7, state_ ^= state_ << 17;
        return double(state_ >> 11) / double(uint64_t{1} << 53);
    }
    uint32_t lost(enpu_hal_status* status) {
        if (!lost_ && hit(kLost)) lost_ = true;
        return is_lost(status);
    }
    uint32_t is_lost(enpu_hal_status* status) const {
        return lost_ ? fail(status, ENPU_HAL_DEVICE_LOST, "injected: the device is gone")
                     : uint32_t(ENPU_HAL_OK);
    }

    std::mutex mutex_;
    std::vector<Rule> rules_;
    uint64_t state_;
    std::atomic<bool> lost_{false};
};

bool set_key(Rule& rule, const std::string& key, const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || value < 0) return false;
    if (key == "chance" && value <= 1)
        rule.chance = value;
    else if (key == "after")
        rule.after = uint64_t(value);
    else if (key == "count")
        rule.count = uint64_t(value);
    else if (key == "ms" && value <= 60'000)
        rule.ms = uint64_t(value);
    else
        return false;
    return true;
}

bool read_rule(const std::string& text, Rule& rule, std::string& reason) {
    const size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    int kind = 0;
    while (kind < kKindCount && name != kKinds[kind]) ++kind;
    if (kind == kKindCount) {
        reason = "fault: there is no kind '" + name +
                 "'; there are oom, submit, delay, drop, wait and lost";
        return false;
    }
    rule.kind = Kind(kind);
    if (colon == std::string::npos) return true;
    std::stringstream keys(text.substr(colon + 1));
    for (std::string pair; std::getline(keys, pair, ',');) {
        const size_t equals = pair.find('=');
        if (equals == std::string::npos ||
            !set_key(rule, pair.substr(0, equals), pair.substr(equals + 1))) {
            reason =
                "fault: '" + pair + "' is not after=N, count=N, ms=N (up to 60000) or chance=0…1";
            return false;
        }
    }
    return true;
}

}  // namespace

std::unique_ptr<Layer> make_fault_layer(const enpu_hal_plugin& below, const std::string& order,
                                        std::string& reason) {
    std::vector<Rule> rules;
    uint64_t seed = 1;
    std::stringstream parts(order);
    for (std::string part; std::getline(parts, part, ';');) {
        if (part.empty()) continue;
        if (part.starts_with("seed=")) {
            seed = std::strtoull(part.c_str() + 5, nullptr, 10);
            continue;
        }
        Rule rule;
        if (!read_rule(part, rule, reason)) return nullptr;
        rules.push_back(rule);
    }
    if (rules.empty()) {
        reason = "fault: ENPU_HAL_FAULTS names no fault";
        return nullptr;
    }
    return std::make_unique<Fault>(below, std::move(rules), seed);
}

}  // namespace enpu::hal
