// SPDX-License-Identifier: MIT
#include "nvme_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace enpu::bench {
namespace {

// The file has one size; this many blocks of it are read in turn.
constexpr uint64_t kSpan = 1024;

[[noreturn]] void fail(const std::string& what, int error = errno) {
    throw std::system_error(error, std::generic_category(), what);
}

void* map(size_t bytes, int fd, off_t offset) {
    const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_POPULATE;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
    if (at == MAP_FAILED) fail("mmap of the io_uring");
    return at;
}

}  // namespace

NvmeReader::NvmeReader(const std::string& device) {
    file_ = open(device.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (file_ < 0) fail(device);
    io_uring_params params{};
    ring_ = static_cast<int>(syscall(SYS_io_uring_setup, kMaxDepth, &params));
    if (ring_ < 0) fail("io_uring_setup");
    if (!(params.features & IORING_FEAT_SINGLE_MMAP)) fail("io_uring without one mapping", ENOTSUP);
    map_rings(params);
    buffers_ = static_cast<uint8_t*>(map(size_t{kBlock} * kMaxDepth, -1, 0));
    const iovec all{buffers_, size_t{kBlock} * kMaxDepth};
    if (syscall(SYS_io_uring_register, ring_, IORING_REGISTER_BUFFERS, &all, 1) < 0)
        fail("registering the buffers");
    if (syscall(SYS_io_uring_register, ring_, IORING_REGISTER_FILES, &file_, 1) < 0)
        fail("registering the file");
    for (; free_count_ < kMaxDepth; ++free_count_) free_[free_count_] = free_count_;
}

void NvmeReader::map_rings(const io_uring_params& params) {
    ring_bytes_ = std::max(params.sq_off.array + params.sq_entries * sizeof(uint32_t),
                           params.cq_off.cqes + params.cq_entries * sizeof(io_uring_cqe));
    rings_ = static_cast<uint8_t*>(map(ring_bytes_, ring_, IORING_OFF_SQ_RING));
    entry_bytes_ = params.sq_entries * sizeof(io_uring_sqe);
    entries_ = static_cast<io_uring_sqe*>(map(entry_bytes_, ring_, IORING_OFF_SQES));
    const auto word = [this](uint32_t offset) {
        return reinterpret_cast<uint32_t*>(rings_ + offset);
    };
    sq_tail_ = word(params.sq_off.tail);
    sq_array_ = word(params.sq_off.array);
    sq_mask_ = *word(params.sq_off.ring_mask);
    cq_head_ = word(params.cq_off.head);
    cq_tail_ = word(params.cq_off.tail);
    cq_mask_ = *word(params.cq_off.ring_mask);
    completions_ = reinterpret_cast<io_uring_cqe*>(rings_ + params.cq_off.cqes);
}

NvmeReader::~NvmeReader() {
    if (entries_) munmap(entries_, entry_bytes_);
    if (rings_) munmap(rings_, ring_bytes_);
    if (ring_ >= 0) close(ring_);
    if (buffers_) munmap(buffers_, size_t{kBlock} * kMaxDepth);
    if (file_ >= 0) close(file_);
}

void NvmeReader::queue(uint32_t slot) {
    const uint32_t tail = *sq_tail_, index = tail & sq_mask_;
    io_uring_sqe& entry = entries_[index];
    memset(&entry, 0, sizeof(entry));
    entry.opcode = IORING_OP_READ_FIXED;
    entry.flags = IOSQE_FIXED_FILE;
    entry.fd = 0;
    entry.off = (tail % kSpan) * kBlock;
    entry.addr = reinterpret_cast<uint64_t>(buffers_ + size_t{kBlock} * slot);
    entry.len = kBlock;
    entry.user_data = slot;
    sq_array_[index] = index;
    __atomic_store_n(sq_tail_, tail + 1, __ATOMIC_RELEASE);
}

uint32_t NvmeReader::reap() {
    uint32_t head = *cq_head_, count = 0;
    for (; head != __atomic_load_n(cq_tail_, __ATOMIC_ACQUIRE); ++head, ++count) {
        const io_uring_cqe& entry = completions_[head & cq_mask_];
        if (entry.res != static_cast<int>(kBlock)) fail("a read", entry.res < 0 ? -entry.res : EIO);
        free_[free_count_++] = static_cast<uint32_t>(entry.user_data);
    }
    __atomic_store_n(cq_head_, head, __ATOMIC_RELEASE);
    return count;
}

void NvmeReader::enter(uint32_t submit, uint32_t wait) {
    while (syscall(SYS_io_uring_enter, ring_, submit, wait, IORING_ENTER_GETEVENTS, nullptr, 0) <
           0) {
        if (errno != EINTR) fail("io_uring_enter");
    }
}

void NvmeReader::read(uint64_t count, uint32_t depth) {
    uint64_t queued = 0, done = 0;
    while (done < count) {
        uint32_t fresh = 0;
        for (; queued < count && queued - done < depth; ++queued, ++fresh)
            queue(free_[--free_count_]);
        enter(fresh, 1);
        done += reap();
    }
}

}  // namespace enpu::bench
