// SPDX-License-Identifier: MIT
// Making rt_status objects.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "enpu_hal.h"
#include "profile_hook.h"
#include "rt.h"

struct rt_status_impl {
    rt_code code = RT_INTERNAL;
    int32_t device_code = 0;
    uint64_t operation = 0;
    std::string message;
    std::string origin;
    std::string what;    // name of the operation
    std::string stream;  // name of the stream
    std::string site;    // "file.c:12" of the caller
    uint64_t elapsed_ns = 0;
};

namespace enpu::rt {

// A new status. `origin` is the public function. Never throws; without memory it gives a static
// status.
__attribute__((format(printf, 3, 4))) rt_status make_status(rt_code code, const char* origin,
                                                            const char* format, ...) noexcept;
// From the HAL's.
rt_status from_hal(const enpu_hal_status& status, const char* origin) noexcept;

// To add to a status that make_status gave; null for the one that stands for "no memory".
rt_status_impl* writable(rt_status status) noexcept;

// Runs the body of a public function; exceptions become statuses.
template <typename Body>
rt_status guarded(const char* origin, Body body) noexcept {
    const profile::ApiSpan span(origin);
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return make_status(RT_RESOURCE_EXHAUSTED, origin, "no host memory");
    } catch (const std::exception& error) {
        return make_status(RT_INTERNAL, origin, "%s", error.what());
    }
}

// Returns from the function with the status of the expression unless it is RT_OK.
#define RT_TRY(expression)                                            \
    do {                                                              \
        if (rt_status try_status_ = (expression)) return try_status_; \
    } while (0)

// Refuses a null argument.
#define RT_NOT_NULL(argument)                                                           \
    do {                                                                                \
        if (!(argument))                                                                \
            return ::enpu::rt::make_status(RT_INVALID_ARGUMENT, __func__, "%s is null", \
                                           #argument);                                  \
    } while (0)

}  // namespace enpu::rt
