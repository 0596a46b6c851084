// SPDX-License-Identifier: MIT
// Doorbells and rings of user-mode queues in the hands of an attacker: mappings that outlive their
// queue, that a child inherited or that moved, and offsets that are guessed. The device counts what
// it is rung for, so a store that reached it is seen.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>

#include "recovery.h"
#include "user_queue.h"

namespace enpu::test {
namespace {

using Door = volatile uint32_t*;

constexpr int kStores = 50;

uint64_t kicks() {
    return register64(ENPU_REG_KICKS);
}

void store_all_over(Door page) {
    for (int i = 0; i < kStores; i++) page[i * 16] = 1;
}

// A child that has all mappings of its parent, and stores to one of them when it is told to.
class Child {
  public:
    explicit Child(Door page) {
        REQUIRE(pipe(go_) == 0);
        REQUIRE(pipe(done_) == 0);
        pid_ = fork();
        REQUIRE(pid_ >= 0);
        if (pid_ != 0) return;
        // Not the files of the device: they would live on here.
        for (int fd = 3; fd < 256; fd++)
            if (fd != go_[0] && fd != done_[1]) close(fd);
        for (char c; read(go_[0], &c, 1) == 1;) {
            store_all_over(page);
            if (write(done_[1], &c, 1) != 1) _exit(1);
        }
        _exit(0);
    }
    ~Child() {
        close(go_[1]);
        int status = -1;
        CHECK(waitpid(pid_, &status, 0) == pid_);
        CHECK(status == 0);  // no fault has killed it
        close(go_[0]);
        close(done_[0]);
        close(done_[1]);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    void store() const {
        char c = 0;
        REQUIRE(write(go_[1], &c, 1) == 1);
        REQUIRE(read(done_[0], &c, 1) == 1);
    }

  private:
    int go_[2] = {}, done_[2] = {};
    pid_t pid_ = -1;
};

// Number of the only user-mode queue in hardware.
std::string number_of_user_queue() {
    const std::string all = debugfs_read("queues");
    const size_t at = all.find(": user ");
    REQUIRE(at != std::string::npos);
    REQUIRE(all.find(": user ", at + 1) == std::string::npos);
    const size_t line = all.rfind('\n', at);
    return all.substr(line == std::string::npos ? 0 : line + 1, at - line - 1);
}

TEST_CASE("a store to a doorbell that is one's own is counted by the device") {
    QueueRig rig;
    Door page = nullptr;
    REQUIRE(rig.queue.map_doorbell(&page, MAP_SHARED) == 0);
    const uint64_t before = kicks();
    rig.queue.store_doorbell();
    *page = 1;
    CHECK(kicks() == before + 2);
    munmap(const_cast<uint32_t*>(page), kPage);
}

TEST_CASE("doorbell mappings that outlive their queue ring nothing") {
    QueueRig former;
    Door kept = nullptr, moved = nullptr;
    REQUIRE(former.queue.map_doorbell(&kept, MAP_SHARED) == 0);
    REQUIRE(former.queue.map_doorbell(&moved, MAP_SHARED) == 0);
    // All of them are in the page tables of parent and child.
    *kept = 1;
    *moved = 1;
    Child child(kept);
    child.store();
    void* elsewhere = mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(elsewhere != MAP_FAILED);
    void* there = mremap(const_cast<uint32_t*>(moved), kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED,
                         elsewhere);
    REQUIRE(there == elsewhere);
    moved = static_cast<Door>(there);
    const std::string number = number_of_user_queue();
    SECTION("it was destroyed") {
        CHECK(former.queue.destroy() == 0);
    }
    SECTION("its context was destroyed") {
        CHECK(former.device.context_destroy(former.ctx) == 0);
    }
    QueueRig heir;
    CHECK(number_of_user_queue() == number);  // the page of the BAR is the heir's
    REQUIRE(heir.queue.wait(heir.kick(Commands().nop())) == 0);
    const uint64_t before = kicks();
    store_all_over(kept);
    store_all_over(moved);
    child.store();
    CHECK(kicks() == before);
    heir.queue.store_doorbell();
    CHECK(kicks() == before + 1);
    munmap(const_cast<uint32_t*>(kept), kPage);
    munmap(const_cast<uint32_t*>(moved), kPage);
}

TEST_CASE("the doorbell of a queue that has faulted rings nothing") {
    QueueRig rig;
    Child child([&] {
        Door page = nullptr;
        REQUIRE(rig.queue.map_doorbell(&page, MAP_SHARED) == 0);
        *page = 1;
        return page;
    }());
    child.store();
    rig.queue.set_tail(~0ull);
    rig.queue.store_doorbell();
    REQUIRE(rig.queue.wait(1) == -EBADMSG);
    // A worker takes the page away.
    CHECK(eventually([&] {
        const uint64_t before = kicks();
        rig.queue.store_doorbell();
        child.store();
        return kicks() == before;
    }));
}

TEST_CASE("doorbells and rings of others are at no offset that can be guessed") {
    QueueRig victim;
    Buffer near(victim.device, kPage);
    drm_enpu_bo_info info{};
    info.handle = near.handle();
    REQUIRE(victim.device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == 0);
    QueueRig attacker;
    // The driver kicks queues on its own now and then, a page that rings does each time.
    const auto rings = [](Door page) {
        for (int i = 0; i < 3; i++) {
            const uint64_t before = kicks();
            *page = 1;
            if (kicks() == before) return false;
        }
        return true;
    };
    Door own = nullptr;
    REQUIRE(attacker.queue.map_doorbell(&own, MAP_SHARED) == 0);
    REQUIRE(rings(own));  // so that it would be seen
    unsigned open = 0;
    for (const uint64_t base : {static_cast<uint64_t>(victim.queue.doorbell_offset()),
                                static_cast<uint64_t>(info.mmap_offset)})
        for (int64_t page = -256; page <= 256; page++) {
            const auto offset = static_cast<off_t>(base + static_cast<uint64_t>(page) * kPage);
            if (offset == attacker.queue.doorbell_offset()) continue;
            void* p = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, attacker.device.fd(),
                           offset);
            if (p == MAP_FAILED) continue;
            // Memory of the attacker's own may lie there, a page that rings may not.
            open += rings(static_cast<Door>(p));
            munmap(p, kPage);
        }
    CHECK(open == 0);
    CHECK(victim.queue.fence() == 0);
    REQUIRE(victim.queue.wait(victim.kick(Commands().nop())) == 0);
}

TEST_CASE("a child rings its parent's queue as long as that lives") {
    QueueRig rig;
    Door page = nullptr;
    REQUIRE(rig.queue.map_doorbell(&page, MAP_SHARED) == 0);
    Child child(page);
    const uint64_t before = kicks();
    child.store();
    CHECK(kicks() == before + kStores);
    // More kicks than work are none.
    REQUIRE(rig.queue.wait(rig.kick(Commands().nop())) == 0);
    CHECK(rig.device.status(rig.ctx).error == 0);
    CHECK(rig.queue.destroy() == 0);
    QueueRig other;
    const uint64_t after = kicks();
    child.store();
    CHECK(kicks() == after);
    munmap(const_cast<uint32_t*>(page), kPage);
}

}  // namespace
}  // namespace enpu::test
