// SPDX-License-Identifier: MIT
#include "profile_kernel.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>

namespace enpu::rt::profile {
namespace {

bool put(const std::string& path, const char* text) {
    std::ofstream file(path);
    file << text;
    file.flush();
    return static_cast<bool>(file);
}

bool number(std::string_view text, uint64_t& value) {
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

}  // namespace

bool parse_trace_line(const std::string& line, KernelEvent& event) {
    // The time is the last "seconds.micros:" before the name.
    const size_t name_at = line.find(": enpu_");
    if (line.empty() || line[0] == '#' || name_at == std::string::npos) return false;
    const size_t time_at = line.rfind(' ', name_at);
    if (time_at == std::string::npos) return false;
    const std::string_view time(line.data() + time_at + 1, name_at - time_at - 1);
    const size_t dot = time.find('.');
    uint64_t seconds = 0, fraction = 0;
    if (dot == std::string_view::npos || time.size() - dot != 7 ||
        !number(time.substr(0, dot), seconds) || !number(time.substr(dot + 1), fraction))
        return false;
    const size_t name_end = line.find(':', name_at + 2);
    if (name_end == std::string::npos) return false;
    event.ns = (seconds * 1'000'000 + fraction) * 1000;
    event.name = line.substr(name_at + 2, name_end - name_at - 2);
    event.text = name_end + 2 <= line.size() ? line.substr(name_end + 2) : "";
    return true;
}

void KernelTrace::start() {
    const std::string root = "/sys/kernel/tracing";
    if (access((root + "/instances").c_str(), W_OK) != 0) {
        note = root + "/instances: " + std::strerror(errno);
        return;
    }
    const std::string folder = root + "/instances/enpu-rt-" + std::to_string(getpid());
    if (mkdir(folder.c_str(), 0700) != 0) {
        note = folder + ": " + std::strerror(errno);
        return;
    }
    folder_ = folder;
    if (!put(folder + "/trace_clock", "mono") || !put(folder + "/events/enpu/enable", "1")) {
        note = "tracefs knows no clock `mono`, or no events of enpu (module not loaded?)";
        rmdir(folder.c_str());
        folder_.clear();
        return;
    }
    put(folder + "/tracing_on", "1");
}

void KernelTrace::stop() {
    if (folder_.empty()) return;
    put(folder_ + "/tracing_on", "0");
    std::ifstream file(folder_ + "/trace");
    KernelEvent event;
    for (std::string line; std::getline(file, line);)
        if (parse_trace_line(line, event)) events.push_back(event);
    file.close();
    put(folder_ + "/events/enpu/enable", "0");
    rmdir(folder_.c_str());
    folder_.clear();
}

}  // namespace enpu::rt::profile
