// SPDX-License-Identifier: MIT
// Functions that the Python package calls as torch.ops.enpu.*.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <torch/library.h>

#include "device.h"
#include "fallback.h"
#include "policy.h"
#include "random.h"

namespace enpu::pytorch {
namespace {

c10::Dict<std::string, int64_t> counters() {
    c10::Dict<std::string, int64_t> result;
    const rt_counters counted = Runtime::get().counters();
    const auto set = [&](const std::string& name, uint64_t value) {
        result.insert(name, static_cast<int64_t>(value));
    };
    for (uint32_t op = 0; op < ENPU_OPS; ++op) {
        rt_kernel kernel = Runtime::get().kernel(static_cast<enpu_op>(op));
        if (kernel) set(rt_kernel_name(kernel), counted.ops[op]);
    }
    set("from_device", counted.from_device);
    set("jobs", counted.jobs);
    set("jobs_failed", counted.jobs_failed);
    set("copies", counted.copies);
    set("copy_bytes", counted.copy_bytes);
    set("work", counted.work);
    set("launches", counted.launches);
    set("bytes_h2d", counted.bytes_h2d);
    set("bytes_d2h", counted.bytes_d2h);
    return result;
}

// What the policy did; empty without one.
c10::Dict<std::string, int64_t> repairs() {
    c10::Dict<std::string, int64_t> result;
    if (!has_policy()) return result;
    const rt_policy_report report = policy_report(Runtime::get().device());
    const auto set = [&](const char* name, uint64_t value) {
        result.insert(name, static_cast<int64_t>(value));
    };
    set("device_lost", report.device_lost);
    set("failures", report.failures);
    set("retries", report.retries);
    set("repaired", report.repaired);
    set("fallback_ops", report.fallback_ops);
    set("refused", report.refused);
    return result;
}

c10::Dict<std::string, int64_t> fallbacks() {
    c10::Dict<std::string, int64_t> result;
    for (const auto& [name, calls] : fallback_counts())
        result.insert(name, static_cast<int64_t>(calls));
    return result;
}

std::string device_name() {
    rt_device_info info{};
    info.struct_size = sizeof(info);
    check(rt_device_get_info(Runtime::get().device(), &info), "device");
    return std::string(info.name) + " (" + info.spec + ")";
}

bool is_opened() {
    return Runtime::opened();
}

void manual_seed(int64_t seed) {
    at::Generator generator = default_generator();
    const std::lock_guard guard(generator.mutex());
    generator.set_current_seed(static_cast<uint64_t>(seed));
}

void set_rng_state(const at::Tensor& state) {
    at::Generator generator = default_generator();
    const std::lock_guard guard(generator.mutex());
    generator.set_state(state);
}

TORCH_LIBRARY(enpu, m) {
    m.def("counters() -> Dict(str, int)", counters);
    m.def("repairs() -> Dict(str, int)", repairs);
    m.def("fallbacks() -> Dict(str, int)", fallbacks);
    m.def("reset_fallbacks() -> ()", reset_fallback_counts);
    m.def("set_fallback(str mode) -> ()", [](const std::string& mode) { set_fallback(mode); });
    m.def("fallback_mode() -> str", fallback_mode);
    m.def("device_name() -> str", device_name);
    m.def("is_opened() -> bool", is_opened);
    m.def("is_available() -> bool", [] { return at::detail::getPrivateUse1Hooks().isAvailable(); });
    m.def("recover() -> ()", [] { Runtime::get().recover(); });
    m.def("manual_seed(int seed) -> ()", manual_seed);
    m.def("get_rng_state() -> Tensor", [] { return default_generator().get_state(); });
    m.def("set_rng_state(Tensor state) -> ()", set_rng_state);
}

}  // namespace
}  // namespace enpu::pytorch
