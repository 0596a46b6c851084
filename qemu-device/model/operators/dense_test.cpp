// SPDX-License-Identifier: MIT
// What the numeric suite cannot see of the dense operators: stops between any two tiles, the plan
// cache, scratch limits.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "gemm.h"
#include "operator.h"
#include "plan_cache.h"
#include "rules.h"
#include "scratch.h"
#include "weights.h"

namespace enpu::ops {
namespace {

// Says yes `limit` times and counts how often it was asked.
class Counter : public Progress {
  public:
    explicit Counter(int limit) : limit_(limit) {}
    bool proceed() override { return asked_++ < limit_; }
    void detail(unsigned, int64_t) override {}
    unsigned threads() const override { return 2; }
    int asked() const { return asked_; }

  private:
    int limit_, asked_ = 0;
};

struct MatmulJob {
    static constexpr uint32_t kM = 600, kK = 700, kN = 800;
    alignas(8) unsigned char bytes[704] = {};
    std::vector<int8_t> a, b;
    std::vector<int32_t> y;
    Operand operands[6];

    MatmulJob() : a(size_t{kM} * kK, -128), b(size_t{kK} * kN, 127), y(size_t{kM} * kN, 77) {
        auto& p = packet();
        p.header = {ENPU_OPCODE_MATMUL, 0, sizeof(bytes), 0};
        set(0, ENPU_DTYPE_I8, kM, kK, a.data());
        set(1, ENPU_DTYPE_I8, kK, kN, b.data());
        set(5, ENPU_DTYPE_I32, kM, kN, y.data());
    }
    enpu_operator_packet& packet() { return *reinterpret_cast<enpu_operator_packet*>(bytes); }
    void set(unsigned i, uint8_t dtype, uint32_t rows, uint32_t cols, void* data) {
        enpu_tensor& t = packet().operands[i];
        t.addr = (i + 1) * 0x100000000ull;
        t.dtype = dtype;
        t.rank = 2;
        t.dims[0] = rows;
        t.dims[1] = cols;
        t.strides[0] = static_cast<int32_t>(cols);
        t.strides[1] = 1;
        operands[i] = {&t, static_cast<std::byte*>(data)};
    }
};

struct Key {
    int64_t number;
};

}  // namespace

TEST_CASE("a product stops between any two tiles and touches nothing after that", "[dense]") {
    MatmulJob job;
    REQUIRE_FALSE(rules::check_packet(job.bytes, sizeof(job.bytes), ENPU_ENGINE_KIND_COMPUTE));
    Counter free_run(1 << 20);
    REQUIRE(run(job.packet(), job.operands, free_run) == Outcome::kDone);
    for (int32_t value : job.y) REQUIRE(value == -128 * 127 * static_cast<int32_t>(MatmulJob::kK));
    REQUIRE(free_run.asked() >= 3);
    for (int limit = 0; limit < free_run.asked(); ++limit) {
        std::fill(job.y.begin(), job.y.end(), 77);
        Counter counter(limit);
        REQUIRE(run(job.packet(), job.operands, counter) == Outcome::kStopped);
        CHECK(counter.asked() == limit + 1);
        CHECK(job.y.back() == 77);
    }
}

TEST_CASE("exact_terms is the number of products that f32 sums without rounding", "[dense]") {
    for (const int64_t k : {1, 37, 258}) {
        std::vector<float> a(k, 255), b(k, 255);
        float y = 0;
        GemmSpec spec{};
        spec.m = spec.n = 1;
        spec.k = spec.a_m = k;
        spec.a_k = spec.b_k = spec.b_n = spec.y_m = 1;
        spec.threads = 1;
        spec.alpha = std::bit_cast<uint32_t>(1.0f);
        gemm(spec, a.data(), b.data(), nullptr, &y);
        CHECK(y == static_cast<float>(k * 255 * 255));
    }
}

TEST_CASE("weights in blocks of outputs go straight into blocks of another size", "[dense]") {
    using Tag = dnnl::memory::format_tag;
    const auto f32 = dnnl::memory::data_type::f32;
    Counter progress(1 << 20);
    for (const bool grouped : {false, true}) {
        dnnl::memory::dims dims{50, 5, 3, 2};
        if (grouped) dims.insert(dims.begin(), 3);
        const dnnl::memory::desc plain(dims, f32, grouped ? Tag::goihw : Tag::oihw);
        std::vector<float> values(plain.get_size() / 4);
        for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
        std::vector<dnnl::memory::desc> layouts;
        for (const Tag tag : {Tag::Ohwi16o, Tag::Ohwi48o, Tag::Ohwi64o, Tag::Ohwi8o})
            if (!grouped) layouts.emplace_back(dims, f32, tag);
        for (const Tag tag : {Tag::gOhwi16o, Tag::gOhwi48o, Tag::gOhwi32o})
            if (grouped) layouts.emplace_back(dims, f32, tag);
        for (const auto& from : layouts) {
            for (const auto& to : layouts) {
                std::vector<float> source(from.get_size() / 4), target(to.get_size() / 4, -1.0f),
                    expected(target.size());
                REQUIRE(reorder_weights(progress, plain, values.data(), from, source.data()) ==
                        Outcome::kDone);
                REQUIRE(reorder_weights(progress, plain, values.data(), to, expected.data()) ==
                        Outcome::kDone);
                REQUIRE(reorder_weights(progress, from, source.data(), to, target.data()) ==
                        Outcome::kDone);
                CHECK(target == expected);
            }
        }
    }
}

TEST_CASE("the plan cache is bounded and drops what was used longest ago", "[dense]") {
    PlanCache<Key, int64_t> cache(3);
    int made = 0;
    const auto get = [&](int64_t number) {
        return *cache.get(Key{number}, [&] {
            ++made;
            return std::make_shared<const int64_t>(number * 10);
        });
    };
    for (int64_t number : {1, 2, 3}) CHECK(get(number) == number * 10);
    CHECK(get(1) == 10);
    CHECK(made == 3);
    CHECK(get(4) == 40);  // drops 2
    CHECK(cache.size() == 3);
    CHECK(get(1) == 10);
    CHECK(made == 4);
    CHECK(get(2) == 20);
    CHECK(made == 5);
}

TEST_CASE("scratch is aligned, kept for the next one, and bounded", "[dense]") {
    void* first = nullptr;
    {
        const Scratch scratch(1 << 20);
        first = scratch.data();
        CHECK(reinterpret_cast<uintptr_t>(first) % 64 == 0);
        const Scratch other(1 << 20);
        CHECK(other.data() != first);
    }
    {
        const Scratch a(1 << 20), b(1 << 20);
        CHECK((a.data() == first || b.data() == first));
    }
    CHECK_THROWS_AS(Scratch(size_t{1} << 40), std::bad_alloc);
}

}  // namespace enpu::ops
