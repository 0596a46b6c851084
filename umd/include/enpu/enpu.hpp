// SPDX-License-Identifier: MIT
// C++ over the C API of libenpu: objects own their references, failures are exceptions. Header
// only; see enpu.h for what the calls do.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "enpu/enpu.h"

namespace enpu {

class Error : public std::runtime_error {
  public:
    explicit Error(const enpu_error& error)
        : std::runtime_error(error.message), code_(error.code) {}
    int code() const { return code_; }  // negative errno

  private:
    int code_;
};

// Runs call(&error) and throws what it reports; gives back counts and indices.
template <typename Call>
int check(Call&& call) {
    enpu_error error = {};
    const int result = call(&error);
    if (result < 0) throw Error(error);
    return result;
}

// One reference to an object of the C API.
template <typename T, T* (*Retain)(T*), void (*Release)(T*)>
class Handle {
  public:
    Handle() = default;
    explicit Handle(T* adopted) : object_(adopted) {}
    Handle(const Handle& other) : object_(Retain(other.object_)) {}
    Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Handle& operator=(Handle other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Handle() { Release(object_); }

    T* get() const { return object_; }
    explicit operator bool() const { return object_ != nullptr; }

  private:
    T* object_ = nullptr;
};

class Device : public Handle<enpu_device, enpu_device_retain, enpu_device_release> {
  public:
    using Handle::Handle;
    static Device open(const char* spec) {
        enpu_device* device = nullptr;
        check([&](enpu_error* error) { return enpu_device_open(spec, &device, error); });
        return Device(device);
    }
    const enpu_device_info& info() const { return *enpu_device_get_info(get()); }
    std::vector<uint64_t> counters() const {
        std::vector<uint64_t> words(ENPU_COUNTER_STRIDE / 8);
        words.resize(check([&](enpu_error* error) {
            return enpu_device_get_counters(get(), words.data(), words.size(), error);
        }));
        return words;
    }
};

class Buffer : public Handle<enpu_buffer, enpu_buffer_retain, enpu_buffer_release> {
  public:
    using Handle::Handle;
    static Buffer create(const Device& device, uint64_t bytes, uint32_t flags) {
        enpu_buffer* buffer = nullptr;
        check([&](enpu_error* error) {
            return enpu_buffer_create(device.get(), bytes, flags, &buffer, error);
        });
        return Buffer(buffer);
    }
    static Buffer wrap(const Device& device, void* memory, uint64_t bytes, uint32_t flags = 0) {
        enpu_buffer* buffer = nullptr;
        check([&](enpu_error* error) {
            return enpu_buffer_wrap(device.get(), memory, bytes, flags, &buffer, error);
        });
        return Buffer(buffer);
    }
    uint64_t bytes() const { return enpu_buffer_bytes(get()); }
    uint64_t va() const { return enpu_buffer_va(get()); }
    // Its contents as an array of T.
    template <typename T = std::byte>
    std::span<T> map() const {
        void* address = nullptr;
        check([&](enpu_error* error) { return enpu_buffer_map(get(), &address, error); });
        return {static_cast<T*>(address), bytes() / sizeof(T)};
    }
};

class Timeline : public Handle<enpu_timeline, enpu_timeline_retain, enpu_timeline_release> {
  public:
    using Handle::Handle;
    static Timeline create(const Device& device, uint64_t initial = 0) {
        enpu_timeline* timeline = nullptr;
        check([&](enpu_error* error) {
            return enpu_timeline_create(device.get(), initial, &timeline, error);
        });
        return Timeline(timeline);
    }
    enpu_point at(uint64_t value) const { return {get(), value}; }
    void wait(uint64_t value, int64_t deadline_ns) const {
        check([&](enpu_error* error) {
            return enpu_timeline_wait(get(), value, deadline_ns, error);
        });
    }
    uint64_t query() const {
        uint64_t value = 0;
        check([&](enpu_error* error) { return enpu_timeline_query(get(), &value, error); });
        return value;
    }
    void signal(uint64_t value) const {
        check([&](enpu_error* error) { return enpu_timeline_signal(get(), value, error); });
    }
};

class Command : public Handle<enpu_command, enpu_command_retain, enpu_command_release> {
  public:
    using Handle::Handle;
    void patch(uint32_t packet, uint32_t operand, const Buffer& buffer, uint64_t offset) const {
        check([&](enpu_error* error) {
            return enpu_command_patch(get(), packet, operand, buffer.get(), offset, error);
        });
    }
};

// The packets themselves are built with enpu_build_*(builder.get(), …), inside check().
class Builder {
  public:
    Builder(const Device& device, uint32_t engine_kind) {
        check([&](enpu_error* error) {
            return enpu_builder_create(device.get(), engine_kind, &builder_, error);
        });
    }
    Builder(const Builder&) = delete;
    Builder& operator=(const Builder&) = delete;
    ~Builder() { enpu_builder_release(builder_); }

    enpu_builder* get() const { return builder_; }
    Command finish() {
        enpu_command* command = nullptr;
        check([&](enpu_error* error) { return enpu_builder_finish(builder_, &command, error); });
        return Command(command);
    }

  private:
    enpu_builder* builder_ = nullptr;
};

class Context : public Handle<enpu_context, enpu_context_retain, enpu_context_release> {
  public:
    using Handle::Handle;
    static Context create(const Device& device, const enpu_context_config* config = nullptr) {
        enpu_context* context = nullptr;
        check([&](enpu_error* error) {
            return enpu_context_create(device.get(), config, &context, error);
        });
        return Context(context);
    }
    uint64_t submit(uint32_t engine, const Command& command,
                    std::initializer_list<enpu_point> waits,
                    std::initializer_list<enpu_point> signals, uint64_t job_id = 0) const {
        uint64_t seqno = 0;
        check([&](enpu_error* error) {
            return enpu_submit(get(), engine, command.get(), waits.begin(), waits.size(),
                               signals.begin(), signals.size(), job_id, &seqno, error);
        });
        return seqno;
    }
    void wait(const Timeline& timeline, uint64_t value, int64_t deadline_ns) const {
        check([&](enpu_error* error) {
            return enpu_context_wait(get(), timeline.get(), value, deadline_ns, error);
        });
    }
    enpu_context_status status() const {
        enpu_context_status status = {};
        check([&](enpu_error* error) { return enpu_context_get_status(get(), &status, error); });
        return status;
    }
};

class Queue : public Handle<enpu_queue, enpu_queue_retain, enpu_queue_release> {
  public:
    using Handle::Handle;
    static Queue create(const Context& context, uint32_t engine, uint32_t entries) {
        enpu_queue* queue = nullptr;
        check([&](enpu_error* error) {
            return enpu_queue_create(context.get(), engine, entries, &queue, error);
        });
        return Queue(queue);
    }
    uint64_t submit(const Command& command, uint64_t job_id = 0) const {
        enpu_command* const one = command.get();
        uint64_t fence = 0;
        check([&](enpu_error* error) {
            return enpu_queue_submit(get(), &one, 1, job_id, &fence, error);
        });
        return fence;
    }
    void wait(uint64_t fence, int64_t deadline_ns) const {
        check([&](enpu_error* error) { return enpu_queue_wait(get(), fence, deadline_ns, error); });
    }
    uint64_t completed() const { return enpu_queue_completed(get()); }
};

}  // namespace enpu
