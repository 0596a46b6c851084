// SPDX-License-Identifier: MIT
// Operators on the device: how their operands are found, and what goes wrong there. What they
// compute is tested beside them.
#include <cmath>
#include <cstring>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "test/pattern.h"

using namespace enpu::test;

namespace {

// Dense, row by row.
enpu_tensor tensor(uint64_t addr, enpu_dtype dtype, std::vector<uint32_t> dims) {
    enpu_tensor t{};
    t.addr = addr;
    t.dtype = dtype;
    t.rank = static_cast<uint8_t>(dims.size());
    int32_t stride = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        t.dims[i] = dims[i];
        t.strides[i] = stride;
        stride *= static_cast<int32_t>(dims[i]);
    }
    return t;
}

template <class Params>
Commands op(enpu_opcode opcode, const Params& params, const std::vector<enpu_tensor>& operands) {
    const auto bytes = static_cast<uint32_t>(ENPU_OPERATOR_PACKET_BYTES(operands.size()));
    const enpu_packet header{static_cast<uint16_t>(opcode), 0, bytes, 42};
    std::byte space[ENPU_OPERATOR_PARAM_BYTES]{};
    if constexpr (!std::is_same_v<Params, std::nullptr_t>)
        std::memcpy(space, &params, sizeof(params));
    Commands commands;
    commands.raw(&header, sizeof(header)).raw(space, sizeof(space));
    for (const enpu_tensor& operand : operands) commands.raw(&operand, sizeof(operand));
    return commands;
}

Commands move(const enpu_tensor& x, const enpu_tensor& y) {
    return op(ENPU_OPCODE_MOVE, nullptr, {x, y});
}

Commands unary(enpu_unary function, const enpu_tensor& x, const enpu_tensor& y) {
    enpu_unary_params params{};
    params.function = function;
    return op(ENPU_OPCODE_UNARY, params, {x, y});
}

void put_float(Rig& rig, uint64_t va, float value) {
    std::memcpy(rig.host(va), &value, sizeof(value));
}

float get_float(Rig& rig, uint64_t va) {
    float value;
    std::memcpy(&value, rig.host(va), sizeof(value));
    return value;
}

}  // namespace

TEST_CASE("An operand is found again where it was until its translation is invalidated") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    // Two buffers in local memory, of two pages each, that one VA leads to in turn.
    constexpr uint64_t kShared = 0x600000000, kPage = 4096;
    const uint64_t values[2] = {rig.local_buffer(2 * kPage), rig.local_buffer(2 * kPage)};
    const uint64_t y = rig.local_buffer(2 * kPage);
    const auto map = [&](uint64_t i, uint64_t second) {
        const uint64_t offset = rig.host(values[i]) - rig.local.get();
        constexpr uint64_t kLocal = ENPU_PTE_READ | ENPU_PTE_LOCAL;
        rig.map(kShared, offset, kPage, kLocal);
        rig.map(kShared + kPage, offset + kPage, kPage, second | ENPU_PTE_LOCAL);
    };
    const auto push = [&] {
        return rig.push(queue, move(tensor(kShared, ENPU_DTYPE_U8, {2 * kPage}),
                                    tensor(y, ENPU_DTYPE_U8, {2 * kPage})));
    };
    const auto last = [&] {
        REQUIRE(rig.wait_fence(queue, push()));
        return std::to_integer<unsigned>(rig.host(y)[2 * kPage - 1]);
    };
    const auto invalidate = [&] {
        const uint32_t seq = rig.read32(ENPU_REG_TLB_SEQ);
        rig.write32(ENPU_REG_TLB_INVALIDATE, Rig::kAs);
        REQUIRE(rig.wait_for([&] { return rig.read32(ENPU_REG_TLB_DONE) == seq + 1; }));
    };
    std::memset(rig.host(values[0]), 1, 2 * kPage);
    std::memset(rig.host(values[1]), 2, 2 * kPage);
    map(0, ENPU_PTE_READ);
    CHECK(last() == 1);
    map(1, ENPU_PTE_READ);
    CHECK(last() == 1);
    invalidate();
    CHECK(last() == 2);
    // A page in its middle that may not be read any more is missed at once.
    map(1, ENPU_PTE_WRITE);
    invalidate();
    push();
    REQUIRE(rig.wait_for([&] { return rig.state(0) == ENPU_QUEUE_STATE_FAULTED; }));
    CHECK(rig.error_record().va == kShared + kPage);
}

TEST_CASE("Operands in local memory, in guest memory and scattered over pages give the same") {
    Rig rig(mode(GENERATE(true, false)));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    constexpr uint32_t kCount = 5000;
    const auto place = [&](int where) -> uint64_t {
        if (where == 0) return rig.local_buffer(kCount * 4);
        if (where == 1) return rig.buffer(kCount * 4);
        // Local pages in the wrong order.
        const uint64_t a = rig.local_buffer(0x5000), va = 0x600000000 + a;
        const uint64_t offset = rig.host(a) - rig.local.get();
        for (uint64_t page = 0; page < 5; ++page)
            rig.set_pte(va + page * 4096, 0,
                        (offset + (4 - page) * 4096) | ENPU_PTE_READ | ENPU_PTE_WRITE |
                            ENPU_PTE_LOCAL | ENPU_PTE_VALID);
        return va;
    };
    for (int from = 0; from < 3; ++from) {
        for (int to = 0; to < 3; ++to) {
            INFO(from << " to " << to);
            const uint64_t x = place(from), y = place(to);
            for (uint32_t i = 0; i < kCount; ++i) put_float(rig, x + 4 * i, i - 2500.0f);
            const uint64_t fence =
                rig.push(queue, unary(ENPU_UNARY_RELU, tensor(x, ENPU_DTYPE_F32, {50, 100}),
                                      tensor(y, ENPU_DTYPE_F32, {50, 100})));
            REQUIRE(rig.wait_fence(queue, fence));
            for (uint32_t i = 0; i < kCount; ++i)
                REQUIRE(get_float(rig, y + 4 * i) == std::max(0.0f, i - 2500.0f));
        }
    }
    CHECK(rig.counter(ENPU_OPCODE_UNARY) == 9);
    CHECK(rig.counter(ENPU_COUNTER_WORK) == 9 * kCount);
    CHECK(rig.counter(ENPU_COUNTER_BYTES_WRITTEN) == 9 * kCount * 4);
}

TEST_CASE("A gathered output writes its elements and nothing between them") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t x = rig.local_buffer(4096), y = rig.buffer(16384);
    for (uint32_t i = 0; i < 60; ++i) *rig.host(x + i) = std::byte(i + 1);
    for (uint32_t i = 0; i < 16384; ++i) *rig.host(y + i) = std::byte{0xee};
    // [3,4,5] into a channels-last tensor with gaps, the first axis upside down.
    enpu_tensor out = tensor(y + 3000, ENPU_DTYPE_U8, {3, 4, 5});
    out.strides[0] = -1000;
    out.strides[1] = 1;
    out.strides[2] = 7;
    rig.push(queue, move(tensor(x, ENPU_DTYPE_U8, {3, 4, 5}), out));
    REQUIRE(rig.fence(queue) == 1);
    std::vector<std::byte> expected(16384, std::byte{0xee});
    for (uint32_t a = 0; a < 3; ++a)
        for (uint32_t b = 0; b < 4; ++b)
            for (uint32_t c = 0; c < 5; ++c)
                expected[3000 - 1000 * a + b + 7 * c] = std::byte(a * 20 + b * 5 + c + 1);
    for (uint32_t i = 0; i < 16384; ++i) REQUIRE(*rig.host(y + i) == expected[i]);
}

TEST_CASE("An operand that may not be reached fails the job before anything is written") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t x = rig.buffer(8192), y = rig.buffer(4096);
    for (uint32_t i = 0; i < 4096; ++i) *rig.host(y + i) = std::byte{1};
    enpu_mmu_cause cause = ENPU_MMU_CAUSE_NOT_MAPPED;
    enpu_access access = ENPU_ACCESS_WRITE;
    uint64_t va = 0;
    SECTION("an output that ends too early") {
        rig.push(queue, move(tensor(x, ENPU_DTYPE_U8, {5000}), tensor(y, ENPU_DTYPE_U8, {5000})));
        va = y + 4096;
    }
    SECTION("an input that begins too early") {
        enpu_tensor in = tensor(x + 100, ENPU_DTYPE_U8, {500});
        in.strides[0] = -1;
        rig.push(queue, move(in, tensor(y, ENPU_DTYPE_U8, {500})));
        va = x - 399;
        access = ENPU_ACCESS_READ;
    }
    SECTION("an output that is read only") {
        rig.map(0x50000000, GuestRam::kBase + (rig.host(y) - rig.ram.data()), 4096, ENPU_PTE_READ);
        rig.push(queue,
                 move(tensor(x, ENPU_DTYPE_U8, {500}), tensor(0x50000000, ENPU_DTYPE_U8, {500})));
        va = 0x50000000;
        cause = ENPU_MMU_CAUSE_PERMISSION;
    }
    REQUIRE(rig.state(0) == ENPU_QUEUE_STATE_FAULTED);
    CHECK(rig.error(0) == ENPU_STATUS_MMU_FAULT);
    const enpu_error_record record = rig.error_record();
    CHECK(record.cause == cause);
    CHECK(record.access == access);
    CHECK(record.va == va);
    CHECK(record.opcode == ENPU_OPCODE_MOVE);
    CHECK(record.tag == 42);
    for (uint32_t i = 0; i < 4096; ++i) REQUIRE(*rig.host(y + i) == std::byte{1});
    CHECK(rig.counter(ENPU_OPCODE_MOVE) == 0);
}

TEST_CASE("A value in memory that breaks a rule names its operand") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const uint64_t x = rig.buffer(4096), indices = rig.buffer(4096), y = rig.buffer(4096);
    const int32_t bad = 10;
    std::memcpy(rig.host(indices), &bad, sizeof(bad));
    enpu_gather_params params{};
    params.mode = ENPU_GATHER_MODE_TAKE;
    rig.push(queue, op(ENPU_OPCODE_GATHER, params,
                       {tensor(x, ENPU_DTYPE_F32, {10}), tensor(indices, ENPU_DTYPE_I32, {1}),
                        tensor(y, ENPU_DTYPE_F32, {1})}));
    CHECK(rig.error(0) == ENPU_STATUS_BAD_OPERAND);
    CHECK(rig.error_record().cause == 1);
    CHECK(rig.error_record().detail == 10);
}

TEST_CASE("Operators run on compute cores only, and within the limits") {
    Rig rig(mode(true));
    rig.set_up();
    const uint64_t x = rig.buffer(4096), y = rig.buffer(4096);
    auto copy = rig.queue(0, rig.copy_engine());
    rig.push(copy, move(tensor(x, ENPU_DTYPE_U8, {8}), tensor(y, ENPU_DTYPE_U8, {8})));
    CHECK(rig.error(0) == ENPU_STATUS_UNSUPPORTED);
    auto queue = rig.queue(1, 0);
    rig.push(queue, move(tensor(x, ENPU_DTYPE_F32, {1u << 15, 1u << 15}),
                         tensor(y, ENPU_DTYPE_F32, {1u << 15, 1u << 15})));
    CHECK(rig.error(1) == ENPU_STATUS_LIMIT);
}

TEST_CASE("A packet that would gather too much is refused") {
    Options options = mode(true);
    Rig rig(options);
    rig.set_up();
    auto queue = rig.queue(0, 0);
    // One guest page, seen 2^18 times twice.
    const uint64_t bus = rig.ram.allocate(2 << 20), va = 0x100000000000;
    rig.map(va, bus, 2 << 20, ENPU_PTE_READ | ENPU_PTE_WRITE);
    for (uint64_t i = 1; i < 1024; ++i)
        rig.map(va + (i << 21), bus, 2 << 20, ENPU_PTE_READ | ENPU_PTE_WRITE);
    rig.push(queue, move(tensor(va, ENPU_DTYPE_U8, {1u << 30}),
                         tensor(va + (1u << 30), ENPU_DTYPE_U8, {1u << 30})));
    CHECK(rig.error(0) == ENPU_STATUS_OUT_OF_MEMORY);
}

TEST_CASE("In sync mode a ring that its own jobs fill does not keep the caller") {
    Rig rig(mode(true));
    rig.set_up();
    auto queue = rig.queue(0, 0, 0, 2);
    const uint64_t ring = 0x50000000, one = rig.buffer(4096), value = 1;
    rig.map(ring, queue.bus, 8192, ENPU_PTE_READ | ENPU_PTE_WRITE);
    std::memcpy(rig.host(one), &value, sizeof(value));
    // Each job puts a larger fence into the next entry, and one more into the tail.
    const enpu_tensor tail = tensor(ring, ENPU_DTYPE_I64, {1}),
                      more = tensor(one, ENPU_DTYPE_I64, {1});
    enpu_binary_params params{};
    params.function = ENPU_BINARY_ADD;
    const Commands add = op(ENPU_OPCODE_BINARY, params, {tail, more, tail});
    for (uint64_t slot = 0; slot < 4; ++slot) {
        const uint64_t next = (slot + 1) % 4 * sizeof(enpu_ring_entry);
        Commands commands;
        commands.timestamp(ring + ENPU_QUEUE_RING_OFFSET + next + offsetof(enpu_ring_entry, fence));
        commands.raw(add.bytes().data(), add.bytes().size());
        rig.push(queue, commands, slot == 3);
    }
    CHECK(rig.counter(ENPU_COUNTER_JOBS) > 100);
    rig.write32(ENPU_REG_QUEUE_CTRL(0), 0);
    CHECK(rig.state(0) == ENPU_QUEUE_STATE_DISABLED);
    CHECK(rig.error(0) == ENPU_STATUS_OK);
}

namespace {

// An operator of many tiles on the engine, which is slow from now on.
struct LongOperator : Rig {
    static constexpr uint32_t kRows = 2048, kColumns = 1024;
    explicit LongOperator(bool in_place = false) : Rig(big()), in_place(in_place) {
        set_up();
        x = local_buffer(kRows * kColumns * 4);
        y = in_place ? x : local_buffer(kRows * kColumns * 4);
        for (uint64_t i = 0; i < kRows * kColumns; ++i) put_float(*this, x + 4 * i, 1.0f);
        job = queue(0, 0);
    }
    static Options big() {
        Options options;
        options.local_bytes = 32 << 20;
        return options;
    }
    Commands commands() const {
        const std::vector<uint32_t> dims{kRows, kColumns};
        return unary(ENPU_UNARY_GELU, tensor(x, ENPU_DTYPE_F32, dims),
                     tensor(y, ENPU_DTYPE_F32, dims));
    }
    void begin() {
        slow(*this, 0, 10'000'000);
        push(job, commands());
        REQUIRE(wait_for([&] { return read64(ENPU_REG_ENGINE_PROGRESS(0)) >= 3; }));
    }
    void check_result() {
        const float expected = get_float(*this, y);
        CHECK(std::abs(expected - 0.8413447f) < 1e-6f);
        for (uint64_t i = 0; i < kRows * kColumns; ++i)
            REQUIRE(get_float(*this, y + 4 * i) == expected);
    }
    const bool in_place;
    uint64_t x, y;
    Queue job;
};

}  // namespace

TEST_CASE("An operator is torn by a reset at its next tile") {
    LongOperator rig;
    rig.begin();
    rig.write32(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_RESET);
    REQUIRE(rig.wait_reg(ENPU_REG_ENGINE_CTRL(0), ENPU_ENGINE_CTRL_RESET, 0));
    CHECK(rig.error(0) == ENPU_STATUS_TORN);
    CHECK(get_float(rig, rig.y + (LongOperator::kRows * LongOperator::kColumns - 1) * 4) == 0.0f);
}

TEST_CASE("An operator goes on after an invalidation, unless its operands have moved") {
    LongOperator rig;
    const bool moved = GENERATE(true, false);
    rig.begin();
    if (moved) rig.set_pte(rig.y, 1, 0);
    CHECK(rig.invalidate_tlb());
    REQUIRE(rig.wait_for(
        [&] { return rig.fence(rig.job) == 1 || rig.state(0) == ENPU_QUEUE_STATE_FAULTED; }));
    if (moved) {
        CHECK(rig.error(0) == ENPU_STATUS_MMU_FAULT);
        CHECK(rig.error_record().va == rig.y);
    } else {
        REQUIRE(rig.fence(rig.job) == 1);
        rig.check_result();
    }
}

TEST_CASE("An operand that goes while another one is gathered is not used any more") {
    constexpr uint32_t kCount = 9 << 20;  // bytes: three tiles of gathering
    Options options = mode(false);
    options.local_bytes = 64 << 20;
    Rig rig(options);
    rig.set_up();
    auto queue = rig.queue(0, 0);
    const bool moved = GENERATE(true, false);
    const uint64_t y = rig.local_buffer(kCount), a = rig.buffer(kCount),
                   x = rig.local_buffer(kCount);
    const uint64_t second_tile = GuestRam::kBase + (rig.host(a) - rig.ram.data()) + (4 << 20);
    enpu_binary_params params{};
    params.function = ENPU_BINARY_MAX;
    // Local, gathered, local: the first has been looked up when the second takes its tiles.
    const std::vector<uint32_t> dims{kCount};
    std::atomic<bool> seen{false};
    rig.ram.watch_reads([&](uint64_t bus) {
        if (bus != second_tile || seen.exchange(true)) return;
        if (moved) rig.set_pte(x, 1, 0);
        // A tile ends after this: then the engine counts as one that has seen it.
        rig.write32(ENPU_REG_TLB_INVALIDATE, Rig::kAs);
    });
    rig.push(queue, op(ENPU_OPCODE_BINARY, params,
                       {tensor(x, ENPU_DTYPE_U8, dims), tensor(a, ENPU_DTYPE_U8, dims),
                        tensor(y, ENPU_DTYPE_U8, dims)}));
    REQUIRE(rig.wait_for(
        [&] { return rig.fence(queue) == 1 || rig.state(0) == ENPU_QUEUE_STATE_FAULTED; }));
    CHECK(seen);
    CHECK(rig.error(0) == (moved ? ENPU_STATUS_MMU_FAULT : ENPU_STATUS_OK));
    if (moved) CHECK(rig.error_record().va == x);
}

TEST_CASE("A machine saved inside an operator ends it right in another one") {
    const bool in_place = GENERATE(false, true);
    LongOperator rig(in_place);
    rig.begin();
    enpu_model_stop(rig.model);
    std::vector<std::byte> state(enpu_model_save(rig.model, nullptr, 0));
    enpu_model_save(rig.model, state.data(), state.size());
    LongOperator next(in_place);
    enpu_model_reset(next.model);
    enpu_model_stop(next.model);
    next.ram.restore(rig.ram);
    std::memcpy(next.local.get(), rig.local.get(), rig.options.local_bytes);
    char error[128];
    REQUIRE(enpu_model_load(next.model, state.data(), state.size(), error, sizeof(error)) == 0);
    enpu_model_start(next.model);
    next.inject(ENPU_FAULT_KIND_NONE);
    REQUIRE(next.wait_fence(next.job, 1));
    next.check_result();
}
