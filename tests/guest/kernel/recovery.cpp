// SPDX-License-Identifier: MIT
#include "recovery.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace enpu::test {
namespace {

// The file of the dump that waits, or an empty name.
std::string dump_file() {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/class/devcoredump", error)) {
        const auto file = entry.path() / "data";
        if (std::filesystem::exists(file, error)) return file.string();
    }
    return {};
}

}  // namespace

void inject(enpu_fault_kind kind, uint32_t target, uint32_t times, uint64_t arg, uint32_t after) {
    static constexpr const char* kNames[] = ENPU_FAULT_KIND_NAMES;
    const std::string text = std::string(kNames[kind]) + ":target=" + std::to_string(target) +
                             ":after=" + std::to_string(after) + ":times=" + std::to_string(times) +
                             ":arg=" + std::to_string(arg);
    // The interrupt of a job that has ended may still be on its way, and would take the fault.
    usleep(10'000);
    const int ret = debugfs_write("inject_fault", text);
    if (ret == -ENOENT) SKIP("needs a device with fault-injection=on and debugfs");
    REQUIRE(ret == 0);
}

void clear_faults() {
    CHECK(debugfs_write("inject_fault", "none") == 0);
}

Uevents::Uevents() : fd_(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT)) {
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = 1;
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
}

Uevents::~Uevents() {
    close(fd_);
}

bool Uevents::comes(const std::string& line) {
    const int64_t until = soon();
    pollfd poll_fd{fd_, POLLIN, 0};
    while (deadline({}) < until) {
        if (poll(&poll_fd, 1, 100) <= 0) continue;
        char text[4096];
        const ssize_t bytes = recv(fd_, text, sizeof(text), 0);
        const std::string event(text, bytes > 0 ? static_cast<size_t>(bytes) : 0);
        if (event.find("SUBSYSTEM=accel") != std::string::npos &&
            event.find(line) != std::string::npos)
            return true;
    }
    return false;
}

void wait_until_busy(const std::string& engine) {
    const std::string running = "enpu-" + engine + ": state 1 ";
    REQUIRE(eventually([&] { return debugfs_read("engines").find(running) != std::string::npos; }));
}

unsigned long counter(const char* name) {
    return std::stoul(sysfs(name));
}

void wait_a_little() {
    usleep(1000);
}

void drop_dump() {
    // A device that was removed and found again may have left one, too.
    REQUIRE(eventually([] {
        const std::string file = dump_file();
        if (!file.empty()) write_file(file, "1");
        return file.empty();
    }));
}

std::vector<uint8_t> read_dump() {
    if (!eventually([] { return !dump_file().empty(); })) return {};
    std::ifstream file(dump_file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, long> live_objects() {
    std::map<std::string, long> objects;
    std::istringstream text(debugfs_read("live"));
    std::string name;
    for (long count = 0; text >> name >> count;) objects[name] = count;
    REQUIRE(objects.size() >= 10);
    return objects;
}

bool find_node(const std::string& device) {
    return eventually([&] {
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(device + "/accel", error)) {
            const std::string node = "/dev/accel/" + entry.path().filename().string();
            setenv("ENPU_DEVICE", node.c_str(), 1);
            // There a moment before it can be opened.
            const int fd = open(node.c_str(), O_RDWR | O_CLOEXEC);
            if (fd >= 0) return close(fd) == 0;
        }
        return false;
    });
}

int write_file(const std::string& path, const std::string& text) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    const ssize_t done = write(fd, text.data(), text.size());
    const int ret = done < 0 ? -errno : done == static_cast<ssize_t>(text.size()) ? 0 : -EIO;
    close(fd);
    return ret;
}

std::string pci_path() {
    return std::filesystem::canonical(sysfs_path("")).string();
}

}  // namespace enpu::test
