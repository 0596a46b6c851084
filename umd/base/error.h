// SPDX-License-Identifier: MIT
// Errors of the C API: one negative errno and one sentence, and the wall that keeps C++ exceptions
// inside the library.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "enpu/enpu.h"

namespace enpu {

// Fills *error (if there is one) and returns `code`.
[[gnu::format(printf, 3, 4)]] int fail(enpu_error* error, int code, const char* format, ...);

// "No space left on device (ENOSPC)" of a negative errno.
std::string errno_text(int code);

// Runs the body of an API function. Whatever it throws becomes a code.
template <typename Body>
int guard(enpu_error* error, Body&& body) {
    try {
        return std::forward<Body>(body)();
    } catch (const std::bad_alloc&) {
        return fail(error, -ENOMEM, "out of host memory");
    } catch (const std::exception& exception) {
        return fail(error, -EIO, "internal error: %s", exception.what());
    }
}

}  // namespace enpu
