// SPDX-License-Identifier: MIT
// seeds FOLDER: writes what the fuzzing of the model starts from: a sound packet of each opcode, and
// one run of each kind of step.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "model_machine.h"
#include "sample_packets.h"

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
    for (uint16_t opcode = 0; opcode < ENPU_MAX_OPCODES; ++opcode) {
        if (!enpu_opcodes[opcode].exists) continue;
        auto packet = rules::test::sound_packet(opcode);
        Seed()
            .job(enpu_opcodes[opcode].is_operator ? 0 : 1, packet.data(), packet.bytes())
            .save(folder + "/packet-" + enpu_opcodes[opcode].name);
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "seeds FOLDER\n"), 2;
    const std::string folder = arguments[1];
    save_packets(folder);
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
