// SPDX-License-Identifier: MIT
// Tensors without arithmetic: making, viewing, resizing, copying.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/library.h>

#include "launch.h"
#include "memory.h"

namespace enpu::pytorch {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

Tensor empty_memory_format(IntArrayRef sizes, std::optional<ScalarType> dtype,
                           std::optional<at::Layout> layout, std::optional<at::Device> device,
                           std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
    TORCH_CHECK(!pin.value_or(false), "enpu: only tensors on the CPU can be pinned");
    TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "enpu: only strided tensors");
    TORCH_CHECK(!device || device->index() <= 0, "enpu: there is one device, not ", *device);
    return at::detail::empty_generic(sizes, allocator(), kKeys, c10::dtype_or_default(dtype),
                                     format);
}

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, std::optional<ScalarType> dtype,
                     std::optional<at::Layout> layout, std::optional<at::Device> device,
                     std::optional<bool> pin) {
    TORCH_CHECK(!pin.value_or(false), "enpu: only tensors on the CPU can be pinned");
    TORCH_CHECK(layout.value_or(at::kStrided) == at::kStrided, "enpu: only strided tensors");
    TORCH_CHECK(!device || device->index() <= 0, "enpu: there is one device, not ", *device);
    return at::detail::empty_strided_generic(sizes, strides, allocator(), kKeys,
                                             c10::dtype_or_default(dtype));
}

// ---- sizes and storages

void grow(const Tensor& t, size_t bytes) {
    c10::StorageImpl* storage = t.storage().unsafeGetStorageImpl();
    if (bytes > storage->nbytes()) resize_storage(storage, bytes);
}

const Tensor& resize_(const Tensor& self, IntArrayRef sizes,
                      std::optional<at::MemoryFormat> format) {
    if (self.sizes() != sizes) {
        self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
        if (self.numel()) {
            grow(self, at::detail::computeStorageNbytesContiguous(
                           sizes, self.element_size(), static_cast<size_t>(self.storage_offset())));
        }
    }
    if (format && *format != at::MemoryFormat::Preserve)
        self.unsafeGetTensorImpl()->empty_tensor_restride(*format);
    return self;
}

Tensor& set_storage(Tensor& self, at::Storage source, int64_t offset, IntArrayRef sizes,
                    IntArrayRef strides) {
    at::native::checkSetStorage(self, source, offset, sizes, strides);
    self.unsafeGetTensorImpl()->set_storage_offset(offset);
    std::optional<IntArrayRef> given;
    if (strides.data()) given = strides;
    if (given) {
        self.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, *given);
        grow(self, at::detail::computeStorageNbytes(sizes, *given, self.element_size(),
                                                    static_cast<size_t>(offset)));
    } else {
        self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
        grow(self, at::detail::computeStorageNbytesContiguous(sizes, self.element_size(),
                                                              static_cast<size_t>(offset)));
    }
    return self;
}

Tensor& set_source_storage(Tensor& self, at::Storage source) {
    const int64_t count = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
    return set_storage(self, std::move(source), 0, {count}, {});
}

Tensor& set_source_tensor(Tensor& self, const Tensor& source) {
    if (self.is_same(source)) return self;
    return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                       source.strides());
}

Tensor& set_empty(Tensor& self) {
    at::Storage none(c10::Storage::use_byte_size_t(), 0, allocator(), true);
    return set_storage(self, none, 0, {0}, {});
}

const Tensor& resize_output(const Tensor& self, IntArrayRef sizes, at::Device) {
    at::native::resize_output(self, sizes);
    return self;
}

bool is_set_to(const Tensor& self, const Tensor& other) {
    return self.storage().unsafeGetStorageImpl() == other.storage().unsafeGetStorageImpl() &&
           self.storage_offset() == other.storage_offset() && self.sizes() == other.sizes() &&
           self.strides() == other.strides();
}

// ---- copies

// Host tensor of the dtype and the sizes of `to`, to the device.
void upload(const Tensor& host, const Tensor& to) {
    Runtime& runtime = Runtime::get();
    const Tensor values = host.to(to.scalar_type()).expand(to.sizes());
    if (to.is_non_overlapping_and_dense()) {
        Tensor staged = values;
        if (values.strides() != to.strides() || !values.is_non_overlapping_and_dense()) {
            staged = at::empty_strided(to.sizes(), to.strides(), values.options());
            staged.copy_(values);
        }
        check(rt_memcpy_h2d(runtime.current(), to.mutable_data_ptr(), staged.const_data_ptr(),
                            to.nbytes()),
              "copy to the device");
        // Pinned memory is read later; a staged copy would be gone by then.
        if (!staged.is_same(host) && staged.is_pinned())
            check(rt_stream_sync(runtime.current(), rt_deadline_ms(kDeadlineMs)), "copy");
        return;
    }
    const Tensor dense = new_tensor(to.sizes(), to.scalar_type());
    upload(values, dense);
    move_into(dense, to);
}

void download(const Tensor& from, const Tensor& host, bool non_blocking) {
    Runtime& runtime = Runtime::get();
    if (from.is_non_overlapping_and_dense() && from.scalar_type() == host.scalar_type() &&
        from.strides() == host.strides()) {
        check(rt_memcpy_d2h(runtime.current(), host.mutable_data_ptr(), from.const_data_ptr(),
                            from.nbytes()),
              "copy to the host");
        if (!non_blocking)
            check(rt_stream_sync(runtime.current(), rt_deadline_ms(kDeadlineMs)),
                  "copy to the host");
        return;
    }
    const Tensor dense = contiguous(from);
    const Tensor staged = at::empty(from.sizes(), from.options().device(at::kCPU));
    download(dense, staged, false);
    host.copy_(staged);
}

Tensor copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
    if (dst.numel() == 0 || self.is_same(dst)) return dst;
    if (!on_device(self)) {
        TORCH_CHECK(self.device().is_cpu(), "enpu: cannot copy from ", self.device());
        upload(self, dst);
    } else if (!on_device(dst)) {
        TORCH_CHECK(dst.device().is_cpu(), "enpu: cannot copy to ", dst.device());
        download(self.expand(dst.sizes()), dst, non_blocking);
    } else if (self.scalar_type() == dst.scalar_type()) {
        move_into(self.expand(dst.sizes()), dst);
    } else {
        check_operand(self, "copy");
        check_operand(dst, "copy");
        const Tensor from = self.expand(dst.sizes());
        if (overlaps(dst, from) || dst.data_ptr() == from.data_ptr()) {
            const Tensor cast = new_tensor(dst.sizes(), dst.scalar_type());
            cast_into(from, cast);
            move_into(cast, dst);
        } else {
            cast_into(from, dst);
        }
    }
    return dst;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& dst) {
    dst.resize_(self.sizes());
    return copy_from(self, dst, false);
}

Scalar local_scalar_dense(const Tensor& self) {
    const Tensor host = at::empty_strided({}, {}, self.options().device(at::kCPU));
    copy_from(self.reshape({}), host, false);
    return host.item();
}

void record_stream(Tensor& self, at::Stream stream) {
    static_cast<c10::DeviceAllocator*>(allocator())
        ->recordStream(self.storage().data_ptr(), stream);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", empty_memory_format);
    m.impl("empty_strided", empty_strided);
    m.impl("as_strided", at::native::as_strided_tensorimpl);
    m.impl("view", at::native::view);
    m.impl("_reshape_alias", at::native::_reshape_alias);
    m.impl("unfold", at::native::unfold);
    m.impl("view_as_real", at::native::view_as_real);
    m.impl("view_as_complex", at::native::view_as_complex);
    m.impl("resize_", resize_);
    m.impl("_resize_output_", resize_output);
    m.impl("set_", set_empty);
    m.impl("set_.source_Storage", set_source_storage);
    m.impl("set_.source_Storage_storage_offset", set_storage);
    m.impl("set_.source_Tensor", set_source_tensor);
    m.impl("is_set_to", is_set_to);
    m.impl("record_stream", record_stream);
    m.impl("_copy_from", copy_from);
    m.impl("_copy_from_and_resize", copy_from_and_resize);
    m.impl("_local_scalar_dense", local_scalar_dense);
}

}  // namespace
}  // namespace enpu::pytorch
