// SPDX-License-Identifier: MIT
#include "status.h"

#include <cstdio>
#include <ctime>

namespace enpu::hal {
namespace {

uint32_t fill(enpu_hal_status* status, uint32_t code, int32_t device_code, const char* format,
              va_list arguments) {
    if (status) {
        status->code = code;
        status->device_code = device_code;
        status->op_id = 0;
        std::vsnprintf(status->message, sizeof(status->message), format, arguments);
    }
    return code;
}

}  // namespace

uint32_t fail(enpu_hal_status* status, uint32_t code, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(status, code, 0, format, arguments);
    va_end(arguments);
    return code;
}

uint32_t fail_device(enpu_hal_status* status, uint32_t code, int32_t device_code,
                     const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(status, code, device_code, format, arguments);
    va_end(arguments);
    return code;
}

uint32_t fail_as(enpu_hal_status* status, const enpu_hal_status& failure) {
    if (status) *status = failure;
    return failure.code;
}

const char* code_name(uint32_t code) {
    static constexpr const char* kNames[] = {"ok",
                                             "invalid-argument",
                                             "not-found",
                                             "permission-denied",
                                             "resource-exhausted",
                                             "unavailable",
                                             "unsupported",
                                             "deadline-exceeded",
                                             "failed-precondition",
                                             "internal",
                                             "aborted",
                                             "work-failed",
                                             "work-timeout",
                                             "data-loss",
                                             "device-lost",
                                             "stream-poisoned"};
    return code < sizeof(kNames) / sizeof(kNames[0]) ? kNames[code] : "unknown";
}

uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1'000'000'000u + uint64_t(now.tv_nsec);
}

}  // namespace enpu::hal
