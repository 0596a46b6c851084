// SPDX-License-Identifier: MIT
#include "bench.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <enpu/enpu.hpp>
#include <filesystem>
#include <regex>
#include <sstream>

#include "clients.h"
#include "dump_reader.h"

namespace enpu::faults {
namespace {

namespace fs = std::filesystem;

// Empty when it cannot be read, or not any more: a dump may go while it is looked at.
std::string text_of(const fs::path& path) {
    std::string text;
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    char piece[16384];
    for (ssize_t n; (n = read(fd, piece, sizeof(piece))) > 0;)
        text.append(piece, static_cast<size_t>(n));
    close(fd);
    return text;
}

bool put(const fs::path& path, const std::string& text) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool all = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
    return all;
}

// The PCI function of the device under test.
fs::path device_dir() {
    static const fs::path dir = [] {
        const char* node = getenv("ENPU_DEVICE");
        const std::string name = fs::path(node ? node : "/dev/accel/accel0").filename();
        return fs::canonical("/sys/class/accel/" + name + "/device");
    }();
    return dir;
}

fs::path debugfs_file(const std::string& name) {
    const fs::path root = "/sys/kernel/debug", own = device_dir().filename() / name;
    return fs::exists(root / "accel" / own) ? root / "accel" / own : root / "dri" / own;
}

}  // namespace

std::string debugfs(const std::string& name) {
    return text_of(debugfs_file(name));
}

bool debugfs_write(const std::string& name, const std::string& text) {
    return put(debugfs_file(name), text);
}

uint64_t counter(const std::string& name) {
    const std::string text = text_of(device_dir() / name);
    return text.empty() ? 0 : std::stoull(text);
}

// "now NS", then a line a kind: name, count, time. A device that is away reads as ones.
Fired fired(const std::string& kind) {
    const int64_t before = monotonic_ns();
    std::istringstream text(debugfs("inject_fault"));
    std::string word;
    uint64_t now = 0, count = 0, at = 0;
    Fired found;
    text >> word >> now;
    while (text >> word >> count >> at)
        if (word == kind && count != 0xffffffff)
            found = {count, at ? before - static_cast<int64_t>(now - at) : 0};
    return found;
}

std::map<std::string, uint64_t> fired_by_kind() {
    std::istringstream text(debugfs("inject_fault"));
    std::map<std::string, uint64_t> counts;
    std::string word;
    uint64_t count = 0, at = 0;
    text >> word >> at;
    while (text >> word >> count >> at) counts[word] = count;
    return counts;
}

bool bus_reset() {
    return put(device_dir() / "reset", "1");
}

std::string leftovers() {
    std::istringstream live(debugfs("live") + "references " + text_of("/sys/module/enpu/refcnt"));
    std::string left, name;
    size_t counters = 0;
    for (long count = 0; live >> name >> count; counters++)
        if (count != 0) left += name + " " + std::to_string(count) + ", ";
    return counters >= 12 ? left : "the counters cannot be read";
}

bool falls_asleep(int limit_ms) {
    const fs::path power = device_dir() / "power";
    const std::string delay = text_of(power / "autosuspend_delay_ms");
    if (!put(power / "autosuspend_delay_ms", "20")) return false;
    const int64_t end = monotonic_ns() + limit_ms * 1'000'000LL;
    bool asleep = false;
    while (!asleep && monotonic_ns() < end) {
        usleep(5000);
        asleep = text_of(power / "runtime_status") == "suspended\n";
    }
    return put(power / "autosuspend_delay_ms", delay) && asleep;
}

uint64_t local_free() {
    try {
        enpu_memory_info info{};
        const auto device = Device::open(nullptr);
        check([&](enpu_error* e) { return enpu_device_get_memory(device.get(), &info, e); });
        return info.local_free;
    } catch (const Error&) {
        return ~0ull;
    }
}

KernelLog::KernelLog() : fd_(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
    lseek(fd_, 0, SEEK_END);
}

KernelLog::~KernelLog() {
    close(fd_);
}

std::string KernelLog::findings(const std::string& allowed) {
    static const std::regex alarm(
        "BUG:|WARNING:|Oops:|KASAN:|UBSAN:|possible (circular|recursive)|refcount_t:|Call Trace:|"
        "blocked for more|rcu: INFO|soft lockup|sleeping function|Bad page|unable to handle");
    std::vector<std::regex> expected;
    std::istringstream lines(allowed);
    for (std::string line; std::getline(lines, line);)
        if (!line.empty()) expected.emplace_back(line);
    std::string found;
    char record[8192];
    // A record is "PRIORITY,SEQUENCE,TIME,FLAGS;TEXT"; EPIPE says that some were overwritten.
    for (ssize_t bytes; (bytes = read(fd_, record, sizeof(record))) > 0 || errno == EPIPE;) {
        if (bytes <= 0) {
            found += "(records were lost)\n";
            errno = 0;
            continue;
        }
        const std::string line(record, static_cast<size_t>(bytes));
        const auto at = line.find(';');
        if (at == std::string::npos) continue;
        const std::string text = line.substr(at + 1, line.find('\n', at) - at - 1);
        const bool error =
            (std::atoi(line.c_str()) & 7) <= 3 && text.find("enpu") != std::string::npos;
        if (!error && !std::regex_search(text, alarm)) continue;
        bool known = false;
        for (const auto& e : expected) known = known || std::regex_search(text, e);
        if (!known) found += text + "\n";
    }
    return found;
}

Dumps take_dumps() {
    Dumps dumps;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator("/sys/class/devcoredump", none)) {
        const fs::path data = entry.path() / "data";
        const std::string bytes = text_of(data);
        if (bytes.empty()) continue;
        dump::Dump parsed;
        std::string why;
        const std::span<const uint8_t> view(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            bytes.size());
        if (!dump::Dump::parse(view, &parsed, &why) || dump::describe(parsed).empty()) {
            dumps.readable = false;
            dumps.why = why.empty() ? "no words for it" : why;
        }
        dumps.count++;
        put(data, "1");  // frees it
    }
    return dumps;
}

}  // namespace enpu::faults
