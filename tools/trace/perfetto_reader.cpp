// SPDX-License-Identifier: MIT
// Field numbers: perfetto's public trace_packet.proto, track_descriptor.proto, track_event.proto.
#include "perfetto_reader.h"

#include <algorithm>

#include "lib/failure.h"
#include "lib/output.h"

namespace enpu::tools {
namespace {

// A message of protobuf, field by field; never leaves its bytes.
class Message {
  public:
    explicit Message(std::string_view bytes) : bytes_(bytes) {}

    // The next field; false at the end, or when what follows is no field (then broken() holds).
    bool next() {
        if (at_ >= bytes_.size()) return false;
        uint64_t key = 0;
        if (!varint(&key)) return fail();
        field_ = key >> 3;
        value_ = 0;
        text_ = {};
        switch (key & 7) {
            case 0:
                return varint(&value_) || fail();
            case 1:
                return skip(8) || fail();
            case 5:
                return skip(4) || fail();
            case 2: {
                uint64_t size = 0;
                if (!varint(&size) || size > bytes_.size() - at_) return fail();
                text_ = bytes_.substr(at_, size);
                at_ += size;
                return true;
            }
            default:
                return fail();
        }
    }
    uint64_t field() const { return field_; }
    uint64_t number() const { return value_; }
    std::string_view text() const { return text_; }
    bool broken() const { return broken_; }
    size_t at() const { return at_; }

  private:
    bool fail() {
        broken_ = true;
        return false;
    }
    bool skip(size_t bytes) {
        if (bytes > bytes_.size() - at_) return false;
        at_ += bytes;
        return true;
    }
    bool varint(uint64_t* value) {
        *value = 0;
        for (unsigned shift = 0; shift < 64 && at_ < bytes_.size(); shift += 7) {
            const auto byte = static_cast<unsigned char>(bytes_[at_++]);
            *value |= uint64_t{byte & 0x7fu} << shift;
            if (!(byte & 0x80)) return true;
        }
        return false;
    }

    std::string_view bytes_, text_;
    size_t at_ = 0;
    uint64_t field_ = 0, value_ = 0;
    bool broken_ = false;
};

enum Packet : uint64_t { kPacket = 1, kTimestamp = 8, kTrackEvent = 11, kTrackDescriptor = 60 };
enum Kind : uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounterValue = 4 };

class Reader {
  public:
    Trace read(std::string_view bytes) {
        Message file(bytes);
        while (file.next()) {
            if (file.field() != kPacket) continue;
            if (!packet(file.text()))
                throw Failure(kUsage,
                              format("no trace: the packet before byte %zu is damaged", file.at()));
        }
        if (file.broken() || (trace_.tracks.empty() && !bytes.empty()))
            throw Failure(kUsage, format("no trace of Perfetto: bytes that are none at %zu of %zu",
                                         file.at(), bytes.size()));
        for (const auto& [track, open] : open_) trace_.unfinished += open.size();
        std::stable_sort(trace_.slices.begin(), trace_.slices.end(),
                         [](const TraceSlice& a, const TraceSlice& b) {
                             return std::pair(a.from_ns, a.depth) < std::pair(b.from_ns, b.depth);
                         });
        std::stable_sort(trace_.values.begin(), trace_.values.end(),
                         [](const TraceValue& a, const TraceValue& b) {
                             return std::pair(a.track, a.ns) < std::pair(b.track, b.ns);
                         });
        return std::move(trace_);
    }

  private:
    bool packet(std::string_view bytes) {
        Message message(bytes);
        uint64_t ns = 0;
        std::string_view event, descriptor;
        while (message.next()) {
            if (message.field() == kTimestamp) ns = message.number();
            if (message.field() == kTrackEvent) event = message.text();
            if (message.field() == kTrackDescriptor) descriptor = message.text();
        }
        return !message.broken() && (descriptor.empty() || describe(descriptor)) &&
               (event.empty() || take(event, ns));
    }

    // The name inside a process or thread descriptor.
    static bool inner_name(std::string_view bytes, uint64_t field, std::string* name) {
        Message message(bytes);
        while (message.next())
            if (message.field() == field) *name = message.text();
        return !message.broken();
    }

    bool describe(std::string_view bytes) {
        Message message(bytes);
        TraceTrack track;
        uint64_t uuid = 0;
        while (message.next()) {
            bool well = true;
            if (message.field() == 1) uuid = message.number();
            if (message.field() == 2) track.name = message.text();
            if (message.field() == 3) well = inner_name(message.text(), 6, &track.name);
            if (message.field() == 4) well = inner_name(message.text(), 5, &track.name);
            if (message.field() == 5) track.parent = message.number();
            if (message.field() == 8) {
                track.counter = true;
                well = inner_name(message.text(), 6, &track.unit);
            }
            if (!well) return false;
        }
        trace_.tracks[uuid] = std::move(track);
        return !message.broken();
    }

    bool take(std::string_view bytes, uint64_t ns) {
        Message message(bytes);
        uint64_t kind = 0;
        TraceSlice slice;
        int64_t value = 0;
        while (message.next()) {
            if (message.field() == 9) kind = message.number();
            if (message.field() == 11) slice.track = message.number();
            if (message.field() == 23) slice.name = message.text();
            if (message.field() == 30) value = static_cast<int64_t>(message.number());
            if (message.field() == 4 && !inner_name(message.text(), 6, &slice.note)) return false;
        }
        if (message.broken()) return false;
        std::vector<TraceSlice>& open = open_[slice.track];
        slice.from_ns = slice.to_ns = ns;
        slice.depth = static_cast<unsigned>(open.size());
        if (kind == kCounterValue) trace_.values.push_back({slice.track, ns, value});
        if (kind == kInstant) trace_.slices.push_back(std::move(slice));
        if (kind == kBegin) open.push_back(std::move(slice));
        if (kind == kEnd && !open.empty()) {
            open.back().to_ns = std::max(ns, open.back().from_ns);
            trace_.slices.push_back(std::move(open.back()));
            open.pop_back();
        }
        return true;
    }

    Trace trace_;
    std::map<uint64_t, std::vector<TraceSlice>> open_;
};

}  // namespace

std::string Trace::path(uint64_t track) const {
    const auto found = tracks.find(track);
    if (found == tracks.end()) return format("track %llu", (unsigned long long)track);
    const auto around = tracks.find(found->second.parent);
    return around == tracks.end() ? found->second.name
                                  : around->second.name + ": " + found->second.name;
}

Trace read_trace(std::string_view bytes) {
    return Reader().read(bytes);
}

}  // namespace enpu::tools
