// SPDX-License-Identifier: MIT
// What the kernel driver does with jobs: order, dependencies, completion, errors, hangs. One mutex
// guards everything; one thread serves interrupts, the clean-up of dying contexts, and the watchdog
// while there is work.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "os/os.h"
#include "os/sim/job.h"
#include "os/sim/user_queue.h"

namespace enpu::sim {

class Scheduler {
  public:
    Scheduler(HostMemory* memory, uint32_t engines, uint32_t max_command_bytes,
              uint32_t default_timeout_ms);
    ~Scheduler();
    // Before anything else; the device must outlive stop().
    void start(Hardware* hardware, uint64_t root_bus);
    void stop();
    // From the device's threads.
    void interrupt(uint32_t vector);

    int create_context(drm_enpu_ctx_create* create);
    void destroy_context(uint32_t id);
    int status(drm_enpu_ctx_status* status);
    int submit(drm_enpu_submit* submit);
    // Waits for the jobs submitted so far.
    int wait_idle(int64_t deadline_ns);

    int create_timeline(uint32_t* handle);
    void destroy_timeline(uint32_t handle);
    int wait(os::SyncWait* wait);
    int query(uint32_t handle, uint64_t* value);
    int signal(uint32_t handle, uint64_t value);

    // user_queue.cpp. `place` finds memory by its VA.
    using Place = std::function<QueuePlace(uint64_t va, uint64_t bytes)>;
    int create_user_queue(drm_enpu_queue_create* create, const Place& place);
    void destroy_user_queue(uint32_t id);
    int wait_user_queue(const drm_enpu_queue_wait& wait);
    // Both without the scheduler's lock: the number lives as long as the queue.
    void kick_user_queue(uint32_t hardware_id);
    uint32_t user_queue_hardware_id(uint32_t id);

    uint32_t resets();

  private:
    using Lock = std::unique_lock<std::mutex>;

    // scheduler.cpp, all with the mutex held
    Context* find_context(uint32_t id);
    Job* take_job();
    void recycle(Job* job);
    int read_points(const drm_enpu_submit& submit, Job* job);
    int queue_for(Context* context, uint32_t engine, Queue** queue);
    void pump();
    bool complete(Queue* queue);
    bool push(Queue* queue);
    void end(Job* job, int error);

    // recovery.cpp, all with the mutex held
    void drain_errors();
    void drain_records();
    void handle_error(const enpu_error_record& record);
    void fail_front(Queue* queue, int error, const enpu_error_record* record);
    void cancel(Context* context, int error);
    void watch(int64_t now);
    void reset_hung(uint32_t engine, uint32_t queue);
    void reset_all(uint32_t guilty);
    Context* owner(uint32_t queue) const;
    static void fill_status(drm_enpu_ctx_status* status, const enpu_error_record* record);
    void lose(int error);
    void bury_dying(int64_t now);
    bool stop_queue(Queue* queue, int64_t now);
    bool busy() const;
    template <typename Visit>
    void each_queue(Visit&& visit) {
        for (auto& [id, context] : contexts_) {
            for (auto& queue : context->queues) {
                if (queue) visit(queue.get());
            }
        }
    }

    // user_queue.cpp, all with the mutex held
    bool free_id(uint32_t* id) const;
    void shut_user_queue(Lock& lock, UserQueue* queue);
    void fail_user_queue(UserQueue* queue, int error, const enpu_error_record* record);
    void look_at_user_queues();
    void restart_user_queues(uint32_t guilty, const std::array<uint64_t, ENPU_MAX_QUEUES>& heads,
                             const std::array<bool, ENPU_MAX_QUEUES>& running);

    // The watchdog sleeps while there is nothing to watch.
    void note_work();
    void serve();

    HostMemory* const memory_;
    const uint32_t engines_;
    const uint32_t max_command_bytes_;
    const uint32_t default_timeout_ms_;
    Hardware* hardware_ = nullptr;
    uint64_t root_bus_ = 0;

    std::mutex mutex_;
    std::condition_variable changed_;  // a timeline or a context moved
    std::unordered_map<uint32_t, std::unique_ptr<Context>> contexts_;
    std::unordered_map<uint32_t, Ref<Timeline>> timelines_;
    std::array<Queue*, ENPU_MAX_QUEUES> by_id_{};
    std::unordered_map<uint32_t, std::shared_ptr<UserQueue>> user_queues_;
    std::array<UserQueue*, ENPU_MAX_QUEUES> user_by_id_{};
    uint32_t next_user_queue_ = 1;
    uint32_t next_context_ = 1;
    uint32_t next_timeline_ = 1;
    std::vector<std::unique_ptr<Job>> pool_;
    bool moved_ = false;
    int lost_ = 0;  // what every call gives once there is no device: -ENODEV, -EIO
    uint32_t resets_ = 0;
    struct Watch {
        uint32_t queue = UINT32_MAX;  // nobody
        uint64_t progress = 0;
        uint64_t fence = 0;
        int64_t since_ns = 0;
    };
    std::array<Watch, ENPU_MAX_ENGINES> watches_{};

    std::mutex wake_mutex_;
    std::condition_variable wake_;
    uint32_t vectors_ = 0;
    bool work_ = false;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace enpu::sim
