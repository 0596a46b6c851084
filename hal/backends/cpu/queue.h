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
    // A job is its waits, its commands, the accounting, its signals and an end.
    enum class SlotKind : uint32_t { kWait, kRecord, kGraph, kDone, kSignal, kEnd };
    struct Slot {
        SlotKind kind = SlotKind::kEnd;
        enpu_hal_point point{};                 // kWait, kSignal
        const enpu_hal_graph* graph = nullptr;  // kGraph
        uint64_t op_id = 0;                     // of every slot
        enpu::hal::cpu::Record record;          // kRecord
    };
    static constexpr uint64_t kSlots = 1024;

    uint32_t check(const enpu_hal_submission& submission, const enpu_hal_graph* graph,
                   enpu_hal_status* status) const;
    uint32_t wait_for_room(uint64_t slots, uint64_t deadline_ns, enpu_hal_status* status);
    Slot& next(SlotKind kind, uint64_t op_id);
    void publish();

    void loop();
    bool wait_for_work();
    void process(const Slot& slot);
    void run_record(const enpu::hal::cpu::Record& record, uint64_t op_id);
    void wait_point(const Slot& slot);
    void fail_job(const enpu_hal_status& why, uint64_t op_id);

    const uint64_t timeout_ns_;
    std::unique_ptr<Slot[]> slots_ = std::make_unique<Slot[]>(kSlots);

    std::mutex producers_;  // submit
    uint64_t write_ = 0;    // next slot to fill, guarded by producers_
    std::atomic<uint64_t> tail_{0};
    std::atomic<uint64_t> head_{0};

    std::mutex wake_mutex_;
    std::condition_variable wake_;
    std::atomic<bool> sleeping_{false};
    std::atomic<bool> stop_{false};

    // Of the worker alone.
    bool failed_ = false;  // an operation failed: what follows is dropped
    enpu_hal_status failure_{};
    bool job_failed_ = false;
    enpu_hal_status job_failure_{};

    std::thread worker_;
};
