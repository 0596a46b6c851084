// SPDX-License-Identifier: MIT
// The kernel driver behind the OS interface: one ioctl a method.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xf86drm.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "os/os.h"

namespace enpu::os {
namespace {

constexpr const char* kDriver = "enpu";

// A mapped page of the device's doorbells.
class DrmDoorbell final : public Doorbell {
  public:
    explicit DrmDoorbell(void* page) : page_(static_cast<volatile uint32_t*>(page)) {}
    ~DrmDoorbell() override { ::munmap(const_cast<uint32_t*>(page_), ENPU_DOORBELL_STRIDE); }
    void ring() override { *page_ = 1; }

  private:
    volatile uint32_t* const page_;
};

class DrmOs final : public Os {
  public:
    explicit DrmOs(int fd) : fd_(fd) {}
    ~DrmOs() override { ::close(fd_); }

    bool simulator() const override { return false; }

    int query(uint32_t type, void* data, uint32_t* bytes) override {
        drm_enpu_query query = {type, *bytes, reinterpret_cast<uint64_t>(data)};
        const int result = call(DRM_IOCTL_ENPU_QUERY, &query);
        *bytes = query.size;
        return result;
    }

    int bo_create(drm_enpu_bo_create* create) override {
        return call(DRM_IOCTL_ENPU_BO_CREATE, create);
    }
    int bo_userptr(drm_enpu_bo_userptr* userptr) override {
        return call(DRM_IOCTL_ENPU_BO_USERPTR, userptr);
    }
    int bo_import(int fd, uint32_t* handle) override {
        return drmPrimeFDToHandle(fd_, fd, handle) == 0 ? 0 : -errno;
    }
    int bo_export(uint32_t handle, int* fd) override {
        return drmPrimeHandleToFD(fd_, handle, DRM_CLOEXEC | DRM_RDWR, fd) == 0 ? 0 : -errno;
    }
    int bo_info(drm_enpu_bo_info* info) override { return call(DRM_IOCTL_ENPU_BO_INFO, info); }
    int bo_wait(const drm_enpu_bo_wait& wait) override {
        drm_enpu_bo_wait copy = wait;
        return call(DRM_IOCTL_ENPU_BO_WAIT, &copy);
    }
    void bo_close(uint32_t handle) override { drmCloseBufferHandle(fd_, handle); }
    int bo_mmap(const drm_enpu_bo_info& info, void** address) override {
        if (info.mmap_offset == 0) return -EOPNOTSUPP;
        void* mapped = ::mmap(nullptr, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_,
                              static_cast<off_t>(info.mmap_offset));
        if (mapped == MAP_FAILED) return -errno;
        *address = mapped;
        return 0;
    }
    void bo_munmap(void* address, uint64_t bytes) override { ::munmap(address, bytes); }

    int vm_map(const drm_enpu_vm_map& map) override {
        drm_enpu_vm_map copy = map;
        return call(DRM_IOCTL_ENPU_VM_MAP, &copy);
    }
    int vm_unmap(const drm_enpu_vm_unmap& unmap) override {
        drm_enpu_vm_unmap copy = unmap;
        return call(DRM_IOCTL_ENPU_VM_UNMAP, &copy);
    }

    int ctx_create(drm_enpu_ctx_create* create) override {
        return call(DRM_IOCTL_ENPU_CTX_CREATE, create);
    }
    void ctx_destroy(uint32_t ctx_id) override {
        drm_enpu_ctx_destroy destroy = {ctx_id, 0};
        call(DRM_IOCTL_ENPU_CTX_DESTROY, &destroy);
    }
    int ctx_status(drm_enpu_ctx_status* status) override {
        return call(DRM_IOCTL_ENPU_CTX_STATUS, status);
    }
    int submit(drm_enpu_submit* submit) override { return call(DRM_IOCTL_ENPU_SUBMIT, submit); }

    int queue_create(drm_enpu_queue_create* create, std::unique_ptr<Doorbell>* doorbell) override {
        const int result = call(DRM_IOCTL_ENPU_QUEUE_CREATE, create);
        if (result != 0) return result;
        void* page = ::mmap(nullptr, ENPU_DOORBELL_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED, fd_,
                            static_cast<off_t>(create->doorbell_offset));
        if (page == MAP_FAILED) {
            const int code = -errno;
            queue_destroy(create->queue_id);
            return code;
        }
        *doorbell = std::make_unique<DrmDoorbell>(page);
        return 0;
    }
    void queue_destroy(uint32_t queue_id) override {
        drm_enpu_queue_destroy destroy = {queue_id, 0};
        call(DRM_IOCTL_ENPU_QUEUE_DESTROY, &destroy);
    }
    int queue_wait(const drm_enpu_queue_wait& wait) override {
        drm_enpu_queue_wait copy = wait;
        return call(DRM_IOCTL_ENPU_QUEUE_WAIT, &copy);
    }

    int sync_create(uint32_t* handle) override {
        return drmSyncobjCreate(fd_, 0, handle) == 0 ? 0 : -errno;
    }
    void sync_destroy(uint32_t handle) override { drmSyncobjDestroy(fd_, handle); }
    int sync_wait(SyncWait* wait) override {
        uint32_t flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT;
        if (!wait->any) flags |= DRM_SYNCOBJ_WAIT_FLAGS_WAIT_ALL;
        // The kernel counts ticks, and may be back some ticks early when it catches up on late ones.
        int result;
        do
            result = drmSyncobjTimelineWait(fd_, wait->handles, wait->points, wait->count,
                                            wait->deadline_ns, flags, &wait->first);
        while (result == -ETIME && now_ns() < wait->deadline_ns);
        return result;
    }
    int sync_query(uint32_t handle, uint64_t* value) override {
        return drmSyncobjQuery(fd_, &handle, value, 1) == 0 ? 0 : -errno;
    }
    int sync_signal(uint32_t handle, uint64_t value) override {
        return drmSyncobjTimelineSignal(fd_, &handle, &value, 1) == 0 ? 0 : -errno;
    }
    int sync_export(uint32_t handle, int* fd) override {
        return drmSyncobjHandleToFD(fd_, handle, fd) == 0 ? 0 : -errno;
    }
    int sync_import(int fd, uint32_t* handle) override {
        return drmSyncobjFDToHandle(fd_, fd, handle) == 0 ? 0 : -errno;
    }

    int inject_faults(const char*, enpu_error* error) override {
        return fail(error, -EOPNOTSUPP, kNoFaults);
    }
    int faults_fired(uint32_t, uint32_t*, uint64_t*, enpu_error* error) override {
        return fail(error, -EOPNOTSUPP, kNoFaults);
    }

  private:
    // Not drmIoctl: that one repeats -EAGAIN for ever, which SUBMIT returns when a context is full.
    int call(unsigned long request, void* argument) const {
        int result;
        do result = ::ioctl(fd_, request, argument);
        while (result != 0 && errno == EINTR);
        return result == 0 ? 0 : -errno;
    }

    const int fd_;
};

// The node belongs to our driver, and its uAPI is the one this library was built with.
int check_driver(int fd, const std::string& node, enpu_error* error) {
    drmVersionPtr version = drmGetVersion(fd);
    if (version == nullptr)
        return fail(error, -ENODEV, "%s is no DRM node: %s", node.c_str(),
                    errno_text(-errno).c_str());
    const std::string name(version->name, static_cast<size_t>(version->name_len));
    const int major = version->version_major;
    drmFreeVersion(version);
    if (name != kDriver)
        return fail(error, -ENODEV, "%s belongs to driver '%s', not to '%s'", node.c_str(),
                    name.c_str(), kDriver);
    if (major != ENPU_UAPI_MAJOR) {
        return fail(error, -EPROTO,
                    "%s: the driver's interface is version %d, this library speaks %d",
                    node.c_str(), major, ENPU_UAPI_MAJOR);
    }
    return 0;
}

}  // namespace

int open_drm(const std::string& node, std::unique_ptr<Os>* os, enpu_error* error) {
    const int fd = ::open(node.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        const int code = errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
        return fail(error, code, "%s cannot be opened: %s", node.c_str(),
                    errno_text(-errno).c_str());
    }
    auto drm = std::make_unique<DrmOs>(fd);
    if (int r = check_driver(fd, node, error)) return r;
    *os = std::move(drm);
    return 0;
}

}  // namespace enpu::os
