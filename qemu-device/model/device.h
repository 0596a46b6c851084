// SPDX-License-Identifier: MIT
// The device: its engines, queues, address spaces and everything behind registers.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "counters.h"
#include "engine.h"
#include "enpu_hw.h"
#include "enpu_model.h"
#include "errors.h"
#include "faults.h"
#include "host.h"
#include "irq.h"
#include "mmu.h"
#include "queue.h"

namespace enpu::model {

class Device {
  public:
    Device(const enpu_model_config& config, const enpu_model_host& host);
    ~Device();

    // What include/enpu_model.h says.
    uint64_t read(uint64_t offset, uint32_t bytes);
    void write(uint64_t offset, uint64_t value, uint32_t bytes);
    void doorbell(uint32_t queue);
    void reset();
    void stop();
    void start();
    size_t save(void* buffer, size_t capacity);
    bool load(const void* buffer, size_t bytes, std::string& error);
    bool inject(const enpu_fault& fault);
    // How often a kind has fired, and when last.
    uint32_t fault_fired(uint32_t kind, uint64_t& last_ns) const;

    // Of the engines, under the lock.
    bool fetching() const { return enabled && !resetting; }
    uint64_t max_packet_work() const {
        return config.max_packet_work ? config.max_packet_work : ENPU_MAX_PACKET_WORK;
    }
    // Puts the record into the FIFO and raises vector 0.
    void push_error(const enpu_error_record& record);
    void complete_irq(uint32_t vector, uint64_t now);
    // Something was written that a WAIT may look at.
    void announce_write();
    void try_finish_reset();
    // Sends collected interrupts with the lock let go. False: there were none.
    bool deliver(Lock& lock);
    // The queue's job has left its engine, or there was none.
    void disable_queue(uint32_t queue);

    const enpu_model_config config;
    const Host host;
    std::mutex mutex;
    std::condition_variable rested;  // an engine has come to rest

    Faults faults;
    AddressSpaces spaces;
    Counters counters;
    Irq irq;
    Errors errors;
    std::array<Queue, ENPU_MAX_QUEUES> queues;
    std::vector<std::unique_ptr<Engine>> engines;

    bool stopped = false;  // the machine
    bool enabled = false;  // CTRL.ENABLE
    bool resetting = false;
    bool removed = false;
    uint64_t link_back_ns = kNever;  // when a removed device answers again
    uint32_t tlb_seq = 0;
    uint32_t tlb_stuck = 0;     // fault TLB_STUCK: invalidations that TLB_DONE will never reach
    uint64_t write_events = 0;  // grows with each announce_write

  private:
    struct Registers {
        uint64_t scratch = 0;
        enpu_fault fault{};  // the one that FAULT_ARM arms
    };

    // registers.cpp
    uint64_t read_register(uint32_t reg, uint32_t index) const;
    uint64_t read_global(uint32_t reg, uint32_t index) const;
    uint64_t read_capability(uint32_t reg, uint32_t index) const;
    uint64_t read_fault_block(uint32_t reg, uint32_t index) const;
    uint64_t read_engine(uint32_t reg, uint32_t index) const;
    uint64_t read_queue(uint32_t reg, uint32_t index) const;
    void write_register(uint32_t reg, uint32_t index, uint64_t value);
    void write_global(uint32_t reg, uint64_t value);
    void write_fault_block(uint32_t reg, uint64_t value);
    void write_queue(uint32_t reg, uint32_t queue, uint64_t value);
    void invalidate_tlb(uint32_t value);
    void write_control(uint32_t value);
    void write_engine_control(uint32_t engine, uint32_t value);
    void write_queue_control(uint32_t queue, uint32_t value);
    void arm_fault(uint32_t value);
    uint32_t tlb_done() const;
    uint32_t busy_engines() const;

    // snapshot.cpp
    template <class Archive>
    void visit(Archive& archive);
    const char* check_loaded() const;
    const char* check_queue(const Queue& queue) const;
    const char* check_job(const Engine& engine) const;

    // device.cpp
    // Runs a change of state asked for from outside, then what follows from it.
    template <class Function>
    void locked(Function&& function) {
        std::unique_lock inline_lock(sync_mutex_, std::defer_lock);
        if (config.sync) inline_lock.lock();
        Lock lock(mutex);
        function(lock);
        if (config.sync) run_inline(lock);
        // A caller stays no longer than one burst of interrupts.
        if (!deliver(lock) || stopped || !irq.has_messages()) return;
        if (config.sync)
            while (deliver(lock)) continue;
        else
            timer_.notify_one();
    }
    bool gone();
    void set_removed(bool removed);
    void expire_removal(uint64_t now);
    void kick(uint32_t queue);
    void start_queue(uint32_t queue);
    void stop_queue(uint32_t queue);
    void begin_reset(bool power_on);
    void clear_state();
    void clear_faults();
    bool arm(const enpu_fault& fault);
    void wake_all();
    // Sync mode: runs all there is to run. The lock is held.
    void run_inline(Lock& lock);
    void timer_main();
    void end_threads();

    Registers registers_;
    uint32_t reset_count_ = 0;
    uint64_t kicks_ = 0;
    bool reset_stuck_ = false;   // fault RESET_FAILS
    bool clear_faults_ = false;  // the reset under way is one of power-on kind
    bool quit_ = false;
    std::mutex sync_mutex_;  // one caller at a time runs jobs inline
    std::condition_variable timer_;
    std::thread timer_thread_;
};

}  // namespace enpu::model
