// SPDX-License-Identifier: MIT
// Jobs through libenpu: the kernel module, or the simulator's driver. The packets go unchecked
// (enpu_submit_raw), so that driver and device have the word.
#include <algorithm>
#include <cstring>
#include <enpu/enpu.hpp>
#include <fstream>
#include <map>
#include <vector>

#include "driver.h"
#include "lib/output.h"
#include "lib/system.h"
#include "machine.h"
#include "stage.h"

namespace enpu::bringup {
namespace {

constexpr uint64_t kWaitNs = 30'000'000'000;

class DriverMachine final : public Machine, public Driver {
  public:
    explicit DriverMachine(const std::string& spec) : device_(Device::open(spec.c_str())) {
        for (uint32_t engine = 0; engine < engines(); ++engine)
            lines_.push_back({Context::create(device_), Timeline::create(device_), 0});
        if (device_.info().local_bytes != 0) {
            awake_ = Buffer::create(device_, 4096, ENPU_BUFFER_LOCAL);
            awake_.map();
        }
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
    uint64_t submit(uint32_t engine, const Stream& stream) override {
        return submit_after(engine, stream, {});
    }
    Outcome wait(uint64_t job) override;

    std::unique_ptr<Machine> beside() const override {
        return std::make_unique<DriverMachine>(device_.info().spec);
    }
    uint64_t submit_after(uint32_t engine, const Stream& stream,
                          std::span<const uint64_t> jobs) override;
    uint64_t abandon(uint32_t engine, const Stream& stream) override;
    void limit(uint32_t engine, uint32_t milliseconds) override {
        enpu_context_config config = {};
        config.priority = ENPU_PRIORITY_NORMAL;
        config.timeout_ms = milliseconds;
        lines_.at(engine).context = Context::create(device_, &config);
    }
    int code(uint64_t job) override;
    bool inject(const std::string& fault, std::string* why_not) override;
    void let_sleep() override { awake_ = {}; }
    std::filesystem::path pci() const override;

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
    Buffer write(const Stream& stream);
    // Waits for a job and forgets it; 0 or the errno it ended with, and its sentence.
    int settle(uint64_t number, std::string* sentence);

    Device device_;
    Buffer awake_;  // local memory that is mapped keeps a device awake
    std::vector<Line> lines_;
    std::vector<Buffer> buffers_;
    std::map<uint64_t, Job> jobs_;
    uint64_t next_ = 1;
};

Buffer DriverMachine::write(const Stream& stream) {
    const uint64_t bytes = std::max<uint64_t>(stream.bytes().size(), 16);
    const Buffer commands = Buffer::create(device_, bytes, ENPU_BUFFER_HOST);
    std::memcpy(commands.map().data(), stream.bytes().data(), stream.bytes().size());
    return commands;
}

uint64_t DriverMachine::submit_after(uint32_t engine, const Stream& stream,
                                     std::span<const uint64_t> jobs) {
    const Buffer commands = write(stream);
    Line& line = lines_.at(engine);
    std::vector<enpu_point> waits;
    for (const uint64_t number : jobs) {
        const Job& job = jobs_.at(number);
        waits.push_back(lines_.at(job.engine).timeline.at(job.point));
    }
    const enpu_point signal = line.timeline.at(line.point + 1);
    enpu_error error = {};
    if (enpu_submit_raw(line.context.get(), engine, commands.va(),
                        static_cast<uint32_t>(stream.bytes().size()), waits.data(),
                        static_cast<uint32_t>(waits.size()), &signal, 1, next_, nullptr,
                        &error) != 0)
        throw StageFailure(std::string("the driver refuses the job: ") + error.message);
    jobs_.emplace(next_, Job{engine, ++line.point, commands});
    return next_++;
}

uint64_t DriverMachine::abandon(uint32_t engine, const Stream& stream) {
    const Buffer commands = write(stream);
    const Timeline timeline = Timeline::create(device_);
    const enpu_point signal = timeline.at(1);
    enpu_error error = {};
    const int64_t begin = enpu_deadline_after(0);
    {
        const Context context = Context::create(device_);
        if (enpu_submit_raw(context.get(), engine, commands.va(),
                            static_cast<uint32_t>(stream.bytes().size()), nullptr, 0, &signal, 1,
                            next_, nullptr, &error) != 0)
            throw StageFailure(std::string("the driver refuses the job: ") + error.message);
    }
    if (enpu_timeline_wait(timeline.get(), 1, enpu_deadline_after(kWaitNs), &error) != 0)
        throw StageFailure(std::string("a job whose context was closed does not end: ") +
                           error.message);
    return static_cast<uint64_t>(enpu_deadline_after(0) - begin);
}

bool DriverMachine::inject(const std::string& fault, std::string* why_not) {
    if (device_.info().simulator) {
        enpu_error error = {};
        if (enpu_device_inject_faults(device_.get(), fault.c_str(), &error) == 0) return true;
        *why_not = error.message;
        return false;
    }
    const auto file =
        std::filesystem::path("/sys/kernel/debug/accel") / pci().filename() / "inject_fault";
    std::ofstream out(file);
    out << fault << std::flush;
    if (!out)
        *why_not = file.string() +
                   " does not take it: that needs root and a device with fault-injection=on";
    return static_cast<bool>(out);
}

std::filesystem::path DriverMachine::pci() const {
    const std::string node = std::filesystem::path(device_.info().spec).filename();
    for (const tools::PciDevice& device : tools::System().npus())
        if (device.node == node) return device.folder;
    return {};
}

int DriverMachine::settle(uint64_t number, std::string* sentence) {
    const Job job = jobs_.at(number);
    Line& line = lines_.at(job.engine);
    enpu_error error = {};
    const int result = enpu_context_wait(line.context.get(), line.timeline.get(), job.point,
                                         enpu_deadline_after(kWaitNs), &error);
    if (result == -ETIME)
        throw StageFailure(
            tools::format("a job does not end within %.0f s", double(kWaitNs) / 1e9));
    jobs_.erase(number);
    if (result != 0) *sentence = error.message;
    return result;
}

int DriverMachine::code(uint64_t job) {
    Line& line = lines_.at(jobs_.at(job).engine);
    std::string sentence;
    const int result = settle(job, &sentence);
    if (result != 0) line.context = Context::create(device_);
    return result;
}

Outcome DriverMachine::wait(uint64_t number) {
    Line& line = lines_.at(jobs_.at(number).engine);
    Outcome outcome;
    if (settle(number, &outcome.sentence) == 0) return outcome;
    const enpu_context_status status = line.context.status();
    outcome.status = status.hw_status;
    outcome.va = status.fault_va;
    outcome.packet = status.packet;
    outcome.rule = status.rule;
    outcome.operand = status.operand;
    // A failure without the device's word (a lost device …) is no outcome of a job.
    if (outcome.status == ENPU_STATUS_OK) throw StageFailure(outcome.sentence);
    line.context = Context::create(device_);
    return outcome;
}

}  // namespace

uint64_t Driver::event(const char* name) const {
    const auto folder = pci();
    return folder.empty() ? 0 : tools::read_number(folder / name).value_or(0);
}

Driver& driver_of(Machine& machine, const char* why) {
    auto* driver = dynamic_cast<Driver*>(&machine);
    if (driver == nullptr) throw StageSkipped(why);
    return *driver;
}

std::unique_ptr<Machine> driver_machine(const std::string& spec) {
    return std::make_unique<DriverMachine>(spec);
}

}  // namespace enpu::bringup
