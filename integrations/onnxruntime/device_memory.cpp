// SPDX-License-Identifier: MIT
#include "device_memory.h"

#include <cstring>

namespace enpu::ort {
namespace {

constexpr uint64_t kTimeoutMs = 600000;

}  // namespace

SharedDevice::~SharedDevice() {
    if (!device_) return;
    for (rt_stream stream : streams_) rt_stream_destroy(stream);
    rt_stream_destroy(memory_stream_);
    rt_event_destroy(event_);
}

std::shared_ptr<lowering::OpenDevice> SharedDevice::open() {
    const std::lock_guard guard(lock_);
    if (device_) return device_;
    auto opened = std::make_shared<lowering::OpenDevice>(
        lowering::DeviceOptions{spec_, options.fallback, options.notice, options.context});
    memory_stream_ = lowering::make_stream(opened->handle(), "ort-memory");
    lowering::check(rt_event_create(opened->handle(), 0, &event_), "event");
    device_ = std::move(opened);
    return device_;
}

// What has been enqueued on any stream comes before what follows: on the stream of the memory, or
// for the caller.
void SharedDevice::wait_for_streams(bool on_host) {
    for (rt_stream stream : streams_) {
        rt_status status = rt_event_record(event_, stream);
        if (status == RT_OK) {
            status = on_host ? rt_event_wait(event_, rt_deadline_ms(kTimeoutMs))
                             : rt_stream_wait_event(memory_stream_, event_);
        }
        rt_status_free(status);  // a stream that failed has nothing in flight
    }
}

void* SharedDevice::allocate(size_t bytes, rt_stream stream) {
    open();
    const std::lock_guard guard(lock_);
    void* pointer = nullptr;
    lowering::check(rt_malloc(memory_stream_, bytes ? bytes : 1, &pointer), "device memory");
    // The block may still be in use by what came before it was freed.
    lowering::check(rt_event_record(event_, memory_stream_), "device memory");
    for (rt_stream other : streams_) {
        if (stream && other != stream) continue;
        rt_status_free(rt_stream_wait_event(other, event_));
    }
    return pointer;
}

void SharedDevice::release(void* pointer) {
    const std::lock_guard guard(lock_);
    if (!device_ || !pointer) return;
    wait_for_streams(false);
    rt_status_free(rt_free(memory_stream_, pointer));
}

void* SharedDevice::allocate_host(size_t bytes) {
    const auto device = open();
    void* pointer = nullptr;
    lowering::check(rt_host_alloc(device->handle(), bytes ? bytes : 1, &pointer), "pinned memory");
    return pointer;
}

void SharedDevice::release_host(void* pointer) {
    const std::lock_guard guard(lock_);
    if (!device_ || !pointer) return;
    wait_for_streams(true);
    rt_status_free(rt_host_free(device_->handle(), pointer));
}

rt_stream SharedDevice::add_stream() {
    const auto device = open();
    const std::lock_guard guard(lock_);
    rt_stream stream = lowering::make_stream(device->handle(), "ort");
    streams_.insert(stream);
    return stream;
}

void SharedDevice::remove_stream(rt_stream stream) {
    const std::lock_guard guard(lock_);
    streams_.erase(stream);
    rt_stream_destroy(stream);
}

void SharedDevice::wait() {
    const std::lock_guard guard(lock_);
    wait_for_streams(true);
}

rt_stream SharedDevice::own_stream() {
    open();
    const std::lock_guard guard(lock_);
    wait_for_streams(false);
    return memory_stream_;
}

namespace {

// ---- allocators

class Allocator : public OrtAllocator {
  public:
    Allocator(std::shared_ptr<SharedDevice> device, const OrtMemoryInfo* info)
        : OrtAllocator{}, device_(std::move(device)), info_(info) {
        version = api_version;
        host_ =
            Ort::GetApi().MemoryInfoGetDeviceMemType(info) == OrtDeviceMemoryType_HOST_ACCESSIBLE;
        Alloc = [](OrtAllocator* self, size_t size) noexcept -> void* {
            return static_cast<Allocator*>(self)->get(size, nullptr);
        };
        Reserve = Alloc;
        Free = [](OrtAllocator* self, void* pointer) noexcept {
            auto& a = *static_cast<Allocator*>(self);
            if (a.host_) {
                a.device_->release_host(pointer);
            } else {
                a.device_->release(pointer);
            }
        };
        Info = [](const OrtAllocator* self) noexcept {
            return static_cast<const Allocator*>(self)->info_;
        };
        AllocOnStream = [](OrtAllocator* self, size_t size, OrtSyncStream* stream) noexcept {
            void* handle = stream ? Ort::GetApi().SyncStream_GetHandle(stream) : nullptr;
            return static_cast<Allocator*>(self)->get(size, static_cast<rt_stream>(handle));
        };
        GetStats = [](const OrtAllocator* self, OrtKeyValuePairs** out) noexcept -> OrtStatus* {
            return guarded([&] { *out = static_cast<const Allocator*>(self)->stats(); });
        };
    }

  private:
    // ONNX Runtime makes a value of a NULL too: who uses it is told (check_memory).
    void* get(size_t size, rt_stream stream) noexcept {
        try {
            return host_ ? device_->allocate_host(size) : device_->allocate(size, stream);
        } catch (const std::exception&) {
            return nullptr;
        }
    }

    OrtKeyValuePairs* stats() const {
        rt_pool_stats s{};
        s.struct_size = sizeof(s);
        lowering::check(rt_pool_get_stats(device_->open()->handle(), &s), "pool");
        Ort::KeyValuePairs pairs;
        const auto add = [&](const char* key, uint64_t value) {
            pairs.Add(key, std::to_string(value).c_str());
        };
        pairs.Add("Limit", "-1");
        add("InUse", s.used_bytes);
        add("TotalAllocated", s.reserved_bytes);
        add("MaxInUse", s.peak_used_bytes);
        add("NumAllocs", s.allocations);
        add("NumArenaExtensions", s.driver_calls);
        add("NumArenaShrinkages", s.trims);
        add("Reuses", s.reuses);
        add("Live", s.live);
        return pairs.release();
    }

    std::shared_ptr<SharedDevice> device_;
    const OrtMemoryInfo* info_;
    bool host_ = false;
};

// ---- streams

class Notification : public OrtSyncNotificationImpl {
  public:
    Notification(rt_device device, rt_stream stream) : OrtSyncNotificationImpl{}, stream_(stream) {
        ort_version_supported = api_version;
        Release = [](OrtSyncNotificationImpl* self) noexcept {
            delete static_cast<Notification*>(self);
        };
        Activate = [](OrtSyncNotificationImpl* self) noexcept -> OrtStatus* {
            auto& n = *static_cast<Notification*>(self);
            return guarded([&] { lowering::check(rt_event_record(n.event_, n.stream_), "event"); });
        };
        WaitOnDevice = [](OrtSyncNotificationImpl* self, OrtSyncStream* consumer) noexcept {
            void* handle = consumer ? Ort::GetApi().SyncStream_GetHandle(consumer) : nullptr;
            auto& n = *static_cast<Notification*>(self);
            return guarded([&] { n.hold(static_cast<rt_stream>(handle)); });
        };
        WaitOnHost = [](OrtSyncNotificationImpl* self) noexcept -> OrtStatus* {
            return guarded([&] { static_cast<Notification*>(self)->hold(nullptr); });
        };
        lowering::check(rt_event_create(device, 0, &event_), "event");
    }
    ~Notification() { rt_event_destroy(event_); }
    Notification(const Notification&) = delete;
    Notification& operator=(const Notification&) = delete;

  private:
    // NULL, which a node on the CPU has: the caller waits.
    void hold(rt_stream stream) {
        lowering::check(stream ? rt_stream_wait_event(stream, event_)
                               : rt_event_wait(event_, rt_deadline_ms(kTimeoutMs)),
                        "event");
    }
    rt_stream stream_;
    rt_event event_ = nullptr;
};

class SyncStream : public OrtSyncStreamImpl {
  public:
    explicit SyncStream(std::shared_ptr<SharedDevice> device)
        : OrtSyncStreamImpl{}, device_(std::move(device)), stream_(device_->add_stream()) {
        ort_version_supported = api_version;
        Release = [](OrtSyncStreamImpl* self) noexcept { delete static_cast<SyncStream*>(self); };
        GetHandle = [](OrtSyncStreamImpl* self) noexcept -> void* {
            return static_cast<SyncStream*>(self)->stream_;
        };
        CreateNotification = [](OrtSyncStreamImpl* self,
                                OrtSyncNotificationImpl** out) noexcept -> OrtStatus* {
            auto& s = *static_cast<SyncStream*>(self);
            return guarded(
                [&] { *out = new Notification(s.device_->open()->handle(), s.stream_); });
        };
        Flush = [](OrtSyncStreamImpl* self) noexcept -> OrtStatus* {
            auto& s = *static_cast<SyncStream*>(self);
            return guarded([&] { s.flush(); });
        };
        OnSessionRunEnd = [](OrtSyncStreamImpl*) noexcept -> OrtStatus* { return nullptr; };
    }
    ~SyncStream() { device_->remove_stream(stream_); }
    SyncStream(const SyncStream&) = delete;
    SyncStream& operator=(const SyncStream&) = delete;

  private:
    void flush() {
        rt_status status = rt_stream_sync(stream_, rt_deadline_ms(kTimeoutMs));
        if (status != RT_OK) rt_status_free(rt_stream_reset(stream_));  // the next run starts clean
        lowering::check(status, "run");
    }
    std::shared_ptr<SharedDevice> device_;
    rt_stream stream_;
};

// ---- copies

bool is_ours(const OrtMemoryDevice* device) {
    const OrtEpApi& api = Ort::GetEpApi();
    return api.MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_NPU &&
           api.MemoryDevice_GetVendorId(device) == kVendorId;
}

bool is_host(const OrtMemoryDevice* device) {
    const OrtEpApi& api = Ort::GetEpApi();
    return api.MemoryDevice_GetDeviceType(device) == OrtMemoryInfoDeviceType_CPU ||
           (is_ours(device) &&
            api.MemoryDevice_GetMemoryType(device) == OrtDeviceMemoryType_HOST_ACCESSIBLE);
}

class DataTransfer : public OrtDataTransferImpl {
  public:
    explicit DataTransfer(std::shared_ptr<SharedDevice> device)
        : OrtDataTransferImpl{}, device_(std::move(device)) {
        ort_version_supported = api_version;
        Release = [](OrtDataTransferImpl* self) noexcept {
            delete static_cast<DataTransfer*>(self);
        };
        CanCopy = [](const OrtDataTransferImpl*, const OrtMemoryDevice* from,
                     const OrtMemoryDevice* to) noexcept {
            return (is_ours(from) || is_host(from)) && (is_ours(to) || is_host(to)) &&
                   (is_ours(from) || is_ours(to));
        };
        CopyTensors = [](OrtDataTransferImpl* self, const OrtValue** from, OrtValue** to,
                         OrtSyncStream** streams, size_t count) noexcept -> OrtStatus* {
            return guarded(
                [&] { static_cast<DataTransfer*>(self)->copy(from, to, streams, count); });
        };
    }

  private:
    void copy(const OrtValue** from, OrtValue** to, OrtSyncStream** streams, size_t count) {
        const rt_stream own = device_->own_stream();
        bool wait = false;
        for (size_t i = 0; i < count; ++i) {
            OrtSyncStream* named = streams ? streams[i] : nullptr;
            void* handle = named ? Ort::GetApi().SyncStream_GetHandle(named) : nullptr;
            copy_one(from[i], to[i], handle ? static_cast<rt_stream>(handle) : own);
            wait = wait || !handle;
        }
        if (!wait) return;
        rt_status status = rt_stream_sync(own, rt_deadline_ms(kTimeoutMs));
        if (status != RT_OK) rt_status_free(rt_stream_reset(own));
        lowering::check(status, "copy");
    }

    static void copy_one(const OrtValue* from, OrtValue* to, rt_stream stream) {
        const Ort::ConstValue source(from);
        const Ort::UnownedValue target(to);
        const size_t bytes = source.GetTensorSizeInBytes();
        if (bytes != target.GetTensorSizeInBytes()) lowering::fail("a copy between other sizes");
        if (bytes == 0) return;
        const void* src = source.GetTensorRawData();
        void* dst = const_cast<void*>(target.GetTensorRawData());
        check_memory(src, bytes, "source of a copy");
        check_memory(dst, bytes, "target of a copy");
        const bool from_host = in_host_memory(from), to_host = in_host_memory(to);
        if (from_host && to_host) {
            std::memcpy(dst, src, bytes);
        } else if (from_host) {
            lowering::check(rt_memcpy_h2d(stream, dst, src, bytes), "copy to the device");
        } else if (to_host) {
            lowering::check(rt_memcpy_d2h(stream, dst, src, bytes), "copy from the device");
        } else {
            lowering::check(rt_memcpy_d2d(stream, dst, src, bytes), "copy on the device");
        }
    }
    std::shared_ptr<SharedDevice> device_;
};

}  // namespace

bool in_host_memory(const OrtValue* value) {
    return is_host(Ort::GetEpApi().Value_GetMemoryDevice(value));
}

void check_memory(const void* data, size_t bytes, const std::string& what) {
    if (data || bytes == 0) return;
    lowering::fail(what + ": the value has no memory, its allocation of " + std::to_string(bytes) +
                   " bytes failed");
}

OrtAllocator* make_allocator(std::shared_ptr<SharedDevice> device, const OrtMemoryInfo* info) {
    return new Allocator(std::move(device), info);
}

void release_allocator(OrtAllocator* allocator) {
    delete static_cast<Allocator*>(allocator);
}

OrtDataTransferImpl* make_data_transfer(std::shared_ptr<SharedDevice> device) {
    return new DataTransfer(std::move(device));
}

OrtSyncStreamImpl* make_sync_stream(std::shared_ptr<SharedDevice> device) {
    return new SyncStream(std::move(device));
}

}  // namespace enpu::ort
