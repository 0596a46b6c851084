// SPDX-License-Identifier: MIT
// The plan of a graph's memory: values that live at the same time lie apart, a value may take over
// the memory of an operand that dies as it is written.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "status.h"

namespace enpu::rt {
namespace {

constexpr const char* kOrigin = "rt_plan_memory";
constexpr uint64_t kNowhere = UINT64_MAX;

// A piece of the arena: one value, or several that took each other's memory over.
struct Piece {
    uint64_t bytes = 0;  // aligned
    uint32_t first = 0;
    uint32_t last = 0;
    uint64_t offset = 0;

    bool meets(const Piece& other) const { return first <= other.last && other.first <= last; }
    uint64_t steps() const { return uint64_t{last} - first + 1; }
};

class Planner {
  public:
    Planner(rt_plan_value* values, uint32_t count, uint64_t alignment)
        : values_(values), count_(count), alignment_(alignment), home_(count) {
        std::iota(home_.begin(), home_.end(), 0u);
    }

    rt_status check() const;
    rt_status check(const rt_plan_reuse& reuse, uint32_t index) const;
    void try_reuse(const rt_plan_reuse& reuse);
    void finish(rt_plan_result& result);

  private:
    uint64_t align(uint64_t bytes) const { return (bytes + alignment_ - 1) & ~(alignment_ - 1); }
    uint32_t root(uint32_t value) const {
        while (home_[value] != value) value = home_[value];
        return value;
    }
    uint64_t lower_bound() const;
    uint64_t place(const std::vector<uint32_t>& order);
    void improve();
    void search();
    template <typename Key>
    void attempt(Key key);
    void keep_if_better(const std::vector<uint32_t>& order);

    rt_plan_value* values_;
    uint32_t count_;
    uint64_t alignment_;
    std::vector<uint32_t> home_;  // of each value: whose memory it took over, or itself
    uint32_t in_place_ = 0;

    std::vector<Piece> pieces_;
    std::vector<uint32_t> by_offset_;  // of pieces, while placing
    std::vector<uint32_t> best_order_;
    std::vector<Piece> best_;
    uint64_t best_bytes_ = kNowhere;
    uint64_t bound_ = 0;
};

rt_status Planner::check() const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count_; ++i) {
        if (values_[i].first > values_[i].last)
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "value %u: first step %u comes after the last, %u", i,
                               values_[i].first, values_[i].last);
        uint64_t bytes;
        if (__builtin_add_overflow(values_[i].bytes, alignment_, &bytes) ||
            __builtin_add_overflow(sum, bytes, &sum))
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "value %u: the sum of all sizes overflows", i);
    }
    return RT_OK;
}

rt_status Planner::check(const rt_plan_reuse& reuse, uint32_t index) const {
    bool right = reuse.from < count_ && reuse.to < count_ && reuse.from != reuse.to &&
                 reuse.conflict_count <= RT_PLAN_MAX_CONFLICTS;
    for (uint32_t i = 0; right && i < reuse.conflict_count; ++i)
        right = reuse.conflicts[i] < count_;
    if (right) return RT_OK;
    return make_status(RT_INVALID_ARGUMENT, kOrigin,
                       "reuse %u: names a value that does not exist, twice the same, or more than "
                       "%u conflicts",
                       index, RT_PLAN_MAX_CONFLICTS);
}

// Lifetimes of a chain of values that share memory are kept in its root.
void Planner::try_reuse(const rt_plan_reuse& reuse) {
    const uint32_t from = root(reuse.from);
    rt_plan_value& in = values_[from];
    const rt_plan_value& out = values_[reuse.to];
    if (home_[reuse.to] != reuse.to || from == reuse.to) return;
    if (out.first != reuse.step || in.last != reuse.step || in.bytes < out.bytes) return;
    for (uint32_t i = 0; i < reuse.conflict_count; ++i)
        if (root(reuse.conflicts[i]) == from) return;
    home_[reuse.to] = from;
    in.last = out.last;
    ++in_place_;
}

uint64_t Planner::lower_bound() const {
    // Bytes that begin and end at each step.
    uint32_t steps = 0;
    for (const Piece& piece : pieces_) steps = std::max(steps, piece.last);
    std::vector<std::pair<uint32_t, int64_t>> changes;
    for (const Piece& piece : pieces_) {
        changes.emplace_back(piece.first, static_cast<int64_t>(piece.bytes));
        if (piece.last < steps)
            changes.emplace_back(piece.last + 1, -static_cast<int64_t>(piece.bytes));
    }
    std::sort(changes.begin(), changes.end());  // what ends at a step comes before what begins
    int64_t alive = 0, most = 0;
    for (const auto& change : changes) most = std::max(most, alive += change.second);
    return static_cast<uint64_t>(most);
}

// Each into the smallest gap between those placed before that live at the same time.
uint64_t Planner::place(const std::vector<uint32_t>& order) {
    uint64_t arena = 0;
    by_offset_.clear();
    for (uint32_t index : order) {
        Piece& piece = pieces_[index];
        uint64_t at = 0, best = kNowhere, best_gap = kNowhere;
        for (uint32_t other : by_offset_) {
            const Piece& o = pieces_[other];
            if (!piece.meets(o)) continue;
            if (o.offset >= at + piece.bytes && o.offset - at < best_gap) {
                best_gap = o.offset - at;
                best = at;
            }
            at = std::max(at, o.offset + o.bytes);
        }
        piece.offset = best == kNowhere ? at : best;
        arena = std::max(arena, piece.offset + piece.bytes);
        const auto where = std::upper_bound(
            by_offset_.begin(), by_offset_.end(), piece.offset,
            [&](uint64_t offset, uint32_t p) { return offset < pieces_[p].offset; });
        by_offset_.insert(where, index);
    }
    return arena;
}

void Planner::keep_if_better(const std::vector<uint32_t>& order) {
    const uint64_t bytes = place(order);
    if (bytes >= best_bytes_) return;
    best_bytes_ = bytes;
    best_order_ = order;
    best_ = pieces_;
}

template <typename Key>
void Planner::attempt(Key key) {
    if (best_bytes_ <= bound_) return;
    std::vector<uint32_t> order(pieces_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return key(pieces_[a]) > key(pieces_[b]); });
    keep_if_better(order);
}

// Who sticks out at the top gets its place earlier, until that stops helping.
void Planner::improve() {
    constexpr int kRounds = 200;
    for (int round = 0; round < kRounds && best_bytes_ > bound_; ++round) {
        const uint64_t before = best_bytes_;
        std::vector<uint32_t> order = best_order_;
        const auto top = std::find_if(order.begin(), order.end(), [&](uint32_t p) {
            return best_[p].offset + best_[p].bytes == best_bytes_;
        });
        const auto from = top - order.begin();
        for (auto to = from / 2;; to /= 2) {
            std::vector<uint32_t> moved = order;
            std::rotate(moved.begin() + to, moved.begin() + from, moved.begin() + from + 1);
            keep_if_better(moved);
            if (best_bytes_ < before || to == 0) break;
        }
        if (best_bytes_ == before) return;
    }
}

// Moves of single pieces in the order of placement, kept while they do no harm. Always the same
// moves: a plan does not change from run to run. The work is bounded by that of a few hundred
// placements of a graph of hundreds of values.
void Planner::search() {
    const uint64_t count = pieces_.size();
    const uint64_t budget = std::min<uint64_t>(400, 20'000'000 / (count * count + 1));
    uint64_t state = 0x9e3779b97f4a7c15;
    const auto below = [&](uint64_t limit) {
        state = state * 6364136223846793005 + 1442695040888963407;
        return static_cast<std::ptrdiff_t>((state >> 33) % limit);
    };
    std::vector<uint32_t> order = best_order_;
    uint64_t bytes = best_bytes_;
    for (uint64_t i = 0; i < budget && best_bytes_ > bound_; ++i) {
        std::vector<uint32_t> moved = order;
        auto from = below(count), to = below(count);
        if (from < to) std::swap(from, to);
        std::rotate(moved.begin() + to, moved.begin() + from, moved.begin() + from + 1);
        const uint64_t now = place(moved);
        if (now > bytes) continue;
        bytes = now;
        order = moved;
        keep_if_better(order);
    }
}

void Planner::finish(rt_plan_result& result) {
    std::vector<uint32_t> piece_of(count_);
    for (uint32_t i = 0; i < count_; ++i) {
        if (home_[i] != i) continue;
        piece_of[i] = static_cast<uint32_t>(pieces_.size());
        pieces_.push_back({align(values_[i].bytes), values_[i].first, values_[i].last, 0});
    }
    bound_ = lower_bound();
    attempt([](const Piece& p) { return p.bytes; });
    attempt([](const Piece& p) { return std::pair(p.steps(), p.bytes); });
    attempt([](const Piece& p) { return double(p.bytes) * double(p.steps()); });
    attempt([](const Piece& p) { return std::pair(UINT32_MAX - p.first, p.bytes); });
    attempt([](const Piece& p) { return std::pair(p.last, p.bytes); });
    improve();
    search();
    for (uint32_t i = 0; i < count_; ++i) {
        values_[i].shares = home_[i] != i;
        values_[i].offset = best_[piece_of[root(i)]].offset;
    }
    result.in_place = in_place_;
    result.arena_bytes = best_bytes_;
    result.lower_bound_bytes = bound_;
}

}  // namespace
}  // namespace enpu::rt

using namespace enpu::rt;

rt_status rt_plan_memory(rt_plan_value* values, uint32_t count, const rt_plan_reuse* reuses,
                         uint32_t reuse_count, uint64_t alignment, rt_plan_result* result) {
    if (!result || result->struct_size < sizeof(*result))
        return make_status(RT_INVALID_ARGUMENT, __func__,
                           "result is null or its struct_size less than %zu", sizeof(*result));
    if ((count && !values) || (reuse_count && !reuses))
        return make_status(RT_INVALID_ARGUMENT, __func__, "%s is null",
                           count && !values ? "values" : "reuses");
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > (1u << 30))
        return make_status(RT_INVALID_ARGUMENT, __func__,
                           "alignment must be a power of two up to 1 GiB");
    result->in_place = 0;
    result->arena_bytes = result->lower_bound_bytes = 0;
    if (count == 0) return RT_OK;
    return guarded(__func__, [&]() -> rt_status {
        // Lifetimes of roots grow while reuses are decided; the caller's own come back.
        const std::vector<rt_plan_value> given(values, values + count);
        Planner planner(values, count, alignment);
        RT_TRY(planner.check());
        for (uint32_t i = 0; i < reuse_count; ++i) RT_TRY(planner.check(reuses[i], i));
        for (uint32_t i = 0; i < reuse_count; ++i) planner.try_reuse(reuses[i]);
        planner.finish(*result);
        for (uint32_t i = 0; i < count; ++i) values[i].last = given[i].last;
        return RT_OK;
    });
}
