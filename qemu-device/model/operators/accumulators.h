// SPDX-License-Identifier: MIT
// Accumulators for the reduction engine. Sums of floats are kept in double, so their error is that
// of the final rounding.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "float_math.h"
#include "reduction.h"

namespace enpu::ops {

constexpr int kLanes = 32;  // independent partial results, so that a loop over a line is vectorised

struct AsIs {
    template <class T>
    static T of(T value) {
        return value;
    }
};
struct Magnitude {
    static double of(double value) { return std::fabs(value); }
    static uint64_t of(uint64_t value) { return value >> 63 ? 0 - value : value; }
};
struct Squared {
    template <class T>
    static T of(T value) {
        return value * value;
    }
};

// A starts from Operation::kEmpty and combines with Operation::of(a, value); W is the type it works
// in.
template <class C, class W, class Transform, class Operation>
struct Fold {
    using Compute = C;
    struct State {
        W value = Operation::kEmpty;
    };
    static W in(C value) { return Transform::of(static_cast<W>(value)); }
    static void line(State& state, const C* x, int64_t count, int64_t) {
        W lanes[kLanes];
        std::fill_n(lanes, kLanes, W{Operation::kEmpty});
        int64_t i = 0;
        for (; i + kLanes <= count; i += kLanes) {
            for (int j = 0; j < kLanes; ++j) lanes[j] = Operation::of(lanes[j], in(x[i + j]));
        }
        for (int j = 0; i < count; ++i, ++j) lanes[j] = Operation::of(lanes[j], in(x[i]));
        for (int j = 0; j < kLanes; ++j) state.value = Operation::of(state.value, lanes[j]);
    }
    static void tile(State* states, const C* x, int64_t rows, int64_t cols, int64_t) {
        for (int64_t row = 0; row < rows; ++row) {
            const C* values = x + row * cols;
            for (int64_t i = 0; i < cols; ++i) {
                states[i].value = Operation::of(states[i].value, in(values[i]));
            }
        }
    }
    static void merge(State& state, const State& later) {
        state.value = Operation::of(state.value, later.value);
    }
};

// On integers W is uint64_t: they wrap.
template <class W>
struct Plus {
    static constexpr W kEmpty = 0;
    static W of(W a, W b) { return a + b; }
};
template <class W>
struct Times {
    static constexpr W kEmpty = 1;
    static W of(W a, W b) { return a * b; }
};
// NaN wins.
template <class W>
struct Larger {
    static constexpr W kEmpty = std::numeric_limits<W>::has_infinity
                                    ? -std::numeric_limits<W>::infinity()
                                    : std::numeric_limits<W>::min();
    static W of(W a, W b) {
        const W larger = b > a ? b : a;
        return b != b ? b : larger;
    }
};
template <class W>
struct Smaller {
    static constexpr W kEmpty = std::numeric_limits<W>::has_infinity
                                    ? std::numeric_limits<W>::infinity()
                                    : std::numeric_limits<W>::max();
    static W of(W a, W b) {
        const W smaller = b < a ? b : a;
        return b != b ? b : smaller;
    }
};

// log(sum(exp(x))) as a maximum and a sum relative to it. Where the maximum is not finite, the sum
// is relative to 0.
struct LogSumExp {
    using Compute = float;
    struct State {
        float max = -std::numeric_limits<float>::infinity();
        double sum = 0;

        float origin() const { return std::isfinite(max) ? max : 0.0f; }
        double log_sum() const { return origin() + std::log(sum); }
    };
    // Takes a maximum in, and makes the sum relative to it: a change of the maximum is rare, and
    // exp costs much.
    static void raise(State& state, float max) {
        const float before = state.origin();
        state.max = Larger<float>::of(state.max, max);
        const float after = state.origin();
        if (before != after && state.sum != 0) state.sum *= std::exp(double(before) - after);
    }
    static void merge(State& state, const State& later) {
        State part = later;
        raise(state, later.max);
        raise(part, state.max);
        state.sum += part.sum;
    }
    static void line(State& state, const float* x, int64_t count, int64_t) {
        Fold<float, float, AsIs, Larger<float>>::State max;
        Fold<float, float, AsIs, Larger<float>>::line(max, x, count, 0);
        raise(state, max.value);
        const float origin = state.origin();
        alignas(64) float powers[kBlockElements];
        for (int64_t i = 0; i < count; ++i) powers[i] = math::exp(x[i] - origin);
        Fold<float, double, AsIs, Plus<double>>::State sum;
        Fold<float, double, AsIs, Plus<double>>::line(sum, powers, count, 0);
        state.sum += sum.value;
    }
    static void tile(State* states, const float* x, int64_t rows, int64_t cols, int64_t) {
        float max[kColumns];
        float origin[kColumns];
        float sum[kColumns] = {};
        std::copy_n(x, cols, max);
        for (int64_t row = 1; row < rows; ++row) {
            const float* values = x + row * cols;
            for (int64_t i = 0; i < cols; ++i) max[i] = Larger<float>::of(max[i], values[i]);
        }
        for (int64_t i = 0; i < cols; ++i) {
            raise(states[i], max[i]);
            origin[i] = states[i].origin();
        }
        for (int64_t row = 0; row < rows; ++row) {
            const float* values = x + row * cols;
            for (int64_t i = 0; i < cols; ++i) sum[i] += math::exp(values[i] - origin[i]);
        }
        for (int64_t i = 0; i < cols; ++i) states[i].sum += sum[i];
    }
};

// Sum and sum of squares: mean and variance. In double nothing is lost that f32 inputs had.
struct Moments {
    using Compute = float;
    struct State {
        double sum = 0;
        double squares = 0;
    };
    static void merge(State& state, const State& later) {
        state.sum += later.sum;
        state.squares += later.squares;
    }
    static void line(State& state, const float* x, int64_t count, int64_t) {
        Fold<float, double, AsIs, Plus<double>>::State sum;
        Fold<float, double, AsIs, Plus<double>>::line(sum, x, count, 0);
        Fold<float, double, Squared, Plus<double>>::State squares;
        Fold<float, double, Squared, Plus<double>>::line(squares, x, count, 0);
        merge(state, State{sum.value, squares.value});
    }
    static void tile(State* states, const float* x, int64_t rows, int64_t cols, int64_t) {
        double sum[kColumns] = {};
        double squares[kColumns] = {};
        for (int64_t row = 0; row < rows; ++row) {
            const float* values = x + row * cols;
            for (int64_t i = 0; i < cols; ++i) {
                sum[i] += values[i];
                squares[i] += double(values[i]) * values[i];
            }
        }
        for (int64_t i = 0; i < cols; ++i) merge(states[i], State{sum[i], squares[i]});
    }
};

// Index of the largest or smallest element; NaN beats every number.
template <class C, bool smallest, bool last>
struct Extremum {
    using Compute = C;
    struct State {
        C value{};
        int64_t index = -1;
    };
    static bool wins(C challenger, C holder) {
        const bool better = smallest ? challenger < holder : challenger > holder;
        const bool both_nan = challenger != challenger && holder != holder;
        const bool equal = challenger == holder || both_nan;
        const bool first_nan = challenger != challenger && holder == holder;
        return better || first_nan || (last && equal);
    }
    static void add(State& state, C value, int64_t index) {
        if (state.index < 0 || wins(value, state.value)) state = {value, index};
    }
    static void merge(State& state, const State& later) {
        if (later.index >= 0) add(state, later.value, later.index);
    }
    static void line(State& state, const C* x, int64_t count, int64_t position) {
        for (int64_t i = 0; i < count; ++i) add(state, x[i], position + i);
    }
    static void tile(State* states, const C* x, int64_t rows, int64_t cols, int64_t position) {
        for (int64_t row = 0; row < rows; ++row) {
            for (int64_t i = 0; i < cols; ++i) add(states[i], x[row * cols + i], position + row);
        }
    }
};

}  // namespace enpu::ops
