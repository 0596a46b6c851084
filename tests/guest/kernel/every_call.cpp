// SPDX-License-Identifier: MIT
#include "every_call.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "recovery.h"

namespace enpu::test {
namespace {

constexpr uint64_t kLocalVa = 0x40'0000'0000;
constexpr uint64_t kUserBytes = 4 * kPage;

int open_and_close() {
    const int fd = open(getenv("ENPU_DEVICE"), O_RDWR | O_CLOEXEC);
    if (fd < 0) return -errno;
    return close(fd);
}

// What the calls make, and the memory of one of them.
struct Made {
    Device device;
    Buffer commands{device, kPage};
    uint32_t host = 0, local = 0, ctx = 0, user = 0, queue = 0, timeline = 0, before = 0, done = 0;
    void* memory = MAP_FAILED;

    ~Made() {
        if (memory != MAP_FAILED) munmap(memory, kUserBytes);
    }
};

using Visit = std::function<void(const Call&)>;

int query_memory(const Device& device) {
    drm_enpu_memory_info info{};
    drm_enpu_query query{DRM_ENPU_QUERY_MEMORY, sizeof(info), reinterpret_cast<uintptr_t>(&info)};
    return device.call(DRM_IOCTL_ENPU_QUERY, &query);
}

int wrap_memory(Made& m) {
    drm_enpu_bo_userptr args{reinterpret_cast<uintptr_t>(m.memory), kUserBytes, 0, 0};
    const int ret = m.device.call(DRM_IOCTL_ENPU_BO_USERPTR, &args);
    m.user = args.handle;
    return ret;
}

void buffers(Made& m, const Visit& visit) {
    const auto close = [&](uint32_t* handle) {
        return [&m, handle] { CHECK(m.device.close_handle(*handle) == 0); };
    };
    visit({"BO_CREATE host",
           [&] { return m.device.bo_create(16 * kPage, DRM_ENPU_BO_HOST, &m.host); },
           close(&m.host), 2, ""});
    visit({"BO_CREATE local",
           [&] { return m.device.bo_create(kPage, DRM_ENPU_BO_LOCAL, &m.local); }, close(&m.local),
           3, ""});
    m.memory =
        mmap(nullptr, kUserBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(m.memory != MAP_FAILED);
    visit({"BO_USERPTR", [&] { return wrap_memory(m); }, close(&m.user), 5, ""});
    visit({"BO_INFO",
           [&] {
               drm_enpu_bo_info args{};
               args.handle = m.host;
               return m.device.call(DRM_IOCTL_ENPU_BO_INFO, &args);
           },
           {},
           1,
           ""});
    visit({"BO_WAIT", [&] { return m.device.bo_wait(m.host, soon()); }, {}, 0, ""});
    visit({"VM_MAP host", [&] { return m.device.map(kVa, m.host, 16 * kPage); },
           [&] { CHECK(m.device.unmap(kVa, 16 * kPage) == 0); }, 5, "dma"});
    visit({"VM_MAP local", [&] { return m.device.map(kLocalVa, m.local, kPage); },
           [&] { CHECK(m.device.unmap(kLocalVa, kPage) == 0); }, 5, ""});
    visit({"VM_UNMAP", [&] { return m.device.unmap(kLocalVa, kPage); },
           [&] { CHECK(m.device.map(kLocalVa, m.local, kPage) == 0); }, 0, ""});
}

// A job's fence is told first; the job itself goes when the scheduler comes to it.
void all_jobs_gone(Made& m) {
    CHECK(m.device.syncobj_wait(m.done) == 0);
    CHECK(eventually([] { return live_objects().at("jobs") == 0; }));
}

// Keeps the copy engine, in a context of its own, until it is opened.
class Gate {
  public:
    explicit Gate(Made& m) : m_(m) {
        REQUIRE(m.device.context(&ctx_) == 0);
        close();
    }
    ~Gate() {
        m_.device.context_destroy(ctx_);
        if (fence_) m_.device.syncobj_destroy(fence_);
    }
    uint32_t fence() const { return fence_; }
    void close() {
        memset(m_.commands.data() + kWord, 0, 8);
        fence_ = m_.device.syncobj();
        send(m_.device.copy_engine(), Commands().wait(Fixture::kCmdVa + kWord, 1, 60'000'000),
             fence_);
    }
    void open() {
        const uint32_t opened = m_.device.syncobj();
        send(0, Commands().signal(Fixture::kCmdVa + kWord, 1), opened);
        CHECK(m_.device.syncobj_wait(opened) == 0);
        CHECK(m_.device.syncobj_wait(fence_) == 0);
        m_.device.syncobj_destroy(opened);
        m_.device.syncobj_destroy(std::exchange(fence_, 0));
    }

  private:
    static constexpr uint32_t kWord = 1024, kPackets = 2048;

    void send(uint32_t engine, const Commands& packets, uint32_t fence) {
        const uint32_t at = kPackets + engine * 256;
        const uint32_t bytes = packets.write_to(m_.commands.data() + at);
        REQUIRE(Submit(ctx_, engine, Fixture::kCmdVa + at, bytes).signal(fence).send(m_.device) ==
                0);
    }

    Made& m_;
    uint32_t ctx_ = 0, fence_ = 0;
};

// A job that has to wait for something goes by the scheduler.
void waiting_job(Made& m, const Visit& visit, uint32_t bytes) {
    Gate gate(m);
    visit({"SUBMIT that waits",
           [&] {
               return Submit(m.ctx, 0, Fixture::kCmdVa, bytes)
                   .wait(gate.fence())
                   .signal(m.timeline, 2)
                   .signal(m.done)
                   .uses(m.user, DRM_ENPU_SUBMIT_BO_WRITE)
                   .send(m.device);
           },
           [&] {
               gate.open();
               all_jobs_gone(m);
               m.device.syncobj_destroy(m.timeline);
               m.timeline = m.device.syncobj();
               gate.close();
           },
           14, ""});
    CHECK(m.device.syncobj_wait(m.done, 0, 0) == -ETIME);
    gate.open();
    all_jobs_gone(m);
}

void jobs(Made& m, const Visit& visit) {
    visit({"CTX_CREATE", [&] { return m.device.context(&m.ctx); },
           [&] { CHECK(m.device.context_destroy(m.ctx) == 0); }, 2, ""});
    m.timeline = m.device.syncobj();
    m.before = m.device.syncobj(true);
    m.done = m.device.syncobj();
    m.commands.at(Fixture::kCmdVa);
    const uint32_t bytes = Commands().nop().write_to(m.commands.data());
    // What the call makes for its engine stays.
    visit({"SUBMIT",
           [&] {
               return Submit(m.ctx, 0, Fixture::kCmdVa, bytes)
                   .wait(m.before)
                   .signal(m.timeline, 1)
                   .signal(m.done)
                   .uses(m.host, DRM_ENPU_SUBMIT_BO_READ)
                   .uses(m.user, DRM_ENPU_SUBMIT_BO_WRITE)
                   .send(m.device);
           },
           [&] {
               all_jobs_gone(m);
               // A point of a timeline comes once.
               m.device.syncobj_destroy(m.timeline);
               m.timeline = m.device.syncobj();
           },
           12, "queues dma"});
    all_jobs_gone(m);
    waiting_job(m, visit, bytes);
    visit({"CTX_STATUS",
           [&] {
               drm_enpu_ctx_status status{};
               status.ctx_id = m.ctx;
               return m.device.call(DRM_IOCTL_ENPU_CTX_STATUS, &status);
           },
           {},
           0,
           ""});
    CHECK(m.device.status(m.ctx).error == 0);
}

void user_queues(Made& m, const Visit& visit) {
    const auto destroy = [&] {
        drm_enpu_queue_destroy args{m.queue, 0};
        return m.device.call(DRM_IOCTL_ENPU_QUEUE_DESTROY, &args);
    };
    const auto create = [&] {
        drm_enpu_queue_create args{m.ctx, 0, kVa, 4, 0, 0, 0, 0};
        const int ret = m.device.call(DRM_IOCTL_ENPU_QUEUE_CREATE, &args);
        m.queue = args.queue_id;
        return ret;
    };
    visit({"QUEUE_CREATE", create, [&] { CHECK(destroy() == 0); }, 5, ""});
    visit({"QUEUE_WAIT",
           [&] {
               drm_enpu_queue_wait wait{m.queue, 0, 0, 0};
               return m.device.call(DRM_IOCTL_ENPU_QUEUE_WAIT, &wait);
           },
           {},
           0,
           ""});
    visit({"QUEUE_DESTROY", destroy, [&] { CHECK(create() == 0); }, 0, ""});
}

}  // namespace

void every_call(const Visit& visit) {
    visit({"open", open_and_close, {}, 5, ""});
    Made m;
    visit({"QUERY", [&] { return query_memory(m.device); }, {}, 2, ""});
    buffers(m, visit);
    jobs(m, visit);
    user_queues(m, visit);
    visit({"CTX_DESTROY", [&] { return m.device.context_destroy(m.ctx); },
           [&] { CHECK(m.device.context(&m.ctx) == 0); }, 0, ""});
}

std::string difference(const std::map<std::string, long>& now,
                       const std::map<std::string, long>& before, const std::string& but) {
    const std::string words = " " + but + " ";
    for (const auto& [name, count] : before)
        if (words.find(" " + name + " ") == std::string::npos && now.at(name) != count)
            return name + " " + std::to_string(count) + " -> " + std::to_string(now.at(name));
    return {};
}

}  // namespace enpu::test
