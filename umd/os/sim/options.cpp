// SPDX-License-Identifier: MIT
#include "os/sim/options.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace enpu::sim {
namespace {

bool parse_bytes(std::string_view text, uint64_t* value) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
    if (code != std::errc()) return false;
    const std::string_view suffix(end, text.data() + text.size() - end);
    if (suffix.empty()) return true;
    const auto shift = suffix == "K" ? 10 : suffix == "M" ? 20 : suffix == "G" ? 30 : 0;
    return shift != 0 && !__builtin_mul_overflow(*value, uint64_t{1} << shift, value);
}

bool parse_count(std::string_view text, uint32_t least, uint32_t most, uint32_t* value) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return code == std::errc() && end == text.data() + text.size() && *value >= least &&
           *value <= most;
}

bool parse_switch(std::string_view text, bool* value) {
    *value = text == "on";
    return text == "on" || text == "off";
}

int set(std::string_view key, std::string_view value, Options* options, enpu_error* error) {
    constexpr uint64_t kLarge = ENPU_LARGE_PAGE_SIZE;
    bool good = false;
    const char* rule = nullptr;
    if (key == "cores") {
        good = parse_count(value, 1, 16, &options->cores);
        rule = "1 … 16";
    } else if (key == "threads") {
        good = parse_count(value, 1, 64, &options->threads);
        rule = "1 … 64";
    } else if (key == "copy-engines") {
        good = parse_count(value, 1, 4, &options->copy_engines);
        rule = "1 … 4";
    } else if (key == "local-mem") {
        good = parse_bytes(value, &options->local_bytes) && options->local_bytes >= kLarge &&
               options->local_bytes % kLarge == 0 && options->local_bytes <= uint64_t{1} << 40;
        rule = "a multiple of 2M, at least 2M";
    } else if (key == "ram") {
        good = parse_bytes(value, &options->host_bytes) && options->host_bytes >= ENPU_PAGE_SIZE;
        rule = "at least 4K";
    } else if (key == "fault-injection") {
        good = parse_switch(value, &options->fault_injection);
        rule = "on or off";
    }
    if (key == "faults") {
        options->fault_injection = true;
        return parse_faults(std::string(value).c_str(), &options->faults, error);
    }
    if (rule == nullptr) {
        return fail(error, -EINVAL,
                    "sim: option '%.*s' is not known; there are cores threads copy-engines "
                    "local-mem ram fault-injection faults",
                    static_cast<int>(key.size()), key.data());
    }
    if (!good) {
        return fail(error, -EINVAL, "sim: option %.*s is '%.*s', must be %s",
                    static_cast<int>(key.size()), key.data(), static_cast<int>(value.size()),
                    value.data(), rule);
    }
    return 0;
}

}  // namespace

int parse_options(const std::string& text, Options* options, enpu_error* error) {
    std::string_view rest = text;
    while (!rest.empty()) {
        const std::string_view item = rest.substr(0, rest.find(','));
        rest.remove_prefix(item.size() == rest.size() ? item.size() : item.size() + 1);
        const size_t equals = item.find('=');
        if (equals == std::string_view::npos) {
            return fail(error, -EINVAL, "sim: '%.*s' is not option=value",
                        static_cast<int>(item.size()), item.data());
        }
        if (int r = set(item.substr(0, equals), item.substr(equals + 1), options, error)) return r;
    }
    return 0;
}

int parse_faults(const char* text, std::vector<enpu_fault>* faults, enpu_error* error) {
    const char* at = text;
    do {
        enpu_fault fault;
        if (const char* wrong = enpu_fault_parse(&at, &fault))
            return fail(error, -EINVAL, "fault '%s': %s, at '%s'", text, wrong, at);
        faults->push_back(fault);
    } while (*at != '\0');
    return 0;
}

int add_environment(Options* options, enpu_error* error) {
    const char* text = std::getenv("ENPU_SIM_FAULTS");
    if (text == nullptr || *text == '\0') return 0;
    options->fault_injection = true;
    return parse_faults(text, &options->faults, error);
}

}  // namespace enpu::sim
