// SPDX-License-Identifier: MIT
#include "foreign_buffer.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

namespace enpu::test {

ForeignBuffer::ForeignBuffer(uint64_t bytes) : bytes_(bytes) {
    control_ = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
    if (control_ < 0) SKIP("the guest has no /dev/udmabuf");
    memory_ = memfd_create("udmabuf", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    REQUIRE(ftruncate(memory_, static_cast<off_t>(bytes)) == 0);
    REQUIRE(fcntl(memory_, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    udmabuf_create create{};
    create.memfd = static_cast<uint32_t>(memory_);
    create.flags = UDMABUF_FLAGS_CLOEXEC;
    create.size = bytes;
    fd_ = ioctl(control_, UDMABUF_CREATE, &create);
    REQUIRE(fd_ >= 0);
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
    REQUIRE(p != MAP_FAILED);
    data_ = static_cast<uint8_t*>(p);
}

ForeignBuffer::~ForeignBuffer() {
    if (data_) munmap(data_, bytes_);
    for (const int fd : {fd_, memory_, control_})
        if (fd >= 0) close(fd);
}

}  // namespace enpu::test
