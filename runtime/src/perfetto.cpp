// SPDX-License-Identifier: MIT
#include "perfetto.h"

namespace enpu::rt {
namespace {

// ---- protobuf

void put_varint(std::string& out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
    out.push_back(static_cast<char>(value));
}

void put(std::string& out, uint32_t field, uint64_t value) {
    put_varint(out, uint64_t{field} << 3);
    put_varint(out, value);
}

void put(std::string& out, uint32_t field, std::string_view bytes) {
    put_varint(out, (uint64_t{field} << 3) | 2);
    put_varint(out, bytes.size());
    out.append(bytes);
}

// ---- numbers of the format

enum Packet : uint32_t {
    kPacket = 1,  // of Trace
    kClockSnapshot = 6,
    kTimestamp = 8,
    kSequenceId = 10,
    kTrackEvent = 11,
    kSequenceFlags = 13,
    kClockId = 58,
    kTrackDescriptor = 60,
};
enum Descriptor : uint32_t {
    kUuid = 1,
    kName = 2,
    kProcess = 3,
    kThread = 4,
    kParent = 5,
    kCounter = 8,
};
enum Event : uint32_t {
    kDebug = 4,
    kType = 9,
    kTrackUuid = 11,
    kEventName = 23,
    kCounterValue = 30,
};
enum EventType : uint32_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounterEvent = 4 };
enum Clock : uint32_t { kRealtime = 1, kMonotonic = 3, kBoottime = 6 };

constexpr uint64_t kSequence = 1;
constexpr uint64_t kStateCleared = 1;

}  // namespace

PerfettoTrace::PerfettoTrace() {
    bytes_.reserve(1u << 20);
}

void PerfettoTrace::packet(std::string_view body, uint64_t ns, bool timed) {
    std::string head;
    if (timed) {
        put(head, kTimestamp, ns);
        put(head, kClockId, kMonotonic);
    }
    put(head, kSequenceId, kSequence);
    if (first_) put(head, kSequenceFlags, kStateCleared);
    first_ = false;
    head.append(body);
    put(bytes_, kPacket, head);
}

void PerfettoTrace::process(uint64_t track, int32_t pid, std::string_view name) {
    std::string process, descriptor, body;
    put(process, 1, static_cast<uint64_t>(pid));
    put(process, 6, name);
    put(descriptor, kUuid, track);
    put(descriptor, kProcess, process);
    put(body, kTrackDescriptor, descriptor);
    packet(body, 0, false);
}

void PerfettoTrace::thread(uint64_t track, uint64_t parent, int32_t pid, int32_t tid,
                           std::string_view name) {
    std::string thread, descriptor, body;
    put(thread, 1, static_cast<uint64_t>(pid));
    put(thread, 2, static_cast<uint64_t>(tid));
    put(thread, 5, name);
    put(descriptor, kUuid, track);
    put(descriptor, kParent, parent);
    put(descriptor, kThread, thread);
    put(body, kTrackDescriptor, descriptor);
    packet(body, 0, false);
}

void PerfettoTrace::track(uint64_t track, uint64_t parent, std::string_view name) {
    std::string descriptor, body;
    put(descriptor, kUuid, track);
    if (parent) put(descriptor, kParent, parent);
    put(descriptor, kName, name);
    put(body, kTrackDescriptor, descriptor);
    packet(body, 0, false);
}

void PerfettoTrace::counter(uint64_t track, uint64_t parent, std::string_view name,
                            std::string_view unit) {
    std::string counter, descriptor, body;
    put(counter, 6, unit);
    put(descriptor, kUuid, track);
    if (parent) put(descriptor, kParent, parent);
    put(descriptor, kName, name);
    put(descriptor, kCounter, counter);
    put(body, kTrackDescriptor, descriptor);
    packet(body, 0, false);
}

void PerfettoTrace::event(uint64_t track, uint64_t ns, uint32_t type, std::string_view name,
                          std::string_view note) {
    std::string event, body;
    put(event, kType, type);
    put(event, kTrackUuid, track);
    if (!name.empty()) put(event, kEventName, name);
    if (!note.empty()) {
        std::string annotation;
        put(annotation, 10, std::string_view("note"));
        put(annotation, 6, note);
        put(event, kDebug, annotation);
    }
    put(body, kTrackEvent, event);
    packet(body, ns, true);
}

void PerfettoTrace::begin(uint64_t track, uint64_t ns, std::string_view name,
                          std::string_view note) {
    event(track, ns, kBegin, name, note);
}

void PerfettoTrace::end(uint64_t track, uint64_t ns) {
    event(track, ns, kEnd, {}, {});
}

void PerfettoTrace::instant(uint64_t track, uint64_t ns, std::string_view name,
                            std::string_view note) {
    event(track, ns, kInstant, name, note);
}

void PerfettoTrace::value(uint64_t track, uint64_t ns, int64_t value) {
    std::string event, body;
    put(event, kType, kCounterEvent);
    put(event, kTrackUuid, track);
    put(event, kCounterValue, static_cast<uint64_t>(value));
    put(body, kTrackEvent, event);
    packet(body, ns, true);
}

void PerfettoTrace::clocks(uint64_t monotonic_ns, uint64_t boottime_ns, uint64_t realtime_ns) {
    std::string snapshot, body;
    const std::pair<uint32_t, uint64_t> all[] = {
        {kMonotonic, monotonic_ns}, {kBoottime, boottime_ns}, {kRealtime, realtime_ns}};
    for (const auto& [id, ns] : all) {
        std::string clock;
        put(clock, 1, id);
        put(clock, 2, ns);
        put(snapshot, 1, clock);
    }
    put(body, kClockSnapshot, snapshot);
    packet(body, 0, false);
}

}  // namespace enpu::rt
