// SPDX-License-Identifier: MIT
#include "output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace enpu::tools {

void print_json(const std::string& command, const nlohmann::ordered_json& document) {
    nlohmann::ordered_json whole = {{"schema", kJsonSchema}, {"command", command}};
    whole.update(document);
    const std::string text = whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
    std::printf("%s\n", text.c_str());
}

bool is_terminal() {
    static const bool terminal = isatty(STDOUT_FILENO) == 1;
    return terminal;
}

std::string paint(Colour colour, std::string_view text) {
    static const bool on = is_terminal() && std::getenv("NO_COLOR") == nullptr;
    static constexpr const char* kCodes[] = {"", "32", "31", "33", "2", "1"};
    if (!on || colour == Colour::kPlain) return std::string(text);
    return format("\033[%sm%.*s\033[0m", kCodes[static_cast<int>(colour)],
                  static_cast<int>(text.size()), text.data());
}

std::string format(const char* pattern, ...) {
    va_list arguments, again;
    va_start(arguments, pattern);
    va_copy(again, arguments);
    const int length = std::vsnprintf(nullptr, 0, pattern, arguments);
    va_end(arguments);
    std::string text(static_cast<size_t>(std::max(length, 0)), '\0');
    std::vsnprintf(text.data(), text.size() + 1, pattern, again);
    va_end(again);
    return text;
}

std::string hex(uint64_t value, unsigned digits) {
    return format("0x%0*llx", static_cast<int>(digits), static_cast<unsigned long long>(value));
}

std::string bytes_text(uint64_t bytes) {
    static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = static_cast<double>(bytes);
    unsigned unit = 0;
    while (value >= 1024 && unit + 1 < std::size(kUnits)) {
        value /= 1024;
        ++unit;
    }
    if (unit == 0) return format("%llu B", static_cast<unsigned long long>(bytes));
    return value == static_cast<double>(static_cast<uint64_t>(value))
               ? format("%.0f %s", value, kUnits[unit])
               : format("%.1f %s", value, kUnits[unit]);
}

std::string time_text(double nanoseconds) {
    if (nanoseconds < 1e3) return format("%.0f ns", nanoseconds);
    if (nanoseconds < 1e6) return format("%.1f us", nanoseconds / 1e3);
    if (nanoseconds < 1e9) return format("%.1f ms", nanoseconds / 1e6);
    return format("%.2f s", nanoseconds / 1e9);
}

std::string sparkline(const std::vector<double>& values, double top) {
    static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    for (const double value : values) {
        if (top <= 0) top = std::max(top, value);
    }
    std::string text;
    for (const double value : values) {
        const double share = top > 0 ? std::clamp(value / top, 0.0, 1.0) : 0;
        text += kBlocks[std::min<size_t>(7, static_cast<size_t>(share * 8))];
    }
    return text;
}

std::string csv(std::string_view cell) {
    if (cell.find_first_of(",\"\n") == std::string_view::npos) return std::string(cell);
    std::string quoted = "\"";
    for (const char c : cell) {
        if (c == '"') quoted += '"';
        quoted += c;
    }
    return quoted + '"';
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else if (static_cast<unsigned char>(c) >= ' ' || c == '\n')
            out += c;
    }
    return out;
}

size_t visible_width(std::string_view text) {
    size_t width = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\033') {
            i = std::min(text.find('m', i), text.size() - 1);
            continue;
        }
        if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) ++width;
    }
    return width;
}

Table::Table(std::vector<std::string> columns) : columns_(std::move(columns)) {
    for (std::string& name : columns_) {
        right_.push_back(!name.empty() && name[0] == '>');
        if (right_.back()) name.erase(0, 1);
    }
}

void Table::add(std::vector<std::string> row) {
    row.resize(columns_.size());
    rows_.push_back(std::move(row));
}

std::string Table::text(unsigned indent) const {
    std::vector<size_t> widths;
    bool head = false;
    for (size_t c = 0; c < columns_.size(); ++c) {
        head |= !columns_[c].empty();
        widths.push_back(visible_width(columns_[c]));
        for (const auto& row : rows_) widths[c] = std::max(widths[c], visible_width(row[c]));
    }
    std::string out;
    auto line = [&](const std::vector<std::string>& cells, Colour colour) {
        std::string made(indent, ' ');
        for (size_t c = 0; c < cells.size(); ++c) {
            const std::string blanks(widths[c] - visible_width(cells[c]), ' ');
            if (c != 0) made += "  ";
            made += right_[c] ? blanks + paint(colour, cells[c]) : paint(colour, cells[c]) + blanks;
        }
        made.erase(made.find_last_not_of(' ') + 1);
        out += made + '\n';
    };
    if (head) line(columns_, Colour::kBold);
    for (const auto& row : rows_) line(row, Colour::kPlain);
    return out;
}

void Table::print(unsigned indent) const {
    std::fputs(text(indent).c_str(), stdout);
}

}  // namespace enpu::tools
