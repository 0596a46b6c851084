// SPDX-License-Identifier: MIT
// What an empty job costs by ioctl and through a user-mode queue, beside a 4 KiB read of an NVMe
// device; alone, and with many in flight. The cases take turns. One JSON object on stdout.
//
//   enpu-queue-bench [--nvme /dev/nvme0n1] [--registers FILE] [--rounds N] [--jobs N]
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <enpu/enpu.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nvme_reader.h"

namespace enpu::bench {
namespace {

constexpr uint32_t kDepth = 64;
constexpr uint32_t kNvmeDepth = 32;
constexpr uint32_t kRing = 256;
constexpr uint64_t kSecond = 1'000'000'000;

int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch().count();
}

int64_t soon() {
    return enpu_deadline_after(60 * kSecond);
}

struct Options {
    std::string nvme, registers;
    uint32_t rounds = 9, jobs = 2000;
};

// Median time of one call, in ns.
double latency(uint32_t count, const std::function<void()>& call) {
    std::vector<int64_t> times(count);
    for (int64_t& time : times) {
        const int64_t start = now_ns();
        call();
        time = now_ns() - start;
    }
    std::nth_element(times.begin(), times.begin() + count / 2, times.end());
    return static_cast<double>(times[count / 2]);
}

// Calls a second of something that does `count` of them.
double rate(uint32_t count, const std::function<void()>& all) {
    const int64_t start = now_ns();
    all();
    return count * 1e9 / static_cast<double>(now_ns() - start);
}

class Jobs {
  public:
    Jobs()
        : device_(Device::open(nullptr)),
          context_(Context::create(device_)),
          timeline_(Timeline::create(device_)) {
        Builder builder(device_, ENPU_ENGINE_KIND_COMPUTE);
        check([&](enpu_error* e) { return enpu_build_nop(builder.get(), e); });
        command_ = builder.finish();
        queue_ = Queue::create(context_, 0, kRing);
        batch_.assign(kDepth, command_.get());
    }

    void one_by_ioctl() {
        submit();
        context_.wait(timeline_, point_, soon());
    }
    void one_by_queue() { queue_.wait(queue_.submit(command_), soon()); }

    // Half of the window is refilled when the other half has ended.
    void many_by_ioctl(uint32_t count) {
        const uint64_t first = point_;
        for (uint32_t done = 0; done < count; done += kDepth / 2) {
            const uint64_t upto = std::min(done + kDepth, count);
            while (point_ - first < upto) submit();
            context_.wait(timeline_, first + std::min(done + kDepth / 2, count), soon());
        }
    }
    void many_by_queue(uint32_t count) {
        uint64_t sent = 0, first = 0;
        for (uint32_t done = 0; done < count; done += kDepth / 2) {
            const uint64_t upto = std::min(done + kDepth, count);
            uint64_t fence = 0;
            if (sent < upto) {
                check([&](enpu_error* e) {
                    return enpu_queue_submit(queue_.get(), batch_.data(), upto - sent, 0, &fence,
                                             e);
                });
                if (sent == 0) first = fence - upto;
                sent = upto;
            }
            queue_.wait(first + std::min(done + kDepth / 2, count), soon());
        }
    }

  private:
    void submit() { context_.submit(0, command_, {}, {timeline_.at(++point_)}); }

    Device device_;
    Context context_;
    Timeline timeline_;
    Command command_;
    Queue queue_;
    std::vector<enpu_command*> batch_;
    uint64_t point_ = 0;
};

// Counters of the device, by the driver's register file.
class Registers {
  public:
    explicit Registers(const std::string& path) {
        if (!path.empty()) fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (!path.empty() && fd_ < 0) throw std::runtime_error(path + " cannot be opened");
    }
    ~Registers() {
        if (fd_ >= 0) close(fd_);
    }
    Registers(const Registers&) = delete;
    Registers& operator=(const Registers&) = delete;

    bool there() const { return fd_ >= 0; }
    uint64_t read(uint32_t offset) const {
        uint64_t value = 0;
        if (there() && pread(fd_, &value, sizeof(value), offset) != sizeof(value))
            throw std::runtime_error("a register cannot be read");
        return value;
    }

  private:
    int fd_ = -1;
};

struct Series {
    const char* name;
    std::vector<double> values;
};

void print(const std::vector<Series>& all, uint32_t jobs) {
    std::printf("{\"jobs\": %u", jobs);
    for (const Series& series : all) {
        std::printf(", \"%s\": [", series.name);
        for (size_t i = 0; i < series.values.size(); ++i)
            std::printf("%s%.6g", i ? ", " : "", series.values[i]);
        std::printf("]");
    }
    std::printf("}\n");
}

void run(const Options& options) {
    Jobs jobs;
    const Registers registers(options.registers);
    std::unique_ptr<NvmeReader> nvme;
    if (!options.nvme.empty()) nvme = std::make_unique<NvmeReader>(options.nvme);

    const uint32_t few = std::max(1u, options.jobs / 4);
    std::vector<Series> all = {{"ioctl_ns", {}},    {"queue_ns", {}},   {"nvme_ns", {}},
                               {"ioctl_rate", {}},  {"queue_rate", {}}, {"nvme_rate", {}},
                               {"queue_kicks", {}}, {"queue_irqs", {}}};
    const auto add = [&](size_t series, double value) { all[series].values.push_back(value); };
    for (uint32_t round = 0; round <= options.rounds; ++round) {
        if (round == 1)  // the first warms up
            for (Series& series : all) series.values.clear();
        add(0, latency(few, [&] { jobs.one_by_ioctl(); }));
        add(1, latency(few, [&] { jobs.one_by_queue(); }));
        if (nvme) add(2, latency(few, [&] { nvme->read(1, 1); }));
        add(3, rate(options.jobs, [&] { jobs.many_by_ioctl(options.jobs); }));
        const uint64_t kicks = registers.read(ENPU_REG_KICKS);
        const uint64_t irqs = registers.read(ENPU_REG_IRQ_RAISED);
        add(4, rate(options.jobs, [&] { jobs.many_by_queue(options.jobs); }));
        if (registers.there()) {
            add(6, static_cast<double>(registers.read(ENPU_REG_KICKS) - kicks) / options.jobs);
            add(7, static_cast<double>(registers.read(ENPU_REG_IRQ_RAISED) - irqs) / options.jobs);
        }
        if (nvme) add(5, rate(options.jobs, [&] { nvme->read(options.jobs, kNvmeDepth); }));
    }
    print(all, options.jobs);
}

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i], value = argv[i + 1];
        if (name == "--nvme")
            options.nvme = value;
        else if (name == "--registers")
            options.registers = value;
        else if (name == "--rounds")
            options.rounds = static_cast<uint32_t>(std::stoul(value));
        else if (name == "--jobs")
            options.jobs = static_cast<uint32_t>(std::stoul(value));
        else
            throw std::invalid_argument("unknown option " + name);
    }
    if (argc % 2 == 0 || options.rounds == 0 || options.jobs < kDepth)
        throw std::invalid_argument("options come in pairs; rounds from 1, jobs from 64");
    return options;
}

}  // namespace
}  // namespace enpu::bench

int main(int argc, char** argv) try {
    enpu::bench::run(enpu::bench::parse(argc, argv));
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "enpu-queue-bench: %s\n", error.what());
    return 1;
}
