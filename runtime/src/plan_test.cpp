// SPDX-License-Identifier: MIT
// The plan of a graph's memory: what is alive together lies apart, whatever the graph.
#include <random>

#include "test_support.h"

using namespace enpu::rt::test;

namespace {

rt_plan_result plan(std::vector<rt_plan_value>& values,
                    const std::vector<rt_plan_reuse>& reuses = {}, uint64_t alignment = 256) {
    rt_plan_result result{};
    result.struct_size = sizeof(result);
    MUST(rt_plan_memory(values.data(), static_cast<uint32_t>(values.size()), reuses.data(),
                        static_cast<uint32_t>(reuses.size()), alignment, &result));
    return result;
}

rt_plan_value value(uint64_t bytes, uint32_t first, uint32_t last) {
    rt_plan_value made{};
    made.bytes = bytes;
    made.first = first;
    made.last = last;
    return made;
}

rt_plan_reuse reuse(uint32_t step, uint32_t from, uint32_t to,
                    std::vector<uint32_t> conflicts = {}) {
    rt_plan_reuse made{};
    made.step = step;
    made.from = from;
    made.to = to;
    for (uint32_t conflict : conflicts) made.conflicts[made.conflict_count++] = conflict;
    return made;
}

// Bytes that two values alive at one step share, hand-overs in place excepted.
uint64_t overlaps(const std::vector<rt_plan_value>& values) {
    uint64_t found = 0;
    for (size_t i = 0; i < values.size(); ++i)
        for (size_t j = 0; j < i; ++j) {
            const rt_plan_value &a = values[i], &b = values[j];
            const bool together = a.first <= b.last && b.first <= a.last;
            const bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
            const bool handed = a.offset == b.offset && ((a.shares && b.last == a.first) ||
                                                         (b.shares && a.last == b.first));
            found += together && !apart && !handed;
        }
    return found;
}

}  // namespace

TEST_CASE("plan: a chain of values needs the two largest neighbours") {
    std::vector<rt_plan_value> values;
    for (uint32_t i = 0; i < 10; ++i) values.push_back(value(1000 * (i % 3 + 1), i, i + 1));
    const rt_plan_result result = plan(values);
    CHECK(overlaps(values) == 0);
    CHECK(result.lower_bound_bytes == 2048 + 3072);
    CHECK(result.arena_bytes == result.lower_bound_bytes);
    CHECK(result.in_place == 0);
    for (const rt_plan_value& v : values) CHECK(v.offset % 256 == 0);
}

TEST_CASE("plan: a chain of in-place kernels needs one value") {
    std::vector<rt_plan_value> values;
    std::vector<rt_plan_reuse> reuses;
    for (uint32_t i = 0; i < 10; ++i) values.push_back(value(5000, i, i + 1));
    for (uint32_t i = 1; i < 10; ++i) reuses.push_back(reuse(i, i - 1, i));
    const rt_plan_result result = plan(values, reuses);
    CHECK(result.in_place == 9);
    CHECK(result.arena_bytes == 5120);
    CHECK(overlaps(values) == 0);
    CHECK(values[3].last == 4);  // the caller's lifetimes stay
}

TEST_CASE("plan: a value that is read later, is too small or is seen by another operand is kept") {
    std::vector<rt_plan_value> values{value(512, 0, 2), value(512, 1, 3), value(1024, 3, 4),
                                      value(512, 3, 4)};
    const rt_plan_result result =
        plan(values, {reuse(1, 0, 1), reuse(3, 1, 2), reuse(3, 1, 3, {1})});
    CHECK(result.in_place == 0);
    CHECK(overlaps(values) == 0);
    for (const rt_plan_value& v : values) CHECK(v.shares == 0);
}

TEST_CASE("plan: a value is taken over once") {
    std::vector<rt_plan_value> values{value(512, 0, 1), value(512, 1, 5), value(512, 1, 5)};
    const rt_plan_result result = plan(values, {reuse(1, 0, 1), reuse(1, 0, 2)});
    CHECK(result.in_place == 1);
    CHECK(values[1].shares == 1);
    CHECK(values[2].shares == 0);
    CHECK(overlaps(values) == 0);
}

TEST_CASE("plan: random graphs are planned without overlap and near the bound") {
    std::mt19937 random(7);
    double worst = 1;
    for (int graph = 0; graph < 60; ++graph) {
        const uint32_t steps = 20 + random() % 100;
        std::vector<rt_plan_value> values;
        std::vector<rt_plan_reuse> reuses;
        for (uint32_t k = 0; k < steps; ++k) {
            const uint32_t life = random() % 8 == 0 ? random() % 30 : 1 + random() % 3;
            values.push_back(value((1 + random() % 40) * 1000, k, k + life));
            if (k > 0 && random() % 3 == 0) {
                values.back().bytes = values[k - 1].bytes;
                reuses.push_back(reuse(k, k - 1, k));
            }
        }
        const rt_plan_result result = plan(values, reuses);
        REQUIRE(overlaps(values) == 0);
        REQUIRE(result.arena_bytes >= result.lower_bound_bytes);
        for (const rt_plan_value& v : values) REQUIRE(v.offset + v.bytes <= result.arena_bytes);
        worst = std::max(worst, double(result.arena_bytes) / double(result.lower_bound_bytes));
    }
    INFO("worst arena / bound " << worst);
    CHECK(worst <= 1.2);
}

TEST_CASE("plan: what makes no sense is refused by number") {
    rt_plan_result result{};
    result.struct_size = sizeof(result);
    rt_plan_value backwards = value(1, 3, 2);
    CHECK(contains(failure(rt_plan_memory(&backwards, 1, nullptr, 0, 256, &result)).message,
                   "value 0: first step 3"));
    std::vector<rt_plan_value> huge{value(UINT64_MAX - 300, 0, 1), value(1000, 0, 1)};
    CHECK(contains(failure(rt_plan_memory(huge.data(), 2, nullptr, 0, 256, &result)).message,
                   "overflows"));
    std::vector<rt_plan_value> fine{value(1, 0, 1), value(1, 1, 2)};
    const rt_plan_reuse missing = reuse(1, 0, 2);
    CHECK(contains(failure(rt_plan_memory(fine.data(), 2, &missing, 1, 256, &result)).message,
                   "reuse 0"));
    CHECK(failure(rt_plan_memory(fine.data(), 2, nullptr, 0, 100, &result)).code ==
          RT_INVALID_ARGUMENT);
    CHECK(failure(rt_plan_memory(nullptr, 2, nullptr, 0, 256, &result)).code ==
          RT_INVALID_ARGUMENT);
    CHECK(take(rt_plan_memory(nullptr, 0, nullptr, 0, 256, &result)) == "");
    CHECK(result.arena_bytes == 0);
}
