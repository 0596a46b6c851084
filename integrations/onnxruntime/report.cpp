// SPDX-License-Identifier: MIT
#include "report.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace enpu::ort {
namespace {

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20) {
            char code[8];
            std::snprintf(code, sizeof(code), "\\u%04x", byte);
            out += code;
        } else {
            out += c;
        }
    }
    return out + "\"";
}

std::string number(const char* name, uint64_t value) {
    return quoted(name) + ": " + std::to_string(value);
}

// Operators that the device counted between two readings, by the name of the kernel.
std::string operator_counts(rt_device device, const rt_counters& before, const rt_counters& after) {
    std::string text = "{";
    for (uint32_t op = 0; op < ENPU_OPS; ++op) {
        const uint64_t count = after.ops[op] - before.ops[op];
        rt_kernel kernel = nullptr;
        rt_status status = rt_kernel_for_op(device, static_cast<enpu_op>(op), &kernel);
        if (status == RT_OK && count) {
            text += (text.size() > 1 ? ", " : "") + number(rt_kernel_name(kernel), count);
        }
        rt_status_free(status);
    }
    return text + "}";
}

// What the policy for failures did; "null" without one.
std::string failures(rt_device device) {
    rt_policy_report report{};
    report.struct_size = sizeof(report);
    rt_status status = rt_device_policy_report(device, &report);
    const bool has = status == RT_OK;
    rt_status_free(status);
    if (!has) return "null";
    return "{" + number("failures", report.failures) + ", " + number("retries", report.retries) +
           ", " + number("repaired", report.repaired) + ", " +
           number("on_fallback", report.fallback_ops) + ", " + number("refused", report.refused) +
           ", " + number("device_lost", report.device_lost) + ", " + quoted("last") + ": " +
           quoted(report.last_event) + "}";
}

}  // namespace

std::string to_json(const Report& r, rt_device device,
                    const std::vector<lowering::ExecutableStats>& programs, uint64_t weight_bytes) {
    std::string text = "{\n  " + number("nodes_total", r.nodes_total) + ",\n  " +
                       number("nodes_npu", r.nodes_npu) + ",\n  " +
                       number("subgraphs", r.subgraphs) + ",\n  \"left_out\": [";
    for (size_t i = 0; i < r.left_out.size(); ++i) {
        const LeftOut& n = r.left_out[i];
        text += std::string(i ? "," : "") + "\n    {\"name\": " + quoted(n.name) +
                ", \"op\": " + quoted(n.op) + ", \"reason\": " + quoted(n.reason) + "}";
    }
    text += std::string(r.left_out.empty() ? "" : "\n  ") + "],\n  \"programs\": [";
    for (size_t i = 0; i < programs.size(); ++i) {
        const auto& s = programs[i];
        text += std::string(i ? "," : "") + "\n    {" + number("hits", s.hits) + ", " +
                number("misses", s.misses) + ", " + number("evictions", s.evictions) + ", " +
                number("runs", s.runs) + ", " + number("kernels", s.kernels) + ", " +
                number("arena_bytes", s.arena_bytes) + ", " +
                number("lower_bound_bytes", s.lower_bound_bytes) + ", " +
                number("compile_ns", s.compile_ns) + "}";
    }
    text += std::string(programs.empty() ? "" : "\n  ") + "],\n  " +
            number("weight_bytes", weight_bytes);
    text += ",\n  \"last_run\": {\"counted_by_device\": ";
    text += r.after.from_device ? "true" : "false";
    text += ", " + number("jobs", r.after.jobs - r.before.jobs) + ", " +
            number("jobs_failed", r.after.jobs_failed - r.before.jobs_failed) + ", " +
            number("busy_compute_ns", r.after.busy_compute_ns - r.before.busy_compute_ns) + ", " +
            number("work", r.after.work - r.before.work) + ", " +
            number("copies", r.after.copies - r.before.copies) + ", " +
            number("copy_bytes", r.after.copy_bytes - r.before.copy_bytes) + ", " +
            number("bytes_h2d", r.after.bytes_h2d - r.before.bytes_h2d) + ", " +
            number("bytes_d2h", r.after.bytes_d2h - r.before.bytes_d2h) +
            ", \"ops\": " + operator_counts(device, r.before, r.after) +
            "},\n  \"since_open\": {\"ops_all_runs\": " +
            operator_counts(device, rt_counters{}, r.after) +
            "},\n  \"on_failure\": " + failures(device) + "\n}\n";
    return text;
}

void write_file(const std::string& path, const std::string& text) {
    const std::string part = path + ".part";
    std::FILE* file = std::fopen(part.c_str(), "w");
    const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool closed = file && std::fclose(file) == 0;
    if (!written || !closed || std::rename(part.c_str(), path.c_str()) != 0) {
        lowering::fail("the report '" + path + "' cannot be written: " + std::strerror(errno));
    }
}

}  // namespace enpu::ort
