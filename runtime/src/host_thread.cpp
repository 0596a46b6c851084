// SPDX-License-Identifier: MIT
#include "host_thread.h"

#include <algorithm>
#include <thread>

#include "common/status.h"
#include "stream.h"

namespace enpu::rt {
namespace {

thread_local const rt_device_impl* calling_for = nullptr;

// The thread looks around at least this often, whatever happens to its wake fence.
constexpr uint64_t kLookAroundNs = 500'000'000;
constexpr uint32_t kMaxPoints = 64;

struct Notice {
    Point point;
    StreamRef stream;
    void (*function)(void* context, rt_status status);
    void* context;
};

}  // namespace

struct HostThread::State {
    explicit State(rt_device_impl& owner) : device(&owner), hal(owner.hal) { streams.reserve(32); }

    void loop();
    bool drain(rt_stream_impl& stream, std::vector<Point>& wanted, bool& progress);
    bool deliver(std::vector<Point>& wanted);
    void call(rt_stream_impl& stream, const HostCall& host_call);
    void sleep(const std::vector<Point>& wanted, uint64_t seen);

    rt_device_impl* device;  // outlives the thread, which holds it through its streams
    const enpu_hal_plugin& hal;
    enpu_hal_device* handle = nullptr;
    enpu_hal_fence* fence = nullptr;  // signalled to wake the thread
    std::thread thread;
    std::atomic<bool> stop{false};

    std::mutex mutex;
    std::condition_variable changed;  // for idle sleep, and for quiesce
    uint64_t wakes = 0;               // value of the fence
    std::vector<StreamRef> streams;
    std::vector<Notice> notices;
    const rt_stream_impl* running = nullptr;  // stream whose callback runs
};

HostThread::HostThread(rt_device_impl& device) : state_(std::make_shared<State>(device)) {}

HostThread::~HostThread() {
    if (!state_->thread.joinable()) {
        if (state_->fence) state_->hal.fence->destroy(state_->fence);
        return;
    }
    state_->stop.store(true);
    wake();
    // The last reference to the device may go inside the thread: it then ends by itself.
    if (state_->thread.get_id() == std::this_thread::get_id())
        state_->thread.detach();
    else
        state_->thread.join();
    state_->hal.fence->destroy(state_->fence);
}

rt_status HostThread::start(const char* origin) {
    std::lock_guard lock(state_->mutex);
    if (state_->fence) return RT_OK;
    enpu_hal_status status{};
    state_->handle = state_->device->handle;
    if (state_->hal.fence->create(state_->handle, 0, &state_->fence, &status) != ENPU_HAL_OK)
        return from_hal(status, origin);
    state_->thread = std::thread([state = state_] { state->loop(); });
    return RT_OK;
}

void HostThread::wake() {
    std::lock_guard lock(state_->mutex);
    ++state_->wakes;
    state_->hal.fence->signal(state_->fence, state_->wakes, nullptr);
    state_->changed.notify_all();
}

void HostThread::watch(rt_stream_impl* stream) {
    {
        std::lock_guard lock(state_->mutex);
        state_->streams.emplace_back(stream);
    }
    wake();
}

void HostThread::notify(const Point& point, rt_stream_impl* stream,
                        void (*function)(void* context, rt_status status), void* context) {
    {
        std::lock_guard lock(state_->mutex);
        state_->notices.push_back({point, StreamRef(stream), function, context});
    }
    wake();
}

bool HostThread::quiesce(const rt_stream_impl* stream, uint64_t deadline_ns) {
    std::unique_lock lock(state_->mutex);
    const std::chrono::steady_clock::time_point deadline{
        std::chrono::nanoseconds(static_cast<int64_t>(std::min<uint64_t>(deadline_ns, INT64_MAX)))};
    return state_->changed.wait_until(lock, deadline, [&] { return state_->running != stream; });
}

bool HostThread::inside(const rt_device_impl* device) {
    return calling_for == device;
}

// -----------------------------------------------------------------------------------------
// the thread

void HostThread::State::call(rt_stream_impl& stream, const HostCall& host_call) {
    {
        std::lock_guard lock(mutex);
        running = &stream;
    }
    calling_for = device;
    host_call.function(host_call.context);
    calling_for = nullptr;
    stream.host_call_done(host_call);
    std::lock_guard lock(mutex);
    running = nullptr;
    changed.notify_all();
}

// Submits and calls what can be; true while the stream has held-back work. What it waits for is
// added to `wanted`.
bool HostThread::State::drain(rt_stream_impl& stream, std::vector<Point>& wanted, bool& progress) {
    for (;;) {
        HostCall host_call;
        Point blocked;
        switch (stream.drain(host_call, blocked, progress)) {
            case Drained::kAll:
                return false;
            case Drained::kBlocked:
                if (blocked.timeline && blocked.timeline->submitted(blocked.value))
                    wanted.push_back(std::move(blocked));
                return true;
            case Drained::kHostCall:
                call(stream, host_call);
                progress = true;
                break;
        }
    }
}

// Calls the notices whose point is settled; true when there was one.
bool HostThread::State::deliver(std::vector<Point>& wanted) {
    std::vector<Notice> due;
    {
        std::lock_guard lock(mutex);
        for (size_t i = 0; i < notices.size();) {
            if (!notices[i].point.settled()) {
                const Point& point = notices[i].point;
                if (point.timeline->submitted(point.value)) wanted.push_back(point);
                ++i;
                continue;
            }
            due.push_back(std::move(notices[i]));
            notices.erase(notices.begin() + static_cast<ptrdiff_t>(i));
        }
    }
    for (Notice& notice : due) {
        rt_status status =
            notice.point.reached() ? RT_OK : notice.stream->completion_status(notice.point.value);
        {
            std::lock_guard lock(mutex);
            running = notice.stream.get();
        }
        calling_for = device;
        notice.function(notice.context, status);
        calling_for = nullptr;
        rt_status_free(status);
        std::lock_guard lock(mutex);
        running = nullptr;
        changed.notify_all();
    }
    return !due.empty();
}

// Until one of the points is settled or somebody wakes the thread.
void HostThread::State::sleep(const std::vector<Point>& wanted, uint64_t seen) {
    if (wanted.empty()) {
        std::unique_lock lock(mutex);
        changed.wait_for(lock, std::chrono::nanoseconds(kLookAroundNs),
                         [&] { return wakes != seen || stop.load(); });
        return;
    }
    enpu_hal_point points[kMaxPoints];
    const uint32_t most = std::min(kMaxPoints, device->max_points());
    uint32_t count = 0;
    points[count++] = {fence, seen + 1};
    for (const Point& point : wanted) {
        if (count == most) break;
        points[count++] = {point.timeline->fence(), point.value};
    }
    hal.fence->wait(handle, points, count, 1, hal::now_ns() + kLookAroundNs, nullptr);
}

void HostThread::State::loop() {
    std::vector<Point> wanted;
    while (!stop.load()) {
        uint64_t seen = 0;
        std::vector<StreamRef> work;
        {
            std::lock_guard lock(mutex);
            seen = wakes;
            for (const StreamRef& stream : streams) work.emplace_back(stream.get());
        }
        wanted.clear();
        bool progress = false;
        for (const StreamRef& stream : work) {
            if (drain(*stream.get(), wanted, progress)) continue;
            // What came in between has put the stream on the list once more.
            std::lock_guard lock(mutex);
            const auto same = [&](const StreamRef& other) { return other.get() == stream.get(); };
            streams.erase(std::find_if(streams.begin(), streams.end(), same));
        }
        progress |= deliver(wanted);
        work.clear();
        if (!progress && !stop.load()) sleep(wanted, seen);
    }
}

}  // namespace enpu::rt
