// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace enpu {

int fail(enpu_error* error, int code, const char* format, ...) {
    if (error == nullptr) return code;
    error->code = code;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error->message, sizeof(error->message), format, arguments);
    va_end(arguments);
    return code;
}

std::string errno_text(int code) {
    const char* name = strerrorname_np(-code);
    const char* text = strerrordesc_np(-code);
    if (name == nullptr || text == nullptr) return "error " + std::to_string(code);
    return std::string(text) + " (" + name + ")";
}

}  // namespace enpu
