// SPDX-License-Identifier: MIT
// A queue of the cpu backend: a ring of slots, filled by submit and emptied by one thread. Nothing
// is allocated after creation.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "record.h"

struct enpu_hal_graph {
    explicit enpu_hal_graph(enpu_hal_device* owner) : device(owner) { ++device->counters.graphs; }
    ~enpu_hal_graph() { --device->counters.graphs; }

    enpu_hal_device* const device;
    std::vector<enpu::hal::cpu::Record> records;
};

struct enpu_hal_queue {
    enpu_hal_queue(enpu_hal_device* device, const enpu_hal_queue_desc& desc);
    ~enpu_hal_queue();

    uint32_t submit(const enpu_hal_submission& submission, const enpu_hal_graph* graph,
                    uint64_t deadline_ns, enpu_hal_status* status);

    enpu_hal_device* const device;
    const uint32_t engine;

  private:
    // A job is its waits, its commands, and its signals: the first of them goes with the last
    // command.
    enum class SlotKind : uint8_t { kNothing, kWait, kRecord, kGraph };
    struct Slot {
        SlotKind kind = SlotKind::kNothing;
        bool done = false;  // the job is accounted for here, before its first signal
        bool last = false;  // of the job
        uint64_t op_id = 0;
        enpu_hal_point signal{};  // or no fence
        enpu_hal_point wait{};
        const enpu_hal_graph* graph = nullptr;
        enpu::hal::cpu::Record record;
    };
    static constexpr uint64_t kSlots = 1024;
    static constexpr size_t kCacheLine = 64;

    uint32_t check(const enpu_hal_submission& submission, const enpu_hal_graph* graph,
                   enpu_hal_status* status) const;
    uint32_t wait_for_room(uint64_t slots, uint64_t deadline_ns, enpu_hal_status* status);
    Slot& next(SlotKind kind, uint64_t op_id);
    void finish_job(Slot* last, const enpu_hal_submission& submission);
    void publish();

    void loop();
    bool ready() const { return tail_.load() != head_.load() || stop_.load(); }
    bool wait_for_work();
    void process(const Slot& slot);
    void run_slot(const Slot& slot);
    void run_record(const enpu::hal::cpu::Record& record, uint64_t op_id);
    void wait_point(const Slot& slot);
    void fail_job(const enpu_hal_status& why, uint64_t op_id);

    const uint64_t timeout_ns_;
    std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(kSlots);

    // Producers and worker write to cache lines of their own: on different cores one line takes
    // as long to go over as the rest of a submission.
    alignas(kCacheLine) std::mutex producers_;  // submit
    uint64_t write_ = 0;                        // next slot to fill, guarded by producers_
    uint64_t head_seen_ = 0;                    // what producers know of head_
    alignas(kCacheLine) std::atomic<uint64_t> tail_{0};
    alignas(kCacheLine) std::atomic<uint64_t> head_{0};

    alignas(kCacheLine) std::atomic<bool> sleeping_{false};
    std::atomic<bool> stop_{false};
    std::mutex wake_mutex_;
    std::condition_variable wake_;

    // Of the worker alone.
    alignas(kCacheLine) bool failed_ = false;  // an operation failed: what follows is dropped
    enpu_hal_status failure_{};
    bool job_failed_ = false;
    enpu_hal_status job_failure_{};

    std::thread worker_;
};
