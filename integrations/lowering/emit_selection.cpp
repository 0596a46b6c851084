// SPDX-License-Identifier: MIT
// Choosing elements by position or by value: triangles, one-hot, largest ones, rows by index.
#include <algorithm>
#include <cmath>

#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

constexpr int64_t kMaxPicks = 256;   // of TopK: each pick is a pass over the input
constexpr int64_t kMaxUpdates = 64;  // of scatter operators: each is a pass over the table

View upload(Emitter& e, HostTensor tensor) {
    return e.upload(std::make_shared<const HostTensor>(std::move(tensor)));
}

int64_t one_integer(Emitter& e, int value, const char* what, int64_t otherwise) {
    if (value < 0) return otherwise;
    const auto values = e.integers(value, what);
    if (values.size() != 1) fail(std::string(what) + " is not one number");
    return values[0];
}

void emit_trilu(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    if (x.dims.size() < 2) fail("the input must be a matrix");
    const bool upper = node.integer("upper", 1) != 0;
    const int64_t rows = x.dims[x.dims.size() - 2], cols = x.dims.back();
    const int64_t k =
        std::clamp<int64_t>(one_integer(e, node.input(1), "k", 0), -rows - 1, cols + 1);
    HostTensor kept = make_table(ENPU_OP_BOOL, {rows, cols});
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < cols; ++j) {
            store(kept, i * cols + j, int64_t{upper ? j - i >= k : j - i <= k});
        }
    }
    e.define(node.outputs[0], select(e, upload(e, std::move(kept)), x, scalar(e, x.dtype, 0)));
}

// 0, 1, 2 … along `axis`, broadcast over the axes after it.
View positions(Emitter& e, uint32_t dtype, int64_t count, size_t axes_after) {
    View view = count_up(e, dtype, count);
    for (size_t i = 0; i < axes_after; ++i) view = with_axis(view, view.dims.size());
    return view;
}

void emit_hardmax(Emitter& e, const Node& node) {
    View x = e.device(node.input(0));
    const Dims dims = x.dims;
    const bool old = node.opset > 0 && node.opset < 13;  // flattened to a matrix at axis
    auto axis =
        static_cast<size_t>(normalise_axis(node.integer("axis", old ? 1 : -1), dims.size()));
    if (old) {
        const auto split = dims.begin() + static_cast<std::ptrdiff_t>(axis);
        x = e.reshape(
            x, {element_count(Dims(dims.begin(), split)), element_count(Dims(split, dims.end()))});
        axis = 1;
    }
    const View largest = arg_reduce(e, x, axis, false, false);
    const View index = positions(e, ENPU_OP_I64, x.dims[axis], x.dims.size() - 1 - axis);
    const View is = binary(e, ENPU_OP_BINARY_EQ, largest, index);
    e.define(node.outputs[0],
             e.reshape(select(e, is, scalar(e, x.dtype, 1), scalar(e, x.dtype, 0)), dims));
}

// Negative indices count from the end.
View wrapped(Emitter& e, const View& index, int64_t size) {
    const View shifted =
        binary(e, ENPU_OP_BINARY_ADD, index, scalar(e, index.dtype, static_cast<double>(size)));
    const View negative = binary(e, ENPU_OP_BINARY_LT, index, scalar(e, index.dtype, 0));
    return select(e, negative, shifted, index);
}

void emit_one_hot(Emitter& e, const Node& node) {
    const View indices = cast(e, e.device(node.input(0)), ENPU_OP_I64);
    const View values = e.device(node.input(2));
    const int64_t depth = one_integer(e, node.input(1), "depth", 0);
    if (depth < 1 || depth > (1 << 24)) fail("depth is out of range");
    if (values.dims != Dims{2}) fail("values must be two elements");
    const auto axis =
        static_cast<size_t>(normalise_axis(node.integer("axis", -1), indices.dims.size() + 1));
    const View index = with_axis(wrapped(e, indices, depth), axis);
    const View place = positions(e, ENPU_OP_I64, depth, index.dims.size() - 1 - axis);
    const View is = binary(e, ENPU_OP_BINARY_EQ, index, place);
    const auto value = [&](int64_t i) { return without_axis(part(values, 0, i, 1), 0); };
    e.define(node.outputs[0], select(e, is, value(1), value(0)));
}

// The lowest (or highest) value of a type: what a picked element becomes.
View extreme(Emitter& e, uint32_t dtype, bool lowest) {
    if (is_float(dtype)) return scalar(e, dtype, lowest ? -INFINITY : INFINITY);
    HostTensor tensor = make_host_tensor(dtype, {});
    const int64_t bits = static_cast<int64_t>(dtype_bytes(dtype)) * 8;
    const int64_t highest =
        dtype == ENPU_OP_U8 ? 255 : static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
    store(tensor, 0, !lowest ? highest : dtype == ENPU_OP_U8 ? int64_t{0} : -highest - 1);
    return upload(e, std::move(tensor));
}

void emit_top_k(Emitter& e, const Node& node) {
    View x = e.device(node.input(0));
    if (x.dims.empty()) fail("the input is a scalar");
    const auto axis = static_cast<size_t>(normalise_axis(node.integer("axis", -1), x.dims.size()));
    const int64_t k = node.has("k") ? node.integer("k", 0) : one_integer(e, node.input(1), "k", 0);
    if (k < 1 || k > x.dims[axis]) fail("k is out of range");
    if (k > kMaxPicks) fail("more than 256 picks are unsupported");
    const bool largest = node.integer("largest", 1) != 0;
    const View gone = extreme(e, x.dtype, largest);
    const View index = positions(e, ENPU_OP_I64, x.dims[axis], x.dims.size() - 1 - axis);
    std::vector<View> values, places;
    for (int64_t i = 0; i < k; ++i) {
        const View at = arg_reduce(e, x, axis, !largest, false);
        places.push_back(at);
        values.push_back(gather_elements(e, x, at, axis));
        if (i + 1 < k) x = select(e, binary(e, ENPU_OP_BINARY_EQ, at, index), gone, x);
    }
    e.define(node.outputs[0], join(e, values, axis));
    if (node.outputs.size() > 1) e.define(node.outputs[1], join(e, places, axis));
}

// Sums of ever longer stretches: each round adds the element 1, 2, 4 … places before.
void emit_cumulative_sum(Emitter& e, const Node& node) {
    View x = e.device(node.input(0));
    if (x.dims.empty()) fail("the input is a scalar");
    const auto axis = static_cast<size_t>(
        normalise_axis(one_integer(e, node.input(1), "axis", 0), x.dims.size()));
    const int64_t size = x.dims[axis];
    const bool reverse = node.integer("reverse", 0) != 0;
    if (reverse) x = part(x, axis, size - 1, size, -1);
    if (node.integer("exclusive", 0)) {
        Dims first = x.dims;
        first[axis] = 1;
        const View zero = filled(e, x.dtype, first, 0);
        x = size == 1 ? zero : join(e, {zero, part(x, axis, 0, size - 1)}, axis);
    }
    for (int64_t step = 1; step < size; step *= 2) {
        const View sum = binary(e, ENPU_OP_BINARY_ADD, part(x, axis, step, size - step),
                                part(x, axis, 0, size - step));
        x = join(e, {part(x, axis, 0, step), sum}, axis);
    }
    e.define(node.outputs[0], reverse ? part(x, axis, size - 1, size, -1) : x);
}

// Indices of several axes as numbers of rows of a matrix.
struct Rows {
    View index;   // any dims
    Dims matrix;  // rows, elements of one
    Dims rest;    // the dims of one row
};

// The last dim of `indices` names the axes of `dims` after the first `batch` ones, which are walked
// side by side.
Rows rows_of(Emitter& e, const View& indices, const Dims& dims, size_t batch) {
    if (indices.dims.empty() || batch >= indices.dims.size()) fail("indices have too few dims");
    const auto depth = static_cast<size_t>(indices.dims.back());
    if (depth < 1 || batch + depth > dims.size()) fail("indices name more axes than there are");
    const size_t last = indices.dims.size() - 1;
    const auto number = [&](int64_t value) {
        return scalar(e, indices.dtype, static_cast<double>(value));
    };
    Rows rows;
    int64_t stride = 1;
    for (size_t i = depth; i-- > 0;) {
        View index = without_axis(part(indices, last, static_cast<int64_t>(i), 1), last);
        index = wrapped(e, index, dims[batch + i]);
        if (stride != 1) index = binary(e, ENPU_OP_BINARY_MUL, index, number(stride));
        rows.index = rows.index.absent() ? index : binary(e, ENPU_OP_BINARY_ADD, rows.index, index);
        stride *= dims[batch + i];
    }
    const auto at = [&](size_t i) { return dims.begin() + static_cast<std::ptrdiff_t>(i); };
    Dims lead(dims.begin(), at(batch));
    const int64_t batches = element_count(lead);
    if (batch > 0) {
        lead.resize(last, 1);
        const View base =
            binary(e, ENPU_OP_BINARY_MUL, count_up(e, indices.dtype, batches), number(stride));
        rows.index = binary(e, ENPU_OP_BINARY_ADD, rows.index, e.reshape(base, lead));
    }
    rows.rest.assign(at(batch + depth), dims.end());
    rows.matrix = {batches * stride, element_count(rows.rest)};
    return rows;
}

void emit_gather_nd(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const Rows rows = rows_of(e, e.device(node.input(1)), x.dims,
                              static_cast<size_t>(node.integer("batch_dims", 0)));
    Dims dims = rows.index.dims;
    const View taken =
        take(e, e.reshape(x, rows.matrix), e.reshape(rows.index, {element_count(dims)}), 0);
    dims.insert(dims.end(), rows.rest.begin(), rows.rest.end());
    e.define(node.outputs[0], e.reshape(taken, dims));
}

// What becomes of an element that an update names.
View updated(Emitter& e, const Node& node, const View& before, const View& update) {
    const std::string reduction = node.text("reduction", "none");
    static const std::map<std::string, uint32_t> kFunctions = {{"add", ENPU_OP_BINARY_ADD},
                                                               {"mul", ENPU_OP_BINARY_MUL},
                                                               {"max", ENPU_OP_BINARY_MAX},
                                                               {"min", ENPU_OP_BINARY_MIN}};
    if (reduction == "none") return update;
    const auto it = kFunctions.find(reduction);
    if (it == kFunctions.end()) fail("reduction '" + reduction + "' is unknown");
    return binary(e, it->second, before, update);
}

// One update after the other, each a choice between the table and the update: the device has no
// operator that writes by index.
View scatter_rows(Emitter& e, const Node& node, View table, const View& index,
                  const View& updates) {
    if (index.dims[0] > kMaxUpdates) fail("more than 64 updates are unsupported");
    const View place = with_axis(count_up(e, index.dtype, table.dims[0]), 1);
    for (int64_t i = 0; i < index.dims[0]; ++i) {
        const View named = binary(e, ENPU_OP_BINARY_EQ, place, part(index, 0, i, 1));
        table = select(e, named, updated(e, node, table, part(updates, 0, i, 1)), table);
    }
    return table;
}

void emit_scatter_nd(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const Rows rows = rows_of(e, e.device(node.input(1)), x.dims, 0);
    const int64_t count = element_count(rows.index.dims);
    const View updates = e.reshape(e.device(node.input(2)), {count, rows.matrix[1]});
    const View y =
        scatter_rows(e, node, e.reshape(x, rows.matrix), e.reshape(rows.index, {count}), updates);
    e.define(node.outputs[0], e.reshape(y, x.dims));
}

void emit_scatter_elements(Emitter& e, const Node& node) {
    View y = e.device(node.input(0));
    const View indices = e.device(node.input(1)), updates = e.device(node.input(2));
    const auto axis = static_cast<size_t>(normalise_axis(node.integer("axis", 0), y.dims.size()));
    if (indices.dims.size() != y.dims.size() || indices.dims != updates.dims) {
        fail("indices and updates must have the same dims, as many as the data");
    }
    if (indices.dims[axis] > kMaxUpdates)
        fail("more than 64 updates along the axis are unsupported");
    const View whole = y;
    View part_of = y;  // the indices may cover only the beginning of the other axes
    for (size_t i = 0; i < y.dims.size(); ++i) {
        if (i == axis || indices.dims[i] == y.dims[i]) continue;
        if (indices.dims[i] > y.dims[i]) fail("indices are larger than the data");
        part_of = part(part_of, i, 0, indices.dims[i]);
    }
    View table = part_of;
    const View place = positions(e, indices.dtype, y.dims[axis], y.dims.size() - 1 - axis);
    const View index = wrapped(e, indices, y.dims[axis]);
    for (int64_t i = 0; i < indices.dims[axis]; ++i) {
        const View named = binary(e, ENPU_OP_BINARY_EQ, place, part(index, axis, i, 1));
        table = select(e, named, updated(e, node, table, part(updates, axis, i, 1)), table);
    }
    if (part_of.dims != whole.dims) {
        y = copied(e, whole);
        View target = y;
        for (size_t i = 0; i < y.dims.size(); ++i) target = part(target, i, 0, table.dims[i]);
        e.move(table, target);
        table = y;
    }
    e.define(node.outputs[0], table);
}

void emit_compress(Emitter& e, const Node& node) {
    View x = e.device(node.input(0));
    size_t axis = 0;
    if (node.has("axis")) {
        axis = static_cast<size_t>(normalise_axis(node.integer("axis", 0), x.dims.size()));
    } else {
        x = e.reshape(x, {element_count(x.dims)});
    }
    const auto condition = e.integers(node.input(1), "the condition");
    std::vector<int64_t> rows;
    for (size_t i = 0; i < condition.size(); ++i) {
        if (condition[i] && static_cast<int64_t>(i) < x.dims[axis]) {
            rows.push_back(static_cast<int64_t>(i));
        }
    }
    if (rows.empty()) {
        Dims dims = x.dims;
        dims[axis] = 0;
        e.define(node.outputs[0],
                 std::make_shared<const HostTensor>(make_host_tensor(x.dtype, dims)));
        return;
    }
    const View index = e.upload(host_i64({static_cast<int64_t>(rows.size())}, rows));
    e.define(node.outputs[0], take(e, x, index, axis));
}

void emit_reverse_sequence(Emitter& e, const Node& node) {
    const View x = e.device(node.input(0));
    const auto batch =
        static_cast<size_t>(normalise_axis(node.integer("batch_axis", 1), x.dims.size()));
    const auto time =
        static_cast<size_t>(normalise_axis(node.integer("time_axis", 0), x.dims.size()));
    if (batch == time) fail("batch_axis and time_axis are the same");
    const auto lengths = e.integers(node.input(1), "the lengths of the sequences");
    if (static_cast<int64_t>(lengths.size()) != x.dims[batch]) {
        fail("one length a sequence is needed");
    }
    const View y = copied(e, x);
    for (size_t b = 0; b < lengths.size(); ++b) {
        if (lengths[b] < 0 || lengths[b] > x.dims[time]) fail("a length is out of range");
        if (lengths[b] < 2) continue;
        const auto own = [&](const View& view) {
            return part(view, batch, static_cast<int64_t>(b), 1);
        };
        e.move(part(own(x), time, lengths[b] - 1, lengths[b], -1),
               part(own(y), time, 0, lengths[b]));
    }
    e.define(node.outputs[0], y);
}

}  // namespace

const EmitTable& selection_emitters() {
    static const EmitTable kTable = {
        {"Trilu", emit_trilu},
        {"Hardmax", emit_hardmax},
        {"OneHot", emit_one_hot},
        {"TopK", emit_top_k},
        {"CumSum", emit_cumulative_sum},
        {"GatherND", emit_gather_nd},
        {"ScatterND", emit_scatter_nd},
        {"ScatterElements", emit_scatter_elements},
        {"Scatter", emit_scatter_elements},
        {"Compress", emit_compress},
        {"ReverseSequence", emit_reverse_sequence},
    };
    return kTable;
}

}  // namespace enpu::lowering
