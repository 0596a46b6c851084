// SPDX-License-Identifier: MIT
#include "os/sim/sim_os.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace enpu::sim {
namespace {

constexpr uint32_t kDefaultTimeoutMs = 10'000;
// Words of a counter block that exist.
constexpr uint32_t kCounters = ENPU_COUNTER_COPY_BYTES + 1;

uint64_t physical_bytes() {
    return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
           static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

// As the uAPI negotiates sizes: a prefix, or zeroes behind what there is.
void answer(const void* have, uint32_t have_bytes, void* data, uint32_t* bytes) {
    if (*bytes != 0) {
        std::memset(data, 0, *bytes);
        std::memcpy(data, have, std::min(*bytes, have_bytes));
    }
    *bytes = have_bytes;
}

}  // namespace

int SimOs::open(const Options& options, std::unique_ptr<os::Os>* os, enpu_error* error) {
    std::unique_ptr<SimOs> sim(new SimOs);
    Options all = options;
    if (all.host_bytes == 0) all.host_bytes = physical_bytes();
    const uint32_t engines = all.cores + all.copy_engines;
    sim->scheduler_ = std::make_unique<Scheduler>(&sim->memory_, engines, ENPU_MAX_COMMAND_BYTES,
                                                  kDefaultTimeoutMs);
    std::string why;
    sim->hardware_ = Hardware::create(
        all, &sim->memory_,
        [scheduler = sim->scheduler_.get()](uint32_t vector) { scheduler->interrupt(vector); },
        &why);
    if (!sim->hardware_)
        return fail(error, -EINVAL, "sim: the device could not be made: %s", why.c_str());
    sim->objects_ =
        std::make_unique<Objects>(&sim->memory_, sim->hardware_.get(), sim->scheduler_.get(),
                                  all.local_bytes, all.host_bytes);
    sim->scheduler_->start(sim->hardware_.get(), sim->objects_->root_bus());
    if (int r = sim->hardware_->inject(all.faults, error); !all.faults.empty() && r != 0) return r;
    *os = std::move(sim);
    return 0;
}

SimOs::~SimOs() {
    // The thread that talks to the device first, then the device, then the memory that it could
    // reach.
    if (scheduler_) scheduler_->stop();
    if (hardware_) hardware_->shut_down();
    scheduler_.reset();
    objects_.reset();
}

void SimOs::device_info(drm_enpu_device_info* info) {
    const uint32_t engines = hardware_->read32(ENPU_REG_CAP_ENGINES);
    info->hw_version = hardware_->read32(ENPU_REG_VERSION);
    info->features = hardware_->read32(ENPU_REG_CAP_FEATURES);
    info->compute_engines = ENPU_FIELD_GET(ENPU_CAP_ENGINES_CORES, engines);
    info->copy_engines = ENPU_FIELD_GET(ENPU_CAP_ENGINES_COPY, engines);
    info->threads = ENPU_FIELD_GET(ENPU_CAP_ENGINES_THREADS, engines);
    info->max_command_bytes = hardware_->read32(ENPU_REG_CAP_MAX_COMMAND);
    info->max_tensor_bytes = hardware_->read64(ENPU_REG_CAP_MAX_TENSOR);
    info->max_packet_work = hardware_->read64(ENPU_REG_CAP_MAX_WORK);
    info->local_bytes = hardware_->read64(ENPU_REG_LOCAL_MEM_SIZE);
    info->va_start = ENPU_VA_START;
    info->va_end = ENPU_VA_END;
    info->page_size = ENPU_PAGE_SIZE;
    info->large_page_size = ENPU_LARGE_PAGE_SIZE;
    info->timestamp_ns = hardware_->read64(ENPU_REG_TIMESTAMP);
    info->monotonic_ns = static_cast<uint64_t>(os::now_ns());
    info->reset_count = scheduler_->resets();
    info->uapi_minor = ENPU_UAPI_MINOR;
    info->default_timeout_ms = kDefaultTimeoutMs;
}

void SimOs::opcode_info(drm_enpu_opcode_info* info) {
    info->opcodes = hardware_->read64(ENPU_REG_CAP_OPCODES);
    for (uint32_t i = 0; i < std::size(info->dtypes); ++i)
        info->dtypes[i] = hardware_->read32(ENPU_REG_CAP_OP_DTYPES(i));
}

int SimOs::query(uint32_t type, void* data, uint32_t* bytes) {
    if (hardware_->gone()) return -ENODEV;
    switch (type) {
        case DRM_ENPU_QUERY_DEVICE: {
            drm_enpu_device_info info{};
            device_info(&info);
            answer(&info, sizeof(info), data, bytes);
            return 0;
        }
        case DRM_ENPU_QUERY_OPCODES: {
            drm_enpu_opcode_info info{};
            opcode_info(&info);
            answer(&info, sizeof(info), data, bytes);
            return 0;
        }
        case DRM_ENPU_QUERY_COUNTERS: {
            uint64_t words[kCounters];
            for (uint32_t i = 0; i < kCounters; ++i)
                words[i] = hardware_->read64(ENPU_REG_COUNTER(Hardware::kAs, i));
            answer(words, sizeof(words), data, bytes);
            return 0;
        }
        case DRM_ENPU_QUERY_MEMORY: {
            drm_enpu_memory_info info{};
            objects_->memory_info(&info);
            answer(&info, sizeof(info), data, bytes);
            return 0;
        }
        default:
            return -EINVAL;
    }
}

int SimOs::bo_create(drm_enpu_bo_create* create) {
    return objects_->create(create);
}
int SimOs::bo_userptr(drm_enpu_bo_userptr* userptr) {
    return objects_->wrap(userptr);
}
int SimOs::bo_import(int, uint32_t*) {
    return -EOPNOTSUPP;
}
int SimOs::bo_export(uint32_t, int*) {
    return -EOPNOTSUPP;
}
int SimOs::bo_info(drm_enpu_bo_info* info) {
    return objects_->info(info);
}

// Nobody else can hold a BO of a simulator, so waiting for this device's jobs is enough.
int SimOs::bo_wait(const drm_enpu_bo_wait& wait) {
    return objects_->exists(wait.handle) ? scheduler_->wait_idle(wait.timeout_ns) : -ENOENT;
}

void SimOs::bo_close(uint32_t handle) {
    objects_->close(handle);
}
int SimOs::bo_mmap(const drm_enpu_bo_info& info, void** address) {
    return objects_->cpu_address(info.handle, address);
}
void SimOs::bo_munmap(void*, uint64_t) {}
int SimOs::vm_map(const drm_enpu_vm_map& map) {
    return objects_->map(map);
}
int SimOs::vm_unmap(const drm_enpu_vm_unmap& unmap) {
    return objects_->unmap(unmap);
}
int SimOs::ctx_create(drm_enpu_ctx_create* create) {
    return scheduler_->create_context(create);
}
void SimOs::ctx_destroy(uint32_t ctx_id) {
    scheduler_->destroy_context(ctx_id);
}
int SimOs::ctx_status(drm_enpu_ctx_status* status) {
    return scheduler_->status(status);
}

int SimOs::submit(drm_enpu_submit* submit) {
    const auto* bos = reinterpret_cast<const drm_enpu_submit_bo*>(submit->bos);
    for (uint32_t i = 0; i < std::min<uint32_t>(submit->bo_count, ENPU_MAX_SUBMIT_BOS); ++i) {
        if (!objects_->exists(bos[i].handle)) return -ENOENT;
    }
    return scheduler_->submit(submit);
}

namespace {

class SimDoorbell final : public os::Doorbell {
  public:
    SimDoorbell(Scheduler* scheduler, uint32_t queue) : scheduler_(scheduler), queue_(queue) {}
    void ring() override { scheduler_->kick_user_queue(queue_); }

  private:
    Scheduler* const scheduler_;
    const uint32_t queue_;
};

}  // namespace

int SimOs::queue_create(drm_enpu_queue_create* create, std::unique_ptr<os::Doorbell>* doorbell) {
    const int result = scheduler_->create_user_queue(
        create, [this](uint64_t va, uint64_t bytes) { return objects_->place(va, bytes); });
    if (result != 0) return result;
    *doorbell = std::make_unique<SimDoorbell>(scheduler_.get(),
                                              scheduler_->user_queue_hardware_id(create->queue_id));
    return 0;
}
void SimOs::queue_destroy(uint32_t queue_id) {
    scheduler_->destroy_user_queue(queue_id);
}
int SimOs::queue_wait(const drm_enpu_queue_wait& wait) {
    return scheduler_->wait_user_queue(wait);
}

int SimOs::sync_create(uint32_t* handle) {
    return scheduler_->create_timeline(handle);
}
void SimOs::sync_destroy(uint32_t handle) {
    scheduler_->destroy_timeline(handle);
}
int SimOs::sync_wait(os::SyncWait* wait) {
    return scheduler_->wait(wait);
}
int SimOs::sync_query(uint32_t handle, uint64_t* value) {
    return scheduler_->query(handle, value);
}
int SimOs::sync_signal(uint32_t handle, uint64_t value) {
    return scheduler_->signal(handle, value);
}
int SimOs::sync_export(uint32_t, int*) {
    return -EOPNOTSUPP;
}
int SimOs::sync_import(int, uint32_t*) {
    return -EOPNOTSUPP;
}

int SimOs::inject_faults(const char* faults, enpu_error* error) {
    std::vector<enpu_fault> parsed;
    if (int r = parse_faults(faults, &parsed, error)) return r;
    return hardware_->inject(parsed, error);
}

int SimOs::faults_fired(uint32_t kind, uint32_t* fired, uint64_t* last_ns, enpu_error* error) {
    return hardware_->faults_fired(kind, fired, last_ns, error);
}

}  // namespace enpu::sim

int enpu::os::open_sim(const std::string& text, std::unique_ptr<Os>* os, enpu_error* error) {
    sim::Options options;
    if (int r = sim::parse_options(text, &options, error)) return r;
    if (int r = sim::add_environment(&options, error)) return r;
    return sim::SimOs::open(options, os, error);
}
