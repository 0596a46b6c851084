// SPDX-License-Identifier: MIT
// Jobs on the bench: one queue an engine.
#include <map>

#include "bench.h"
#include "enpu_hw_tables.h"
#include "lib/output.h"

namespace enpu::bringup {
namespace {

class BareMachine final : public Machine {
  public:
    explicit BareMachine(Bench& bench) : bench_(bench) { bench_.set_up(); }

    std::string name() const override { return bench_.device().name() + ", bare"; }
    bool driver() const override { return false; }
    uint32_t compute_engines() const override { return bench_.compute_engines(); }
    uint32_t copy_engines() const override { return bench_.engines() - bench_.compute_engines(); }
    Memory allocate(uint64_t bytes, bool local) override { return bench_.buffer(bytes, local); }
    void release() override {
        queues_.clear();
        jobs_.clear();
        bench_.set_up();
    }
    uint64_t submit(uint32_t engine, const Stream& stream) override;
    Outcome wait(uint64_t job) override;

  private:
    struct Job {
        uint32_t engine;
        uint64_t fence;
    };
    Bench::Queue& queue(uint32_t engine);

    Bench& bench_;
    std::map<uint32_t, Bench::Queue> queues_;
    std::map<uint64_t, Job> jobs_;
    uint64_t next_ = 1;
    uint32_t next_queue_ = 0;
};

// A queue that has faulted is left behind; the next one of the engine has another number.
Bench::Queue& BareMachine::queue(uint32_t engine) {
    const auto found = queues_.find(engine);
    if (found != queues_.end()) return found->second;
    return queues_[engine] = bench_.queue(next_queue_++ % 64, engine, 6);
}

uint64_t BareMachine::submit(uint32_t engine, const Stream& stream) {
    Bench::Queue& ring = queue(engine);
    bench_.await("room in the ring",
                 [&] { return ring.tail - bench_.header(ring).head < ring.entries(); });
    jobs_[next_] = {engine, bench_.push(ring, stream)};
    return next_++;
}

Outcome BareMachine::wait(uint64_t number) {
    const Job job = jobs_.at(number);
    Bench::Queue& ring = queue(job.engine);
    const bool ended = bench_.soon([&] {
        return bench_.fence(ring) >= job.fence || bench_.state(ring) == ENPU_QUEUE_STATE_FAULTED;
    });
    Outcome outcome;
    if (ended && bench_.fence(ring) >= job.fence) return outcome;
    if (!ended)
        throw StageFailure(tools::format(
            "a job of engine %u does not end: fence is %llu, %llu was to come; queue %u is %s",
            job.engine, (unsigned long long)bench_.fence(ring), (unsigned long long)job.fence,
            ring.id, tools::name_of(enpu_queue_state_names, bench_.state(ring)).c_str()));
    outcome.status = bench_.status(ring);
    outcome.sentence = tools::name_of(enpu_status_names, outcome.status);
    enpu_error_record record;
    bench_.soon([&] { return bench_.read32(ENPU_REG_ERR_COUNT) != 0; });
    if (bench_.pop_error(&record)) {
        outcome.va = record.va;
        outcome.packet = record.packet;
        outcome.rule = record.rule;
        if (record.kind == ENPU_STATUS_BAD_OPERAND) outcome.operand = record.cause;
        outcome.sentence = tools::describe(record);
    }
    bench_.disable(ring);
    queues_.erase(job.engine);
    return outcome;
}

}  // namespace

void Machine::must_run(const std::string& step, uint32_t engine, const Stream& stream) {
    const Outcome outcome = run(engine, stream);
    require(outcome.status == ENPU_STATUS_OK, step + ": " + outcome.sentence);
}

std::unique_ptr<Machine> bare_machine(Bench& bench) {
    return std::make_unique<BareMachine>(bench);
}

}  // namespace enpu::bringup
