// SPDX-License-Identifier: MIT
#include "replayer.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include "enpu_hw_tables.h"
#include "lib/failure.h"
#include "lib/output.h"
#include "lib/registers.h"
#include "lib/system.h"

namespace enpu::tools {
namespace {

constexpr int64_t kWaitNs = 60'000'000'000;

[[noreturn]] void refused(const std::string& what, int result) {
    throw Failure(result == -ENODEV || result == -EIO ? kDeviceLost : kUnsupported,
                  what + ": " + std::strerror(-result));
}

// Memory at the recorded addresses, reachable from here.
class AddressSpace {
  public:
    explicit AddressSpace(os::Os& os) : os_(os) {}
    ~AddressSpace() {
        while (!areas_.empty()) drop(areas_.begin()->first);
    }

    void map(const RecordedMap& map) {
        drm_enpu_bo_create create{};
        create.size = map.size;
        create.flags = (map.flags & record::kMapLocal ? DRM_ENPU_BO_LOCAL : DRM_ENPU_BO_HOST) |
                       DRM_ENPU_BO_PRIVATE;
        if (int result = os_.bo_create(&create))
            refused(format("%s of %s memory cannot be had", bytes_text(map.size).c_str(),
                           map.flags & record::kMapLocal ? "local" : "host"),
                    result);
        Area area{create.handle, nullptr, map.size, create.size};
        drm_enpu_bo_info info{};
        info.handle = create.handle;
        int result = os_.bo_info(&info);
        if (result == 0) result = os_.bo_mmap(info, &area.bytes);
        const uint32_t flags =
            DRM_ENPU_MAP_READ |
            (map.flags & record::kMapReadOnly ? 0u : uint32_t{DRM_ENPU_MAP_WRITE});
        if (result == 0) {
            result = os_.vm_map({map.va, 0, map.size, create.handle, flags});
            if (result != 0) os_.bo_munmap(area.bytes, area.bo_size);
        }
        if (result != 0) {
            os_.bo_close(create.handle);
            refused("memory cannot be mapped at " + hex(map.va), result);
        }
        areas_[map.va] = area;
    }

    void unmap(const RecordedMap& map) {
        for (auto it = areas_.lower_bound(map.va);
             it != areas_.end() && it->first < map.va + map.size;) {
            const uint64_t va = it->first;
            ++it;
            drop(va);
        }
    }

    std::byte* at(uint64_t va, uint64_t size) {
        auto it = areas_.upper_bound(va);
        if (it != areas_.begin()) {
            --it;
            const uint64_t offset = va - it->first;
            if (offset <= it->second.size && size <= it->second.size - offset)
                return static_cast<std::byte*>(it->second.bytes) + offset;
        }
        throw Failure(kUsage, "the recording is damaged: " + hex(va) + " + " + hex(size) +
                                  " is not mapped there");
    }

  private:
    struct Area {
        uint32_t handle = 0;
        void* bytes = nullptr;
        uint64_t size = 0, bo_size = 0;
    };
    void drop(uint64_t va) {
        const Area area = areas_.at(va);
        os_.vm_unmap({va, area.size, os::now_ns() + kWaitNs, 0});
        os_.bo_munmap(area.bytes, area.bo_size);
        os_.bo_close(area.handle);
        areas_.erase(va);
    }

    os::Os& os_;
    std::map<uint64_t, Area> areas_;
};

// A part of memory that a packet of a job writes, as it was before the job.
struct Window {
    uint64_t va = 0;
    std::vector<std::byte> before;
};

class Replayer {
  public:
    Replayer(const Recording& recording, os::Os& os, const ReplayOptions& options)
        : recording_(recording), os_(os), options_(options), memory_(os) {
        uint32_t bytes = sizeof(info_);
        if (int result = os_.query(DRM_ENPU_QUERY_DEVICE, &info_, &bytes))
            refused("the device does not say what it is", result);
        if (int result = os_.sync_create(&sync_)) refused("no sync object", result);
        new_context();
    }
    ~Replayer() {
        os_.ctx_destroy(context_);
        os_.sync_destroy(sync_);
    }

    ReplayResult run() {
        for (size_t i = 0; i < recording_.jobs.size(); ++i) {
            if (options_.progress) options_.progress(i, recording_.jobs.size());
            if (!run_job(i) && !options_.keep_going) break;
        }
        return std::move(result_);
    }

  private:
    void new_context() {
        if (context_ != 0) os_.ctx_destroy(context_);
        drm_enpu_ctx_create create{};
        create.priority = DRM_ENPU_PRIORITY_NORMAL;
        if (int result = os_.ctx_create(&create)) refused("no context", result);
        context_ = create.ctx_id;
    }

    // The engine of this device that stands for a recorded one: of the same kind.
    uint32_t engine_of(uint32_t recorded) const {
        const record::Header& was = recording_.header;
        const bool copies = recorded >= was.compute_engines;
        const uint32_t index = copies ? recorded - was.compute_engines : recorded;
        const uint32_t there = copies ? info_.copy_engines : info_.compute_engines;
        if (there == 0)
            throw Failure(kUnsupported, "the device has no engine of the kind that ran job " +
                                            std::to_string(result_.jobs));
        return (copies ? info_.compute_engines : 0) + index % there;
    }

    // Runs the first `bytes` of a job. False when it ended with an error, which stands in `why`.
    bool run_part(const RecordedJob& job, uint32_t bytes, std::string* why, uint32_t* packet) {
        drm_enpu_sync_op signal = {sync_, DRM_ENPU_SYNC_SIGNAL, ++point_};
        drm_enpu_submit submit{};
        submit.ctx_id = context_;
        submit.engine = engine_of(job.engine);
        submit.cmd_va = job.cmd_va;
        submit.cmd_bytes = bytes;
        submit.syncs = reinterpret_cast<uint64_t>(&signal);
        submit.sync_count = 1;
        submit.sync_stride = sizeof(signal);
        submit.job_id = job.job_id;
        if (int result = os_.submit(&submit)) refused("the driver refuses the job", result);
        uint32_t handle = sync_;
        uint64_t point = point_;
        os::SyncWait wait = {&handle, &point, 1, false, os::now_ns() + kWaitNs, 0};
        int result;
        do result = os_.sync_wait(&wait);
        while (result == -EINTR);
        if (result == -ETIME) throw Failure(kDeviceLost, "a job does not end within 60 s");
        drm_enpu_ctx_status status{};
        status.ctx_id = context_;
        if (int r = os_.ctx_status(&status)) refused("no status of the context", r);
        if (status.error == 0) return true;
        *why = format("the job failed with %s at packet +%s, VA %s",
                      name_of(enpu_status_names, status.hw_status).c_str(),
                      hex(status.packet).c_str(), hex(status.fault_va).c_str());
        *packet = status.packet;
        new_context();
        return false;
    }

    std::vector<Window> windows_of(const RecordedJob& job) {
        std::vector<Window> windows;
        for (const RecordedPacket& packet : job.packets)
            for (const RecordedRange& range : packet.after) {
                const std::byte* from = memory_.at(range.va, range.bytes.size());
                windows.push_back({range.va, {from, from + range.bytes.size()}});
            }
        return windows;
    }

    // What memory must hold after the first `count` packets: the later write of a byte counts.
    bool same_after(const RecordedJob& job, size_t count, const std::vector<Window>& windows,
                    Difference* difference) {
        // Recorded outputs are laid over what was there before, then all is compared.
        std::map<uint64_t, std::vector<std::byte>> expected;
        size_t window = 0;
        for (const RecordedPacket& packet : job.packets)
            for (size_t i = 0; i < packet.after.size(); ++i, ++window) {
                auto& bytes = expected[windows[window].va];
                if (bytes.size() < windows[window].before.size()) bytes = windows[window].before;
            }
        for (size_t i = 0; i < count; ++i)
            for (RecordedRange range : job.packets[i].after) {
                // A device clock is another one each time.
                if (job.packets[i].opcode == ENPU_OPCODE_TIMESTAMP)
                    range.bytes = {memory_.at(range.va, range.bytes.size()), range.bytes.size()};
                for (auto& [va, bytes] : expected) lay(va, bytes, range);
            }
        bool same = true;
        for (const auto& [va, bytes] : expected) {
            const std::byte* now = memory_.at(va, bytes.size());
            if (std::memcmp(now, bytes.data(), bytes.size()) == 0) continue;
            same = false;
            if (difference) describe(va, now, bytes, difference);
        }
        return same;
    }

    static void lay(uint64_t va, std::vector<std::byte>& bytes, const RecordedRange& range) {
        const uint64_t from = std::max(va, range.va);
        const uint64_t to = std::min(va + bytes.size(), range.va + range.bytes.size());
        if (from < to)
            std::memcpy(bytes.data() + (from - va), range.bytes.data() + (from - range.va),
                        to - from);
    }

    static void describe(uint64_t va, const std::byte* now, const std::vector<std::byte>& expected,
                         Difference* difference) {
        uint64_t first = expected.size(), count = 0;
        for (uint64_t i = 0; i < expected.size(); ++i) {
            if (now[i] == expected[i]) continue;
            if (count++ == 0) first = i;
        }
        if (difference->bytes != 0 && difference->va <= va + first) return;
        difference->va = va + first;
        difference->bytes = count;
        difference->bytes_of = expected.size();
        difference->what =
            format("%llu of %llu bytes differ; the first at %s is 0x%02x, was 0x%02x",
                   (unsigned long long)count, (unsigned long long)expected.size(),
                   hex(va + first).c_str(), (unsigned)now[first], (unsigned)expected[first]);
    }

    void restore(const std::vector<Window>& windows) {
        for (const Window& window : windows)
            std::memcpy(memory_.at(window.va, window.before.size()), window.before.data(),
                        window.before.size());
    }

    void name_packet(const RecordedJob& job, size_t packet, Difference* difference) {
        const RecordedPacket& found = job.packets[packet];
        difference->packet = found.offset;
        if (found.opcode < ENPU_MAX_OPCODES && enpu_opcodes[found.opcode].exists) {
            const enpu_opcode_info& info = enpu_opcodes[found.opcode];
            difference->opcode = info.name;
            if (info.is_operator) difference->operand = info.operands[info.num_operands - 1].name;
        }
    }

    // The least number of packets after which memory differs.
    void bisect(const RecordedJob& job, const std::vector<Window>& windows,
                Difference* difference) {
        size_t well = 0, bad = job.packets.size() + 1;
        std::string why;
        uint32_t packet = 0;
        while (bad - well > 1) {
            const size_t middle = std::min((well + bad) / 2, job.packets.size());
            if (middle == well) break;
            restore(windows);
            const uint32_t end =
                middle < job.packets.size() ? job.packets[middle].offset : job.cmd_bytes;
            const bool same =
                run_part(job, end, &why, &packet) && same_after(job, middle, windows, nullptr);
            (same ? well : bad) = middle;
        }
        if (bad > job.packets.size()) return;  // this time it was well
        difference->found_again = true;
        restore(windows);
        const uint32_t end = bad < job.packets.size() ? job.packets[bad].offset : job.cmd_bytes;
        Difference fresh = *difference;
        fresh.bytes = 0;
        if (run_part(job, end, &why, &packet) && !same_after(job, bad, windows, &fresh))
            *difference = fresh;
        name_packet(job, bad - 1, difference);
    }

    bool run_job(size_t number) {
        const RecordedJob& job = recording_.jobs[number];
        for (const RecordedMap& map : job.maps) map.map ? memory_.map(map) : memory_.unmap(map);
        for (const RecordedRange& range : job.before)
            std::memcpy(memory_.at(range.va, range.bytes.size()), range.bytes.data(),
                        range.bytes.size());
        const std::vector<Window> windows = windows_of(job);
        ++result_.jobs;
        result_.packets += job.packets.size();
        for (const Window& window : windows) result_.bytes += window.before.size();
        Difference difference;
        difference.job = number;
        difference.job_id = job.job_id;
        difference.engine = job.engine;
        std::string why;
        bool same = true;
        if (!run_part(job, job.cmd_bytes, &why, &difference.packet)) {
            difference.failed = true;
            difference.what = why;
            same = false;
        } else if (!same_after(job, job.packets.size(), windows, &difference)) {
            same = false;
            bisect(job, windows, &difference);
        }
        if (!same) result_.differences.push_back(difference);
        // The next job begins with what was recorded, whatever this one did.
        for (const RecordedPacket& packet : job.packets)
            for (const RecordedRange& range : packet.after)
                std::memcpy(memory_.at(range.va, range.bytes.size()), range.bytes.data(),
                            range.bytes.size());
        return same;
    }

    const Recording& recording_;
    os::Os& os_;
    const ReplayOptions& options_;
    AddressSpace memory_;
    drm_enpu_device_info info_{};
    uint32_t sync_ = 0, context_ = 0;
    uint64_t point_ = 0;
    ReplayResult result_;
};

}  // namespace

ReplayResult replay(const Recording& recording, os::Os& device, const ReplayOptions& options) {
    return Replayer(recording, device, options).run();
}

std::unique_ptr<os::Os> open_below(const std::string& spec) {
    std::unique_ptr<os::Os> opened;
    enpu_error error = {};
    int result;
    if (spec == "sim" || spec.rfind("sim:", 0) == 0) {
        result = os::open_sim(spec.size() > 4 ? spec.substr(4) : "", &opened, &error);
    } else {
        std::string node = spec;
        if (spec == "npu") {
            const System system;
            for (const PciDevice& device : system.npus())
                if (node == "npu" && !device.node.empty()) node = "/dev/accel/" + device.node;
            if (node == "npu") throw Failure(kNoDevice, "no NPU has a node under /dev/accel");
        }
        result = os::open_drm(node, &opened, &error);
    }
    if (result == 0) return opened;
    throw Failure(result == -ENODEV || result == -ENOENT  ? kNoDevice
                  : result == -EACCES || result == -EPERM ? kNoPermission
                                                          : kUnsupported,
                  error.message);
}

}  // namespace enpu::tools
