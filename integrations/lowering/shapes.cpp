// SPDX-License-Identifier: MIT
#include "shapes.h"

#include <algorithm>

namespace enpu::lowering {

Dims broadcast_dims(const Dims& a, const Dims& b) {
    const size_t rank = std::max(a.size(), b.size());
    Dims dims(rank);
    for (size_t i = 0; i < rank; ++i) {
        const int64_t x = i + a.size() < rank ? 1 : a[i + a.size() - rank];
        const int64_t y = i + b.size() < rank ? 1 : b[i + b.size() - rank];
        if (x != y && x != 1 && y != 1) {
            fail("the dims " + to_string(a) + " and " + to_string(b) + " do not broadcast");
        }
        dims[i] = x == 1 ? y : x;
    }
    return dims;
}

Dims broadcast_strides(const Dims& from, const Dims& strides, const Dims& to) {
    if (from.size() > to.size()) {
        fail("the dims " + to_string(from) + " do not broadcast to " + to_string(to));
    }
    Dims result(to.size(), 0);
    const size_t lead = to.size() - from.size();
    for (size_t i = 0; i < from.size(); ++i) {
        if (from[i] != to[lead + i] && from[i] != 1) {
            fail("the dims " + to_string(from) + " do not broadcast to " + to_string(to));
        }
        result[lead + i] = from[i] == 1 && to[lead + i] != 1 ? 0 : strides[i];
    }
    return result;
}

Dims row_major_strides(const Dims& dims) {
    element_count(dims);  // fails where a stride could overflow
    Dims strides(dims.size());
    int64_t step = 1;
    for (size_t i = dims.size(); i-- > 0;) {
        strides[i] = step;
        step *= std::max<int64_t>(dims[i], 1);
    }
    return strides;
}

Dims reshape_dims(const Dims& from, const std::vector<int64_t>& wanted, bool allow_zero) {
    Dims dims(wanted.begin(), wanted.end());
    int free_axis = -1;
    Dims known;
    for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] == 0 && !allow_zero) {
            if (i >= from.size()) fail("reshape copies a dim that the input does not have");
            dims[i] = from[i];
        }
        if (dims[i] == -1) {
            if (free_axis >= 0) fail("reshape has more than one -1");
            free_axis = static_cast<int>(i);
        } else {
            known.push_back(dims[i]);
        }
    }
    const int64_t total = element_count(from);
    if (free_axis >= 0) {
        const int64_t rest = element_count(known);
        if (rest == 0 || total % rest != 0) {
            fail("reshape of " + to_string(from) + " to " + to_string(dims) + " does not come out");
        }
        dims[static_cast<size_t>(free_axis)] = total / rest;
    }
    if (element_count(dims) != total) {
        fail("reshape of " + to_string(from) + " to " + to_string(dims) + " changes the size");
    }
    return dims;
}

Dims squeeze_dims(const Dims& from, const std::vector<int64_t>& axes, bool all_ones) {
    std::vector<bool> drop(from.size(), false);
    for (int64_t axis : axes) {
        const auto a = static_cast<size_t>(normalise_axis(axis, from.size()));
        if (from[a] != 1) fail("squeeze of an axis of " + to_string(from) + " that is not 1");
        drop[a] = true;
    }
    Dims dims;
    for (size_t i = 0; i < from.size(); ++i) {
        if (all_ones ? from[i] != 1 : !drop[i]) dims.push_back(from[i]);
    }
    return dims;
}

Dims unsqueeze_dims(const Dims& from, const std::vector<int64_t>& axes) {
    const size_t rank = from.size() + axes.size();
    std::vector<bool> added(rank, false);
    for (int64_t axis : axes) {
        const auto a = static_cast<size_t>(normalise_axis(axis, rank));
        if (added[a]) fail("unsqueeze names an axis twice");
        added[a] = true;
    }
    Dims dims;
    for (size_t i = 0, next = 0; i < rank; ++i) dims.push_back(added[i] ? 1 : from[next++]);
    return dims;
}

std::vector<int64_t> default_permutation(size_t rank) {
    std::vector<int64_t> permutation;
    for (size_t i = rank; i-- > 0;) permutation.push_back(static_cast<int64_t>(i));
    return permutation;
}

Dims transpose_dims(const Dims& from, const std::vector<int64_t>& permutation) {
    if (permutation.size() != from.size()) fail("transpose has a permutation of another rank");
    std::vector<bool> seen(from.size(), false);
    Dims dims;
    for (int64_t axis : permutation) {
        const auto a = static_cast<size_t>(normalise_axis(axis, from.size()));
        if (seen[a]) fail("transpose names an axis twice");
        seen[a] = true;
        dims.push_back(from[a]);
    }
    return dims;
}

namespace {

int64_t clamp_index(int64_t index, int64_t dim, int64_t low, int64_t high) {
    if (index < 0) index = index < -dim ? low : index + dim;
    return std::clamp(index, low, high);
}

}  // namespace

std::vector<SliceAxis> slice_axes(const Dims& dims, const std::vector<int64_t>& starts,
                                  const std::vector<int64_t>& ends,
                                  const std::vector<int64_t>& axes,
                                  const std::vector<int64_t>& steps) {
    if (starts.size() != ends.size() || (!axes.empty() && axes.size() != starts.size()) ||
        (!steps.empty() && steps.size() != starts.size()) || starts.size() > dims.size()) {
        fail("slice has starts, ends, axes and steps of different lengths");
    }
    std::vector<SliceAxis> result(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) result[i] = {0, 1, dims[i]};
    for (size_t i = 0; i < starts.size(); ++i) {
        const int64_t named = axes.empty() ? static_cast<int64_t>(i) : axes[i];
        const auto a = static_cast<size_t>(normalise_axis(named, dims.size()));
        const int64_t dim = dims[a], step = steps.empty() ? 1 : steps[i];
        if (step == 0 || step == INT64_MIN) fail("slice has a step of 0");
        SliceAxis& s = result[a];
        s.step = step;
        if (step > 0) {
            s.start = clamp_index(starts[i], dim, 0, dim);
            const int64_t end = clamp_index(ends[i], dim, 0, dim);
            s.count = end > s.start ? (end - s.start - 1) / step + 1 : 0;
        } else {
            s.start = clamp_index(starts[i], dim, -1, dim - 1);
            const int64_t end = clamp_index(ends[i], dim, -1, dim - 1);
            s.count = s.start > end ? (s.start - end - 1) / -step + 1 : 0;
        }
        if (s.count <= 1) s.step = 1;
        if (s.count == 0) s.start = 0;
    }
    return result;
}

}  // namespace enpu::lowering
