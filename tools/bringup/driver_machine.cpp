// SPDX-License-Identifier: MIT
// Jobs through libenpu: the kernel module, or the simulator's driver. The packets go unchecked
// (enpu_submit_raw), so that driver and device have the word.
#include <algorithm>
#include <cstring>
#include <enpu/enpu.hpp>
#include <map>
#include <vector>

#include "lib/output.h"
#include "machine.h"
#include "stage.h"

namespace enpu::bringup {
namespace {

constexpr uint64_t kWaitNs = 30'000'000'000;

class DriverMachine final : public Machine {
  public:
    explicit DriverMachine(const std::string& spec) : device_(Device::open(spec.c_str())) {
        for (uint32_t engine = 0; engine < engines(); ++engine)
            lines_.push_back({Context::create(device_), Timeline::create(device_), 0});
    }

    std::string name() const override {
        return std::string(device_.info().spec) + " through its driver";
    }
    bool driver() const override { return true; }
    uint32_t compute_engines() const override { return device_.info().compute_engines; }
    uint32_t copy_engines() const override { return device_.info().copy_engines; }
    Memory allocate(uint64_t bytes, bool local) override {
        buffers_.push_back(
            Buffer::create(device_, bytes, local ? ENPU_BUFFER_LOCAL : ENPU_BUFFER_HOST));
        const auto mapped = buffers_.back().map();
        return {buffers_.back().va(), mapped};
    }
    void release() override {
        jobs_.clear();
        buffers_.clear();
    }
    uint64_t submit(uint32_t engine, const Stream& stream) override;
    Outcome wait(uint64_t job) override;

  private:
    // An engine's own line of work: jobs of two engines may end in any order, points of one timeline
    // do not.
    struct Line {
        Context context;
        Timeline timeline;
        uint64_t point;
    };
    struct Job {
        uint32_t engine;
        uint64_t point;
        Buffer commands;
    };
    Device device_;
    std::vector<Line> lines_;
    std::vector<Buffer> buffers_;
    std::map<uint64_t, Job> jobs_;
    uint64_t next_ = 1;
};

uint64_t DriverMachine::submit(uint32_t engine, const Stream& stream) {
    const uint64_t bytes = std::max<uint64_t>(stream.bytes().size(), 16);
    const Buffer commands = Buffer::create(device_, bytes, ENPU_BUFFER_HOST);
    std::memcpy(commands.map().data(), stream.bytes().data(), stream.bytes().size());
    Line& line = lines_.at(engine);
    const enpu_point signal = line.timeline.at(line.point + 1);
    enpu_error error = {};
    if (enpu_submit_raw(line.context.get(), engine, commands.va(),
                        static_cast<uint32_t>(stream.bytes().size()), nullptr, 0, &signal, 1, next_,
                        nullptr, &error) != 0)
        throw StageFailure(std::string("the driver refuses the job: ") + error.message);
    jobs_.emplace(next_, Job{engine, ++line.point, commands});
    return next_++;
}

Outcome DriverMachine::wait(uint64_t number) {
    const Job job = jobs_.at(number);
    Line& line = lines_.at(job.engine);
    enpu_error error = {};
    const int result = enpu_context_wait(line.context.get(), line.timeline.get(), job.point,
                                         enpu_deadline_after(kWaitNs), &error);
    if (result == -ETIME)
        throw StageFailure(
            tools::format("a job does not end within %.0f s", double(kWaitNs) / 1e9));
    jobs_.erase(number);
    Outcome outcome;
    if (result == 0) return outcome;
    const enpu_context_status status = line.context.status();
    outcome.status = status.hw_status;
    outcome.va = status.fault_va;
    outcome.packet = status.packet;
    outcome.rule = status.rule;
    outcome.operand = status.operand;
    outcome.sentence = error.message;
    // A failure without the device's word (a lost device …) is no outcome of a job.
    if (outcome.status == ENPU_STATUS_OK) throw StageFailure(error.message);
    line.context = Context::create(device_);
    return outcome;
}

}  // namespace

std::unique_ptr<Machine> driver_machine(const std::string& spec) {
    return std::make_unique<DriverMachine>(spec);
}

}  // namespace enpu::bringup
