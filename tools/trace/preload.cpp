// SPDX-License-Identifier: MIT
// Loaded in front of a program by `enpu trace record`: lets the runtime record the whole run, and
// writes what it has recorded to the file in ENPU_TRACE_RUNTIME at the end.
#include <cstdio>
#include <cstdlib>

#include "rt.h"

namespace {

constexpr uint64_t kDeadlineNs = 5'000'000'000;

const char* target() {
    const char* file = std::getenv("ENPU_TRACE_RUNTIME");
    return file != nullptr && *file != '\0' ? file : nullptr;
}

[[gnu::constructor]] void begin() {
    if (target() == nullptr) return;
    rt_profile_options options = {};
    options.struct_size = sizeof(options);
    options.flags =
        RT_PROFILE_API | RT_PROFILE_DEVICE | RT_PROFILE_MEMORY;  // the kernel's: the tool
    if (rt_profile_start(&options) != RT_OK)
        std::fprintf(stderr, "enpu trace: the runtime does not record\n");
}

[[gnu::destructor]] void end() {
    const char* file = target();
    rt_profile profile = nullptr;
    if (file == nullptr || rt_profile_stop(rt_now_ns() + kDeadlineNs, &profile) != RT_OK) return;
    if (rt_profile_write(profile, file) != RT_OK)
        std::fprintf(stderr, "enpu trace: %s cannot be written\n", file);
    rt_profile_destroy(profile);
}

}  // namespace
