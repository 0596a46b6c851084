// SPDX-License-Identifier: MIT
#include "os/record/record_os.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "os/record/memory_log.h"
#include "os/record/recording.h"

namespace enpu::os {
namespace {

using namespace record;

// A job that the device's own watchdog does not end within this waits for something that comes after
// it.
constexpr int64_t kWaitNs = 30'000'000'000;

class RecordOs final : public Os {
  public:
    RecordOs(std::unique_ptr<Os> below, std::FILE* file, uint32_t sync)
        : below_(std::move(below)), file_(file), sync_(sync) {}
    ~RecordOs() override {
        below_->sync_destroy(sync_);
        for (auto& [handle, view] : views_) release(view);
        if (file_) std::fclose(file_);
    }

    bool simulator() const override { return below_->simulator(); }
    int query(uint32_t type, void* data, uint32_t* bytes) override {
        return below_->query(type, data, bytes);
    }
    int bo_create(drm_enpu_bo_create* create) override;
    int bo_userptr(drm_enpu_bo_userptr* userptr) override;
    int bo_import(int fd, uint32_t* handle) override { return below_->bo_import(fd, handle); }
    int bo_export(uint32_t handle, int* fd) override { return below_->bo_export(handle, fd); }
    int bo_info(drm_enpu_bo_info* info) override { return below_->bo_info(info); }
    int bo_wait(const drm_enpu_bo_wait& wait) override { return below_->bo_wait(wait); }
    void bo_close(uint32_t handle) override;
    int bo_mmap(const drm_enpu_bo_info& info, void** address) override {
        return below_->bo_mmap(info, address);
    }
    void bo_munmap(void* address, uint64_t bytes) override { below_->bo_munmap(address, bytes); }
    int vm_map(const drm_enpu_vm_map& map) override;
    int vm_unmap(const drm_enpu_vm_unmap& unmap) override;
    int ctx_create(drm_enpu_ctx_create* create) override { return below_->ctx_create(create); }
    void ctx_destroy(uint32_t ctx_id) override { below_->ctx_destroy(ctx_id); }
    int ctx_status(drm_enpu_ctx_status* status) override { return below_->ctx_status(status); }
    int submit(drm_enpu_submit* submit) override;
    int sync_create(uint32_t* handle) override { return below_->sync_create(handle); }
    void sync_destroy(uint32_t handle) override { below_->sync_destroy(handle); }
    int sync_wait(SyncWait* wait) override { return below_->sync_wait(wait); }
    int sync_query(uint32_t handle, uint64_t* value) override {
        return below_->sync_query(handle, value);
    }
    int sync_signal(uint32_t handle, uint64_t value) override {
        return below_->sync_signal(handle, value);
    }
    // What a user-mode queue runs is not seen from here.
    int queue_create(drm_enpu_queue_create*, std::unique_ptr<Doorbell>*) override {
        return -EOPNOTSUPP;
    }
    void queue_destroy(uint32_t) override {}
    int queue_wait(const drm_enpu_queue_wait&) override { return -ENOENT; }
    int sync_export(uint32_t handle, int* fd) override { return below_->sync_export(handle, fd); }
    int sync_import(int fd, uint32_t* handle) override { return below_->sync_import(fd, handle); }
    int inject_faults(const char* faults, enpu_error* error) override {
        return below_->inject_faults(faults, error);
    }
    int faults_fired(uint32_t kind, uint32_t* fired, uint64_t* last_ns,
                     enpu_error* error) override {
        return below_->faults_fired(kind, fired, last_ns, error);
    }

  private:
    // The layer's own look at a BO.
    struct View {
        std::byte* bytes = nullptr;
        uint64_t size = 0;
        bool mapped = false;  // by bo_mmap; else memory of the program
        bool local = false;
    };
    // Sync operations of a job that is handed over in pieces: the first waits, the last signals.
    struct Syncs {
        std::vector<drm_enpu_sync_op> wait, signal;
    };

    void release(View& view) {
        if (view.mapped) below_->bo_munmap(view.bytes, view.size);
        view = {};
    }
    View* view_of(uint32_t handle);
    void write(const Chunk& chunk, const void* payload = nullptr);
    void stop(const std::string& why);
    std::vector<uint32_t> cut(const drm_enpu_submit& job) const;
    int run_piece(const drm_enpu_submit& piece, const Syncs& syncs, bool first, bool last,
                  drm_enpu_submit* job);
    bool ended_well(uint32_t ctx_id, uint32_t failed_before);
    void note_piece(const drm_enpu_submit& job, uint32_t from, uint32_t bytes);

    const std::unique_ptr<Os> below_;
    std::mutex mutex_;
    std::FILE* file_;  // null: the recording has ended
    const uint32_t sync_;
    uint64_t point_ = 0;
    MemoryLog memory_;
    std::map<uint32_t, View> views_;
};

void RecordOs::write(const Chunk& chunk, const void* payload) {
    if (!file_) return;
    Chunk whole = chunk;
    if (!payload) whole.payload = 0;
    if (std::fwrite(&whole, sizeof(whole), 1, file_) == 1 &&
        (!payload || whole.payload == 0 || std::fwrite(payload, whole.payload, 1, file_) == 1))
        return;
    std::fprintf(stderr, "enpu: recording ends: the file cannot be written: %s\n",
                 errno_text(-errno).c_str());
    std::fclose(file_);
    file_ = nullptr;
}

void RecordOs::stop(const std::string& why) {
    if (!file_) return;
    std::fprintf(stderr, "enpu: recording ends: %s\n", why.c_str());
    write({kStopped, 0, 0, 0, 0, why.size()}, why.data());
    if (file_) std::fclose(file_);
    file_ = nullptr;
}

int RecordOs::bo_create(drm_enpu_bo_create* create) {
    const int result = below_->bo_create(create);
    std::lock_guard lock(mutex_);
    if (result == 0) views_[create->handle].local = create->flags & DRM_ENPU_BO_LOCAL;
    return result;
}

int RecordOs::bo_userptr(drm_enpu_bo_userptr* userptr) {
    const int result = below_->bo_userptr(userptr);
    std::lock_guard lock(mutex_);
    if (result == 0)
        views_[userptr->handle] = {reinterpret_cast<std::byte*>(userptr->addr), userptr->size,
                                   false, false};
    return result;
}

void RecordOs::bo_close(uint32_t handle) {
    {
        std::lock_guard lock(mutex_);
        if (const auto found = views_.find(handle); found != views_.end()) {
            release(found->second);
            views_.erase(found);
        }
    }
    below_->bo_close(handle);
}

RecordOs::View* RecordOs::view_of(uint32_t handle) {
    View& view = views_[handle];
    if (view.bytes) return &view;
    drm_enpu_bo_info info{};
    info.handle = handle;
    void* address = nullptr;
    if (below_->bo_info(&info) != 0 || below_->bo_mmap(info, &address) != 0) return nullptr;
    view = {static_cast<std::byte*>(address), info.size, true,
            (info.flags & DRM_ENPU_BO_LOCAL) != 0};
    return &view;
}

int RecordOs::vm_map(const drm_enpu_vm_map& map) {
    const int result = below_->vm_map(map);
    std::lock_guard lock(mutex_);
    if (result != 0 || !file_) return result;
    const View* view = view_of(map.handle);
    if (!view || map.bo_offset > view->size || map.size > view->size - map.bo_offset) {
        stop("memory is mapped that this process cannot read (an import)");
        return result;
    }
    memory_.add(map.va, {view->bytes + map.bo_offset, map.size}, map.handle);
    const uint32_t flags = (view->local ? uint32_t{kMapLocal} : 0) |
                           (map.flags & DRM_ENPU_MAP_WRITE ? 0 : uint32_t{kMapReadOnly});
    write({kMap, flags, map.va, map.size, 0, 0});
    return result;
}

int RecordOs::vm_unmap(const drm_enpu_vm_unmap& unmap) {
    const int result = below_->vm_unmap(unmap);
    std::lock_guard lock(mutex_);
    if (result != 0) return result;
    memory_.remove(unmap.va, unmap.size);
    write({kUnmap, 0, unmap.va, unmap.size, 0, 0});
    return result;
}

// Offsets of the packets of a command buffer, and its end. One that cannot be read as packets is one
// piece: the device says what is wrong with it.
std::vector<uint32_t> RecordOs::cut(const drm_enpu_submit& job) const {
    const auto bytes = memory_.at(job.cmd_va, job.cmd_bytes);
    std::vector<uint32_t> at = {0};
    while (!bytes.empty() && at.back() + sizeof(enpu_packet) <= bytes.size()) {
        enpu_packet header;
        std::memcpy(&header, bytes.data() + at.back(), sizeof(header));
        if (header.size < sizeof(header) || header.size % 16 != 0 ||
            header.size > bytes.size() - at.back())
            break;
        at.push_back(at.back() + header.size);
    }
    if (at.size() < 2 || at.back() != job.cmd_bytes) return {0, job.cmd_bytes};
    return at;
}

// Hands a piece over and waits for its end; -ETIME when it does not come.
int RecordOs::run_piece(const drm_enpu_submit& piece, const Syncs& syncs, bool first, bool last,
                        drm_enpu_submit* job) {
    std::vector<drm_enpu_sync_op> all;
    if (first) all = syncs.wait;
    if (last) all.insert(all.end(), syncs.signal.begin(), syncs.signal.end());
    all.push_back({sync_, DRM_ENPU_SYNC_SIGNAL, ++point_});
    drm_enpu_submit submit = piece;
    submit.syncs = reinterpret_cast<uint64_t>(all.data());
    submit.sync_count = static_cast<uint32_t>(all.size());
    submit.sync_stride = sizeof(drm_enpu_sync_op);
    if (int result = below_->submit(&submit)) {
        --point_;
        return result;
    }
    job->seqno = submit.seqno;
    uint32_t handle = sync_;
    uint64_t point = point_;
    SyncWait wait = {&handle, &point, 1, false, now_ns() + kWaitNs, 0};
    int result;
    do result = below_->sync_wait(&wait);
    while (result == -EINTR);
    return result == -ETIME ? -ETIME : 0;
}

bool RecordOs::ended_well(uint32_t ctx_id, uint32_t failed_before) {
    drm_enpu_ctx_status status{};
    status.ctx_id = ctx_id;
    return below_->ctx_status(&status) == 0 && status.failed_jobs == failed_before;
}

void RecordOs::note_piece(const drm_enpu_submit& job, uint32_t from, uint32_t bytes) {
    const auto packet = memory_.at(job.cmd_va + from, bytes);
    enpu_packet header{};
    if (packet.size() >= sizeof(header)) std::memcpy(&header, packet.data(), sizeof(header));
    write({kPacket, header.opcode, 0, 0, from, 0});
    for (const Range& range : written_by(packet)) {
        const auto left = memory_.at(range.va, range.size);
        if (left.size() != range.size) continue;
        memory_.see(range.va, range.size);
        write({kAfter, 0, range.va, 0, 0, left.size()}, left.data());
    }
}

int RecordOs::submit(drm_enpu_submit* submit) {
    std::lock_guard lock(mutex_);
    if (!file_ || submit->sync_stride < sizeof(drm_enpu_sync_op) ||
        submit->sync_count >= ENPU_MAX_SYNC_OPS)
        return below_->submit(submit);
    Syncs syncs;
    for (uint32_t i = 0; i < submit->sync_count; ++i) {
        drm_enpu_sync_op op;
        std::memcpy(
            &op, reinterpret_cast<const char*>(submit->syncs) + uint64_t{i} * submit->sync_stride,
            sizeof(op));
        (op.flags & DRM_ENPU_SYNC_SIGNAL ? syncs.signal : syncs.wait).push_back(op);
    }
    memory_.changes([this](uint64_t va, std::span<const std::byte> bytes) {
        write({kBefore, 0, va, 0, 0, bytes.size()}, bytes.data());
    });
    write({kJob, submit->engine, submit->cmd_va, submit->cmd_bytes, submit->job_id, 0});
    drm_enpu_ctx_status before{};
    before.ctx_id = submit->ctx_id;
    below_->ctx_status(&before);
    std::vector<uint32_t> at = cut(*submit);
    for (size_t i = 0; i + 1 < at.size(); ++i) {
        drm_enpu_submit piece = *submit;
        // Once the recording has ended, what is left goes in one.
        const uint32_t end = file_ ? at[i + 1] : at.back();
        piece.cmd_va += at[i];
        piece.cmd_bytes = end - at[i];
        piece.seqno = 0;
        const bool last = end == at.back();
        const int result = run_piece(piece, syncs, i == 0, last, submit);
        if (result == -ETIME) {
            stop("a job does not end by itself: it waits for one that comes after it");
            if (last) return 0;
            continue;
        }
        if (result != 0) {
            if (i != 0) stop("a part of a job was refused: " + errno_text(result));
            return result;
        }
        if (!ended_well(submit->ctx_id, before.failed_jobs)) {
            stop("a job failed");
            // The context may take no more: whoever waits for the job learns of its failure there.
            if (!last)
                for (const drm_enpu_sync_op& op : syncs.signal)
                    below_->sync_signal(op.handle, op.point);
            return 0;
        }
        note_piece(*submit, at[i], end - at[i]);
        if (last) break;
    }
    return 0;
}

// The first device that records into a file has it, a further one FILE.2 ….
std::string numbered(const std::string& file) {
    static std::mutex mutex;
    static std::map<std::string, unsigned> opened;
    std::lock_guard lock(mutex);
    const unsigned number = ++opened[file];
    return number == 1 ? file : file + "." + std::to_string(number);
}

}  // namespace

int record_to(const std::string& file, std::unique_ptr<Os>* os, enpu_error* error) {
    const std::string name = numbered(file);
    drm_enpu_device_info info{};
    uint32_t bytes = sizeof(info), sync = 0;
    if (int result = (*os)->query(DRM_ENPU_QUERY_DEVICE, &info, &bytes))
        return fail(error, result, "query of the device failed: %s", errno_text(result).c_str());
    std::FILE* out = std::fopen(name.c_str(), "wbe");
    if (!out)
        return fail(error, -errno, "ENPU_RECORD: %s cannot be written: %s", name.c_str(),
                    errno_text(-errno).c_str());
    Header header{};
    std::memcpy(header.magic, kMagic, sizeof(kMagic));
    header.hw_version = info.hw_version;
    header.compute_engines = info.compute_engines;
    header.copy_engines = info.copy_engines;
    int result = (*os)->sync_create(&sync);
    if (result == 0 && std::fwrite(&header, sizeof(header), 1, out) != 1) {
        (*os)->sync_destroy(sync);
        result = -EIO;
    }
    if (result != 0) {
        std::fclose(out);
        return fail(error, result, "ENPU_RECORD: %s: %s", name.c_str(), errno_text(result).c_str());
    }
    *os = std::make_unique<RecordOs>(std::move(*os), out, sync);
    return 0;
}

}  // namespace enpu::os
