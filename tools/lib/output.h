// SPDX-License-Identifier: MIT
// What every command prints with: tables, JSON, sizes, sparklines, colour on a terminal only.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace enpu::tools {

// Every JSON document says which shape it has; grows when a key changes its meaning or goes away.
constexpr int kJsonSchema = 1;

// Prints {"schema": 1, "command": …, and what `document` holds}.
void print_json(const std::string& command, const nlohmann::ordered_json& document);

enum class Colour { kPlain, kGood, kBad, kWarn, kDim, kBold };
// The text in that colour when stdout is a terminal and NO_COLOR is not set, else as it is.
std::string paint(Colour colour, std::string_view text);
bool is_terminal();

// Columns as wide as their widest cell; numbers are right-aligned by the caller's choice of '>'.
class Table {
  public:
    // A name that begins with '>' makes a right-aligned column.
    explicit Table(std::vector<std::string> columns);
    void add(std::vector<std::string> row);
    // `indent` blanks in front of each line; the head is left out when all names are empty.
    std::string text(unsigned indent = 0) const;
    void print(unsigned indent = 0) const;

  private:
    std::vector<std::string> columns_;
    std::vector<bool> right_;
    std::vector<std::vector<std::string>> rows_;
};

// "1.5 MiB", "12 B".
std::string bytes_text(uint64_t bytes);
// "1.2 ms", "310 ns".
std::string time_text(double nanoseconds);
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));
std::string hex(uint64_t value, unsigned digits = 0);
// One block character a value, scaled to `top` (0: the largest value).
std::string sparkline(const std::vector<double>& values, double top = 0);
// For a CSV cell: quoted when it must be.
std::string csv(std::string_view cell);
// For HTML and XML; control characters but the newline are left out.
std::string escaped(std::string_view text);
// What a terminal needs columns for: code points, without colour sequences.
size_t visible_width(std::string_view text);

}  // namespace enpu::tools
