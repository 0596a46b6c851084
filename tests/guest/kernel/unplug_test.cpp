// SPDX-License-Identifier: MIT
// The machine's owner takes the device out while programs use it, by the monitor of QEMU, and puts
// it back. The runner does that when this prints a line for it (scripts/testlib/hotplug.py).
#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "recovery.h"
#include "user_queue.h"

namespace enpu::test {
namespace {

enum Outcome { kGood = 0, kWrongData = 10, kWrongError = 11, kThrew = 12 };

// Rounds of each child so far.
struct Shared {
    volatile uint32_t rounds[4];
};

// How a program ends that got this from a call.
int end_with(const char* call, int ret) {
    if (ret == -ENODEV) return kGood;
    printf("# %s: %d\n", call, ret);
    fflush(stdout);
    return kWrongError;
}

// Jobs by SUBMIT, with pinned memory of its own, until the device has gone.
int copy_until_gone(volatile uint32_t* rounds) {
    Fixture f;
    Buffer from(f.device, 64 * kPage), to(f.device, 64 * kPage, DRM_ENPU_BO_LOCAL);
    Buffer back(f.device, 64 * kPage);
    from.at(kVa);
    to.at(kVa + kLargePage);
    back.at(kVa + 2 * kLargePage);
    void* own = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    drm_enpu_bo_userptr pin{reinterpret_cast<uintptr_t>(own), kPage, 0, 0};
    if (const int ret = f.device.call(DRM_IOCTL_ENPU_BO_USERPTR, &pin))
        return end_with("BO_USERPTR", ret);
    for (uint32_t i = 1;; i++) {
        memset(from.data(), static_cast<int>(i), from.size());
        const int ret =
            f.submit(f.copy, Commands()
                                 .copy(kVa + kLargePage, kVa, from.size())
                                 .copy(kVa + 2 * kLargePage, kVa + kLargePage, from.size()));
        if (ret) return end_with("SUBMIT", ret);
        if (const int waited = f.device.syncobj_wait(f.done)) return end_with("wait", waited);
        drm_enpu_ctx_status status{};
        status.ctx_id = f.ctx;
        if (const int told = f.device.call(DRM_IOCTL_ENPU_CTX_STATUS, &status))
            return end_with("CTX_STATUS", told);
        if (status.error) return end_with("status", status.error);
        if (back.data()[back.size() - 1] != static_cast<uint8_t>(i)) return kWrongData;
        *rounds = i;
    }
}

// A user-mode queue; rings on when the device has gone.
int ring_until_gone(volatile uint32_t* rounds) {
    QueueRig rig;
    Buffer word(rig.device, kPage);
    word.at(kVa);
    for (uint32_t i = 1;; i++) {
        const uint64_t fence = rig.kick(Commands().signal(kVa, i).nop());
        const int ret = rig.queue.wait(fence);
        if (ret == -ENODEV) break;
        if (ret) return end_with("QUEUE_WAIT", ret);
        if (*reinterpret_cast<volatile uint64_t*>(word.data()) != i) return kWrongData;
        *rounds = i;
    }
    for (int i = 0; i < 1000; i++) rig.queue.store_doorbell();
    return kGood;
}

// Waits for a job that only the end of the device ends.
int wait_until_gone(volatile uint32_t* rounds) {
    Fixture f;
    Buffer word(f.device, kPage);
    word.at(kVa);
    if (const int ret = f.submit(0, Commands().wait(kVa, 1, 60'000'000)))
        return end_with("SUBMIT", ret);
    *rounds = 1000;
    const int ret = f.device.syncobj_wait(f.done, 0, deadline(std::chrono::seconds(300)));
    return ret ? end_with("wait", ret) : kGood;
}

// Writes to local memory, which is no longer there at some time.
int touch_until_gone(volatile uint32_t* rounds) {
    signal(SIGBUS, [](int) { _exit(kGood); });
    Device device;
    Buffer local(device, kLargePage, DRM_ENPU_BO_LOCAL);
    for (uint32_t i = 1;; i++) {
        memset(local.data(), static_cast<int>(i), 4 * kPage);
        *rounds = i;
        usleep(1000);
    }
}

pid_t start(int (*work)(volatile uint32_t*), volatile uint32_t* rounds) {
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid != 0) return pid;
    try {
        _exit(work(rounds));
    } catch (...) {
        _exit(kThrew);
    }
}

template <typename Condition>
bool within(int seconds, Condition condition) {
    const int64_t until = deadline(std::chrono::seconds(seconds) * slower());
    while (!condition()) {
        if (deadline({}) > until) return false;
        usleep(10'000);
    }
    return true;
}

void ask_host(const char* what) {
    printf("\n@host %s npu0\n", what);
    fflush(stdout);
}

// The guest's pciehp alone waits five seconds for the button to be pressed again.
constexpr int kHotplugSeconds = 90;

TEST_CASE("a device that is taken out under load, and put back") {
    const std::string path = pci_path();
    auto* shared = static_cast<Shared*>(
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REQUIRE(shared != MAP_FAILED);
    int (*const works[])(volatile uint32_t*) = {copy_until_gone, ring_until_gone, wait_until_gone,
                                                touch_until_gone};
    for (int round = 0; round < 2; round++) {
        INFO("round " << round);
        auto idle = std::make_unique<QueueRig>();
        pid_t children[4] = {};
        memset(shared, 0, sizeof(*shared));
        for (int i = 0; i < 4; i++) children[i] = start(works[i], &shared->rounds[i]);
        REQUIRE(eventually([&] {
            for (int i = 0; i < 4; i++)
                if (shared->rounds[i] < 10) return false;
            return true;
        }));
        const std::string node = getenv("ENPU_DEVICE");
        ask_host("unplug");
        REQUIRE(within(kHotplugSeconds, [&] { return access(path.c_str(), F_OK) != 0; }));
        for (int i = 0; i < 4; i++) {
            int status = -1;
            INFO("child " << i);
            const bool ended =
                eventually([&] { return waitpid(children[i], &status, WNOHANG) != 0; });
            if (!ended) {
                kill(children[i], SIGKILL);
                waitpid(children[i], &status, 0);
            }
            CHECK(ended);
            CHECK(WIFEXITED(status));
            CHECK(WEXITSTATUS(status) == kGood);
        }
        uint32_t handle = 0;
        CHECK(idle->device.bo_create(kPage, DRM_ENPU_BO_HOST, &handle) == -ENODEV);
        CHECK(access(node.c_str(), F_OK) != 0);
        idle->queue.store_doorbell();
        printf("# rounds until then: %u copies, %u kicks, %u touches\n", shared->rounds[0],
               shared->rounds[1], shared->rounds[3]);

        // One who holds the old device does not keep the new one from working.
        ask_host("plug");
        REQUIRE(
            within(kHotplugSeconds, [&] { return access((path + "/accel").c_str(), F_OK) == 0; }));
        REQUIRE(find_node(path));
        {
            QueueRig fresh;
            fresh.run(fresh.copy, Commands().nop());
            fresh.run(0, Commands().nop());
            CHECK(fresh.queue.wait(fresh.kick(Commands().nop())) == 0);
            CHECK(fresh.device.status(fresh.ctx).error == 0);
        }
        idle.reset();
        CHECK(eventually([] {
            for (const auto& [name, count] : live_objects())
                if (count != 0) return false;
            return true;
        }));
    }
    munmap(shared, sizeof(Shared));
}

constexpr const char* kAllMemory = "/dev/mem";

// Where a BAR of the device lies.
off_t address_of(const std::string& device, unsigned bar) {
    std::ifstream file(device + "/resource");
    std::string begin, end, flags;
    for (unsigned i = 0; i <= bar; i++) file >> begin >> end >> flags;
    return static_cast<off_t>(std::stoull(begin, nullptr, 16));
}

// A page of the device's registers, doorbells or vector table, past any driver.
class BarPage {
  public:
    BarPage(const std::string& file, off_t offset) {
        const int fd = open(file.c_str(), O_RDWR | O_SYNC | O_CLOEXEC);
        INFO(file);
        REQUIRE(fd >= 0);
        map_ = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
        close(fd);
        REQUIRE(map_ != MAP_FAILED);
    }
    ~BarPage() { munmap(map_, kPage); }
    BarPage(const BarPage&) = delete;
    volatile uint32_t* words() const { return static_cast<volatile uint32_t*>(map_); }

  private:
    void* map_;
};

std::string slot_of(const std::string& device) {
    const std::string address = std::filesystem::path(device).filename();
    for (const auto& slot : std::filesystem::directory_iterator("/sys/bus/pci/slots")) {
        std::string holds;
        std::ifstream(slot.path() / "address") >> holds;
        if (address.starts_with(holds + ".")) return slot.path();
    }
    return {};
}

TEST_CASE("a slot that is powered off while another processor is at the device") {
    // A mapping of the device's own files would go with it.
    if (access(kAllMemory, F_OK) != 0) SKIP("the kernel has no /dev/mem");
    const std::string path = pci_path();
    const std::string name = std::filesystem::path(path).filename();
    for (const unsigned bar : {ENPU_BAR_REGS, ENPU_BAR_MSIX, ENPU_BAR_DOORBELL}) {
        INFO("BAR " << bar);
        const std::string slot = slot_of(path);
        REQUIRE(slot != "");
        REQUIRE(write_file(path + "/driver/unbind", name) == 0);
        REQUIRE(write_file(path + "/enable", "1") == 0);
        {
            const BarPage page(kAllMemory, address_of(path, bar));
            std::atomic<bool> done{false};
            std::atomic<uint64_t> rounds{0};
            std::jthread other([&] {
                // Vector control, a read-only register, a doorbell's page; pending bits.
                for (; !done; rounds++) {
                    page.words()[3] = 1;
                    (void)page.words()[512];
                }
            });
            CHECK(eventually([&] { return rounds > 1000; }));
            CHECK(write_file(slot + "/power", "0") == 0);
            CHECK(access(path.c_str(), F_OK) != 0);
            const uint64_t then = rounds;
            CHECK(eventually([&] { return rounds > then + 1000; }));
            done = true;
        }
        ask_host("plug");
        REQUIRE(
            within(kHotplugSeconds, [&] { return access((path + "/accel").c_str(), F_OK) == 0; }));
        REQUIRE(find_node(path));
        Fixture fresh;
        fresh.run(0, Commands().nop());
    }
}

TEST_CASE("memory that is switched off and on while another processor is at the device") {
    const std::string path = pci_path();
    const std::string name = std::filesystem::path(path).filename();
    REQUIRE(write_file(path + "/driver/unbind", name) == 0);
    REQUIRE(write_file(path + "/enable", "1") == 0);
    {
        const BarPage regs(path + "/resource" + std::to_string(ENPU_BAR_REGS), 0);
        const BarPage vectors(path + "/resource" + std::to_string(ENPU_BAR_MSIX), 0);
        const uint32_t there = regs.words()[0], masked = vectors.words()[3];
        std::atomic<bool> done{false};
        std::atomic<uint64_t> rounds{0}, seen{0}, elsewhere{0};
        std::jthread other([&] {
            for (; !done; rounds++) {
                const uint32_t first = regs.words()[0], control = vectors.words()[3];
                vectors.words()[3] = masked;
                (void)vectors.words()[512];
                seen += first == there;
                // Or what reads where nobody answers.
                for (const uint32_t word : {first ^ there, control ^ masked})
                    elsewhere += word != 0 && word != there && word != masked && word != ~there &&
                                 word != ~masked;
            }
        });
        CHECK(eventually([&] { return rounds > 1000; }));
        const int config = open((path + "/config").c_str(), O_RDWR | O_CLOEXEC);
        REQUIRE(config >= 0);
        uint16_t command = 0;
        REQUIRE(pread(config, &command, 2, PCI_COMMAND) == 2);
        for (int i = 0; i < 500; i++) {
            const uint16_t off = command & ~PCI_COMMAND_MEMORY;
            REQUIRE(pwrite(config, &off, 2, PCI_COMMAND) == 2);
            REQUIRE(pwrite(config, &command, 2, PCI_COMMAND) == 2);
        }
        close(config);
        const uint64_t then = seen;
        CHECK(eventually([&] { return seen > then + 1000; }));
        done = true;
        other.join();
        CHECK(elsewhere == 0);
    }
    REQUIRE(write_file("/sys/bus/pci/drivers/enpu/bind", name) == 0);
    REQUIRE(find_node(path));
    Fixture fresh;
    fresh.run(0, Commands().nop());
}

}  // namespace
}  // namespace enpu::test
