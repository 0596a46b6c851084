// SPDX-License-Identifier: MIT
// An operator packet on memory of its own, and a Progress that counts and says no in time.
#pragma once

#include <cstring>
#include <limits>
#include <vector>

#include "families.h"

namespace enpu::ops {

class Stopper : public Progress {
  public:
    explicit Stopper(unsigned threads, int64_t allowed = std::numeric_limits<int64_t>::max())
        : threads_(threads), allowed_(allowed) {}
    bool proceed() override { return ++calls_ <= allowed_; }
    void detail(unsigned operand, int64_t value) override {
        operand_ = operand;
        value_ = value;
    }
    unsigned threads() const override { return threads_; }

    int64_t calls() const { return calls_; }
    unsigned operand() const { return operand_; }
    int64_t value() const { return value_; }

  private:
    unsigned threads_;
    int64_t allowed_;
    int64_t calls_ = 0;
    unsigned operand_ = ~0u;
    int64_t value_ = 0;
};

// A packet with packed tensors on memory of its own.
class Packet {
  public:
    explicit Packet(uint16_t opcode) : bytes_(ENPU_OPERATOR_PACKET_BYTES(ENPU_MAX_OPERANDS) / 8) {
        get().header.opcode = opcode;
    }
    enpu_operator_packet& get() { return *reinterpret_cast<enpu_operator_packet*>(bytes_.data()); }

    void add(uint32_t dtype, std::vector<uint32_t> dims, size_t element_bytes) {
        enpu_tensor& tensor = get().operands[storage_.size()];
        tensor.dtype = static_cast<uint8_t>(dtype);
        tensor.rank = static_cast<uint8_t>(dims.size());
        size_t count = 1;
        for (size_t axis = dims.size(); axis-- > 0; count *= dims[axis]) {
            tensor.dims[axis] = dims[axis];
            tensor.strides[axis] = static_cast<int32_t>(count);
        }
        storage_.emplace_back(count * element_bytes);
    }
    void leave_out() { storage_.emplace_back(); }
    std::vector<std::byte>& memory(size_t operand) { return storage_[operand]; }

    Outcome run(Outcome (*family)(const Call&), Progress& progress) {
        std::vector<Operand> operands;
        for (size_t i = 0; i < storage_.size(); ++i) {
            operands.push_back(
                {&get().operands[i], storage_[i].empty() ? nullptr : storage_[i].data()});
        }
        return family({get(), operands, progress});
    }

  private:
    std::vector<uint64_t> bytes_;
    std::vector<std::vector<std::byte>> storage_;
};

}  // namespace enpu::ops
