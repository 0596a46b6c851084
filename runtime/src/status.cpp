// SPDX-License-Identifier: MIT
#include "status.h"

#include <cstdarg>
#include <cstdio>

#include "common/status.h"
#include "lane.h"

static_assert(int(RT_DEVICE_LOST) == int(ENPU_HAL_DEVICE_LOST) &&
              int(RT_UNSUPPORTED) == int(ENPU_HAL_UNSUPPORTED) &&
              int(RT_WORK_FAILED) == int(ENPU_HAL_WORK_FAILED));

namespace enpu::rt {
namespace {

rt_status_impl& out_of_memory() {
    static rt_status_impl status{RT_RESOURCE_EXHAUSTED, 0, 0, "no host memory", "", "", "", "", 0};
    return status;
}

}  // namespace

rt_status make_status(rt_code code, const char* origin, const char* format, ...) noexcept {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    try {
        return new rt_status_impl{code, 0, 0, text, origin, "", "", "", 0};
    } catch (const std::bad_alloc&) {
        return &out_of_memory();
    }
}

rt_status_impl* writable(rt_status status) noexcept {
    return status == &out_of_memory() ? nullptr : status;
}

rt_status from_hal(const enpu_hal_status& status, const char* origin) noexcept {
    rt_status made = make_status(static_cast<rt_code>(status.code), origin, "%s", status.message);
    if (made != &out_of_memory()) {
        made->device_code = status.device_code;
        made->operation = status.op_id & kOperationMask;
    }
    return made;
}

}  // namespace enpu::rt

using enpu::rt::out_of_memory;

enum rt_code rt_status_code(rt_status status) {
    return status ? status->code : RT_CODE_OK;
}
const char* rt_code_name(enum rt_code code) {
    return enpu::hal::code_name(code);
}
const char* rt_status_message(rt_status status) {
    return status ? status->message.c_str() : "";
}
const char* rt_status_origin(rt_status status) {
    return status ? status->origin.c_str() : "";
}
int32_t rt_status_device_code(rt_status status) {
    return status ? status->device_code : 0;
}
uint64_t rt_status_operation(rt_status status) {
    return status ? status->operation : 0;
}
const char* rt_status_operation_name(rt_status status) {
    return status ? status->what.c_str() : "";
}
const char* rt_status_stream(rt_status status) {
    return status ? status->stream.c_str() : "";
}
const char* rt_status_call_site(rt_status status) {
    return status ? status->site.c_str() : "";
}
uint64_t rt_status_elapsed_ns(rt_status status) {
    return status ? status->elapsed_ns : 0;
}
void rt_status_free(rt_status status) {
    if (status != &out_of_memory()) delete status;
}

uint64_t rt_now_ns(void) {
    return enpu::hal::now_ns();
}

uint64_t rt_deadline_ns(uint64_t ns) {
    uint64_t deadline;
    return __builtin_add_overflow(rt_now_ns(), ns, &deadline) ? UINT64_MAX : deadline;
}

uint64_t rt_deadline_ms(uint64_t ms) {
    uint64_t ns;
    return __builtin_mul_overflow(ms, uint64_t{1'000'000}, &ns) ? UINT64_MAX : rt_deadline_ns(ns);
}
