// SPDX-License-Identifier: MIT
#include "kernel_events.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "lib/output.h"
#include "lib/system.h"

namespace enpu::tools {
namespace {

constexpr const char* kRoot = "/sys/kernel/tracing";
constexpr unsigned kDrmIoctl = 'd', kDriverFirst = 0x40;

bool put(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    file.flush();
    return static_cast<bool>(file);
}

// Names of the driver's ioctls, by their number from kDriverFirst on.
constexpr const char* kIoctls[] = {"QUERY",         "BO_CREATE",  "BO_USERPTR", "BO_INFO",
                                   "BO_WAIT",       "VM_MAP",     "VM_UNMAP",   "CTX_CREATE",
                                   "CTX_DESTROY",   "CTX_STATUS", "SUBMIT",     "QUEUE_CREATE",
                                   "QUEUE_DESTROY", "QUEUE_WAIT"};

std::string ioctl_name(uint64_t command) {
    const auto number = static_cast<unsigned>(command & 0xff);
    if (number >= kDriverFirst && number - kDriverFirst < std::size(kIoctls))
        return kIoctls[number - kDriverFirst];
    return format("drm ioctl 0x%02x", number);
}

// "fd: 3, cmd: c0186441, arg: 7ff…" of sys_enter_ioctl.
bool command_of(const std::string& text, uint64_t* command) {
    const size_t at = text.find("cmd: ");
    if (at == std::string::npos) return false;
    *command = std::strtoull(text.c_str() + at + 5, nullptr, 16);
    return (*command >> 8 & 0xff) == kDrmIoctl;
}

}  // namespace

uint64_t KernelEvent::number(const char* key, uint64_t missing) const {
    const std::string wanted = std::string(key) + "=";
    for (size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
        if (at != 0 && text[at - 1] != ' ') continue;
        const char* from = text.c_str() + at + wanted.size();
        return *from == '-' ? static_cast<uint64_t>(std::strtoll(from, nullptr, 0))
                            : std::strtoull(from, nullptr, 0);
    }
    return missing;
}

bool parse_event(const std::string& line, KernelEvent* event) {
    if (line.empty() || line[0] == '#') return false;
    // The name of the task may hold anything; the processor in brackets ends it.
    const size_t bracket = line.find(" [0");
    if (bracket == std::string::npos) return false;
    const size_t first = line.find_first_not_of(' ');
    const size_t last = line.find_last_not_of(' ', bracket);
    const size_t dash = line.rfind('-', last);
    if (first >= bracket || dash == std::string::npos || dash < first) return false;
    // "012.345678: name: text": the time is the first word that ends with a colon.
    const size_t colon = line.find(": ", bracket);
    if (colon == std::string::npos) return false;
    const size_t time = line.rfind(' ', colon) + 1;
    char* end = nullptr;
    const uint64_t seconds = std::strtoull(line.c_str() + time, &end, 10);
    if (*end != '.') return false;
    char* after = nullptr;
    const uint64_t fraction = std::strtoull(end + 1, &after, 10);
    if (after - end != 7 || *after != ':') return false;
    const size_t name = colon + 2, name_end = line.find_first_of(":( ", name);
    if (name_end == std::string::npos) return false;
    event->ns = (seconds * 1'000'000 + fraction) * 1000;
    event->task = line.substr(first, last - first + 1);
    event->tid = std::atoi(line.c_str() + dash + 1);
    event->name = line.substr(name, name_end - name);
    event->text = line.substr(name_end + 1);
    event->text.erase(0, event->text.find_first_not_of(' '));
    return true;
}

bool KernelRecorder::start(std::string* why) {
    if (access((std::string(kRoot) + "/instances").c_str(), W_OK) != 0) {
        *why = std::string(kRoot) + "/instances: " + std::strerror(errno);
        return false;
    }
    folder_ = format("%s/instances/enpu-%d", kRoot, getpid());
    if (mkdir(folder_.c_str(), 0700) != 0) {
        *why = folder_ + ": " + std::strerror(errno);
        folder_.clear();
        return false;
    }
    if (!put(folder_ + "/trace_clock", "mono") || !put(folder_ + "/events/enpu/enable", "1")) {
        *why = "tracefs has no clock 'mono' or no events of the driver (is the module loaded?)";
        return false;
    }
    put(folder_ + "/buffer_size_kb", "8192");
    for (const char* group :
         {"gpu_scheduler", "dma_fence", "syscalls/sys_enter_ioctl", "syscalls/sys_exit_ioctl"})
        if (!put(folder_ + "/events/" + group + "/enable", "1")) missing_.emplace_back(group);
    put(folder_ + "/tracing_on", "1");
    return true;
}

std::vector<KernelEvent> KernelRecorder::stop() {
    std::vector<KernelEvent> events;
    if (folder_.empty()) return events;
    put(folder_ + "/tracing_on", "0");
    std::ifstream file(folder_ + "/trace");
    KernelEvent event;
    for (std::string line; std::getline(file, line);) {
        if (parse_event(line, &event)) events.push_back(event);
        if (const size_t lost = line.find("[LOST "); lost != std::string::npos)
            lost_ += std::strtoull(line.c_str() + lost + 6, nullptr, 10);
    }
    return events;
}

KernelRecorder::~KernelRecorder() {
    if (folder_.empty()) return;
    put(folder_ + "/events/enable", "0");
    rmdir(folder_.c_str());
}

std::map<uint32_t, std::vector<JobSpan>> job_spans(const std::vector<KernelEvent>& events) {
    using Key = std::tuple<uint32_t, uint32_t, uint64_t>;
    std::map<Key, JobSpan> open;
    std::map<uint32_t, std::vector<JobSpan>> engines;
    for (const KernelEvent& event : events) {
        if (event.name != "enpu_submit" && event.name != "enpu_job_run" &&
            event.name != "enpu_job_done")
            continue;
        const auto context = static_cast<uint32_t>(event.number("ctx"));
        const auto engine = static_cast<uint32_t>(event.number("engine"));
        const Key key{context, engine, event.number("seqno")};
        if (event.name == "enpu_submit") {
            open[key] = {context, engine, std::get<2>(key), event.number("job_id"), event.ns, 0, 0,
                         0,       0,      event.task};
            continue;
        }
        const auto found = open.find(key);
        if (found == open.end()) continue;
        if (event.name == "enpu_job_run") {
            found->second.run_ns = event.ns;
            continue;
        }
        JobSpan job = found->second;
        open.erase(found);
        job.done_ns = event.ns;
        job.error = static_cast<int>(event.number("error"));
        if (job.run_ns == 0) continue;  // dropped unrun
        auto& jobs = engines[engine];
        job.begin_ns = jobs.empty() ? job.run_ns : std::max(job.run_ns, jobs.back().done_ns);
        job.begin_ns = std::min(job.begin_ns, job.done_ns);
        jobs.push_back(std::move(job));
    }
    return engines;
}

std::vector<IoctlSpan> ioctl_spans(const std::vector<KernelEvent>& events) {
    std::map<int, IoctlSpan> open;
    std::vector<IoctlSpan> spans;
    for (const KernelEvent& event : events) {
        uint64_t command = 0;
        if (event.name == "sys_ioctl" && command_of(event.text, &command)) {
            open[event.tid] = {event.task, event.tid, ioctl_name(command), event.ns, 0, 0};
        } else if (event.name == "sys_ioctl" && event.text.rfind("->", 0) == 0) {
            const auto found = open.find(event.tid);
            if (found == open.end()) continue;
            found->second.to_ns = event.ns;
            found->second.result =
                static_cast<int64_t>(std::strtoull(event.text.c_str() + 3, nullptr, 0));
            spans.push_back(found->second);
            open.erase(found);
        }
    }
    return spans;
}

}  // namespace enpu::tools
