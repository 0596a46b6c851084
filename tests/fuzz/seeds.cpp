// SPDX-License-Identifier: MIT
// seeds FOLDER: writes what fuzzing starts from, a folder a target: sound packets of each opcode in
// each type, one run of each kind of step, a graph of each operator.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "graph_seeds.h"
#include "model_machine.h"
#include "recipe.h"

using namespace enpu;
using fuzz::Step;

namespace {

class Seed {
  public:
    Seed& step(Step step) { return put(static_cast<uint8_t>(step)); }
    template <typename T>
    Seed& put(const T& value) {
        const auto* bytes = reinterpret_cast<const char*>(&value);
        bytes_.insert(bytes_.end(), bytes, bytes + sizeof(value));
        return *this;
    }
    Seed& job(uint8_t queue, const void* packet, size_t size) {
        step(fuzz::kJob).put(queue).put(static_cast<uint16_t>(size));
        const auto* bytes = static_cast<const char*>(packet);
        bytes_.insert(bytes_.end(), bytes, bytes + size);
        return *this;
    }
    Seed& write32(uint32_t reg, uint16_t instance, uint32_t value) {
        return step(fuzz::kWrite32).put(index_of(reg)).put(instance).put(value);
    }
    void save(const std::string& path) const {
        std::ofstream(path, std::ios::binary).write(bytes_.data(), bytes_.size());
    }

  private:
    static uint16_t index_of(uint32_t offset) {
        uint16_t i = 0;
        while (enpu_registers[i].offset != offset) ++i;
        return i;
    }
    std::vector<char> bytes_;
};

rules::test::Packet copy_packet() {
    rules::test::Packet packet(ENPU_OPCODE_COPY);
    auto& copy = packet.as<enpu_copy_packet>();
    copy.dst = fuzz::Machine::kOperandVa;
    copy.src = fuzz::Machine::kOperandVa + fuzz::Machine::kOperandStride + 100;
    copy.width = 5000;
    copy.height = 1;
    return packet;
}

void save_packets(const std::string& folder) {
    for (uint32_t i = 0; i < fuzz::opcode_count(); ++i) {
        const uint16_t opcode = fuzz::opcode_at(i);
        const bool is_operator = enpu_opcodes[opcode].is_operator;
        auto packet = rules::test::sound_packet(opcode);
        Seed()
            .job(is_operator ? 0 : 1, packet.data(), packet.bytes())
            .save(folder + "/packet-" + enpu_opcodes[opcode].name);
        for (uint8_t dtype = 0; dtype < (is_operator ? 9 : 1); ++dtype)
            Seed()
                .step(fuzz::kPackets)
                .put(uint8_t{0})
                .put(uint8_t{0})
                .put(static_cast<uint8_t>(i))
                .put(dtype)
                .put(uint8_t{0})
                .save(folder + "/recipe-" + enpu_opcodes[opcode].name + "-" +
                      enpu_dtype_names[dtype].name);
    }
}

void save_builder(const std::string& folder) {
    for (uint32_t i = 0; i < fuzz::opcode_count(); ++i) {
        const auto& info = enpu_opcodes[fuzz::opcode_at(i)];
        for (uint8_t dtype = 0; dtype < (info.is_operator ? 9 : 1); ++dtype) {
            Seed seed;
            seed.put(uint8_t{0}).put(uint8_t{0});
            seed.put(static_cast<uint8_t>(i)).put(dtype).put(uint8_t{0});
            for (unsigned operand = 0; operand < (info.is_operator ? info.num_operands : 2u);
                 ++operand)
                seed.put(uint8_t{0});
            if (info.is_operator) seed.put(uint8_t{255});
            seed.save(folder + "/" + info.name + "-" + enpu_dtype_names[dtype].name);
        }
    }
}

// Sound packets with one change each, many a file: every field of every operator to numbers that its
// rule may not like.
class Changes {
  public:
    Changes(std::string prefix, uint8_t opcode) : prefix_(std::move(prefix)), opcode_(opcode) {}
    ~Changes() { save(); }
    Changes(const Changes&) = delete;

    template <typename... Values>
    void add(fuzz::Change change, const Values&... values) {
        seed_.step(fuzz::kPackets).put(uint8_t{0}).put(uint8_t{0});
        seed_.put(opcode_).put(uint8_t{0}).put(uint8_t{1}).put(static_cast<uint8_t>(change));
        (seed_.put(values), ...);
        if (++steps_ == kSteps) save();
    }
    // `offset` of a word of the packet.
    void extremes(size_t offset) {
        for (uint8_t number : {0, 1, 3, 14, 19, 23})
            add(fuzz::kExtreme, static_cast<uint16_t>((offset - offsetof(enpu_packet, tag)) / 4),
                number);
    }

  private:
    static constexpr int kSteps = 48;
    void save() {
        if (steps_ != 0) seed_.save(prefix_ + std::to_string(file_++));
        seed_ = Seed();
        steps_ = 0;
    }
    const std::string prefix_;
    const uint8_t opcode_;
    Seed seed_;
    int steps_ = 0, file_ = 0;
};

void save_changes(const std::string& folder, uint8_t index) {
    const auto& info = enpu_opcodes[fuzz::opcode_at(index)];
    Changes changes(folder + "/changes-" + info.name + "-", index);
    for (size_t at = sizeof(enpu_packet); at < info.packet_bytes; at += 4) {
        const bool in_operand = info.is_operator && at >= ENPU_OPERATOR_PACKET_BYTES(0);
        if (!info.is_operator || in_operand || at < sizeof(enpu_packet) + info.param_bytes + 4)
            changes.extremes(at);
    }
    for (uint8_t i = 0; i < info.num_operands; ++i) {
        changes.add(fuzz::kLeftOut, i, uint8_t{0});
        for (uint8_t dtype = 1; dtype < 10; ++dtype) changes.add(fuzz::kTyped, i, dtype);
        for (uint8_t axis = 0; axis < 4; ++axis) {
            changes.add(fuzz::kBroadcast, i, axis);
            changes.add(fuzz::kReverse, i, axis);
        }
    }
    for (uint8_t axis = 0; axis < 5; ++axis)
        for (uint8_t size : {1, 2, 5, 64}) changes.add(fuzz::kSized, axis, size);
}

void save_entries(const std::string& folder) {
    for (uint8_t place = 0; place < 4; ++place)
        Seed()
            .step(fuzz::kEntry)
            .put(uint8_t{1})
            .put(place)
            .put(uint16_t{0})
            .put(uint32_t{5 << 20})
            .put(uint8_t{ENPU_RING_FLAG_IRQ})
            .put(uint8_t{1})
            .save(folder + "/entry-" + std::to_string(place));
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "seeds FOLDER\n"), 2;
    const std::string root = arguments[1], folder = root + "/model";
    std::filesystem::create_directories(folder);
    std::filesystem::create_directories(root + "/builder");
    save_packets(folder);
    for (uint8_t i = 0; i < fuzz::opcode_count(); ++i) save_changes(folder, i);
    save_builder(root + "/builder");
    std::filesystem::create_directories(root + "/lowering");
    fuzz::save_graphs(root + "/lowering");
    save_entries(folder);
    auto copy = copy_packet();
    for (uint32_t kind = 1; kind < ENPU_FAULT_KINDS; ++kind) {
        enpu_fault fault{};
        fault.kind = kind;
        fault.target = ENPU_FAULT_ANY;
        fault.times = 2;
        Seed()
            .step(fuzz::kFault)
            .put(fault)
            .job(1, copy.data(), copy.bytes())
            .write32(ENPU_REG_TLB_INVALIDATE, 0, fuzz::Machine::kAs)
            .write32(ENPU_REG_ENGINE_CTRL(0), 1, ENPU_ENGINE_CTRL_RESET)
            .write32(ENPU_REG_CTRL, 0, ENPU_CTRL_RESET)
            .save(folder + "/fault-" + enpu_faults[kind].name);
    }
    Seed()
        .job(1, copy.data(), copy.bytes())
        .step(fuzz::kMove)
        .put(uint8_t{0})
        .save(folder + "/move");
    Seed()
        .step(fuzz::kTable)
        .put(uint16_t{1})
        .put(uint64_t{ENPU_PTE_VALID | ENPU_PTE_LARGE})
        .job(1, copy.data(), copy.bytes())
        .step(fuzz::kReset)
        .job(0, copy.data(), copy.bytes())
        .save(folder + "/table");
    Seed()
        .step(fuzz::kRead)
        .put(uint32_t{ENPU_COUNTER_BASE + ENPU_COUNTER_STRIDE})
        .put(uint8_t{1})
        .step(fuzz::kDoorbell)
        .put(uint8_t{255})
        .step(fuzz::kMemory)
        .put(uint32_t{0})
        .put(uint8_t{8})
        .put(uint64_t{1})
        .step(fuzz::kClock)
        .put(uint32_t{1000000})
        .save(folder + "/registers");
    return 0;
}
