// SPDX-License-Identifier: MIT
#include "kernel.h"

#include <array>

#include "tensor.h"

namespace enpu::rt {

const char* describe_op(uint32_t op) {
    // Never destroyed: a recording that is written at the end of the process still names them.
    static const auto* const kNames = [] {
        auto* names = new std::array<std::string, ENPU_OPS>;
        for (uint32_t i = 0; i < ENPU_OPS; ++i)
            (*names)[i] = std::string("kernel ") + hal::find_op(i)->name;
        return names;
    }();
    return (*kNames)[op].c_str();
}

rt_status bind_kernel(rt_kernel kernel, const void* params, size_t params_bytes,
                      const rt_operand* operands, uint32_t count, bool resolve, const char* origin,
                      BoundKernel& bound) {
    const hal::OpInfo& info = *kernel->info;
    if (count != info.operands || !operands)
        return make_status(RT_INVALID_ARGUMENT, origin, "%s: takes %u operands, %u were given",
                           info.name, info.operands, operands ? count : 0);
    if (params_bytes != info.params_bytes || (info.params_bytes && !params))
        return make_status(RT_INVALID_ARGUMENT, origin,
                           "%s: its parameters are %u bytes, %zu were given", info.name,
                           info.params_bytes, params ? params_bytes : 0);
    for (uint32_t i = 0; i < count; ++i) {
        if (resolve) {
            RT_TRY(
                kernel->device->resolve_operand(operands[i], info, i, origin, bound.operands[i]));
        } else {
            bound.operands[i] = {{}, operands[i].desc};
        }
    }
    bound.dispatch = {{sizeof(bound.dispatch), ENPU_HAL_TYPE_DISPATCH, nullptr},
                      static_cast<uint32_t>(info.op),
                      count,
                      params,
                      params_bytes,
                      bound.operands};
    return RT_OK;
}

}  // namespace enpu::rt

using namespace enpu::rt;

namespace {

std::string known_names() {
    std::string text;
    for (uint32_t op = 0; op < ENPU_OPS; ++op)
        text += std::string(op ? ", " : "") + enpu::hal::find_op(op)->name;
    return text;
}

}  // namespace

rt_status rt_kernel_lookup(rt_device device, const char* name, rt_kernel* kernel) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(name);
    RT_NOT_NULL(kernel);
    *kernel = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        const enpu::hal::OpInfo* info = enpu::hal::find_op(std::string_view(name));
        if (!info)
            return make_status(RT_NOT_FOUND, "rt_kernel_lookup", "no kernel '%s'; there are: %s",
                               name, known_names().c_str());
        *kernel = &device->kernels[info->op];
        return RT_OK;
    });
}

rt_status rt_kernel_for_op(rt_device device, enum enpu_op op, rt_kernel* kernel) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(kernel);
    *kernel = nullptr;
    if (static_cast<uint32_t>(op) >= ENPU_OPS)
        return make_status(RT_NOT_FOUND, __func__, "kernel number %d is unknown", int(op));
    *kernel = &device->kernels[op];
    return RT_OK;
}

const char* rt_kernel_name(rt_kernel kernel) {
    return kernel ? kernel->info->name : "";
}
uint32_t rt_kernel_operands(rt_kernel kernel) {
    return kernel ? kernel->info->operands : 0;
}

rt_status rt_kernel_supported(rt_kernel kernel, const void* params, size_t params_bytes,
                              const rt_operand* operands, uint32_t operand_count) {
    RT_NOT_NULL(kernel);
    return guarded(__func__, [&]() -> rt_status {
        BoundKernel bound;
        RT_TRY(bind_kernel(kernel, params, params_bytes, operands, operand_count, false,
                           "rt_kernel_supported", bound));
        enpu_hal_status status{};
        const rt_device_impl& device = *kernel->device;
        if (device.hal.kernel->supported(device.handle, &bound.dispatch, &status) != ENPU_HAL_OK)
            return from_hal(status, "rt_kernel_supported");
        return RT_OK;
    });
}

rt_status rt_kernel_launch(rt_stream stream, rt_kernel kernel, const rt_launch_hints* hints,
                           const void* params, size_t params_bytes, const rt_operand* operands,
                           uint32_t operand_count) {
    RT_NOT_NULL(stream);
    RT_NOT_NULL(kernel);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_kernel_launch";
        (void)hints;  // no backend of today divides work by them
        if (kernel->device != stream->device)
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "%s: kernel and stream are of different devices",
                               kernel->info->name);
        BoundKernel bound;
        RT_TRY(bind_kernel(kernel, params, params_bytes, operands, operand_count, true, kOrigin,
                           bound));
        enpu_hal_command command;
        command.kind = ENPU_HAL_COMMAND_DISPATCH;
        command.reserved = 0;
        command.u.dispatch = &bound.dispatch;
        // Frees are ordered after the work of the home stream anyway; other streams' work is noted.
        bool foreign = false;
        for (uint32_t i = 0; i < operand_count; ++i)
            foreign |= operands[i].tensor && operands[i].tensor->home != stream;
        Point point;
        RT_TRY(
            stream->enqueue({&command, 1, nullptr, describe_op(kernel->info->op), kOrigin, nullptr},
                            &point.value, foreign ? &point.timeline : nullptr));
        for (uint32_t i = 0; foreign && i < operand_count; ++i)
            if (operands[i].tensor && operands[i].tensor->home != stream)
                operands[i].tensor->note_use(point);
        stream->device->counted.launches.fetch_add(1, std::memory_order_relaxed);
        return RT_OK;
    });
}

rt_status rt_packed_size(rt_device device, const struct enpu_op_tensor* weights,
                         const struct enpu_op_pack_params* params, uint64_t* bytes) {
    RT_NOT_NULL(device);
    RT_NOT_NULL(weights);
    RT_NOT_NULL(params);
    RT_NOT_NULL(bytes);
    *bytes = 0;
    enpu_hal_status status{};
    if (device->hal.kernel->packed_size(device->handle, weights, params, bytes, &status) !=
        ENPU_HAL_OK)
        return from_hal(status, __func__);
    return RT_OK;
}
