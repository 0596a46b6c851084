// SPDX-License-Identifier: MIT
#include "tensor.h"

#include "poison.h"

#include <cstring>

using namespace enpu::rt;

void rt_tensor_impl::note_use(const Point& operation) {
    std::lock_guard lock(mutex);
    for (Point& use : uses) {
        if (use.timeline != operation.timeline) continue;
        if (use.value < operation.value) use.value = operation.value;
        return;
    }
    uses.push_back(operation);
}

namespace {

rt_status check_desc(const enpu_op_tensor* desc, const char* origin) {
    if (!desc) return make_status(RT_INVALID_ARGUMENT, origin, "desc is null");
    if (enpu::hal::dtype_bytes(desc->dtype) == 0)
        return make_status(RT_INVALID_ARGUMENT, origin, "dtype %u is unknown", desc->dtype);
    if (desc->rank > ENPU_OP_MAX_RANK)
        return make_status(RT_INVALID_ARGUMENT, origin, "rank %u is more than %u", desc->rank,
                           ENPU_OP_MAX_RANK);
    return RT_OK;
}

rt_status dense(enpu_op_tensor* desc, uint32_t dtype, uint32_t rank, const int64_t* dims,
                const uint32_t* order, const char* origin) {
    std::memset(desc, 0, sizeof(*desc));
    desc->dtype = dtype;
    desc->rank = rank;
    RT_TRY(check_desc(desc, origin));
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        const uint32_t axis = order ? order[i] : i;
        if (dims[axis] < 1)
            return make_status(RT_INVALID_ARGUMENT, origin, "dims[%u] is %lld, must be at least 1",
                               axis, static_cast<long long>(dims[axis]));
        desc->dims[axis] = dims[axis];
        desc->strides[axis] = stride;
        if (__builtin_mul_overflow(stride, dims[axis], &stride))
            return make_status(RT_INVALID_ARGUMENT, origin, "the number of elements overflows");
    }
    return RT_OK;
}

}  // namespace

rt_status rt_tensor_desc_init(struct enpu_op_tensor* desc, uint32_t dtype, uint32_t rank,
                              const int64_t* dims) {
    RT_NOT_NULL(desc);
    if (rank != 0) RT_NOT_NULL(dims);
    return guarded(__func__,
                   [&] { return dense(desc, dtype, rank, dims, nullptr, "rt_tensor_desc_init"); });
}

rt_status rt_tensor_desc_init_nhwc(struct enpu_op_tensor* desc, uint32_t dtype,
                                   const int64_t dims[4]) {
    RT_NOT_NULL(desc);
    RT_NOT_NULL(dims);
    static constexpr uint32_t kOrder[] = {0, 2, 3, 1};
    return guarded(__func__,
                   [&] { return dense(desc, dtype, 4, dims, kOrder, "rt_tensor_desc_init_nhwc"); });
}

rt_status rt_tensor_desc_bytes(const struct enpu_op_tensor* desc, uint64_t* bytes) {
    constexpr const char* kOrigin = "rt_tensor_desc_bytes";
    RT_NOT_NULL(bytes);
    *bytes = 0;
    RT_TRY(check_desc(desc, kOrigin));
    if (desc->format == ENPU_OP_PACKED) {
        *bytes = desc->packed_bytes;
        return RT_OK;
    }
    uint64_t last = 0;
    for (uint32_t i = 0; i < desc->rank; ++i) {
        uint64_t reach;
        if (desc->dims[i] < 1 || desc->strides[i] < 0)
            return make_status(
                RT_INVALID_ARGUMENT, kOrigin,
                "dims[%u] is %lld and strides[%u] %lld: an allocation needs dims of at "
                "least 1 and no negative strides",
                i, static_cast<long long>(desc->dims[i]), i,
                static_cast<long long>(desc->strides[i]));
        if (__builtin_mul_overflow(static_cast<uint64_t>(desc->dims[i] - 1),
                                   static_cast<uint64_t>(desc->strides[i]), &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return make_status(RT_INVALID_ARGUMENT, kOrigin, "the number of elements overflows");
    }
    if (__builtin_add_overflow(last, uint64_t{1}, &last) ||
        __builtin_mul_overflow(last, uint64_t{enpu::hal::dtype_bytes(desc->dtype)}, bytes))
        return make_status(RT_INVALID_ARGUMENT, kOrigin, "the number of bytes overflows");
    return RT_OK;
}

rt_status rt_tensor_alloc(rt_stream stream, const struct enpu_op_tensor* desc, rt_tensor* tensor) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(tensor);
    *tensor = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        uint64_t bytes = 0;
        RT_TRY(rt_tensor_desc_bytes(desc, &bytes));
        auto made = std::make_unique<rt_tensor_impl>();
        RT_TRY(allocate_block(*stream, bytes, "rt_tensor_alloc", &made->data));
        made->device = stream->device;
        made->home = stream;
        made->bytes = bytes;
        made->desc = *desc;
        stream->retain();
        *tensor = made.release();
        return RT_OK;
    });
}

rt_status rt_tensor_wrap(rt_stream stream, const struct enpu_op_tensor* desc, void* data,
                         rt_tensor* tensor) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(data);
    RT_NOT_NULL(tensor);
    *tensor = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        uint64_t bytes = 0;
        RT_TRY(rt_tensor_desc_bytes(desc, &bytes));
        enpu_hal_place place;
        RT_TRY(stream->device->resolve(data, bytes, "rt_tensor_wrap", "data", place));
        auto made = std::make_unique<rt_tensor_impl>();
        made->device = stream->device;
        made->home = stream;
        made->data = data;
        made->bytes = bytes;
        made->desc = *desc;
        made->wrapped = true;
        stream->retain();
        *tensor = made.release();
        return RT_OK;
    });
}

void rt_tensor_retain(rt_tensor tensor) {
    tensor->references.fetch_add(1, std::memory_order_relaxed);
}

void rt_tensor_release(rt_tensor tensor) {
    if (!tensor || tensor->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (!tensor->wrapped)
        rt_status_free(guarded(__func__, [&] {
            return tensor->home->free_block(tensor->data, tensor->uses, "rt_tensor_release");
        }));
    rt_stream_impl* home = tensor->home;
    delete tensor;
    home->release();
}

void* rt_tensor_data(rt_tensor tensor) {
    return tensor ? tensor->data : nullptr;
}
uint64_t rt_tensor_bytes(rt_tensor tensor) {
    return tensor ? tensor->bytes : 0;
}
const struct enpu_op_tensor* rt_tensor_desc(rt_tensor tensor) {
    return tensor ? &tensor->desc : nullptr;
}
