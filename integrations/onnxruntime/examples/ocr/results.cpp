// SPDX-License-Identifier: MIT
#include "results.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace enpu::ocr {
namespace {

constexpr char kMagic[8] = {'e', 'n', 'p', 'u', 'r', 'u', 'n', '1'};
constexpr uint64_t kMaxElements = uint64_t{1} << 30;

void write_tensor(std::ostream& out, const Tensor& t) {
    const uint64_t rank = t.dims.size();
    out.write(reinterpret_cast<const char*>(&rank), sizeof(rank));
    out.write(reinterpret_cast<const char*>(t.dims.data()), static_cast<std::streamsize>(rank * 8));
    out.write(reinterpret_cast<const char*>(t.data.data()),
              static_cast<std::streamsize>(t.data.size() * 4));
}

Tensor read_tensor(std::istream& in, const std::string& path) {
    auto damaged = [&] { throw std::runtime_error("the dump '" + path + "' is damaged"); };
    uint64_t rank = 0;
    if (!in.read(reinterpret_cast<char*>(&rank), sizeof(rank)) || rank > 8) damaged();
    Tensor t;
    t.dims.resize(rank);
    if (!in.read(reinterpret_cast<char*>(t.dims.data()), static_cast<std::streamsize>(rank * 8)))
        damaged();
    uint64_t count = 1;
    for (int64_t dim : t.dims) {
        if (dim < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(dim), &count) ||
            count > kMaxElements)
            damaged();
    }
    t.data.resize(count);
    if (!in.read(reinterpret_cast<char*>(t.data.data()), static_cast<std::streamsize>(count * 4)))
        damaged();
    return t;
}

std::string read_text(const std::string& path) {
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) throw std::runtime_error("'" + path + "' cannot be read");
    return text.str();
}

// The value after "key": in JSON that we wrote ourselves: a number, or a bracketed part.
std::string field(const std::string& json, const std::string& key) {
    const size_t at = json.find("\"" + key + "\": ");
    if (at == std::string::npos) throw std::runtime_error("a report lacks '" + key + "'");
    const size_t begin = at + key.size() + 4;
    const char open = json[begin];
    if (open != '[' && open != '{')
        return json.substr(begin, json.find_first_of(",}\n", begin) - begin);
    int depth = 0;
    bool text = false;
    for (size_t i = begin; i < json.size(); ++i) {
        const char c = json[i];
        if (text) {
            if (c == '\\') ++i;
            if (c == '"') text = false;
        } else {
            if (c == '"') text = true;
            if (c == '[' || c == '{') ++depth;
            if ((c == ']' || c == '}') && --depth == 0) return json.substr(begin, i + 1 - begin);
        }
    }
    throw std::runtime_error("a report ends inside '" + key + "'");
}

}  // namespace

void write_dump(const std::string& dir, size_t number, const Model& model, const Tensor& input,
                const Tensor& output) {
    std::filesystem::create_directories(dir);
    const std::string path = dir + "/" + std::to_string(number) + "-" + model.name() + ".run";
    std::ofstream out(path, std::ios::binary);
    out.write(kMagic, sizeof(kMagic));
    write_tensor(out, input);
    write_tensor(out, output);
    out.close();
    if (!out) throw std::runtime_error("the dump '" + path + "' cannot be written");
}

std::vector<Dump> read_dumps(const std::string& dir) {
    std::vector<std::pair<long, std::filesystem::path>> files;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
        if (entry.path().extension() == ".run") {
            files.emplace_back(std::strtol(entry.path().filename().c_str(), nullptr, 10),
                               entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    std::vector<Dump> dumps;
    for (const auto& [number, path] : files) {
        std::ifstream in(path, std::ios::binary);
        char magic[sizeof(kMagic)] = {};
        in.read(magic, sizeof(magic));
        if (!in || std::memcmp(magic, kMagic, sizeof(kMagic)) != 0) {
            throw std::runtime_error("'" + path.string() + "' is no dump");
        }
        const std::string stem = path.stem().string();
        Dump dump;
        dump.model = stem.substr(stem.find('-') + 1);
        dump.input = read_tensor(in, path.string());
        dump.output = read_tensor(in, path.string());
        dumps.push_back(std::move(dump));
    }
    return dumps;
}

double relative_error(const Tensor& result, const Tensor& reference) {
    if (result.dims != reference.dims) return INFINITY;
    double difference = 0, magnitude = 0;
    for (size_t i = 0; i < reference.data.size(); ++i) {
        const double d = std::fabs(double{result.data[i]} - double{reference.data[i]});
        if (!(d <= difference)) difference = d;  // keeps NaN
        if (std::isnan(d)) return INFINITY;
        magnitude = std::max(magnitude, std::fabs(double{reference.data[i]}));
    }
    return magnitude > 0 ? difference / magnitude : difference;
}

NodeCounts read_report(const std::string& path) {
    const std::string json = read_text(path);
    return {std::stol(field(json, "nodes_total")), std::stol(field(json, "nodes_npu")),
            field(json, "left_out"), field(json, "ops_all_runs"), field(json, "programs")};
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof(code), "\\u%04x", c);
            out += code;
        } else {
            out += c;
        }
    }
    return out + "\"";
}

void write_text(const std::string& path, const std::string& text) {
    std::ofstream out(path);
    out << text;
    out.close();
    if (!out) throw std::runtime_error("'" + path + "' cannot be written");
}

}  // namespace enpu::ocr
