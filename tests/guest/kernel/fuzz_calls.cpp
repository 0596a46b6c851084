// SPDX-License-Identifier: MIT
#include "fuzz_calls.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <filesystem>

namespace enpu::test {
namespace {

constexpr uint64_t kCommandBytes = 64 << 10;  // of memory, the front part
constexpr uint64_t kGridSlots = 8, kGridStride = ENPU_LARGE_PAGE_SIZE;
constexpr uint64_t kUsualBytes = 4 * ENPU_PAGE_SIZE;  // of a mapping, so that some fit each other
constexpr int64_t kLongestWaitNs = 3'000'000;
constexpr uint64_t kLargestBuffer = 4 << 20;

// Nothing lies behind the memory that calls are told of: what reaches too far fails.
constexpr uint64_t kGuardBytes = 16 << 20;

// A mapping may vanish under the reader: then it gets this signal, and goes on.
thread_local sigjmp_buf after_fault;
thread_local bool may_fault = false;

void on_fault(int number) {
    if (may_fault) siglongjmp(after_fault, 1);
    signal(number, SIG_DFL);
}

int64_t now_ns() {
    return deadline(std::chrono::milliseconds(0));
}

}  // namespace

FuzzWorld::FuzzWorld() {
    void* p =
        mmap(nullptr, kMemoryBytes + kGuardBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(p != MAP_FAILED);
    REQUIRE(mprotect(p, kMemoryBytes, PROT_READ | PROT_WRITE) == 0);
    memory = static_cast<uint8_t*>(p);
    signal(SIGBUS, on_fault);
    signal(SIGSEGV, on_fault);
    const char* named = getenv("ENPU_DEVICE");
    nodes.emplace_back(named ? named : "/dev/accel/accel0");
    for (const auto& entry : std::filesystem::directory_iterator("/dev/accel"))
        if (nodes.size() == 1 && entry.path() != nodes[0]) nodes.push_back(entry.path());
    {
        const Device device;
        const auto info = device.info();
        engines = info.compute_engines + info.copy_engines;
        copy_engine = info.compute_engines;
    }
    for (FuzzFile& file : files) open_file(file);
}

FuzzWorld::~FuzzWorld() {
    for (FuzzFile& file : files) close(file.fd);
    if (shared_fd >= 0) close(shared_fd);
    munmap(memory, kMemoryBytes + kGuardBytes);
    signal(SIGBUS, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
}

void FuzzWorld::open_file(FuzzFile& file) {
    const std::string& node = &file == &files.back() ? nodes.back() : nodes.front();
    const int fd = open(node.c_str(), O_RDWR | O_CLOEXEC);
    drm_enpu_bo_userptr wrap{reinterpret_cast<uintptr_t>(memory), kCommandBytes, 0, 0};
    if (ioctl(fd, DRM_IOCTL_ENPU_BO_USERPTR, &wrap) == 0) {
        drm_enpu_vm_map where{kFuzzCommands, 0, kCommandBytes, wrap.handle,
                              DRM_ENPU_MAP_READ | DRM_ENPU_MAP_WRITE};
        ioctl(fd, DRM_IOCTL_ENPU_VM_MAP, &where);
        file.buffers.put(wrap.handle);
    }
    file.fd = fd;
}

void FuzzWorld::reopen(FuzzFile& file) {
    const int old = file.fd.exchange(-1);
    if (old < 0) return;  // another thread is at it
    close(old);
    for (Slots* slots : {&file.buffers, &file.contexts, &file.queues, &file.syncobjs})
        slots->clear();
    open_file(file);
}

Caller::Caller(FuzzWorld& world, uint64_t seed) : world_(world), random_(seed) {}

// ---------------------------------------------------------------- numbers

uint64_t Caller::odd_number() {
    static constexpr uint64_t kNumbers[] = {0,
                                            1,
                                            2,
                                            15,
                                            255,
                                            4095,
                                            4096,
                                            65535,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            0x100000000,
                                            ENPU_VA_END,
                                            ENPU_VA_END - 4096,
                                            0x7fffffffffffffff,
                                            0x8000000000000000,
                                            0xfffffffffffff000,
                                            ~0ull};
    return one_in(4) ? random_() : kNumbers[pick(std::size(kNumbers))];
}

int64_t Caller::short_timeout() {
    return one_in(2) ? 0 : now_ns() + static_cast<int64_t>(pick(kLongestWaitNs));
}

uint64_t Caller::address() {
    if (one_in(16)) return kFuzzCommands + pick(kCommandBytes) / ENPU_PAGE_SIZE * ENPU_PAGE_SIZE;
    return kFuzzGrid + pick(kGridSlots) * kGridStride + (one_in(8) ? pick(512) * 4096 : 0);
}

uint64_t Caller::bytes() {
    if (!one_in(4)) return kUsualBytes;
    return one_in(4) ? pick(kLargestBuffer) / 4096 * 4096 : (1 + pick(16)) * 4096;
}

// ---------------------------------------------------------------- calls

int Caller::count(const char* what, int ret) {
    ++calls_;
    ++results_[what][ret];
    return ret;
}

void Caller::damage(void* args, size_t size) {
    auto* at = static_cast<uint8_t*>(args) + pick(size / 4) * 4;
    uint64_t value = odd_number();
    if (one_in(3)) value = file_->buffers.at(random_());
    const auto left = static_cast<size_t>(static_cast<uint8_t*>(args) + size - at);
    memcpy(at, &value, std::min<size_t>(one_in(2) ? 4 : 8, left));
}

// Pointers of ours to other things would let the kernel write over them.
void Caller::keep_off(__u64& pointer) const {
    const auto begin = reinterpret_cast<uintptr_t>(world_.memory);
    if (pointer >> 32 == begin >> 32 && pointer - begin >= FuzzWorld::kMemoryBytes)
        pointer &= 0xffffffff;
}

int Caller::send(const char* what, unsigned long request, void* args, size_t size, bool waits) {
    void* from = args;
    if (!waits && one_in(128)) {
        // The structure goes past the end of memory, or there is none.
        from = one_in(2) ? world_.memory + FuzzWorld::kMemoryBytes - pick(size)
                         : reinterpret_cast<void*>(odd_number());
    }
    const int fd = file_->fd;
    began_ns = now_ns();
    name = what;
    const int ret = ioctl(fd, request, from);
    const int error = errno;
    began_ns = 0;
    return count(what, ret < 0 ? -error : 0);
}

template <class Args>
int Caller::call(const char* what, unsigned long request, Args& args) {
    constexpr bool kWaits = requires {
        args.timeout_ns;
    };
    if (one_in(6)) damage(&args, sizeof(args));
    // No wait is to be longer than the test.
    if constexpr (kWaits)
        args.timeout_ns = std::min<int64_t>(args.timeout_ns, now_ns() + kLongestWaitNs);
    if constexpr (requires { args.data; }) keep_off(args.data);
    if constexpr (requires { args.addr; }) keep_off(args.addr);
    return send(what, request, &args, sizeof(args), kWaits);
}

void Caller::query() {
    const auto size = static_cast<uint32_t>(pick(600));
    drm_enpu_query args{
        static_cast<uint32_t>(pick(5)), size,
        reinterpret_cast<uintptr_t>(world_.memory) + FuzzWorld::kMemoryBytes - size};
    call("QUERY", DRM_IOCTL_ENPU_QUERY, args);
}

void Caller::make_buffer() {
    static constexpr uint32_t kFlags[] = {DRM_ENPU_BO_HOST, DRM_ENPU_BO_LOCAL,
                                          DRM_ENPU_BO_HOST | DRM_ENPU_BO_PRIVATE,
                                          DRM_ENPU_BO_LOCAL | DRM_ENPU_BO_PRIVATE};
    drm_enpu_bo_create args{bytes(), kFlags[pick(4)], 0};
    if (call("BO_CREATE", DRM_IOCTL_ENPU_BO_CREATE, args) != 0) return;
    // One that would take the guest's whole memory when it is mapped is not kept.
    const bool large = args.size > 4 * kLargestBuffer;
    drm_gem_close old{large ? args.handle : file_->buffers.put(args.handle), 0};
    if (old.handle != 0 && (large || !one_in(8)))
        send("GEM_CLOSE", DRM_IOCTL_GEM_CLOSE, &old, sizeof(old));
}

void Caller::make_userptr() {
    const uint64_t at = pick(FuzzWorld::kMemoryBytes) / 4096 * 4096;
    drm_enpu_bo_userptr args{reinterpret_cast<uintptr_t>(world_.memory) + at, bytes(),
                             one_in(2) ? DRM_ENPU_USERPTR_READ_ONLY : 0u, 0};
    if (call("BO_USERPTR", DRM_IOCTL_ENPU_BO_USERPTR, args) != 0) return;
    drm_gem_close old{file_->buffers.put(args.handle), 0};
    if (old.handle != 0) send("GEM_CLOSE", DRM_IOCTL_GEM_CLOSE, &old, sizeof(old));
}

void Caller::look_at_buffer() {
    drm_enpu_bo_info args{};
    args.handle = file_->buffers.at(random_());
    if (call("BO_INFO", DRM_IOCTL_ENPU_BO_INFO, args) != 0 || args.mmap_offset == 0) return;
    file_->mmap_offset = args.mmap_offset;
    if (one_in(4)) touch(args.mmap_offset);
}

// Maps, reads and writes what may be gone by now, or belong to another file.
void Caller::touch(uint64_t offset) {
    const size_t size = (1 + pick(4)) * 4096;
    const int protection = one_in(4) ? PROT_WRITE : PROT_READ | PROT_WRITE;
    began_ns = now_ns();
    name = "mmap";
    void* p = mmap(nullptr, size, protection, one_in(8) ? MAP_PRIVATE : MAP_SHARED, file_->fd,
                   static_cast<off_t>(offset));
    const int error = errno;
    if (p != MAP_FAILED) {
        auto* word = static_cast<volatile uint32_t*>(p);
        if (sigsetjmp(after_fault, 1) == 0) {
            may_fault = true;
            word[pick(1024)] = static_cast<uint32_t>(random_());
            if (protection & PROT_READ) (void)word[pick(size / 4)];
        }
        may_fault = false;
        munmap(p, size);
    }
    began_ns = 0;
    count("mmap", p == MAP_FAILED ? -error : 0);
}

void Caller::wait_for_buffer() {
    drm_enpu_bo_wait args{file_->buffers.at(random_()), static_cast<uint32_t>(pick(2)),
                          short_timeout()};
    call("BO_WAIT", DRM_IOCTL_ENPU_BO_WAIT, args);
}

void Caller::map() {
    drm_enpu_vm_map args{address(), one_in(4) ? pick(16) * 4096 : 0, bytes(),
                         file_->buffers.at(random_()),
                         one_in(4) ? static_cast<uint32_t>(1 + pick(3))
                                   : uint32_t{DRM_ENPU_MAP_READ | DRM_ENPU_MAP_WRITE}};
    call("VM_MAP", DRM_IOCTL_ENPU_VM_MAP, args);
}

void Caller::unmap() {
    drm_enpu_vm_unmap args{address(), bytes(), short_timeout(), 0};
    // The commands go only now and then: without them little happens.
    if (args.va < kFuzzGrid && !one_in(64)) args.va = kFuzzGrid;
    call("VM_UNMAP", DRM_IOCTL_ENPU_VM_UNMAP, args);
}

void Caller::make_context() {
    drm_enpu_ctx_create args{};
    args.priority = static_cast<uint32_t>(pick(3));
    args.timeout_ms = one_in(2) ? 0 : static_cast<uint32_t>(500 + pick(2000));
    args.max_jobs = one_in(8) ? 0 : static_cast<uint32_t>(1 + pick(64));
    if (call("CTX_CREATE", DRM_IOCTL_ENPU_CTX_CREATE, args) != 0) return;
    drm_enpu_ctx_destroy old{file_->contexts.put(args.ctx_id), 0};
    if (old.ctx_id != 0 && !one_in(4))
        send("CTX_DESTROY", DRM_IOCTL_ENPU_CTX_DESTROY, &old, sizeof(old));
}

void Caller::end_context() {
    drm_enpu_ctx_destroy args{file_->contexts.at(random_()), 0};
    call("CTX_DESTROY", DRM_IOCTL_ENPU_CTX_DESTROY, args);
}

void Caller::look_at_context() {
    drm_enpu_ctx_status args{};
    args.ctx_id = file_->contexts.at(random_());
    call("CTX_STATUS", DRM_IOCTL_ENPU_CTX_STATUS, args);
}

// Packets for the front of a command buffer, while others may run them.
void Caller::write_commands(uint64_t at, uint32_t bytes) {
    Commands commands;
    const uint64_t to = address() + pick(512) * 8, from = address() + pick(512) * 8;
    while (commands.size() < bytes) {
        switch (pick(6)) {
            case 0:
                commands.copy(to, from, 1 + pick(4096));
                break;
            case 1:
                commands.fill(to, (1 + pick(1024)) * 8, random_(), 8);
                break;
            case 2:
                commands.wait(to, pick(3), static_cast<uint32_t>(1 + pick(2000)));
                break;
            case 3:
                commands.signal(to, pick(3));
                break;
            default:
                commands.nop(random_());
                break;
        }
    }
    commands.write_to(raw_.data());
    memcpy(world_.memory + at, raw_.data(), bytes);
    if (one_in(16)) world_.memory[at + pick(bytes)] = static_cast<uint8_t>(random_());
}

void Caller::submit() {
    const uint64_t at = pick(kCommandBytes - 4096) / 16 * 16;
    const auto size = static_cast<uint32_t>(16 * (1 + pick(16)));
    if (one_in(2)) write_commands(at, size);
    std::array<drm_enpu_sync_op, 8> syncs{};
    for (auto& sync : syncs)
        sync = {file_->syncobjs.at(random_()), static_cast<uint32_t>(pick(2)),
                one_in(2) ? 0 : pick(8)};
    std::array<drm_enpu_submit_bo, 8> bos{};
    for (auto& bo : bos) bo = {file_->buffers.at(random_()), static_cast<uint32_t>(1 + pick(3))};
    if (one_in(16)) damage(syncs.data(), sizeof(syncs));
    if (one_in(16)) damage(bos.data(), sizeof(bos));
    drm_enpu_submit args{};
    args.ctx_id = file_->contexts.at(random_());
    args.engine = one_in(4) ? static_cast<uint32_t>(pick(world_.engines)) : world_.copy_engine;
    args.cmd_va = kFuzzCommands + at;
    args.cmd_bytes = size;
    args.sync_count = one_in(2) ? 0 : static_cast<uint32_t>(pick(3));
    args.syncs = reinterpret_cast<uintptr_t>(syncs.data());
    args.sync_stride = sizeof(syncs[0]);
    args.bo_count = one_in(2) ? 0 : static_cast<uint32_t>(pick(4));
    args.bos = reinterpret_cast<uintptr_t>(bos.data());
    args.job_id = random_();
    if (call("SUBMIT", DRM_IOCTL_ENPU_SUBMIT, args) != -ENOTRECOVERABLE) return;
    // A guilty context is good for nothing more.
    drm_enpu_ctx_destroy guilty{args.ctx_id, 0};
    send("CTX_DESTROY", DRM_IOCTL_ENPU_CTX_DESTROY, &guilty, sizeof(guilty));
    make_context();
}

void Caller::make_queue() {
    drm_enpu_queue_create args{};
    args.ctx_id = file_->contexts.at(random_());
    args.engine = static_cast<uint32_t>(pick(world_.engines));
    args.ring_va = address();
    args.ring_log2 = static_cast<uint32_t>(2 + pick(6));
    if (call("QUEUE_CREATE", DRM_IOCTL_ENPU_QUEUE_CREATE, args) != 0) return;
    drm_enpu_queue_destroy old{file_->queues.put(args.queue_id), 0};
    if (old.queue_id != 0) send("QUEUE_DESTROY", DRM_IOCTL_ENPU_QUEUE_DESTROY, &old, sizeof(old));
    file_->mmap_offset = args.doorbell_offset;
    touch(args.doorbell_offset);
}

void Caller::end_queue() {
    drm_enpu_queue_destroy args{file_->queues.at(random_()), 0};
    call("QUEUE_DESTROY", DRM_IOCTL_ENPU_QUEUE_DESTROY, args);
}

void Caller::wait_for_queue() {
    drm_enpu_queue_wait args{file_->queues.at(random_()), 0, pick(4), short_timeout()};
    call("QUEUE_WAIT", DRM_IOCTL_ENPU_QUEUE_WAIT, args);
}

void Caller::close_buffer() {
    drm_gem_close args{file_->buffers.at(random_()), 0};
    call("GEM_CLOSE", DRM_IOCTL_GEM_CLOSE, args);
}

// Through a dma-buf, into this file or another.
void Caller::share() {
    if (one_in(2)) {
        drm_prime_handle args{file_->buffers.at(random_()),
                              static_cast<uint32_t>(DRM_CLOEXEC | DRM_RDWR), -1};
        if (send("HANDLE_TO_FD", DRM_IOCTL_PRIME_HANDLE_TO_FD, &args, sizeof(args)) != 0) return;
        const int old = world_.shared_fd.exchange(args.fd);
        if (old >= 0) close(old);
        return;
    }
    // Taken out meanwhile, so that nobody closes it, and what follows it, under our feet.
    const int fd = world_.shared_fd.exchange(-1);
    if (fd < 0) return;
    drm_prime_handle args{0, 0, fd};
    if (send("FD_TO_HANDLE", DRM_IOCTL_PRIME_FD_TO_HANDLE, &args, sizeof(args)) == 0)
        file_->buffers.put(args.handle);
    const int newer = world_.shared_fd.exchange(fd);
    if (newer >= 0) close(newer);
}

void Caller::syncobj() {
    switch (pick(5)) {
        case 0: {
            drm_syncobj_create args{};
            args.flags = one_in(2) ? DRM_SYNCOBJ_CREATE_SIGNALED : 0;
            if (call("SYNCOBJ_CREATE", DRM_IOCTL_SYNCOBJ_CREATE, args) != 0) return;
            drm_syncobj_destroy old{file_->syncobjs.put(args.handle), 0};
            if (old.handle != 0)
                send("SYNCOBJ_DESTROY", DRM_IOCTL_SYNCOBJ_DESTROY, &old, sizeof(old));
            return;
        }
        case 1: {
            drm_syncobj_destroy args{file_->syncobjs.at(random_()), 0};
            call("SYNCOBJ_DESTROY", DRM_IOCTL_SYNCOBJ_DESTROY, args);
            return;
        }
        default: {
            // No damage: the wait of the core has a timeout of another name.
            const uint32_t handle = file_->syncobjs.at(random_());
            const uint64_t point = pick(8);
            drm_syncobj_timeline_wait args{};
            args.handles = reinterpret_cast<uintptr_t>(&handle);
            args.points = reinterpret_cast<uintptr_t>(&point);
            args.timeout_nsec = short_timeout();
            args.count_handles = 1;
            args.flags = static_cast<uint32_t>(pick(4));
            send("SYNCOBJ_WAIT", DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &args, sizeof(args), true);
            return;
        }
    }
}

// Any number, size and direction of the driver's range.
void Caller::nonsense() {
    for (auto& byte : raw_) byte = static_cast<uint8_t>(one_in(4) ? random_() : 0);
    const auto number = static_cast<unsigned>(DRM_COMMAND_BASE + pick(20));
    const auto size = static_cast<unsigned>(pick(one_in(8) ? 16384 : 160));
    const unsigned long request =
        _IOC(static_cast<unsigned>(pick(4)), DRM_IOCTL_BASE, number, size);
    // These wait as long as their bytes say.
    const unsigned id = number - DRM_COMMAND_BASE;
    if (id == DRM_ENPU_BO_WAIT || id == DRM_ENPU_VM_UNMAP || id == DRM_ENPU_QUEUE_WAIT)
        memset(raw_.data() + 8, 0, 24);
    send("any", request, raw_.data(), 64, true);
}

void Caller::step() {
    struct Choice {
        void (Caller::*run)();
        unsigned weight;
    };
    static constexpr Choice kChoices[] = {
        {&Caller::query, 2},           {&Caller::make_buffer, 8},     {&Caller::make_userptr, 3},
        {&Caller::look_at_buffer, 4},  {&Caller::wait_for_buffer, 3}, {&Caller::map, 14},
        {&Caller::unmap, 4},           {&Caller::make_context, 5},    {&Caller::end_context, 2},
        {&Caller::look_at_context, 3}, {&Caller::submit, 30},         {&Caller::make_queue, 3},
        {&Caller::end_queue, 2},       {&Caller::wait_for_queue, 2},  {&Caller::close_buffer, 3},
        {&Caller::share, 4},           {&Caller::syncobj, 8},         {&Caller::nonsense, 2},
    };
    static const uint64_t kAll = [] {
        uint64_t sum = 0;
        for (const Choice& choice : kChoices) sum += choice.weight;
        return sum;
    }();
    file_ = &world_.files[pick(kFuzzFiles)];
    if (one_in(4000)) return world_.reopen(*file_);
    uint64_t ticket = pick(kAll);
    for (const Choice& choice : kChoices) {
        if (ticket < choice.weight) return (this->*choice.run)();
        ticket -= choice.weight;
    }
}

}  // namespace enpu::test
