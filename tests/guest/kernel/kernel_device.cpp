// SPDX-License-Identifier: MIT
#include "kernel_device.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace enpu::test {
namespace {

std::string node() {
    const char* named = getenv("ENPU_DEVICE");
    return named ? named : "/dev/accel/accel0";
}

// "0" for /dev/accel/accel0.
std::string minor_of_node() {
    struct stat st {};
    REQUIRE(stat(node().c_str(), &st) == 0);
    return std::to_string(minor(st.st_rdev));
}

}  // namespace

int64_t deadline(std::chrono::milliseconds from_now) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec +
           std::chrono::duration_cast<std::chrono::nanoseconds>(from_now).count();
}

Device::Device() : fd_(open(node().c_str(), O_RDWR | O_CLOEXEC)) {
    INFO("node " << node() << ": " << strerror(errno));
    REQUIRE(fd_ >= 0);
}

Device::~Device() {
    close(fd_);
}

int Device::call(unsigned long request, void* args) const {
    int ret;
    do ret = ioctl(fd_, request, args);
    while (ret < 0 && (errno == EINTR || errno == EAGAIN) && request != DRM_IOCTL_ENPU_SUBMIT);
    return ret < 0 ? -errno : 0;
}

drm_enpu_device_info Device::info() const {
    drm_enpu_device_info info{};
    drm_enpu_query query{DRM_ENPU_QUERY_DEVICE, sizeof(info), reinterpret_cast<uintptr_t>(&info)};
    REQUIRE(call(DRM_IOCTL_ENPU_QUERY, &query) == 0);
    return info;
}

drm_enpu_memory_info Device::memory() const {
    drm_enpu_memory_info info{};
    drm_enpu_query query{DRM_ENPU_QUERY_MEMORY, sizeof(info), reinterpret_cast<uintptr_t>(&info)};
    REQUIRE(call(DRM_IOCTL_ENPU_QUERY, &query) == 0);
    return info;
}

std::vector<uint64_t> Device::counters() const {
    std::vector<uint64_t> words(ENPU_COUNTER_COPY_BYTES + 1);
    drm_enpu_query query{DRM_ENPU_QUERY_COUNTERS, static_cast<uint32_t>(words.size() * 8),
                         reinterpret_cast<uintptr_t>(words.data())};
    REQUIRE(call(DRM_IOCTL_ENPU_QUERY, &query) == 0);
    return words;
}

int Device::bo_create(uint64_t size, uint32_t flags, uint32_t* handle) const {
    drm_enpu_bo_create args{size, flags, 0};
    const int ret = call(DRM_IOCTL_ENPU_BO_CREATE, &args);
    *handle = args.handle;
    return ret;
}

int Device::bo_wait(uint32_t handle, int64_t timeout_ns, uint32_t flags) const {
    drm_enpu_bo_wait args{handle, flags, timeout_ns};
    return call(DRM_IOCTL_ENPU_BO_WAIT, &args);
}

int Device::map(uint64_t va, uint32_t handle, uint64_t size, uint64_t offset,
                uint32_t flags) const {
    drm_enpu_vm_map args{va, offset, size, handle, flags};
    return call(DRM_IOCTL_ENPU_VM_MAP, &args);
}

int Device::unmap(uint64_t va, uint64_t size, int64_t timeout_ns) const {
    drm_enpu_vm_unmap args{va, size, timeout_ns, 0};
    return call(DRM_IOCTL_ENPU_VM_UNMAP, &args);
}

int Device::close_handle(uint32_t handle) const {
    drm_gem_close args{handle, 0};
    return call(DRM_IOCTL_GEM_CLOSE, &args);
}

int Device::context(uint32_t* id, uint32_t timeout_ms, uint32_t max_jobs) const {
    drm_enpu_ctx_create args{};
    args.priority = DRM_ENPU_PRIORITY_NORMAL;
    args.timeout_ms = timeout_ms;
    args.max_jobs = max_jobs;
    const int ret = call(DRM_IOCTL_ENPU_CTX_CREATE, &args);
    *id = args.ctx_id;
    return ret;
}

int Device::context_destroy(uint32_t id) const {
    drm_enpu_ctx_destroy args{id, 0};
    return call(DRM_IOCTL_ENPU_CTX_DESTROY, &args);
}

drm_enpu_ctx_status Device::status(uint32_t ctx) const {
    drm_enpu_ctx_status status{};
    status.ctx_id = ctx;
    REQUIRE(call(DRM_IOCTL_ENPU_CTX_STATUS, &status) == 0);
    return status;
}

uint32_t Device::syncobj(bool signaled) const {
    drm_syncobj_create args{};
    args.flags = signaled ? DRM_SYNCOBJ_CREATE_SIGNALED : 0;
    REQUIRE(call(DRM_IOCTL_SYNCOBJ_CREATE, &args) == 0);
    return args.handle;
}

void Device::syncobj_destroy(uint32_t handle) const {
    drm_syncobj_destroy args{handle, 0};
    // A device that was unbound has taken them along.
    const int ret = call(DRM_IOCTL_SYNCOBJ_DESTROY, &args);
    CHECK((ret == 0 || ret == -ENODEV));
}

int Device::syncobj_wait(uint32_t handle, uint64_t point, int64_t timeout_ns) const {
    drm_syncobj_timeline_wait args{};
    args.handles = reinterpret_cast<uintptr_t>(&handle);
    args.points = reinterpret_cast<uintptr_t>(&point);
    args.timeout_nsec = timeout_ns;
    args.count_handles = 1;
    args.flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;
    return call(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT, &args);
}

int Device::syncobj_signal(uint32_t handle, uint64_t point) const {
    drm_syncobj_timeline_array args{};
    args.handles = reinterpret_cast<uintptr_t>(&handle);
    args.points = reinterpret_cast<uintptr_t>(&point);
    args.count_handles = 1;
    return call(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL, &args);
}

int Device::export_fd(uint32_t handle, int* fd) const {
    drm_prime_handle args{handle, DRM_CLOEXEC | DRM_RDWR, -1};
    const int ret = call(DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);
    *fd = args.fd;
    return ret;
}

int Device::import_fd(int fd, uint32_t* handle) const {
    drm_prime_handle args{0, 0, fd};
    const int ret = call(DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);
    *handle = args.handle;
    return ret;
}

Buffer::Buffer(const Device& device, uint64_t size, uint32_t flags) : device_(device) {
    REQUIRE(device.bo_create(size, flags, &handle_) == 0);
    drm_enpu_bo_info info{};
    info.handle = handle_;
    REQUIRE(device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == 0);
    size_ = info.size;
    void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, device.fd(),
                   static_cast<off_t>(info.mmap_offset));
    REQUIRE(p != MAP_FAILED);
    data_ = static_cast<uint8_t*>(p);
}

Buffer::~Buffer() {
    munmap(data_, size_);
    device_.close_handle(handle_);
}

Buffer& Buffer::at(uint64_t va) {
    REQUIRE(device_.map(va, handle_, size_) == 0);
    return *this;
}

Submit::Submit(uint32_t ctx, uint32_t engine, uint64_t cmd_va, uint32_t cmd_bytes) {
    args.ctx_id = ctx;
    args.engine = engine;
    args.cmd_va = cmd_va;
    args.cmd_bytes = cmd_bytes;
    args.sync_stride = sizeof(drm_enpu_sync_op);
}

Submit& Submit::wait(uint32_t syncobj, uint64_t point) {
    syncs.push_back({syncobj, DRM_ENPU_SYNC_WAIT, point});
    return *this;
}

Submit& Submit::signal(uint32_t syncobj, uint64_t point) {
    syncs.push_back({syncobj, DRM_ENPU_SYNC_SIGNAL, point});
    return *this;
}

Submit& Submit::uses(uint32_t handle, uint32_t flags) {
    bos.push_back({handle, flags});
    return *this;
}

int Submit::send(const Device& device) {
    args.syncs = reinterpret_cast<uintptr_t>(syncs.data());
    args.sync_count = static_cast<uint32_t>(syncs.size());
    args.bos = reinterpret_cast<uintptr_t>(bos.data());
    args.bo_count = static_cast<uint32_t>(bos.size());
    return device.call(DRM_IOCTL_ENPU_SUBMIT, &args);
}

Fixture::Fixture(uint32_t timeout_ms) : copy(device.copy_engine()), commands(device, 16 * kPage) {
    commands.at(kCmdVa);
    REQUIRE(device.context(&ctx, timeout_ms) == 0);
    done = device.syncobj();
}

Fixture::~Fixture() {
    device.context_destroy(ctx);
    device.syncobj_destroy(done);
}

int Fixture::submit(uint32_t engine, const Commands& packets, uint64_t job_id) {
    REQUIRE(packets.size() <= commands.size());
    Submit submit(ctx, engine, kCmdVa, packets.write_to(commands.data()));
    submit.args.job_id = job_id;
    return submit.signal(done).send(device);
}

void Fixture::run(uint32_t engine, const Commands& packets) {
    REQUIRE(submit(engine, packets) == 0);
    REQUIRE(device.syncobj_wait(done) == 0);
}

std::string sysfs_path(const std::string& name) {
    return "/sys/class/accel/accel" + minor_of_node() + "/device" + (name.empty() ? "" : "/") +
           name;
}

std::string sysfs(const std::string& name) {
    std::ifstream file(sysfs_path(name));
    INFO("sysfs file " << name);
    REQUIRE(file.good());
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

namespace {

std::filesystem::path debugfs_path(const std::string& name) {
    const std::filesystem::path root = "/sys/kernel/debug";
    if (!std::filesystem::exists(root / "accel") && !std::filesystem::exists(root / "dri"))
        mount("debugfs", root.c_str(), "debugfs", 0, nullptr);
    // Newer kernels keep accelerators beside the GPUs.
    const std::string device = std::filesystem::canonical(sysfs_path("")).filename();
    const std::filesystem::path file = root / "accel" / device / name;
    return std::filesystem::exists(file) ? file : root / "dri" / device / name;
}

}  // namespace

int debugfs_write(const std::string& name, const std::string& text) {
    const int fd = open(debugfs_path(name).c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    const ssize_t written = write(fd, text.data(), text.size());
    const int ret = written < 0 ? -errno : 0;
    close(fd);
    return ret;
}

std::string debugfs_read(const std::string& name) {
    std::ifstream file(debugfs_path(name));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

namespace {

// A register is read in its own width only.
template <typename Value>
Value read_register(uint32_t offset) {
    const int fd = open(debugfs_path("registers").c_str(), O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    Value value = 0;
    const ssize_t bytes = pread(fd, &value, sizeof(value), offset);
    close(fd);
    REQUIRE(bytes == static_cast<ssize_t>(sizeof(value)));
    return value;
}

}  // namespace

uint32_t register32(uint32_t offset) {
    return read_register<uint32_t>(offset);
}

uint64_t register64(uint32_t offset) {
    return read_register<uint64_t>(offset);
}

}  // namespace enpu::test
