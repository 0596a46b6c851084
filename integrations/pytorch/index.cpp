// SPDX-License-Identifier: MIT
// Reading and writing by index. The device reads by index (gather). Writing is turned round: each
// element of the result looks for the indices that name it, by comparison with its own number.
#include <ATen/native/IndexingUtils.h>
#include <torch/library.h>

#include "launch.h"
#include "pointwise.h"

namespace enpu::pytorch {
namespace {

void check_index(const Tensor& index, const char* op) {
    check_operand(index, op);
    TORCH_CHECK_INDEX(index.scalar_type() == at::kLong || index.scalar_type() == at::kInt, op,
                      ": expected an index of dtype int32 or int64, got ", index.scalar_type());
}

// The index with negative numbers counted from the end. The device reads a table by it, so that a
// number out of range fails the work, as it does when elements are read.
Tensor wrapped(const Tensor& index, int64_t count) {
    const Tensor flat = index.reshape({-1});
    const Tensor result = new_tensor(flat.sizes(), at::kLong);
    if (flat.numel() == 0) return result.view(index.sizes());
    TORCH_CHECK_INDEX(count > 0, "enpu: an axis without elements is indexed");
    const enpu_op_gather_params params{ENPU_OP_GATHER_MODE_TAKE, 0};
    launch(ENPU_OP_GATHER, params, {iota(count), flat, result});
    return result.view(index.sizes());
}

// ---- reading

void take_into(const Tensor& self, int64_t axis, const Tensor& index, const Tensor& out) {
    if (out.numel() == 0) return;
    const enpu_op_gather_params params{ENPU_OP_GATHER_MODE_TAKE, static_cast<uint32_t>(axis)};
    launch(ENPU_OP_GATHER, params, {as_bits(self), index, as_bits(out)});
}

Tensor& index_select_out(const Tensor& self, int64_t dim, const Tensor& index, Tensor& out) {
    check_index(index, "index_select");
    TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
    const int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    const Tensor x = self.dim() ? self : self.unsqueeze(0);
    c10::SmallVector<int64_t, 8> sizes(x.sizes().begin(), x.sizes().end());
    sizes[static_cast<size_t>(axis)] = index.numel();
    const IntArrayRef wanted = self.dim() ? IntArrayRef(sizes) : IntArrayRef();
    return write_out(out, wanted, self.scalar_type(), {self, index}, [&](const Tensor& y) {
        take_into(x, axis, index.reshape({-1}), self.dim() ? y : y.view({1}));
    });
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
    Tensor out = new_tensor({0}, self.scalar_type());
    return index_select_out(self, dim, index, out);
}

Tensor& gather_out(const Tensor& self, int64_t dim, const Tensor& index, bool, Tensor& out) {
    const int64_t axis = at::maybe_wrap_dim(dim, self.dim());
    if (index.numel() == 0) {
        resize_out(out, index.sizes());
        return out;
    }
    check_index(index, "gather");
    const Tensor x = self.dim() ? self : self.unsqueeze(0),
                 i = index.dim() ? index : index.unsqueeze(0);
    TORCH_CHECK(x.dim() == i.dim(),
                "Index tensor must have the same number of dimensions as input tensor");
    return write_out(out, index.sizes(), self.scalar_type(), {self, index}, [&](const Tensor& y) {
        const enpu_op_gather_params params{ENPU_OP_GATHER_MODE_ELEMENTS,
                                           static_cast<uint32_t>(axis)};
        launch(ENPU_OP_GATHER, params, {as_bits(x), i, as_bits(y.view(i.sizes()))});
    });
}

Tensor take(const Tensor& self, const Tensor& index) {
    return self.reshape({-1}).index_select(0, index.reshape({-1})).view(index.sizes());
}
Tensor& take_out(const Tensor& self, const Tensor& index, Tensor& out) {
    resize_out(out, index.sizes());
    return out.copy_(self.take(index));
}

// ---- writing

// Which of the last axis of `index` name which of `count` places: [..., count, n], BOOL.
Tensor names(const Tensor& index, int64_t count) {
    return iota(count).unsqueeze(1).eq(wrapped(index, count).unsqueeze(-2));
}

// Of the indices that name a place, the last; its result counts.
Tensor last_of(const Tensor& named) {
    const Tensor x = named.to(at::kByte);
    c10::SmallVector<int64_t, 8> sizes(x.sizes().begin(), x.sizes().end());
    sizes.back() = 1;
    const Tensor last = new_tensor(sizes, at::kLong);
    const enpu_op_arg_params params{0, static_cast<uint32_t>(x.dim() - 1), 1};
    if (x.numel()) launch(ENPU_OP_ARG_REDUCE, params, {x, last});
    return last.squeeze(-1);
}

// What scatter does with values that go to one place.
enum class Combine { kLast, kSum, kProduct, kMax, kMin, kMean };

Combine combine_of(std::string_view name) {
    if (name == "sum" || name == "add") return Combine::kSum;
    if (name == "prod" || name == "multiply") return Combine::kProduct;
    if (name == "amax") return Combine::kMax;
    if (name == "amin") return Combine::kMin;
    TORCH_CHECK(name == "mean", "reduce argument must be one of sum, prod, mean, amax, amin; got ",
                name);
    return Combine::kMean;
}

Tensor combined(const Tensor& named, const Tensor& values, const Tensor& before, Combine how,
                bool include_self) {
    const Tensor spread = values.unsqueeze(-2), hit = named.any(-1);
    const auto over = [&](double otherwise) {
        return at::where(named, spread, at::scalar_tensor(otherwise, values.scalar_type()));
    };
    constexpr double kInf = std::numeric_limits<double>::infinity();
    Tensor result;
    switch (how) {
        case Combine::kLast:
            return at::where(hit, values.gather(-1, last_of(named)), before);
        case Combine::kSum:
            result = over(0).sum(-1).to(before.scalar_type());
            if (include_self) result = result + before;
            break;
        case Combine::kProduct:
            result = over(1).prod(-1).to(before.scalar_type());
            if (include_self) result = result * before;
            break;
        case Combine::kMax:
            result = over(-kInf).amax(-1);
            if (include_self) result = at::maximum(result, before);
            break;
        case Combine::kMin:
            result = over(kInf).amin(-1);
            if (include_self) result = at::minimum(result, before);
            break;
        case Combine::kMean: {
            result = over(0).sum(-1);
            Tensor count = named.sum(-1);
            if (include_self) {
                result = result + before;
                count = count + 1;
            }
            result = result / count.clamp_min(1);
            break;
        }
    }
    return at::where(hit, result, before);
}

// Scatter along `dim`; `src` has the sizes of `index` or more.
Tensor& scatter_into(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                     Combine how, bool include_self, Tensor& out) {
    resize_out(out, self.sizes());
    if (!out.is_same(self)) out.copy_(self);
    if (index.numel() == 0) return out;
    check_index(index, "scatter");
    const Tensor x = out.dim() ? out : out.unsqueeze(0),
                 i = index.dim() ? index : index.unsqueeze(0);
    Tensor s = src.dim() ? src : src.expand(i.sizes()), place = x;
    const int64_t axis = at::maybe_wrap_dim(dim, x.dim());
    TORCH_CHECK(i.dim() == x.dim() && s.dim() == x.dim(),
                "scatter: Index tensor must have the same number of dimensions as self and src");
    for (int64_t d = 0; d < x.dim(); ++d) {
        TORCH_CHECK(i.size(d) <= s.size(d) && (d == axis || i.size(d) <= x.size(d)),
                    "scatter: Expected index ", i.sizes(), " to be no larger than self ", x.sizes(),
                    " apart from dimension ", dim, " and to be no larger than src ", s.sizes());
        s = s.narrow(d, 0, i.size(d));
        if (d != axis) place = place.narrow(d, 0, i.size(d));
    }
    place = place.movedim(axis, -1);
    const Tensor named = names(i.movedim(axis, -1), place.size(-1));
    place.copy_(combined(named, s.movedim(axis, -1), place, how, include_self));
    return out;
}

Tensor& scatter_src_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        Tensor& out) {
    return scatter_into(self, dim, index, src, Combine::kLast, true, out);
}
Tensor& scatter_value_out(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                          Tensor& out) {
    return scatter_into(self, dim, index, constant(value, self.scalar_type()), Combine::kLast, true,
                        out);
}
Tensor& scatter_reduce_src_out(const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& src, std::string_view how, Tensor& out) {
    return scatter_into(self, dim, index, src, combine_of(how), true, out);
}
Tensor& scatter_reduce_value_out(const Tensor& self, int64_t dim, const Tensor& index,
                                 const Scalar& value, std::string_view how, Tensor& out) {
    return scatter_into(self, dim, index, constant(value, self.scalar_type()), combine_of(how),
                        true, out);
}
Tensor& scatter_add_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        Tensor& out) {
    return scatter_into(self, dim, index, src, Combine::kSum, true, out);
}
Tensor& scatter_reduce_two_out(const Tensor& self, int64_t dim, const Tensor& index,
                               const Tensor& src, std::string_view how, bool include_self,
                               Tensor& out) {
    return scatter_into(self, dim, index, src, combine_of(how), include_self, out);
}

// ---- whole slices by index

// rows [n, ...] summed into `count` places: a product with the matrix of what names what.
Tensor sum_rows(const Tensor& index, int64_t count, const Tensor& rows) {
    const Tensor flat = rows.reshape({rows.size(0), -1});
    const Tensor sums = names(index, count).to(flat.scalar_type()).matmul(flat);
    c10::SmallVector<int64_t, 8> sizes(rows.sizes().begin(), rows.sizes().end());
    sizes[0] = count;
    return sums.view(sizes);
}

Tensor& index_add_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                      const Scalar& alpha, Tensor& out) {
    check_index(index, "index_add");
    const Tensor x = self.dim() ? self : self.unsqueeze(0),
                 s = source.dim() ? source : source.unsqueeze(0);
    const int64_t axis = at::maybe_wrap_dim(dim, x.dim());
    TORCH_CHECK_INDEX(index.numel() == s.size(axis),
                      "index_add: there must be one index for each slice of the source");
    if (index.numel() == 0) {
        resize_out(out, self.sizes());
        return out.copy_(self);
    }
    const Tensor sums =
        sum_rows(index.reshape({-1}), x.size(axis), s.movedim(axis, 0)).movedim(0, axis);
    return at::add_out(out, self, sums.reshape(self.sizes()), alpha);
}

Tensor& index_copy_out(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                       Tensor& out) {
    resize_out(out, self.sizes());
    if (!out.is_same(self)) out.copy_(self);
    if (index.numel() == 0) return out;
    check_index(index, "index_copy");
    const Tensor x = out.dim() ? out : out.unsqueeze(0),
                 s = source.dim() ? source : source.unsqueeze(0);
    const int64_t axis = at::maybe_wrap_dim(dim, x.dim());
    const Tensor named = names(index.reshape({-1}), x.size(axis));
    const Tensor place = x.movedim(axis, -1);
    const Tensor chosen = s.index_select(axis, last_of(named)).movedim(axis, -1);
    place.copy_(at::where(named.any(-1), chosen, place));
    return out;
}

Tensor& index_fill_tensor_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
    if (index.numel() == 0 || self.numel() == 0) return self;
    check_index(index, "index_fill_");
    const Tensor x = self.dim() ? self : self.unsqueeze(0);
    const int64_t axis = at::maybe_wrap_dim(dim, x.dim());
    const Tensor i = index.reshape({-1});
    const Tensor place = x.movedim(axis, -1);
    place.copy_(at::where(names(i, x.size(axis)).any(-1), value.to(self.scalar_type()), place));
    return self;
}
Tensor& index_fill_scalar_(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
    return index_fill_tensor_(self, dim, index, constant(value, self.scalar_type()));
}

Tensor& masked_fill_tensor_(Tensor& self, const Tensor& mask, const Tensor& value) {
    TORCH_CHECK(value.dim() == 0, "masked_fill_ only supports a 0-dimensional value tensor");
    return self.copy_(at::where(mask, value.to(self.scalar_type()), self));
}
Tensor& masked_fill_scalar_(Tensor& self, const Tensor& mask, const Scalar& value) {
    return self.copy_(at::where(mask, constant(value, self.scalar_type()), self));
}

Tensor embedding_backward(const Tensor& grad, const Tensor& indices, int64_t count, int64_t padding,
                          bool by_frequency) {
    const Tensor index = indices.reshape({-1});
    Tensor rows = grad.reshape({index.numel(), -1});
    if (index.numel() == 0) return at::zeros({count, grad.size(-1)}, grad.options());
    if (padding >= 0) rows = at::where(index.eq(padding).unsqueeze(1), 0, rows);
    const Tensor sums = sum_rows(index, count, rows);
    if (!by_frequency) return sums;
    return sums / names(index, count).sum(-1, true).clamp_min(1);
}

// ---- several indices at once: x[i, :, j]

struct Indexed {
    Tensor self;   // the indexed axes lie together
    Tensor flat;   // [before, places, after]
    Tensor index;  // one number for each combination, of the sizes of the indices
    c10::SmallVector<int64_t, 8> before, after;
};

Indexed join_indices(const Tensor& original, at::IOptTensorListRef given) {
    auto indices = at::native::expandTensors(original, given);
    indices = at::expand_outplace(indices);
    Indexed r;
    r.self = original;
    while (indices.size() < static_cast<size_t>(original.dim())) indices.emplace_back();
    if (!at::native::hasContiguousSubspace(indices))
        std::tie(r.self, indices) = at::native::transposeToFront(r.self, indices);
    int64_t places = 1, first = -1;
    for (int64_t i = 0; i < r.self.dim(); ++i) {
        const Tensor& one = indices[static_cast<size_t>(i)];
        if (!one.defined()) {
            (first < 0 ? r.before : r.after).push_back(r.self.size(i));
            continue;
        }
        if (first < 0) first = i;
        const int64_t size = r.self.size(i);
        const Tensor number = wrapped(one, size);
        r.index = r.index.defined() ? r.index * size + number : number;
        places *= size;
    }
    TORCH_CHECK(r.index.defined(), "enpu: index: no index was given");
    r.flat =
        r.self.reshape({c10::multiply_integers(r.before), places, c10::multiply_integers(r.after)});
    return r;
}

c10::SmallVector<int64_t, 8> result_sizes(const Indexed& r) {
    c10::SmallVector<int64_t, 8> sizes = r.before;
    sizes.append(r.index.sizes().begin(), r.index.sizes().end());
    sizes.append(r.after.begin(), r.after.end());
    return sizes;
}

Tensor& index_out(const Tensor& self, const c10::List<std::optional<Tensor>>& indices,
                  Tensor& out) {
    const Indexed r = join_indices(self, indices);
    const Tensor taken = r.flat.index_select(1, r.index.reshape({-1}));
    const auto sizes = result_sizes(r);
    resize_out(out, sizes);
    return out.copy_(taken.view(sizes));
}

Tensor& index_put_(Tensor& self, const c10::List<std::optional<Tensor>>& indices,
                   const Tensor& values, bool accumulate, bool) {
    const Indexed r = join_indices(self, indices);
    if (r.index.numel() == 0) return self;
    const Tensor index = r.index.reshape({-1});
    const Tensor rows = values.to(self.scalar_type())
                            .to(npu())
                            .expand(result_sizes(r))
                            .reshape({r.flat.size(0), index.numel(), r.flat.size(2)});
    const Tensor result =
        accumulate ? r.flat.index_add(1, index, rows) : r.flat.index_copy(1, index, rows);
    r.self.copy_(result.view(r.self.sizes()));
    return self;
}

Tensor& put_(Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
    const Tensor flat = self.reshape({-1}), i = index.reshape({-1}), s = source.reshape({-1});
    const Tensor result = accumulate ? flat.index_add(0, i, s) : flat.index_copy(0, i, s);
    return self.copy_(result.view(self.sizes()));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("index_select", index_select);
    m.impl("index_select.out", index_select_out);
    m.impl("gather.out", gather_out);
    m.impl("take", take);
    m.impl("take.out", take_out);
    m.impl("scatter.src_out", scatter_src_out);
    m.impl("scatter.value_out", scatter_value_out);
    m.impl("scatter.reduce_out", scatter_reduce_src_out);
    m.impl("scatter.value_reduce_out", scatter_reduce_value_out);
    m.impl("scatter_add.out", scatter_add_out);
    m.impl("scatter_reduce.two_out", scatter_reduce_two_out);
    m.impl("index_add.out", index_add_out);
    m.impl("index_copy.out", index_copy_out);
    m.impl("index_fill_.int_Tensor", index_fill_tensor_);
    m.impl("index_fill_.int_Scalar", index_fill_scalar_);
    m.impl("masked_fill_.Tensor", masked_fill_tensor_);
    m.impl("masked_fill_.Scalar", masked_fill_scalar_);
    m.impl("embedding_dense_backward", embedding_backward);
    m.impl("index.Tensor_out", index_out);
    m.impl("_index_put_impl_", index_put_);
    m.impl("put_", put_);
}

}  // namespace
}  // namespace enpu::pytorch
