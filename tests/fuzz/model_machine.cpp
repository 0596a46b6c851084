// SPDX-License-Identifier: MIT
#include "model_machine.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "enpu_hw_tables.h"
#include "recipe.h"

namespace enpu::fuzz {
namespace {

constexpr uint64_t kMaxWork = 1 << 16;  // of a packet: a run is to last microseconds
constexpr uint64_t kCommandBytes = 16 << 10;

}  // namespace

Machine::Machine() : ram_(std::make_unique<std::byte[]>(kRamBytes)) {
    local_ = static_cast<std::byte*>(std::aligned_alloc(ENPU_PAGE_SIZE, kLocalBytes));
    enpu_model_host host{};
    host.struct_size = sizeof(host);
    host.opaque = this;
    host.dma_read = [](void* self, uint64_t address, void* buffer, uint64_t bytes) {
        auto* machine = static_cast<Machine*>(self);
        if (!machine->spend(address, bytes)) return -1;
        std::memcpy(buffer, machine->at(address), bytes);
        return 0;
    };
    host.dma_write = [](void* self, uint64_t address, const void* buffer, uint64_t bytes) {
        auto* machine = static_cast<Machine*>(self);
        if (!machine->spend(address, bytes)) return -1;
        std::memcpy(machine->at(address), buffer, bytes);
        return 0;
    };
    host.raise_irq = [](void*, uint32_t vector) {
        if (vector >= ENPU_MAX_VECTORS) std::abort();
    };
    // Time passes, so that whatever has a deadline ends.
    host.clock_ns = [](void* self) { return static_cast<Machine*>(self)->now_ += 100; };
    host.log = [](void*, const char* message) {
        if (std::strlen(message) > 1000) std::abort();
    };
    enpu_model_config config{};
    config.struct_size = sizeof(config);
    config.abi = ENPU_MODEL_ABI;
    config.cores = config.threads = config.copy_engines = 1;
    config.fault_injection = config.sync = true;
    config.local_bytes = kLocalBytes;
    config.local_memory = local_;
    config.max_packet_work = kMaxWork;
    char error[256];
    model_ = enpu_model_create(&config, &host, error, sizeof(error));
    if (model_ == nullptr) {
        std::fprintf(stderr, "%s\n", error);
        std::abort();
    }
}

Machine::~Machine() {
    enpu_model_destroy(model_);
    std::free(local_);
}

// A run that goes round in circles over its memory comes to an end here.
bool Machine::spend(uint64_t address, uint64_t bytes) {
    spent_ += bytes;
    return spent_ <= kDmaBudget && address >= kBase && bytes <= kRamBytes &&
           address - kBase <= kRamBytes - bytes;
}

uint64_t Machine::allocate(uint64_t bytes) {
    const uint64_t bus = kBase + used_;
    used_ += (bytes + ENPU_PAGE_SIZE - 1) / ENPU_PAGE_SIZE * ENPU_PAGE_SIZE;
    if (used_ > kRamBytes) std::abort();
    return bus;
}

void Machine::map(uint64_t va, uint64_t pte, unsigned leaf) {
    uint64_t table = root_;
    for (unsigned level = 3; level > leaf; --level) {
        uint64_t entry;
        std::byte* slot = at(table) + (va >> (12 + 9 * level) & 511) * 8;
        std::memcpy(&entry, slot, 8);
        if ((entry & ENPU_PTE_VALID) == 0) {
            entry = allocate(ENPU_PAGE_SIZE) | ENPU_PTE_VALID;
            std::memcpy(slot, &entry, 8);
        }
        table = entry & ENPU_PTE_ADDR;
    }
    pte |= ENPU_PTE_VALID | ENPU_PTE_READ | ENPU_PTE_WRITE;
    std::memcpy(at(table) + (va >> (12 + 9 * leaf) & 511) * 8, &pte, 8);
}

void Machine::map_operands() {
    const uint64_t pages = allocate(16 * ENPU_PAGE_SIZE);
    for (uint64_t i = 0; i < ENPU_MAX_OPERANDS; ++i) {
        const uint64_t va = kOperandVa + i * kOperandStride;
        if (i % 2 == 0) {
            map(va, (i / 2 % 2) * ENPU_LARGE_PAGE_SIZE | ENPU_PTE_LARGE | ENPU_PTE_LOCAL, 1);
            continue;
        }
        for (uint64_t page = 0; page < 16; ++page)
            map(va + page * ENPU_PAGE_SIZE, pages + page * ENPU_PAGE_SIZE, 0);
    }
    for (uint64_t at = 0; at < kWideBytes; at += ENPU_LARGE_PAGE_SIZE)
        map(kWideVa + at, at % kLocalBytes | ENPU_PTE_LARGE | ENPU_PTE_LOCAL, 1);
}

void Machine::enable(uint32_t queue, uint32_t engine) {
    write64(ENPU_REG_QUEUE_ADDR(queue), queues_[queue].bus);
    write32(ENPU_REG_QUEUE_CTRL(queue), ENPU_QUEUE_CTRL_ENABLE |
                                            ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, kRingLog2) |
                                            ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_ENGINE, engine) |
                                            ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, kAs));
}

void Machine::start() {
    const enpu_fault none{};
    spent_ = 0;
    enpu_model_inject(model_, &none);
    enpu_model_reset(model_);
    std::memset(ram_.get(), 0, kRamBytes);
    std::memset(local_, 1, 64 << 10);
    used_ = 0;
    root_ = allocate(ENPU_PAGE_SIZE);
    map_operands();
    commands_ = allocate(kCommandBytes);
    for (auto& queue : queues_) queue = {allocate(2 * ENPU_PAGE_SIZE), 0, 0};
    for (uint64_t bus = kBase; bus < kBase + kRamBytes / 2; bus += ENPU_PAGE_SIZE) map(bus, bus, 0);
    write64(ENPU_REG_AS_ROOT(kAs), root_ | ENPU_AS_ROOT_VALID);
    write32(ENPU_REG_CTRL, ENPU_CTRL_ENABLE);
    write32(ENPU_REG_IRQ_ENABLE, ~0u);
    for (uint32_t i = 0; i < kQueues; ++i) enable(i, i);
}

void Machine::write_register(Bytes& bytes, uint32_t width) {
    const enpu_reg_info& reg = enpu_registers[bytes.take<uint16_t>() % ENPU_NUM_REGISTERS];
    const uint64_t offset = reg.offset + bytes.take<uint16_t>() % reg.count * reg.stride;
    enpu_model_write(model_, offset, width == 4 ? bytes.take<uint32_t>() : bytes.take<uint64_t>(),
                     width);
}

void Machine::push(Bytes& bytes) {
    const uint32_t id = bytes.byte() % kQueues;
    const auto command = bytes.block(std::min<uint64_t>(bytes.take<uint16_t>(), kCommandBytes));
    std::memcpy(at(commands_), command.data(), command.size());
    enpu_ring_entry entry{};
    entry.cmd_va = commands_;
    entry.cmd_bytes = static_cast<uint32_t>(command.size()) / ENPU_PACKET_ALIGN * ENPU_PACKET_ALIGN;
    entry.flags = ENPU_RING_FLAG_IRQ;
    entry.fence = queues_[id].fence + 1;
    submit(id, entry);
}

void Machine::push_packets(Bytes& bytes) {
    const uint32_t id = bytes.byte() % kQueues;
    enpu_ring_entry entry{};
    for (uint32_t left = 1 + bytes.byte() % 4; left > 0; --left) {
        auto packet = packet_from(bytes, kOperandVa, kOperandStride);
        std::memcpy(at(commands_) + entry.cmd_bytes, packet.data(), packet.bytes());
        entry.cmd_bytes += static_cast<uint32_t>(packet.bytes());
    }
    entry.cmd_va = commands_;
    entry.flags = ENPU_RING_FLAG_IRQ;
    entry.fence = queues_[id].fence + 1;
    submit(id, entry);
}

void Machine::push_entry(Bytes& bytes) {
    const uint64_t places[] = {commands_, kOperandVa, kWideVa, 1ull << ENPU_VA_BITS};
    const uint32_t id = bytes.byte() % kQueues;
    enpu_ring_entry entry{};
    entry.cmd_va = places[bytes.byte() % std::size(places)] + bytes.take<uint16_t>();
    entry.cmd_bytes = bytes.take<uint32_t>();
    entry.flags = bytes.byte();
    entry.fence = queues_[id].fence + bytes.byte();
    submit(id, entry);
}

void Machine::submit(uint32_t id, const enpu_ring_entry& entry) {
    Queue& queue = queues_[id];
    queue.fence = entry.fence;
    // The job before it may have faulted the queue.
    write32(ENPU_REG_QUEUE_CTRL(id), 0);
    std::memcpy(at(queue.bus) + ENPU_QUEUE_RING_OFFSET +
                    (queue.tail & ((1 << kRingLog2) - 1)) * sizeof(entry),
                &entry, sizeof(entry));
    write64(ENPU_REG_QUEUE_HEAD(id), queue.tail);
    write64(ENPU_REG_QUEUE_RESUME(id), 0);
    ++queue.tail;
    std::memcpy(at(queue.bus), &queue.tail, sizeof(queue.tail));
    enable(id, id);
    enpu_model_doorbell(model_, id);
}

void Machine::move(Bytes& bytes) {
    enpu_model_stop(model_);
    std::vector<uint8_t> state(enpu_model_save(model_, nullptr, 0));
    if (enpu_model_save(model_, state.data(), state.size()) != state.size()) std::abort();
    for (uint32_t count = bytes.byte() % 16; count > 0; --count) {
        const uint32_t offset = bytes.take<uint32_t>();
        state[offset % state.size()] = bytes.byte();
    }
    char error[256];
    if (enpu_model_load(model_, state.data(), state.size(), error, sizeof(error)) == 0) {
        // A state that was taken is one that can be saved, the same.
        std::vector<uint8_t> again(enpu_model_save(model_, nullptr, 0));
        enpu_model_save(model_, again.data(), again.size());
        if (again.size() != state.size()) std::abort();
    } else if (error[0] == 0) {
        std::abort();
    }
    enpu_model_start(model_);
}

void Machine::step(Bytes& bytes) {
    switch (bytes.byte() % kSteps) {
        case kWrite32:
            return write_register(bytes, 4);
        case kWrite64:
            return write_register(bytes, 8);
        case kRead: {
            const uint32_t offset = bytes.take<uint32_t>() % (ENPU_BAR_REGS_SIZE + 8);
            enpu_model_read(model_, offset, bytes.byte() % 2 ? 8 : 4);
            return;
        }
        case kDoorbell:
            return enpu_model_doorbell(model_, bytes.byte());
        case kMemory: {
            const uint64_t offset = bytes.take<uint32_t>() % kRamBytes;
            const auto block = bytes.block(std::min<uint64_t>(bytes.byte(), kRamBytes - offset));
            std::memcpy(ram_.get() + offset, block.data(), block.size());
            return;
        }
        case kJob:
            return push(bytes);
        case kPackets:
            return push_packets(bytes);
        case kEntry:
            return push_entry(bytes);
        case kTable: {
            const uint64_t slot = bytes.take<uint16_t>() % (used_ / 8);
            const auto entry = bytes.take<uint64_t>();
            std::memcpy(ram_.get() + slot * 8, &entry, sizeof(entry));
            return;
        }
        case kReset:
            return enpu_model_reset(model_);
        case kMove:
            return move(bytes);
        case kFault: {
            auto fault = bytes.take<enpu_fault>();
            fault.kind %= ENPU_FAULT_KINDS;
            enpu_model_inject(model_, &fault);
            return;
        }
        default:
            now_ += bytes.take<uint32_t>();
            return;
    }
}

}  // namespace enpu::fuzz
