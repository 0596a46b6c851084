// SPDX-License-Identifier: MIT
// Device guard, streams and events as PyTorch calls them.
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "device.h"

namespace enpu::pytorch {
namespace {

c10::Stream stream_of(c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, npu(), id);
}

void check_index(c10::Device device) {
    TORCH_CHECK(device.type() == c10::DeviceType::PrivateUse1,
                "enpu: not one of its devices: ", device);
    TORCH_CHECK(device.index() <= 0, "enpu: there is one device, not index ",
                static_cast<int>(device.index()));
}

rt_event event_of(void* event) {
    return static_cast<rt_event>(event);
}

class Guard final : public c10::impl::DeviceGuardImplInterface {
  public:
    c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
    c10::Device exchangeDevice(c10::Device device) const override {
        check_index(device);
        return npu();
    }
    c10::Device getDevice() const override { return npu(); }
    void setDevice(c10::Device device) const override { check_index(device); }
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }

    c10::Stream getStream(c10::Device) const override { return stream_of(Runtime::current_id()); }
    c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
    c10::Stream getStreamFromGlobalPool(c10::Device, bool high_priority) const override {
        return stream_of(Runtime::get().pool_stream(high_priority));
    }
    c10::Stream getNewStream(c10::Device device, int priority) const override {
        check_index(device);
        // Smaller numbers are more urgent for PyTorch.
        return stream_of(Runtime::get().new_stream(-priority));
    }
    c10::Stream exchangeStream(c10::Stream stream) const override {
        return stream_of(Runtime::exchange_current(stream.id()));
    }
    void* getStreamNativeHandle(const c10::Stream stream) const override {
        return Runtime::get().stream(stream.id());
    }

    void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
                const c10::EventFlag flag) const override {
        Runtime& runtime = Runtime::get();
        if (!*event) {
            rt_event made = nullptr;
            const bool timing = flag == c10::EventFlag::BACKEND_DEFAULT;
            check(rt_event_create(runtime.device(), timing ? RT_EVENT_TIMING : RT_EVENT_DEFAULT,
                                  &made),
                  "event");
            *event = made;
        }
        check(rt_event_record(event_of(*event), runtime.stream(stream.id())), "event");
    }
    void block(void* event, const c10::Stream& stream) const override {
        if (!event) return;
        check(rt_stream_wait_event(Runtime::get().stream(stream.id()), event_of(event)), "event");
    }
    bool queryEvent(void* event) const override {
        uint32_t done = 1;
        if (event) check(rt_event_query(event_of(event), &done), "event");
        return done != 0;
    }
    void synchronizeEvent(void* event) const override {
        if (event) check(rt_event_wait(event_of(event), rt_deadline_ms(kDeadlineMs)), "event");
    }
    void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
        rt_event_destroy(event_of(event));
    }
    double elapsedTime(void* start, void* end, const c10::DeviceIndex) const override {
        TORCH_CHECK(start && end, "enpu: both events must be recorded before time is measured");
        int64_t ns = 0;
        check(rt_event_elapsed_ns(event_of(start), event_of(end), &ns), "elapsed time");
        return static_cast<double>(ns) / 1e6;
    }

    bool queryStream(const c10::Stream& stream) const override {
        uint32_t done = 0;
        check(rt_stream_query(Runtime::get().stream(stream.id()), &done), "stream");
        return done != 0;
    }
    void synchronizeStream(const c10::Stream& stream) const override {
        check(rt_stream_sync(Runtime::get().stream(stream.id()), rt_deadline_ms(kDeadlineMs)),
              "stream");
    }
    void synchronizeDevice(const c10::DeviceIndex) const override {
        if (!Runtime::opened()) return;
        check(rt_device_sync(Runtime::get().device(), rt_deadline_ms(kDeadlineMs)), "device");
    }
    void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
        static_cast<c10::DeviceAllocator*>(allocator())->recordStream(data, stream);
    }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

}  // namespace
}  // namespace enpu::pytorch
