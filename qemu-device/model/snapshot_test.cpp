// SPDX-License-Identifier: MIT
// A machine is saved in the middle of its work and goes on in another one.
#include <algorithm>
#include <random>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "test/pattern.h"

using namespace enpu::test;

namespace {

std::vector<std::byte> save(Rig& rig) {
    std::vector<std::byte> state(enpu_model_save(rig.model, nullptr, 0));
    REQUIRE(enpu_model_save(rig.model, state.data(), state.size()) == state.size());
    return state;
}

// Moves guest RAM, local memory and the state of the device.
void move_to(Rig& from, Rig& to) {
    enpu_model_stop(from.model);
    const auto state = save(from);
    to.ram.restore(from.ram);
    std::memcpy(to.local.get(), from.local.get(), from.options.local_bytes);
    to.set_guest(from.guest());
    enpu_model_stop(to.model);
    char error[128];
    INFO(error);
    REQUIRE(enpu_model_load(to.model, state.data(), state.size(), error, sizeof(error)) == 0);
    CHECK(save(to) == state);
}

Options options_of(bool sync) {
    Options options;
    options.sync = sync;
    options.cores = 2;
    return options;
}

}  // namespace

TEST_CASE("Jobs in flight, a hang, a waiting queue and interrupts move to another machine") {
    constexpr uint64_t kBytes = 16 << 20;
    Rig rig(options_of(false)), next(options_of(GENERATE(true, false)));
    rig.set_up();
    rig.write32(ENPU_REG_IRQ_ENABLE, 0);
    rig.write32(ENPU_REG_IRQ_TRIGGER, 1 << 9);
    rig.write32(ENPU_REG_FAULT_KIND, 5);
    const uint64_t source = rig.buffer(kBytes), target = rig.buffer(kBytes);
    const uint64_t word = rig.buffer(4096);
    put_pattern(rig, source, kBytes);
    auto copying = rig.queue(0, 2), waiting = rig.queue(1, 0), hung = rig.queue(2, 1);
    auto failed = rig.queue(3, 0);
    rig.push(failed, Commands().copy(0, 1 << 20, 8));
    REQUIRE(rig.wait_state(3, ENPU_QUEUE_STATE_FAULTED));
    rig.push(waiting, Commands().wait(word, 9, 60'000'000).signal(word + 8, 1));
    REQUIRE(rig.wait_state(1, ENPU_QUEUE_STATE_WAITING));
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 1, 1);
    rig.push(hung, Commands().nop().signal(word + 16, 1));
    REQUIRE(rig.wait_reg(ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1));
    slow(rig, 2, 20'000'000);
    rig.push(copying, Commands().copy(target, source, kBytes));
    rig.push(copying, Commands().signal(word + 24, 1));
    REQUIRE(rig.wait_for([&] { return rig.read64(ENPU_REG_ENGINE_PROGRESS(2)) >= 2; }));

    move_to(rig, next);
    CHECK(next.read32(ENPU_REG_IRQ_PENDING) == rig.read32(ENPU_REG_IRQ_PENDING));
    CHECK(next.read32(ENPU_REG_FAULT_KIND) == 5);
    CHECK(next.read32(ENPU_REG_ERR_COUNT) == 1);
    CHECK(next.error_record().kind == rig.error_record().kind);
    CHECK(next.read32(ENPU_REG_ENGINE_QUEUE(2)) == 0);
    CHECK(next.counter(ENPU_COUNTER_JOBS_FAILED) == 1);
    CHECK(pattern_length(next, target, kBytes) < kBytes);

    enpu_model_start(next.model);
    if (next.options.sync) next.write64(ENPU_REG_SCRATCH, 0);
    REQUIRE(next.wait_fence(copying, 2));
    CHECK(has_pattern(next, target, kBytes));
    CHECK(next.fence(waiting) == 0);
    // The hang is still one, and a reset ends it.
    CHECK(next.read32(ENPU_REG_ENGINE_QUEUE(1)) == 2);
    CHECK(next.read64(ENPU_REG_ENGINE_PROGRESS(1)) == rig.read64(ENPU_REG_ENGINE_PROGRESS(1)));
    next.write32(ENPU_REG_ENGINE_CTRL(1), ENPU_ENGINE_CTRL_RESET);
    REQUIRE(next.wait_state(2, ENPU_QUEUE_STATE_FAULTED));
    CHECK(next.error(2) == ENPU_STATUS_ABORTED);
    auto other = next.queue(10, 1);
    next.push(other, Commands().signal(word, 9));
    CHECK(next.wait_fence(waiting, 1));
    // The one left behind is whole too.
    enpu_model_start(rig.model);
    CHECK(rig.wait_fence(copying, 2));
    CHECK(has_pattern(rig, target, kBytes));
}

TEST_CASE("A new device can be saved and loaded") {
    Rig rig(options_of(GENERATE(true, false))), next(options_of(true));
    move_to(rig, next);
    enpu_model_start(next.model);
    next.set_up();
    auto queue = next.queue(0, 0);
    CHECK(next.wait_fence(queue, next.push(queue, Commands().nop())));
}

TEST_CASE("Saved state that is none is refused, and the device is reset") {
    Rig rig(options_of(true));
    rig.set_up();
    auto queue = rig.queue(0, 0), waiting = rig.queue(1, 1);
    rig.push(waiting, Commands().wait(rig.buffer(4096), 1));
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    rig.push(queue, Commands().nop());
    enpu_model_stop(rig.model);
    const auto good = save(rig);
    char error[128];
    const auto load = [&](const std::vector<std::byte>& state) {
        return enpu_model_load(rig.model, state.data(), state.size(), error, sizeof(error));
    };
    SECTION("too short, at each length") {
        for (size_t bytes = 0; bytes < good.size(); bytes += 1 + good.size() / 200) {
            CHECK(load({good.begin(), good.begin() + bytes}) == -1);
            CHECK(error[0] != 0);
        }
    }
    SECTION("too long") {
        auto longer = good;
        longer.push_back(std::byte{0});
        CHECK(load(longer) == -1);
    }
    SECTION("of another device") {
        Options options = options_of(true);
        options.cores = 3;
        Rig other(options);
        enpu_model_stop(other.model);
        CHECK(load(save(other)) == -1);
    }
    SECTION("not stopped") {
        enpu_model_start(rig.model);
        CHECK(load(good) == -1);
        enpu_model_stop(rig.model);
    }
    CHECK(rig.read32(ENPU_REG_QUEUE_CTRL(0)) == 0);
    CHECK(load(good) == 0);
    CHECK(rig.read32(ENPU_REG_ENGINE_QUEUE(0)) == 0);
}

TEST_CASE("Damaged state is refused or harmless") {
    Rig rig(options_of(true));
    rig.set_up();
    auto queue = rig.queue(0, 0), waiting = rig.queue(1, 1);
    rig.push(waiting, Commands().wait(rig.buffer(4096), 1));
    rig.inject(ENPU_FAULT_KIND_ENGINE_HANG, 0);
    rig.push(queue, Commands().copy(rig.buffer(4096), rig.buffer(4096), 4096));
    enpu_model_stop(rig.model);
    const auto good = save(rig);
    std::mt19937 random(7);
    int accepted = 0;
    for (int round = 0; round < 3000; ++round) {
        auto state = good;
        // Not in the counters, which say anything: in front and behind.
        for (int i = 0; i < 3; ++i) {
            const size_t at = random() % state.size();
            state[at] = round % 2 ? std::byte(random()) : std::byte(0xff);
        }
        char error[128];
        if (enpu_model_load(rig.model, state.data(), state.size(), error, sizeof(error)) != 0)
            continue;
        ++accepted;
        rig.inject(ENPU_FAULT_KIND_NONE);
        enpu_model_start(rig.model);
        rig.read32(ENPU_REG_ID);
        enpu_model_stop(rig.model);
    }
    CHECK(accepted > 0);
    enpu_model_start(rig.model);
    enpu_model_reset(rig.model);
    rig.set_up();
    auto next = rig.queue(5, 0);
    CHECK(rig.wait_fence(next, rig.push(next, Commands().nop())));
}
