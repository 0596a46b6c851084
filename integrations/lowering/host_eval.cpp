// SPDX-License-Identifier: MIT
#include "host_eval.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "shapes.h"

namespace enpu::lowering {
namespace {

using Inputs = std::vector<HostTensorPtr>;
using Results = std::vector<HostTensorPtr>;

const HostTensor& in(const Inputs& inputs, size_t i) {
    if (i >= inputs.size() || !inputs[i]) fail("operand " + std::to_string(i) + " is missing");
    return *inputs[i];
}

std::vector<int64_t> integers(const Inputs& inputs, size_t i) {
    return i < inputs.size() && inputs[i] ? as_i64(*inputs[i]) : std::vector<int64_t>{};
}

// Thrown for a result that is left to the device.
struct TooLarge {};

// Broadcasts and gathers grow by products of what they are given.
HostTensor make_result(uint32_t dtype, const Dims& dims) {
    if (element_count(dims) > kMaxHostElements * 64) throw TooLarge{};
    return make_host_tensor(dtype, dims);
}

void need_dtype(const HostTensor& tensor, uint32_t dtype, const char* operand) {
    if (tensor.dtype != dtype) {
        fail(std::string(operand) + " is " + dtype_name(tensor.dtype) + " and must be " +
             dtype_name(dtype));
    }
}

double only_element(const HostTensor& tensor, const char* operand) {
    if (tensor.size() != 1) {
        fail(std::string(operand) + " has the dims " + to_string(tensor.dims) +
             " and must have one element");
    }
    return as_f64(tensor)[0];
}

Results one(HostTensor tensor) {
    return {std::make_shared<const HostTensor>(std::move(tensor))};
}

// Copies elements: y[index] = x[offset + sum(index * strides)].
HostTensor gather_strided(const HostTensor& x, const Dims& dims, const Dims& strides,
                          int64_t offset) {
    HostTensor y = make_result(x.dtype, dims);
    const size_t size = dtype_bytes(x.dtype);
    Dims index(dims.size(), 0);
    int64_t from = offset;
    for (int64_t i = 0, n = y.size(); i < n; ++i) {
        std::memcpy(y.bytes.data() + static_cast<size_t>(i) * size,
                    x.bytes.data() + static_cast<size_t>(from) * size, size);
        for (size_t axis = dims.size(); axis-- > 0;) {
            from += strides[axis];
            if (++index[axis] < dims[axis]) break;
            from -= strides[axis] * dims[axis];
            index[axis] = 0;
        }
    }
    return y;
}

HostTensor with_dims(const HostTensor& x, const Dims& dims) {
    return {x.dtype, dims, x.bytes};
}

HostTensor expanded(const HostTensor& x, const Dims& dims) {
    return gather_strided(x, dims, broadcast_strides(x.dims, row_major_strides(x.dims), dims), 0);
}

// ---- elementwise

// Integers wrap round, as they do on the device.
int64_t arithmetic(const std::string& op, int64_t a, int64_t b) {
    const auto u = static_cast<uint64_t>(a), v = static_cast<uint64_t>(b);
    if (op == "Add") return static_cast<int64_t>(u + v);
    if (op == "Sub") return static_cast<int64_t>(u - v);
    if (op == "Mul") return static_cast<int64_t>(u * v);
    if (op == "Min") return a < b ? a : b;
    if (op == "Max") return a > b ? a : b;
    if (op == "Pow") return saturate(std::pow(static_cast<double>(a), static_cast<double>(b)));
    if (b == 0 || (b == -1 && a == INT64_MIN)) fail("integer division by zero in a shape");
    if (op == "Div") return a / b;
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double arithmetic(const std::string& op, double a, double b) {
    if (op == "Add") return a + b;
    if (op == "Sub") return a - b;
    if (op == "Mul") return a * b;
    if (op == "Min") return a < b ? a : b;
    if (op == "Max") return a > b ? a : b;
    if (op == "Div") return a / b;
    return op == "Mod" ? std::fmod(a, b) : std::pow(a, b);
}

template <class T>
bool compare(const std::string& op, T a, T b) {
    if (op == "Equal") return a == b;
    if (op == "Less") return a < b;
    if (op == "LessOrEqual") return a <= b;
    if (op == "Greater") return a > b;
    if (op == "GreaterOrEqual") return a >= b;
    if (op == "And") return a != 0 && b != 0;
    return op == "Or" ? a != 0 || b != 0 : (a != 0) != (b != 0);
}

bool gives_bool(const std::string& op) {
    return op == "Equal" || op == "Less" || op == "LessOrEqual" || op == "Greater" ||
           op == "GreaterOrEqual" || op == "And" || op == "Or" || op == "Xor";
}

HostTensor binary(const std::string& op, const HostTensor& a, const HostTensor& b) {
    const Dims dims = broadcast_dims(a.dims, b.dims);
    const HostTensor left = expanded(a, dims), right = expanded(b, dims);
    HostTensor y = make_result(gives_bool(op) ? uint32_t{ENPU_OP_BOOL} : a.dtype, dims);
    const int64_t n = y.size();
    if (is_float(a.dtype)) {
        const auto u = as_f64(left), v = as_f64(right);
        for (int64_t i = 0; i < n; ++i) {
            const auto k = static_cast<size_t>(i);
            if (gives_bool(op)) {
                store(y, i, int64_t{compare(op, u[k], v[k])});
            } else {
                store(y, i, arithmetic(op, u[k], v[k]));
            }
        }
    } else {
        const auto u = as_i64(left), v = as_i64(right);
        for (int64_t i = 0; i < n; ++i) {
            const auto k = static_cast<size_t>(i);
            store(y, i,
                  gives_bool(op) ? int64_t{compare(op, u[k], v[k])} : arithmetic(op, u[k], v[k]));
        }
    }
    return y;
}

Results eval_binary(const Node& node, const Inputs& inputs) {
    HostTensor y = binary(node.op, in(inputs, 0), in(inputs, 1));
    for (size_t i = 2; i < inputs.size(); ++i) y = binary(node.op, y, in(inputs, i));
    return one(std::move(y));
}

Results eval_unary(const Node& node, const Inputs& inputs) {
    const HostTensor& x = in(inputs, 0);
    HostTensor y = make_host_tensor(x.dtype, x.dims);
    if (!is_float(x.dtype) && (node.op == "Neg" || node.op == "Abs")) {
        const auto whole = as_i64(x);  // a double would round them
        for (size_t i = 0; i < whole.size(); ++i) {
            const bool turn = node.op == "Neg" || whole[i] < 0;
            store(y, static_cast<int64_t>(i), turn ? arithmetic("Sub", 0, whole[i]) : whole[i]);
        }
        return one(std::move(y));
    }
    const auto values = as_f64(x);
    for (size_t i = 0; i < values.size(); ++i) {
        const double v = values[i];
        double r = 0;
        if (node.op == "Neg") r = -v;
        if (node.op == "Abs") r = std::fabs(v);
        if (node.op == "Sqrt") r = std::sqrt(v);
        if (node.op == "Floor") r = std::floor(v);
        if (node.op == "Ceil") r = std::ceil(v);
        if (node.op == "Exp") r = std::exp(v);
        if (node.op == "Reciprocal") r = 1 / v;
        if (node.op == "Not") r = v == 0;
        store(y, static_cast<int64_t>(i), r);
    }
    return one(std::move(y));
}

Results eval_cast(const Node& node, const Inputs& inputs) {
    const HostTensor& x = in(inputs, 0);
    const uint32_t dtype = node.op == "CastLike" ? in(inputs, 1).dtype
                                                 : static_cast<uint32_t>(node.integer("dtype", 0));
    HostTensor y = make_host_tensor(dtype, x.dims);
    const int64_t n = x.size();
    if (is_float(x.dtype)) {
        const auto values = as_f64(x);
        for (int64_t i = 0; i < n; ++i) store(y, i, values[static_cast<size_t>(i)]);
    } else {
        const auto values = as_i64(x);
        for (int64_t i = 0; i < n; ++i) store(y, i, values[static_cast<size_t>(i)]);
    }
    return one(std::move(y));
}

Results eval_where(const Node&, const Inputs& inputs) {
    const Dims dims =
        broadcast_dims(broadcast_dims(in(inputs, 0).dims, in(inputs, 1).dims), in(inputs, 2).dims);
    need_dtype(in(inputs, 0), ENPU_OP_BOOL, "the condition of Where");
    need_dtype(in(inputs, 2), in(inputs, 1).dtype, "the second choice of Where");
    const HostTensor c = expanded(in(inputs, 0), dims), b = expanded(in(inputs, 2), dims);
    HostTensor y = expanded(in(inputs, 1), dims);
    const size_t size = dtype_bytes(y.dtype);
    for (size_t i = 0; i < c.bytes.size(); ++i) {
        if (c.data<uint8_t>()[i] == 0) {
            std::memcpy(y.bytes.data() + i * size, b.bytes.data() + i * size, size);
        }
    }
    return one(std::move(y));
}

// ---- movement

Results eval_identity(const Node&, const Inputs& inputs) {
    in(inputs, 0);
    return {inputs[0]};
}

Results eval_reshape(const Node& node, const Inputs& inputs) {
    const HostTensor& x = in(inputs, 0);
    const auto wanted = node.has("shape") ? node.integers("shape") : integers(inputs, 1);
    return one(with_dims(x, reshape_dims(x.dims, wanted, node.integer("allowzero", 0) != 0)));
}

Results eval_squeeze(const Node& node, const Inputs& inputs) {
    const HostTensor& x = in(inputs, 0);
    const auto axes = node.has("axes") ? node.integers("axes") : integers(inputs, 1);
    const bool given = node.has("axes") || (inputs.size() > 1 && inputs[1]);
    return one(with_dims(x, node.op == "Squeeze" ? squeeze_dims(x.dims, axes, !given)
                                                 : unsqueeze_dims(x.dims, axes)));
}

Results eval_transpose(const Node& node, const Inputs& inputs) {
    const HostTensor& x = in(inputs, 0);
    auto permutation = node.integers("perm");
    if (permutation.empty()) permutation = default_permutation(x.dims.size());
    const Dims dims = transpose_dims(x.dims, permutation);
    return one(gather_strided(x, dims, transpose_dims(row_major_strides(x.dims), permutation), 0));
}

Results eval_slice(const Node& node, const Inputs& inputs) {
    const HostTensor& x = in(inputs, 0);
    const bool attributes = node.has("starts");
    const auto axes = slice_axes(x.dims, attributes ? node.integers("starts") : integers(inputs, 1),
                                 attributes ? node.integers("ends") : integers(inputs, 2),
                                 attributes ? node.integers("axes") : integers(inputs, 3),
                                 attributes ? std::vector<int64_t>{} : integers(inputs, 4));
    Dims dims, strides = row_major_strides(x.dims);
    int64_t offset = 0;
    for (size_t i = 0; i < axes.size(); ++i) {
        dims.push_back(axes[i].count);
        offset += axes[i].start * strides[i];
        strides[i] *= axes[i].step;
    }
    return one(gather_strided(x, dims, strides, offset));
}

Results eval_concat(const Node& node, const Inputs& inputs) {
    const HostTensor& first = in(inputs, 0);
    const auto axis =
        static_cast<size_t>(normalise_axis(node.integer("axis", 0), first.dims.size()));
    Dims dims = first.dims;
    for (size_t i = 1; i < inputs.size(); ++i) {
        if (in(inputs, i).dims.size() != dims.size()) fail("concat of tensors of different rank");
        need_dtype(in(inputs, i), first.dtype, "an input of Concat");
        dims[axis] += in(inputs, i).dims[axis];
    }
    HostTensor y = make_result(first.dtype, dims);
    const Dims lead(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(axis));
    const int64_t rows = element_count(lead);
    size_t at = 0;
    for (int64_t row = 0; row < rows; ++row) {
        for (const auto& input : inputs) {
            const size_t part = rows ? input->bytes.size() / static_cast<size_t>(rows) : 0;
            if (at + part > y.bytes.size()) fail("concat of tensors whose other dims differ");
            if (part == 0) continue;
            std::memcpy(y.bytes.data() + at, input->bytes.data() + part * static_cast<size_t>(row),
                        part);
            at += part;
        }
    }
    if (at != y.bytes.size()) fail("concat of tensors whose other dims differ");
    return one(std::move(y));
}

Results eval_gather(const Node& node, const Inputs& inputs) {
    const HostTensor &x = in(inputs, 0), &where = in(inputs, 1);
    const auto axis = static_cast<size_t>(normalise_axis(node.integer("axis", 0), x.dims.size()));
    const auto split = x.dims.begin() + static_cast<std::ptrdiff_t>(axis);
    const int64_t outer = element_count(Dims(x.dims.begin(), split));
    const int64_t inner = element_count(Dims(split + 1, x.dims.end()));
    Dims dims(x.dims.begin(), split);
    dims.insert(dims.end(), where.dims.begin(), where.dims.end());
    dims.insert(dims.end(), split + 1, x.dims.end());
    HostTensor y = make_result(x.dtype, dims);
    const size_t run = static_cast<size_t>(inner) * dtype_bytes(x.dtype);
    std::byte* to = y.bytes.data();
    for (int64_t o = 0; o < outer; ++o) {
        for (int64_t index : as_i64(where)) {
            const auto i = static_cast<size_t>(normalise_axis(index, static_cast<size_t>(*split)));
            const size_t row = static_cast<size_t>(o) * static_cast<size_t>(*split) + i;
            if (run) std::memcpy(to, x.bytes.data() + row * run, run);
            to += run;
        }
    }
    return one(std::move(y));
}

Results eval_expand(const Node&, const Inputs& inputs) {
    const HostTensor& x = in(inputs, 0);
    return one(expanded(x, broadcast_dims(x.dims, integers(inputs, 1))));
}

Results eval_constant_of_shape(const Node& node, const Inputs& inputs) {
    const auto it = node.attributes.find("value");
    const auto* given =
        it == node.attributes.end() ? nullptr : std::get_if<HostTensorPtr>(&it->second);
    const HostTensor zero = make_host_tensor(ENPU_OP_F32, {1});
    HostTensor value = given && *given ? **given : zero;
    only_element(value, "the value of ConstantOfShape");
    value.dims.assign(1, 1);
    const Dims dims = integers(inputs, 0);
    if (dims.empty()) return one(with_dims(value, {}));
    return one(expanded(value, dims));
}

Results eval_range(const Node&, const Inputs& inputs) {
    const HostTensor& first = in(inputs, 0);
    const double start = only_element(first, "the start of Range");
    const double limit = only_element(in(inputs, 1), "the limit of Range");
    const double delta = only_element(in(inputs, 2), "the step of Range");
    if (delta == 0) fail("range has a step of 0");
    const double steps = std::ceil((limit - start) / delta);
    if (!(steps < static_cast<double>(kMaxHostElements))) fail("range is too long");
    HostTensor y = make_host_tensor(first.dtype, {steps > 0 ? static_cast<int64_t>(steps) : 0});
    for (int64_t i = 0; i < y.size(); ++i) store(y, i, start + static_cast<double>(i) * delta);
    return one(std::move(y));
}

Results eval_size(const Node&, const Inputs& inputs) {
    return {host_i64({}, {in(inputs, 0).size()})};
}

// Whole-tensor reductions only, as shape arithmetic has them.
Results eval_reduce(const Node& node, const Inputs& inputs) {
    const HostTensor& x = in(inputs, 0);
    const auto axes = node.has("axes") ? node.integers("axes") : integers(inputs, 1);
    if (x.dims.size() > 1 && !axes.empty() && axes.size() != x.dims.size()) return {};
    double result = node.op == "ReduceProd" ? 1 : 0;
    bool first = true;
    for (double v : as_f64(x)) {
        if (node.op == "ReduceProd") result *= v;
        if (node.op == "ReduceSum") result += v;
        if (node.op == "ReduceMax") result = first || v > result ? v : result;
        if (node.op == "ReduceMin") result = first || v < result ? v : result;
        first = false;
    }
    const Dims dims = node.integer("keepdims", 1) ? Dims(x.dims.size(), 1) : Dims{};
    HostTensor y = make_host_tensor(x.dtype, dims);
    store(y, 0, result);
    return one(std::move(y));
}

using Evaluator = Results (*)(const Node&, const Inputs&);

const std::map<std::string, Evaluator>& table() {
    static const std::map<std::string, Evaluator> kTable = {
        {"Add", eval_binary},
        {"Sub", eval_binary},
        {"Mul", eval_binary},
        {"Div", eval_binary},
        {"Mod", eval_binary},
        {"Min", eval_binary},
        {"Max", eval_binary},
        {"Pow", eval_binary},
        {"Equal", eval_binary},
        {"Less", eval_binary},
        {"LessOrEqual", eval_binary},
        {"Greater", eval_binary},
        {"GreaterOrEqual", eval_binary},
        {"And", eval_binary},
        {"Or", eval_binary},
        {"Xor", eval_binary},
        {"Neg", eval_unary},
        {"Abs", eval_unary},
        {"Sqrt", eval_unary},
        {"Floor", eval_unary},
        {"Ceil", eval_unary},
        {"Exp", eval_unary},
        {"Reciprocal", eval_unary},
        {"Not", eval_unary},
        {"Cast", eval_cast},
        {"CastLike", eval_cast},
        {"Where", eval_where},
        {"Identity", eval_identity},
        {"Reshape", eval_reshape},
        {"Squeeze", eval_squeeze},
        {"Unsqueeze", eval_squeeze},
        {"Transpose", eval_transpose},
        {"Slice", eval_slice},
        {"Concat", eval_concat},
        {"Gather", eval_gather},
        {"Expand", eval_expand},
        {"ConstantOfShape", eval_constant_of_shape},
        {"Range", eval_range},
        {"Size", eval_size},
        {"ReduceProd", eval_reduce},
        {"ReduceSum", eval_reduce},
        {"ReduceMax", eval_reduce},
        {"ReduceMin", eval_reduce},
    };
    return kTable;
}

}  // namespace

bool host_evaluable(const std::string& op) {
    return table().count(op) != 0;
}

std::vector<HostTensorPtr> host_evaluate(const Node& node,
                                         const std::vector<HostTensorPtr>& inputs) {
    const auto it = table().find(node.op);
    if (it == table().end() || node.residual >= 0 || !node.activation.none()) return {};
    // An expansion is the only way to grow by more than the sum of the inputs.
    if (node.op == "Expand" || node.op == "ConstantOfShape") {
        const HostTensor& shape = in(inputs, node.op == "Expand" ? 1 : 0);
        if (element_count(as_i64(shape)) > kMaxHostElements) return {};
    }
    for (const auto& input : inputs) {
        if (input && input->size() > kMaxHostElements * 64) return {};
    }
    try {
        return it->second(node, inputs);
    } catch (const TooLarge&) {
        return {};
    }
}

}  // namespace enpu::lowering
