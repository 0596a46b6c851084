// SPDX-License-Identifier: MIT
#include "plan.h"

#include <algorithm>
#include <numeric>

#include "shapes.h"

namespace enpu::lowering {

Dims channels_last_strides(const Dims& dims) {
    if (dims.size() < 3) return row_major_strides(dims);
    element_count(dims);  // fails where a stride could overflow
    Dims strides(dims.size());
    strides[1] = 1;
    int64_t step = dims[1];
    for (size_t i = dims.size(); i-- > 2;) {
        strides[i] = step;
        step *= dims[i];
    }
    strides[0] = step;
    return strides;
}

bool is_dense(const View& view, const Dims& strides) {
    for (size_t i = 0; i < view.dims.size(); ++i) {
        if (view.dims[i] != 1 && view.strides[i] != strides[i]) return false;
    }
    return true;
}

bool is_row_major(const View& view) {
    return is_dense(view, row_major_strides(view.dims));
}

Dims strides_like(const View& view, const Dims& dims) {
    element_count(dims);  // fails where a stride could overflow
    std::vector<size_t> order(dims.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (view.dims.size() == dims.size()) {
        const bool usable = std::all_of(order.begin(), order.end(), [&](size_t axis) {
            return view.dims[axis] == 1 || view.strides[axis] > 0;
        });
        auto key = [&](size_t axis) {
            return view.dims[axis] == 1 ? int64_t{0} : view.strides[axis];
        };
        // Axes of one element have no place of their own: they stay where channels-last puts them.
        if (usable && dims.size() == 4 && is_dense(view, channels_last_strides(view.dims)) &&
            !is_row_major(view)) {
            return channels_last_strides(dims);
        }
        if (usable && !is_row_major(view)) {
            std::stable_sort(order.begin(), order.end(),
                             [&](size_t a, size_t b) { return key(a) > key(b); });
        }
    }
    Dims strides(dims.size());
    int64_t step = 1;
    for (size_t i = order.size(); i-- > 0;) {
        strides[order[i]] = step;
        step *= std::max<int64_t>(dims[order[i]], 1);
    }
    return strides;
}

std::optional<View> reshape_view(const View& view, const Dims& dims) {
    View result{view.buffer, view.offset, view.dtype, dims, Dims(dims.size(), 1)};
    if (element_count(view.dims) != element_count(dims)) return std::nullopt;
    Dims from, strides;  // without axes of one element
    for (size_t i = 0; i < view.dims.size(); ++i) {
        if (view.dims[i] == 1) continue;
        from.push_back(view.dims[i]);
        strides.push_back(view.strides[i]);
    }
    // Groups of old axes and of new axes with the same product; each old group must be mergeable.
    size_t i = 0, j = 0;
    while (i < from.size()) {
        size_t i_end = i + 1, j_end = j;
        int64_t old_size = from[i], new_size = 1;
        while (old_size != new_size) {
            if (new_size < old_size) {
                new_size *= dims[j_end++];
            } else {
                old_size *= from[i_end++];
            }
        }
        for (size_t k = i; k + 1 < i_end; ++k) {
            if (strides[k] != strides[k + 1] * from[k + 1]) return std::nullopt;
        }
        int64_t step = strides[i_end - 1];
        for (size_t k = j_end; k-- > j;) {
            result.strides[k] = step;
            step *= dims[k];
        }
        i = i_end;
        j = j_end;
    }
    const Dims dense = row_major_strides(dims);
    for (size_t k = 0; k < dims.size(); ++k) {
        if (dims[k] == 1) result.strides[k] = dense[k];
    }
    return result;
}

View transpose_view(const View& view, const std::vector<int64_t>& permutation) {
    View result = view;
    result.dims = transpose_dims(view.dims, permutation);
    result.strides = transpose_dims(view.strides, permutation);
    return result;
}

View broadcast_view(const View& view, const Dims& dims) {
    View result = view;
    result.strides = broadcast_strides(view.dims, view.strides, dims);
    result.dims = dims;
    return result;
}

}  // namespace enpu::lowering
