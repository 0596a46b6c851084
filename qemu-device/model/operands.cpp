// SPDX-License-Identifier: MIT
// Operator packets: their operands as host pointers. An operand that lies contiguous in local
// memory is used in place; any other is gathered into private memory before and, when it is an
// output, put back after the operator.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "device.h"
#include "engine.h"
#include "tables.h"

namespace enpu::model {
namespace {

// What one packet may gather: a page table can show a guest page many times over.
constexpr uint64_t kMaxGatherBytes = 1ull << 30;
constexpr uint64_t kTileBytes = 4 << 20;
constexpr uint64_t kMinWriteCost = 256;       // a small write takes as long as one of so many bytes
constexpr uint64_t kResolveBytes = 16 << 20;  // of which a tile looks up the pages
constexpr size_t kAlignment = 64;

// Zeroed, so that nothing of the host shows in a part that the operator leaves alone; a large one
// page by page as it is used, not all of it before the next look around.
class Buffer {
  public:
    Buffer() = default;
    explicit Buffer(uint64_t bytes) : memory_(std::calloc(bytes + kAlignment, 1)) {}

    explicit operator bool() const { return memory_ != nullptr; }
    std::byte* data() const {
        const auto address = reinterpret_cast<uintptr_t>(memory_.get());
        return static_cast<std::byte*>(memory_.get()) +
               (kAlignment - address % kAlignment) % kAlignment;
    }

  private:
    struct Free {
        void operator()(void* pointer) const { std::free(pointer); }
    };
    std::unique_ptr<void, Free> memory_;
};

// The elements of a PLAIN tensor as runs of adjacent bytes.
class Runs {
  public:
    explicit Runs(const enpu_tensor& tensor) : run_(rules::dtype_bytes(tensor.dtype)) {
        const auto element = static_cast<int64_t>(run_);
        for (unsigned i = 0; i < tensor.rank; ++i) {
            if (tensor.dims[i] == 1) continue;
            int64_t step = tensor.strides[i] * element;
            if (step < 0) {
                // The order does not matter: begin at the other end.
                start_ += step * (int64_t{tensor.dims[i]} - 1);
                step = -step;
            }
            // Sorted by insertion: there are at most eight.
            unsigned at = rank_++;
            for (; at > 0 && axes_[at - 1].step > step; --at) axes_[at] = axes_[at - 1];
            axes_[at] = {step, tensor.dims[i]};
        }
        unsigned inner = 0;
        while (inner < rank_ && axes_[inner].step == static_cast<int64_t>(run_))
            run_ *= axes_[inner++].count;
        std::copy(axes_.begin() + inner, axes_.begin() + rank_, axes_.begin());
        rank_ -= inner;
    }

    // Calls visit(offset, bytes) for each run until it returns false.
    template <class Visit>
    bool for_each(Visit&& visit) const {
        std::array<uint32_t, ENPU_MAX_RANK> index{};
        int64_t offset = start_;
        for (;;) {
            if (!visit(offset, run_)) return false;
            unsigned axis = 0;
            for (; axis < rank_; ++axis) {
                offset += axes_[axis].step;
                if (++index[axis] < axes_[axis].count) break;
                offset -= axes_[axis].step * axes_[axis].count;
                index[axis] = 0;
            }
            if (axis == rank_) return true;
        }
    }

  private:
    struct Axis {
        int64_t step;
        uint32_t count;
    };
    uint64_t run_;
    int64_t start_ = 0;
    std::array<Axis, ENPU_MAX_RANK> axes_{};
    unsigned rank_ = 0;
};

}  // namespace

class Engine::Operands {
  public:
    Operands(Engine& engine, const enpu_operator_packet& packet)
        : engine_(engine),
          packet_(packet),
          count_(opcode_info(packet.header.opcode).num_operands) {}

    Result gather(Failure& failure);
    Result put_back(Failure& failure);
    std::span<const ops::Operand> list() const { return {operands_.data(), count_}; }
    // Not kDone: the TLB was invalidated, and the pointers do not show what the tables say now.
    Result still_mapped(Failure& failure);
    // Does an output share bytes with an input? Then the packet cannot run again from its start.
    bool in_place() const;
    void count_bytes();

  private:
    struct Part {
        rules::Span span;
        std::byte* local = nullptr;  // of the first byte of the span
        Buffer buffer;
        bool output = false;
    };

    Result gather_one(unsigned i, Failure& failure);
    Result locate(unsigned i, std::byte*& first, Failure& failure);
    Result read_part(unsigned i, Failure& failure);
    uint64_t va(unsigned i) const { return packet_.operands[i].addr + parts_[i].span.offset; }
    enpu_access access(unsigned i) const {
        return parts_[i].output ? ENPU_ACCESS_WRITE : ENPU_ACCESS_READ;
    }
    uint32_t epoch() const {
        return engine_.device_.spaces[engine_.as_id_].epoch.load(std::memory_order_acquire);
    }

    Engine& engine_;
    const enpu_operator_packet& packet_;
    const unsigned count_;
    std::array<Part, ENPU_MAX_OPERANDS> parts_;
    std::array<ops::Operand, ENPU_MAX_OPERANDS> operands_;
    uint64_t gathered_ = 0;
    uint32_t epoch_ = 0;
};

// Every access is checked before the first byte is written.
Engine::Result Engine::Operands::gather(Failure& failure) {
    epoch_ = epoch();
    for (unsigned i = 0; i < count_; ++i) {
        operands_[i].desc = &packet_.operands[i];
        if (packet_.operands[i].dtype == ENPU_DTYPE_NONE) continue;
        if (const Result result = gather_one(i, failure); result != Result::kDone) return result;
    }
    // Reading one operand may have taken tiles, and the pages of another may have gone meanwhile.
    return still_mapped(failure);
}

// A pointer to the first byte of an operand that is contiguous local memory, null for any other.
Engine::Result Engine::Operands::locate(unsigned i, std::byte*& first, Failure& failure) {
    const uint64_t bytes = parts_[i].span.bytes;
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t length = std::min(bytes - done, kResolveBytes);
        std::byte* pointer = nullptr;
        Fault fault;
        if (!engine_.memory_.resolve(engine_.as_id_, va(i) + done, length, access(i), pointer,
                                     fault))
            return failed(fault, failure);
        if (done == 0) first = pointer;
        if (!pointer || pointer != first + done) first = nullptr;
        done += length;
        if (done == bytes) break;
        if (const Result result = engine_.next_tile(); result != Result::kDone) return result;
    }
    return Result::kDone;
}

Engine::Result Engine::Operands::gather_one(unsigned i, Failure& failure) {
    const enpu_tensor& tensor = packet_.operands[i];
    Part& part = parts_[i];
    part.output = rules::is_output(packet_.header.opcode, i);
    if (!rules::tensor_span(tensor, part.span)) {
        failure.status = ENPU_STATUS_LIMIT;
        failure.cause = static_cast<uint8_t>(i);
        return Result::kFailed;
    }
    if (const Result result = locate(i, part.local, failure); result != Result::kDone)
        return result;
    std::byte* first = part.local;
    if (!first) {
        gathered_ += part.span.bytes;
        if (gathered_ <= kMaxGatherBytes) part.buffer = Buffer(part.span.bytes);
        if (!part.buffer) {
            failure.status = ENPU_STATUS_OUT_OF_MEMORY;
            failure.va = va(i);
            failure.detail = gathered_;
            return Result::kFailed;
        }
        first = part.buffer.data();
        if (!part.output)
            if (const Result result = read_part(i, failure); result != Result::kDone) return result;
    }
    operands_[i].data = first - part.span.offset;
    return Result::kDone;
}

Engine::Result Engine::Operands::read_part(unsigned i, Failure& failure) {
    Part& part = parts_[i];
    for (uint64_t done = 0; done < part.span.bytes;) {
        const uint64_t length = std::min(part.span.bytes - done, kTileBytes);
        Fault fault;
        if (!engine_.memory_.read({true, engine_.as_id_}, va(i) + done, part.buffer.data() + done,
                                  length, ENPU_ACCESS_READ, fault))
            return failed(fault, failure);
        done += length;
        if (done == part.span.bytes) break;
        if (const Result result = engine_.next_tile(); result != Result::kDone) return result;
    }
    return Result::kDone;
}

// Only elements are written: others may be writing between them.
Engine::Result Engine::Operands::put_back(Failure& failure) {
    Result result = Result::kDone;
    for (unsigned i = 0; i < count_ && result == Result::kDone; ++i) {
        const Part& part = parts_[i];
        if (!part.output || !part.buffer) continue;
        const enpu_tensor& tensor = packet_.operands[i];
        uint64_t in_tile = 0;
        const auto write = [&](int64_t offset, uint64_t bytes) {
            while (bytes > 0) {
                if (in_tile >= kTileBytes) {
                    in_tile = 0;
                    result = engine_.next_tile();
                    if (result != Result::kDone) return false;
                }
                const uint64_t length = std::min(bytes, kTileBytes);
                Fault fault;
                if (!engine_.memory_.write({true, engine_.as_id_}, tensor.addr + offset,
                                           operands_[i].data + offset, length, fault)) {
                    result = failed(fault, failure);
                    return false;
                }
                offset += static_cast<int64_t>(length);
                bytes -= length;
                in_tile += std::max(length, kMinWriteCost);
            }
            return true;
        };
        if (tensor.format == ENPU_FORMAT_PACKED)
            write(0, part.span.bytes);
        else
            Runs(tensor).for_each(write);
    }
    return result;
}

Engine::Result Engine::Operands::still_mapped(Failure& failure) {
    // Again when there was another one meanwhile: a tile that has ended has seen it.
    for (uint32_t now = epoch(); now != epoch_; now = epoch()) {
        epoch_ = now;
        for (unsigned i = 0; i < count_; ++i) {
            if (!parts_[i].local) continue;
            std::byte* pointer = nullptr;
            if (const Result result = locate(i, pointer, failure); result != Result::kDone)
                return result;
            if (pointer != parts_[i].local)
                return failed({ENPU_STATUS_MMU_FAULT, access(i), ENPU_MMU_CAUSE_NOT_MAPPED, va(i)},
                              failure);
        }
    }
    return Result::kDone;
}

bool Engine::Operands::in_place() const {
    const auto overlap = [](uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
        return a < b + b_bytes && b < a + a_bytes;
    };
    const auto at = [](const Part& part) { return reinterpret_cast<uintptr_t>(part.local); };
    for (unsigned out = 0; out < count_; ++out) {
        const Part& to = parts_[out];
        if (!to.output || !operands_[out]) continue;
        for (unsigned in = 0; in < count_; ++in) {
            const Part& from = parts_[in];
            if (from.output || !operands_[in]) continue;
            if (overlap(va(out), to.span.bytes, va(in), from.span.bytes)) return true;
            // Two VAs may lead to the same bytes.
            if (to.local && from.local && overlap(at(to), to.span.bytes, at(from), from.span.bytes))
                return true;
        }
    }
    return false;
}

void Engine::Operands::count_bytes() {
    for (unsigned i = 0; i < count_; ++i)
        engine_.memory_.count(parts_[i].output ? 0 : parts_[i].span.bytes,
                              parts_[i].output ? parts_[i].span.bytes : 0);
}

Engine::Result Engine::run_operator(const enpu_operator_packet& packet, Failure& failure) {
    Operands operands(*this, packet);
    if (const Result result = operands.gather(failure); result != Result::kDone) return result;
    operands_ = &operands;
    operator_failure_ = &failure;
    interrupted_ = Result::kLeft;
    restartable_ = !operands.in_place();
    const ops::Outcome outcome = ops::run(packet, operands.list(), *this);
    operands_ = nullptr;
    switch (outcome) {
        case ops::Outcome::kDone:
            break;
        case ops::Outcome::kStopped:
            return interrupted_;
        case ops::Outcome::kOutOfMemory:
            failure.status = ENPU_STATUS_OUT_OF_MEMORY;
            return Result::kFailed;
        case ops::Outcome::kBadOperand:
            failure.status = ENPU_STATUS_BAD_OPERAND;
            return Result::kFailed;
    }
    const Result result = operands.put_back(failure);
    if (result == Result::kDone) operands.count_bytes();
    return result;
}

bool Engine::proceed() {
    interrupted_ = next_tile();
    if (interrupted_ == Result::kDone) interrupted_ = operands_->still_mapped(*operator_failure_);
    return interrupted_ == Result::kDone;
}

void Engine::detail(unsigned operand, int64_t value) {
    operator_failure_->cause = static_cast<uint8_t>(operand);
    operator_failure_->detail = static_cast<uint64_t>(value);
}

unsigned Engine::threads() const {
    return device_.config.threads;
}

}  // namespace enpu::model
