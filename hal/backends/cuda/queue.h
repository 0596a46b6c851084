// SPDX-License-Identifier: MIT
// A queue: a ring of jobs and a stream. submit() fills jobs and gives to the stream what can go
// there at once; the device's thread gives the rest and takes back what has finished. Nothing is
// allocated once the vectors of the ring have grown.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "record.h"

// A graph of the HAL as graphs of the driver, cut after every command that can fail and where it
// would get too long to be made again for an update.
struct enpu_hal_graph {
    struct Segment {
        size_t first = 0, count = 0;  // records
        bool fallible = false;        // its last record may report an offence
        // For the libraries: a part of its own, because launches on two queues may overlap in two
        // segments.
        enpu::hal::cuda::DevicePtr workspace = 0;
        uint64_t workspace_bytes = 0;
        bool stale = true;  // exec is not what the records say
        enpu::hal::cuda::GraphExec exec = nullptr;
    };

    explicit enpu_hal_graph(enpu_hal_device* owner) : device(owner) { ++device->counters.graphs; }
    ~enpu_hal_graph();
    // Makes what is stale again. In the context.
    uint32_t build(enpu_hal_status* status);
    // A launch of a graph that may report an offence has the words to itself; others go on top of
    // each other.
    bool claim(const void* job);
    void release(const void* job);

    enpu_hal_device* const device;
    std::vector<enpu::hal::cuda::Record> records;
    std::vector<Segment> segments;
    enpu::hal::cuda::Totals totals;
    enpu::hal::cuda::Offence* offence = nullptr;  // pinned
    uint64_t offence_address = 0;
    enpu::hal::cuda::Stream capture = nullptr;

  private:
    uint32_t build_segment(Segment& segment, enpu_hal_status* status);
    void make_room(Segment& segment);
    enpu::hal::cuda::Result capture_segment(Segment& segment, enpu::hal::cuda::Graph* graph,
                                            const char** what);

    std::mutex mutex_;  // builds
    std::atomic<const void*> claimed_{nullptr};
};

struct enpu_hal_queue {
    enpu_hal_queue(enpu_hal_device* device, const enpu_hal_queue_desc& desc);
    ~enpu_hal_queue();
    // Stream, events and pinned words.
    uint32_t create(int32_t priority, enpu_hal_status* status);

    uint32_t submit(const enpu_hal_submission& submission, enpu_hal_graph* graph,
                    uint64_t deadline_ns, enpu_hal_status* status);
    // Moves jobs as far as they go without waiting. True while there is something that time alone
    // will change.
    bool pump();

    enpu_hal_device* const device;
    const uint32_t engine;

  private:
    // kEnded: nothing of it is on the GPU (any more), and it failed.
    enum class Stage { kHeld, kStarted, kOnGpu, kEnded };
    struct Job {
        uint64_t op_id = 0;
        std::vector<enpu_hal_point> waits, signals;
        std::vector<enpu::hal::cuda::Record> records;
        size_t record_count = 0;
        enpu_hal_graph* graph = nullptr;

        Stage stage = Stage::kHeld;
        size_t next = 0;       // step (record, or segment of the graph) to give to the stream
        bool suspect = false;  // the step before `next` may have reported an offence
        bool first = false;    // it is the first that is held
        uint64_t since = 0;    // ns: first of those held, then given to the stream
        bool failed = false;   // with the failure below
        enpu_hal_status failure{};
        enpu::hal::cuda::Event start = nullptr, end = nullptr;
    };
    enum class Move { kDone, kStuck };

    uint32_t check(const enpu_hal_submission& submission, const enpu_hal_graph* graph,
                   enpu_hal_status* status) const;
    uint32_t fill(Job& job, const enpu_hal_submission& submission, enpu_hal_graph* graph,
                  enpu_hal_status* status);
    bool pump_locked();
    Move issue_job(Job& job);
    Move await_points(Job& job);
    bool start(Job& job);
    Move issue_steps(Job& job);
    enpu::hal::cuda::Result issue_step(Job& job, bool* fallible, const char** what);
    Move settle_suspect(Job& job);
    Move retire_job(Job& job);
    void finish(Job& job);
    void fail_job(Job& job, const enpu_hal_status& why);
    void fail_held(Job& job, const enpu_hal_status& why);
    void fail_started(Job& job, const enpu_hal_status& why);
    bool is_hung(const Job& job, uint64_t now) const;
    void lose_hung(Job& job);
    void fail_all_lost();
    void drop_held();

    bool query_end(Job& job, bool* ready);
    size_t steps(const Job& job) const {
        return job.graph ? job.graph->segments.size() : job.record_count;
    }
    uint32_t calls(const Job& job) const;
    enpu::hal::cuda::Offence& offence_of(Job& job) const;
    Job& at(uint64_t number) { return jobs_[number % kJobs]; }

    static constexpr uint64_t kJobs = 128;

    enpu::hal::cuda::Gpu& gpu_;
    const uint64_t timeout_ns_;
    enpu::hal::cuda::Stream stream_ = nullptr;
    enpu::hal::cuda::Offence* offence_ = nullptr;  // pinned
    uint64_t offence_address_ = 0;
    enpu::hal::cuda::DevicePtr workspace_ = 0;  // kWorkspaceBytes for the libraries, once needed

    std::mutex mutex_;
    std::unique_ptr<Job[]> jobs_ = std::make_unique<Job[]>(kJobs);
    // Jobs [head, issued) are on the GPU or ended, [issued, tail) are held. Read without the lock to
    // wait for room; changed under it.
    std::atomic<uint64_t> head_{0}, tail_{0};
    uint64_t issued_ = 0;
    uint32_t calls_in_flight_ = 0;
    uint64_t last_progress_ns_ = 0;
    bool stopping_ = false;
    bool failed_ = false;  // an operation failed: what follows is dropped
    enpu_hal_status failure_{};
};
