// SPDX-License-Identifier: MIT
// An engine: a thread that takes jobs from its queues, runs their packets tile by tile and looks
// between tiles whether it is to stop. In sync mode the same steps are made by the caller of the
// device.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "enpu_hw.h"
#include "memory.h"
#include "mmu.h"
#include "operator.h"
#include "queue.h"
#include "ring.h"
#include "rules.h"

namespace enpu::model {

class Device;
using Lock = std::unique_lock<std::mutex>;

// The job that occupies an engine: with it, and the queue, the job can go on in another process.
struct Job {
    uint32_t queue = kNone;  // kNone: no job
    enpu_ring_entry entry{};
    uint32_t offset = 0;    // of the current packet
    uint64_t start_ns = 0;  // of the job
    uint64_t busy_ns = 0;   // since when it occupies the engine
    uint64_t copied = 0;    // bytes of the current COPY or FILL that are done
    bool half_way = false;  // a tile of the current packet has run
};

// Why a job failed: what its error record says besides what the job itself tells.
struct Failure {
    enpu_status status = ENPU_STATUS_OK;
    uint8_t access = ENPU_ACCESS_NONE;
    uint8_t cause = 0;
    uint64_t va = 0;
    uint16_t opcode = 0, rule = 0;
    uint64_t tag = 0, detail = 0;
};

class Engine final : ops::Progress {
  public:
    Engine(Device& device, uint32_t index, enpu_engine_kind kind);
    ~Engine() override = default;

    void start_thread();
    void join();

    // One step: serves a queue, or goes on with the job. False when there is nothing to do. In sync
    // mode called with the device's lock too; it is let go while memory is touched.
    bool step(Lock& lock);
    void wake() { wake_.notify_one(); }

    uint32_t index() const { return index_; }
    enpu_engine_kind kind() const { return kind_; }
    enpu_engine_state state() const;
    // Neither a tile nor an access of queue memory is under way.
    bool resting() const { return resting_; }
    bool idle() const { return idle_; }
    // Invalidations that a tile under way has not seen.
    uint32_t tlb_lag() const;
    uint64_t busy_ns() const;
    // Does it hold the queue, for a job or for a look at its memory?
    bool attends(uint32_t queue) const { return job.queue == queue || attended_ == queue; }
    Memory& memory() { return memory_; }  // for saved state, while resting
    // To the state of a new device, but for the power-on counters.
    void reset();
    void request_reset();
    // step() for the caller of the device in sync mode.
    bool step_inline(Lock& lock);

    // Under the device's lock.
    Job job;
    bool stop = false;             // ENGINE_CTRL.STOP
    bool reset_requested = false;  // ENGINE_CTRL.RESET
    bool reset_stuck = false;      // fault RESET_FAILS
    bool hung = false;             // fault ENGINE_HANG
    bool discard = false;          // drop the job without a trace: device reset, load, end
    bool quit = false;
    uint32_t tlb_seen = 0;    // invalidations that the running tile has seen
    uint32_t last_queue = 0;  // for taking turns
    uint64_t progress = 0, busy_total_ns = 0, jobs = 0;
    std::vector<uint16_t> queues;  // started ones of this engine

  private:
    enum class Verdict { kGo, kAbort, kPark, kLeave };
    enum class Result { kDone, kFailed, kAborted, kParked, kWaiting, kLeft };

    // engine.cpp: thread, boundaries.
    void main();
    // Sleeps until it is woken or the device clock reaches the deadline. `counts`: as resting.
    void rest(Lock& lock, uint64_t deadline_ns, bool counts = true);
    uint64_t next_deadline() const;
    Verdict boundary(bool packet_start);
    bool hold(Lock& lock);
    bool slow_down(Lock& lock, bool may_hold);
    void end_reset(Lock& lock);

    // serve.cpp: queues and the beginning and end of jobs.
    uint32_t pick(uint64_t now) const;
    void serve(Lock& lock, uint32_t queue);
    bool look_at_word(Lock& lock, uint32_t queue);
    bool look_at_ring(Lock& lock, uint32_t queue);
    bool scan_ring(Queue& seen, enpu_ring_entry& entry, bool& empty, Failure& failure);
    bool check_entry(const Queue& seen, const enpu_ring_entry& entry, Failure& failure) const;
    void ring_failed(Lock& lock, uint32_t queue, const Failure& failure);
    enpu_error_record record_of(const Job& job, const Failure& failure) const;
    bool release(uint32_t queue);
    void begin_job(uint32_t queue, const enpu_ring_entry& entry);
    void run_job(Lock& lock);
    void finish_job(Lock& lock);
    void fail_job(Lock& lock, const Failure& failure);
    void park_job();
    void park_waiting(Lock& lock);
    void leave_engine();
    void delay_completion(Lock& lock);
    void corrupt(enpu_fault_kind kind, uint64_t& value);
    bool wants_irq(const Queue& seen, Ring& ring);
    Ring ring_of(const Queue& queue) {
        return Ring(memory_, queue.space(), queue.address, queue.ring_log2);
    }

    // processor.cpp: packets. Without the lock.
    Result run_packets(Failure& failure);
    Result fetch(Failure& failure);
    Result run_packet(const enpu_packet& packet, Failure& failure);
    Result check(const void* packet, uint32_t available, Failure& failure);
    Result inject(Failure& failure);
    void complete_packet(const enpu_packet& packet);
    Result next_tile();
    static Result failed(const Fault& fault, Failure& failure);

    // control.cpp
    Result run_copy(const enpu_copy_packet& packet, Failure& failure);
    Result run_fill(const enpu_fill_packet& packet, Failure& failure);
    Result run_wait(const enpu_wait_packet& packet, Failure& failure);
    Result write_word(uint64_t va, uint64_t value, Failure& failure);

    // operands.cpp
    class Operands;
    Result run_operator(const enpu_operator_packet& packet, Failure& failure);

    // ops::Progress
    bool proceed() override;
    void detail(unsigned operand, int64_t value) override;
    unsigned threads() const override;

    Device& device_;
    const uint32_t index_;
    const enpu_engine_kind kind_;
    Mmu mmu_;
    Memory memory_;
    std::thread thread_;
    std::condition_variable wake_;
    bool resting_ = true, idle_ = true;
    bool halted_ = false;        // rests between packets because of STOP
    uint32_t attended_ = kNone;  // queue whose memory is being looked at

    // Of the thread alone.
    std::vector<std::byte> command_;  // private copy of the command buffer from fetched_ on
    uint32_t fetched_ = 0;
    uint32_t as_id_ = 0;
    bool restartable_ = true;       // the current packet may run again from its start
    enpu_wait_packet wait_{};       // the WAIT that was not satisfied
    uint64_t wait_events_ = 0;      // Device::write_events before its word was read
    Operands* operands_ = nullptr;  // of the operator that runs
    Result interrupted_ = Result::kDone;
    Failure* operator_failure_ = nullptr;
};

}  // namespace enpu::model
