// SPDX-License-Identifier: MIT
// What an attacker in one process could try on another's: addresses, handles, mappings, memory that
// had another owner, and the engines' time.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "recovery.h"

namespace enpu::test {
namespace {

bool all_are(std::span<const uint8_t> bytes, uint8_t value) {
    return std::all_of(bytes.begin(), bytes.end(), [&](uint8_t b) { return b == value; });
}

// A context of its own for each attempt, as a failure ends it. The errno of the job.
int attempt(Fixture& f, uint32_t engine, const Commands& packets) {
    REQUIRE(f.device.context_destroy(f.ctx) == 0);
    REQUIRE(f.device.context(&f.ctx) == 0);
    f.run(engine, packets);
    return f.device.status(f.ctx).error;
}

TEST_CASE("an address that is not one's own reaches nothing") {
    Fixture victim, attacker;
    Buffer host(victim.device, 4 * kPage), local(victim.device, 4 * kPage, DRM_ENPU_BO_LOCAL);
    host.at(kVa);
    local.at(kVa + kLargePage);
    memset(host.data(), 0x5a, host.size());
    memset(local.data(), 0xa5, local.size());
    victim.run(victim.copy, Commands().nop());  // its address space is in the hardware
    Buffer own(attacker.device, kPage);
    constexpr uint64_t kOwn = 0x7000'0000;
    own.at(kOwn);

    // The victim's own addresses, what could be a bus address (memory, interrupt controller, our
    // BARs), and the ends of the range.
    std::vector<uint64_t> addresses{kVa,         kVa + kLargePage, kVa - kPage, 0,
                                    0x1000,      0x10'0000,        1ull << 32,  0xfee0'0000,
                                    0xfec0'0000, ENPU_VA_END - 64, ENPU_VA_END, ~0ull - 63};
    std::ifstream resources(sysfs_path("resource"));
    for (std::string line; std::getline(resources, line);)
        if (const uint64_t start = std::strtoull(line.c_str(), nullptr, 16))
            addresses.push_back(start);
    for (uint64_t va : addresses) {
        INFO("address " << std::hex << va);
        for (const auto& packets :
             {Commands().fill(va, 64, 0xee), Commands().copy(kOwn, va, 64),
              Commands().copy(va, kOwn, 64), Commands().signal(va & ~7ull, 7)}) {
            const int error = attempt(attacker, attacker.copy, packets);
            CHECK((error == -EFAULT || error == -EBADMSG));
        }
    }
    // One byte beyond what is mapped, and a range that wraps.
    CHECK(attempt(attacker, attacker.copy, Commands().fill(kOwn + kPage - 63, 64, 1)) == -EFAULT);
    CHECK(attempt(attacker, attacker.copy, Commands().fill(kOwn, ~0ull - kOwn, 1)) != 0);
    CHECK(all_are(host.bytes(), 0x5a));
    CHECK(all_are(local.bytes(), 0xa5));
    victim.run(victim.copy, Commands().nop());
    CHECK(victim.device.status(victim.ctx).error == 0);
}

TEST_CASE("handles of another file mean nothing") {
    Fixture victim;
    Buffer secret(victim.device, kPage);
    secret.at(kVa);
    Device attacker;
    uint32_t own_ctx = 0;
    REQUIRE(attacker.context(&own_ctx) == 0);
    // Beyond what the attacker has: no BO, one context, no syncobj.
    for (uint32_t n : {1u, 2u, 3u, 4u, 5u, 17u, 0x7fffffffu, ~0u}) {
        INFO("handle " << n);
        drm_enpu_bo_info info{};
        info.handle = n;
        CHECK(attacker.call(DRM_IOCTL_ENPU_BO_INFO, &info) == -ENOENT);
        CHECK(attacker.bo_wait(n, deadline({})) == -ENOENT);
        CHECK(attacker.map(kVa, n, kPage) == -ENOENT);
        CHECK(attacker.close_handle(n) != 0);
        int fd = -1;
        CHECK(attacker.export_fd(n, &fd) != 0);
        CHECK(Submit(own_ctx, 0, kVa, 16).uses(n, DRM_ENPU_SUBMIT_BO_WRITE).send(attacker) ==
              -ENOENT);
        CHECK(Submit(own_ctx, 0, kVa, 16).wait(n).send(attacker) == -ENOENT);
        CHECK(Submit(own_ctx, 0, kVa, 16).signal(n).send(attacker) == -ENOENT);
        CHECK(attacker.syncobj_signal(n, 1) != 0);
        if (n == own_ctx) continue;
        CHECK(attacker.context_destroy(n) == -ENOENT);
        CHECK(Submit(n, 0, kVa, 16).send(attacker) == -ENOENT);
        drm_enpu_ctx_status status{};
        status.ctx_id = n;
        CHECK(attacker.call(DRM_IOCTL_ENPU_CTX_STATUS, &status) == -ENOENT);
    }
    victim.run(0, Commands().fill(kVa, 64, 9));
    CHECK(victim.device.status(victim.ctx).error == 0);
    CHECK(secret.data()[63] == 9);
}

// Whether an offset of a device file can be mapped into this process.
bool mappable(const Device& device, uint64_t offset) {
    void* p = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, device.fd(),
                   static_cast<off_t>(offset));
    if (p != MAP_FAILED) munmap(p, kPage);
    return p != MAP_FAILED;
}

TEST_CASE("rings, doorbells and buffers of others are mapped into nobody") {
    Fixture victim;
    Buffer host(victim.device, kPage), local(victim.device, kPage, DRM_ENPU_BO_LOCAL);
    victim.run(0, Commands().nop());  // it has a queue: a ring and a doorbell page
    Device attacker;
    for (const Buffer* buffer : {&host, &local}) {
        drm_enpu_bo_info info{};
        info.handle = buffer->handle();
        REQUIRE(victim.device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == 0);
        REQUIRE(mappable(victim.device, info.mmap_offset));
        CHECK_FALSE(mappable(attacker, info.mmap_offset));
        // And the owner maps no more of it than there is.
        CHECK_FALSE(mappable(victim.device, info.mmap_offset + buffer->size() + 64 * kPage));
    }
    // Nothing lies at offsets that nobody was told: neither low, where registers might be looked
    // for, nor around those of buffers, nor at the addresses of the BARs.
    unsigned open = 0;
    for (uint64_t page = 0; page < 4096; page++) {
        open += mappable(attacker, page * kPage);
        open += mappable(attacker, (0x10'0000 + page) * kPage);
    }
    std::ifstream resources(sysfs_path("resource"));
    for (std::string line; std::getline(resources, line);)
        open += mappable(attacker, std::strtoull(line.c_str(), nullptr, 16));
    CHECK(open == 0);
}

// Fills whatever the device and this process can take, and returns it.
void leave_traces(uint32_t kind, uint64_t bytes, uint8_t value) {
    Device former;
    uint64_t left = bytes;
    std::vector<std::unique_ptr<Buffer>> all;
    for (uint64_t piece = std::min<uint64_t>(left, 4 * kLargePage); piece >= kPage; piece /= 2)
        while (left >= piece) {
            uint32_t handle = 0;
            if (former.bo_create(piece, kind, &handle) != 0) break;
            REQUIRE(former.close_handle(handle) == 0);
            all.push_back(std::make_unique<Buffer>(former, piece, kind));
            memset(all.back()->data(), value, all.back()->size());
            left -= piece;
        }
    REQUIRE(all.size() > 3);
}

TEST_CASE("memory that had another owner is clear") {
    const uint32_t kind = GENERATE(DRM_ENPU_BO_LOCAL, DRM_ENPU_BO_HOST);
    INFO((kind == DRM_ENPU_BO_LOCAL ? "local" : "host"));
    const uint64_t bytes =
        kind == DRM_ENPU_BO_LOCAL ? Device().memory().local_free : 16 * kLargePage;
    leave_traces(kind, bytes, 0xcc);
    REQUIRE(eventually(
        [&] { return kind != DRM_ENPU_BO_LOCAL || Device().memory().local_free == bytes; }));
    Fixture next;
    Buffer seen(next.device, kLargePage);
    seen.at(kVa);
    for (uint64_t done = 0; done + kLargePage <= bytes; done += kLargePage) {
        Buffer fresh(next.device, kLargePage, kind);
        // As the device sees it, and as the processor does.
        fresh.at(kVa + kLargePage);
        memset(seen.data(), 0xff, seen.size());
        next.run(next.copy, Commands().copy(kVa, kVa + kLargePage, kLargePage));
        REQUIRE(all_are(seen.bytes(), 0));
        REQUIRE(all_are(fresh.bytes().first(64 * 1024), 0));
        memset(fresh.data(), 0xdd, fresh.size());
        REQUIRE(next.device.unmap(kVa + kLargePage, kLargePage) == 0);
    }
}

TEST_CASE("a mapping that was taken away reaches nothing any more") {
    const uint32_t kind = GENERATE(DRM_ENPU_BO_LOCAL, DRM_ENPU_BO_HOST);
    Fixture attacker;
    for (int round = 0; round < 20; round++) {
        {
            Buffer gone(attacker.device, kLargePage, kind);
            gone.at(kVa);
            // The translation is in the engine's TLB.
            CHECK(attempt(attacker, attacker.copy, Commands().fill(kVa, kLargePage, 0xaa)) == 0);
            REQUIRE(attacker.device.unmap(kVa, kLargePage) == 0);
        }
        Device victim;
        Buffer heir(victim, kLargePage, kind);
        CHECK(attempt(attacker, attacker.copy, Commands().fill(kVa, 64, 0xbb)) == -EFAULT);
        CHECK(attempt(attacker, attacker.copy, Commands().fill(kVa + kLargePage - 64, 64, 0xbb)) ==
              -EFAULT);
        CHECK(all_are(heir.bytes(), 0));
    }
    // The processor's mapping outlives the handle, and keeps its memory from others.
    uint32_t handle = 0;
    REQUIRE(attacker.device.bo_create(kLargePage, kind, &handle) == 0);
    drm_enpu_bo_info info{};
    info.handle = handle;
    REQUIRE(attacker.device.call(DRM_IOCTL_ENPU_BO_INFO, &info) == 0);
    void* kept = mmap(nullptr, kLargePage, PROT_READ | PROT_WRITE, MAP_SHARED, attacker.device.fd(),
                      static_cast<off_t>(info.mmap_offset));
    REQUIRE(kept != MAP_FAILED);
    REQUIRE(attacker.device.close_handle(handle) == 0);
    Device victim;
    Buffer other(victim, kLargePage, kind);
    memset(kept, 0xbb, kLargePage);
    CHECK(all_are(other.bytes(), 0));
    munmap(kept, kLargePage);
}

// Keeps jobs queued on one engine.
struct Client {
    Fixture f;
    uint32_t ctx = 0, bytes = 0;
    uint64_t before = 0;

    explicit Client(uint32_t max_jobs = 1024) { REQUIRE(f.device.context(&ctx, 0, max_jobs) == 0); }
    uint64_t completed() const { return f.device.status(ctx).completed; }
    uint64_t done() const { return completed() - before; }
    uint64_t unfinished() const {
        const auto status = f.device.status(ctx);
        return status.submitted - status.completed;
    }
    void submit(uint32_t engine) {
        REQUIRE(Submit(ctx, engine, Fixture::kCmdVa, bytes).send(f.device) == 0);
    }
};

double jain(const std::vector<double>& shares) {
    double sum = 0, squares = 0;
    for (double x : shares) {
        sum += x;
        squares += x * x;
    }
    return sum * sum / (static_cast<double>(shares.size()) * squares);
}

TEST_CASE("a client with 10,000 queued jobs gets its share and no more") {
    constexpr uint64_t kQueued = 10'000, kEach = 60, kWork = 4 * kLargePage;
    // A wait may last a minute, which a sanitizer kernel on a busy host may need several of.
    constexpr uint64_t kGates = 6;
    Client greedy(kQueued + kGates + 8);
    std::vector<std::unique_ptr<Client>> others;
    for (int i = 0; i < 3; i++) others.push_back(std::make_unique<Client>());
    const uint32_t engine = greedy.f.copy;
    Buffer gate(greedy.f.device, kPage);
    gate.at(kVa);
    std::vector<std::unique_ptr<Buffer>> memory;
    for (auto* client : {&greedy, others[0].get(), others[1].get(), others[2].get()}) {
        memory.push_back(std::make_unique<Buffer>(client->f.device, kWork, DRM_ENPU_BO_LOCAL));
        memory.back()->at(kVa + kLargePage);
        Commands packets;  // long beside the time that it takes to submit them
        for (int i = 0; i < 8; i++) packets.fill(kVa + kLargePage, kWork, 1);
        client->bytes = packets.write_to(client->f.commands.data());
    }
    // Nothing of it runs before all of it is queued.
    for (uint64_t i = 0; i < kGates; i++) {
        const uint64_t at = kPage + i * 64;
        const uint32_t closed =
            Commands().wait(kVa + i * 8, 1, 60'000'000).write_to(greedy.f.commands.data() + at);
        REQUIRE(Submit(greedy.ctx, engine, Fixture::kCmdVa + at, closed).send(greedy.f.device) ==
                0);
    }
    auto* const gates = reinterpret_cast<volatile uint64_t*>(gate.data());
    int64_t next = deadline(std::chrono::seconds(30));
    uint64_t open = 0;
    for (uint64_t i = 0; i < kQueued; i++) {
        if (open + 1 < kGates && deadline({}) > next) {
            gates[open++] = 1;
            others[0]->f.run(0, Commands().nop());  // a write of the device: it looks again
            next = deadline(std::chrono::seconds(30));
        }
        greedy.submit(engine);
    }
    REQUIRE(greedy.unfinished() > kQueued);
    for (auto& client : others)
        for (int i = 0; i < 8; i++) client->submit(engine);
    // Jobs that wait keep their own queue only.
    for (auto& client : others) REQUIRE(eventually([&] { return client->completed() > 0; }));
    while (open < kGates) gates[open++] = 1;
    // Any write of the device makes it look at the words again.
    const int64_t until = deadline(std::chrono::seconds(60));
    const auto slowest = [&] {
        uint64_t least = ~0ull;
        for (auto& client : others) least = std::min(least, client->done());
        return least;
    };
    bool started = false;
    while (slowest() < kEach && deadline({}) < until) {
        for (auto& client : others)
            for (uint64_t n = client->unfinished(); n < 8; n++) client->submit(engine);
        if (!started && greedy.completed() > kGates) {
            started = true;
            greedy.before = greedy.completed();
            for (auto& client : others) client->before = client->completed();
        }
        usleep(500);
    }
    std::vector<double> shares{static_cast<double>(greedy.done())};
    for (auto& client : others) shares.push_back(static_cast<double>(client->done()));
    const uint64_t left = greedy.unfinished();
    printf(
        "# jobs: greedy %.0f (%llu left), others %.0f %.0f %.0f; Jain's index of all %.3f, of the "
        "others %.3f\n",
        shares[0], static_cast<unsigned long long>(left), shares[1], shares[2], shares[3],
        jain(shares), jain({shares[1], shares[2], shares[3]}));
    REQUIRE(started);
    CHECK(slowest() >= kEach);
    CHECK(left > kQueued / 2);  // it was greedy to the end
    CHECK(jain({shares[1], shares[2], shares[3]}) >= 0.95);
    // What the others leave is the greedy one's; a share is what it is when all want it.
    CHECK(shares[0] <= 3 * *std::min_element(shares.begin() + 1, shares.end()));
}

TEST_CASE("packets of the largest size leave others their turn") {
    Fixture attacker, victim;
    const uint64_t most = std::min<uint64_t>(attacker.device.memory().local_free / 2, 24ull << 20);
    Buffer big(attacker.device, most / kLargePage * kLargePage, DRM_ENPU_BO_LOCAL);
    big.at(kVa);
    // More than the device takes in one packet is refused, whatever is mapped.
    CHECK(attempt(attacker, attacker.copy, Commands().fill(kVa, ~0ull >> 1, 1)) != 0);
    REQUIRE(attacker.device.context_destroy(attacker.ctx) == 0);
    REQUIRE(attacker.device.context(&attacker.ctx) == 0);
    Commands packets;
    for (int i = 0; i < 8; i++) packets.fill(kVa, big.size(), 1);
    const uint32_t bytes = packets.write_to(attacker.commands.data());
    for (int i = 0; i < 200; i++)
        REQUIRE(Submit(attacker.ctx, attacker.copy, Fixture::kCmdVa, bytes).send(attacker.device) ==
                0);
    // In turns: for each job of the victim the attacker gets no more than a few.
    constexpr uint64_t kTurns = 20;
    const uint64_t before = attacker.device.status(attacker.ctx).completed;
    for (uint64_t i = 0; i < kTurns; i++) victim.run(victim.copy, Commands().nop());
    const uint64_t taken = attacker.device.status(attacker.ctx).completed - before;
    printf("# %llu jobs of the attacker went by during %llu of the victim\n",
           static_cast<unsigned long long>(taken), static_cast<unsigned long long>(kTurns));
    CHECK(taken <= 4 * kTurns);
    CHECK(victim.device.status(victim.ctx).error == 0);
}

}  // namespace
}  // namespace enpu::test
