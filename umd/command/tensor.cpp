// SPDX-License-Identifier: MIT
#include "base/error.h"
#include "rules/rules.h"

using namespace enpu;

int enpu_tensor_init(enpu_tensor* tensor, uint32_t dtype, uint32_t rank, const uint32_t* dims,
                     enpu_error* error) {
    if (tensor == nullptr || (dims == nullptr && rank != 0))
        return fail(error, -EINVAL, "enpu_tensor_init: an argument is NULL");
    if (rules::dtype_bytes(dtype) == 0)
        return fail(error, -EINVAL, "enpu_tensor_init: dtype %u is not known", dtype);
    if (rank > ENPU_MAX_RANK)
        return fail(error, -EINVAL, "enpu_tensor_init: rank %u is over %u", rank, ENPU_MAX_RANK);
    enpu_tensor made{};
    made.dtype = static_cast<uint8_t>(dtype);
    made.rank = static_cast<uint8_t>(rank);
    int32_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        made.dims[i] = dims[i];
        made.strides[i] = stride;
        if (i > 0 && __builtin_mul_overflow(stride, dims[i], &stride)) {
            return fail(error, -EINVAL,
                        "enpu_tensor_init: the stride of axis %u does not fit 32 bits", i - 1);
        }
    }
    *tensor = made;
    return 0;
}

int enpu_tensor_span(const enpu_tensor* tensor, int64_t* begin, uint64_t* bytes,
                     enpu_error* error) {
    if (tensor == nullptr || begin == nullptr || bytes == nullptr)
        return fail(error, -EINVAL, "enpu_tensor_span: an argument is NULL");
    rules::Span span;
    if (!rules::tensor_span(*tensor, span)) {
        return fail(error, -EINVAL, "enpu_tensor_span: the tensor spans more than %u bytes",
                    ENPU_MAX_TENSOR_BYTES);
    }
    *begin = span.offset;
    *bytes = span.bytes;
    return 0;
}

uint64_t enpu_packed_bytes(const enpu_tensor* weights, uint32_t kind, uint32_t groups) {
    return weights != nullptr ? rules::packed_bytes(*weights, kind, groups) : 0;
}
