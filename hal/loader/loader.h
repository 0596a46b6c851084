// SPDX-License-Identifier: MIT
// Finds backends, loads them and refuses those whose tables do not keep the contract of enpu_hal.h.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "enpu_hal.h"

namespace enpu::hal {

struct Backend {
    std::string path;
    const enpu_hal_plugin* plugin = nullptr;  // with what it lacks emulated, and with the layers
    const enpu_hal_plugin* raw = nullptr;     // as the backend gave it
};

// A file that looked like a backend and was refused.
struct Refusal {
    std::string path;
    std::string reason;
};

// "" when the plug-in keeps the contract, else a sentence that names the table and the slot.
std::string check_plugin(const enpu_hal_plugin* plugin);

// Loads one shared object, for good: backends make threads and are never unloaded. False with a
// sentence in `reason`.
bool load_backend(const std::string& path, Backend& backend, std::string& reason);

// Puts layers around a plug-in: `list` is comma-separated, of "raw" (no emulation), "validate",
// "trace" and "fault"; empty: emulation alone. The order is fixed: trace sees what the caller calls,
// then validate, fault, emulation. nullptr with a sentence in `reason` for an unknown name.
const enpu_hal_plugin* with_layers(const enpu_hal_plugin& raw, const std::string& list,
                                   std::string& reason);

// All backends libenpu-hal-*.so of the folders in ENPU_HAL_PATH (colon-separated), or, when that is
// not set, of the folder of this library. Loaded on the first call; thread-safe; the order is that
// of the names. Layers are those of ENPU_HAL_LAYERS.
struct Backends {
    std::vector<Backend> loaded;
    std::vector<Refusal> refused;
};
const Backends& backends();

// Sets where backends' log lines go; nullptr: stderr for warnings and errors, everything with
// ENPU_HAL_LOG=debug.
using LogFunction = void (*)(uint32_t level, const char* message);
void set_log(LogFunction log);

}  // namespace enpu::hal
