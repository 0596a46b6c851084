// SPDX-License-Identifier: MIT
#include "loader.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "emulation.h"
#include "layers.h"

namespace enpu::hal {
namespace {

std::atomic<LogFunction> log_function{nullptr};

void log_line(void*, uint32_t level, const char* message) {
    if (LogFunction log = log_function.load()) return log(level, message);
    static const bool debug = [] {
        const char* value = std::getenv("ENPU_HAL_LOG");
        return value && std::string_view(value) == "debug";
    }();
    if (debug || level <= ENPU_HAL_LOG_WARNING) std::fprintf(stderr, "enpu: %s\n", message);
}

const enpu_hal_host& host_table() {
    static const enpu_hal_host kHost = {{sizeof(enpu_hal_host), ENPU_HAL_TYPE_HOST, nullptr},
                                        ENPU_HAL_ABI_MAJOR,
                                        ENPU_HAL_ABI_MINOR,
                                        nullptr,
                                        log_line};
    return kHost;
}

std::vector<std::string> search_path() {
    std::vector<std::string> folders;
    if (const char* path = std::getenv("ENPU_HAL_PATH")) {
        std::stringstream stream(path);
        for (std::string folder; std::getline(stream, folder, ':');)
            if (!folder.empty()) folders.push_back(folder);
        return folders;
    }
    Dl_info self;
    if (dladdr(reinterpret_cast<void*>(&search_path), &self) && self.dli_fname) {
        std::filesystem::path file = self.dli_fname;
        std::error_code error;
        // A program that the shell found in PATH only knows its name.
        if (!file.has_parent_path()) file = std::filesystem::read_symlink("/proc/self/exe", error);
        const auto folder = std::filesystem::absolute(file, error).parent_path();
        folders.push_back(folder.string());
        folders.push_back((folder / "../lib").string());  // this code linked into a program
    }
    return folders;
}

bool is_backend_name(const std::string& name) {
    return name.starts_with("libenpu-hal-") && name.ends_with(".so");
}

Backends load_all() {
    Backends result;
    std::vector<std::string> seen;
    for (const std::string& folder : search_path()) {
        std::vector<std::string> files;
        std::error_code error;
        for (const auto& entry : std::filesystem::directory_iterator(folder, error))
            if (is_backend_name(entry.path().filename().string()))
                files.push_back(std::filesystem::weakly_canonical(entry.path(), error).string());
        std::sort(files.begin(), files.end());
        for (const std::string& file : files) {
            if (std::find(seen.begin(), seen.end(), file) != seen.end()) continue;
            seen.push_back(file);
            Backend backend;
            std::string reason;
            if (load_backend(file, backend, reason))
                result.loaded.push_back(backend);
            else
                result.refused.push_back({file, reason});
        }
    }
    for (const Refusal& refusal : result.refused)
        log_line(nullptr, ENPU_HAL_LOG_WARNING,
                 (refusal.path + " is not used: " + refusal.reason).c_str());
    return result;
}

}  // namespace

bool load_backend(const std::string& path, Backend& backend, std::string& reason) {
    // NODELETE: its threads and static tables must outlive every handle.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char* error = dlerror();
        reason = error ? error : "cannot be loaded";
        return false;
    }
    const auto query = reinterpret_cast<enpu_hal_query_fn>(dlsym(library, ENPU_HAL_QUERY_NAME));
    if (!query) {
        reason = "does not export " ENPU_HAL_QUERY_NAME;
        return false;
    }
    enpu_hal_status status{};
    const enpu_hal_plugin* plugin = query(&host_table(), &status);
    if (!plugin) {
        reason = status.message[0] ? status.message : "refused this host without a reason";
        return false;
    }
    reason = check_plugin(plugin);
    if (!reason.empty()) return false;
    const char* layers = std::getenv("ENPU_HAL_LAYERS");
    backend = {path, with_layers(*plugin, layers ? layers : "", reason), plugin};
    return backend.plugin != nullptr;
}

const enpu_hal_plugin* with_layers(const enpu_hal_plugin& raw, const std::string& list,
                                   std::string& reason) {
    std::vector<std::string> names;
    std::stringstream stream(list);
    for (std::string name; std::getline(stream, name, ',');)
        if (!name.empty()) names.push_back(name);
    const auto wants = [&](const char* name) { return std::erase(names, name) != 0; };
    const enpu_hal_plugin* plugin = wants("raw") ? &raw : complete(raw);
    const bool faults = wants("fault"), validates = wants("validate"), traces = wants("trace");
    if (!names.empty()) {
        reason = "ENPU_HAL_LAYERS: there is no layer '" + names[0] +
                 "'; there are raw, validate, trace and fault";
        return nullptr;
    }
    const auto add = [&](std::unique_ptr<Layer> layer) {
        if (!layer) return false;  // the reason is set
        plugin = interpose(std::move(layer), *plugin, plugin->caps);
        if (!plugin) reason = "ENPU_HAL_LAYERS: too many layers in this process";
        return plugin != nullptr;
    };
    reason.clear();
    const char* order = std::getenv("ENPU_HAL_FAULTS");
    if (faults && !add(make_fault_layer(*plugin, order ? order : "", reason))) return nullptr;
    if (validates && !add(make_validate_layer(*plugin))) return nullptr;
    if (traces && !add(make_trace_layer(*plugin))) return nullptr;
    return plugin;
}

const Backends& backends() {
    static const Backends* all = new Backends(load_all());  // never destroyed, as what it loaded
    return *all;
}

void set_log(LogFunction log) {
    log_function.store(log);
}

}  // namespace enpu::hal
