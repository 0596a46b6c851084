// SPDX-License-Identifier: MIT
// Runs ONNX's node tests on the execution provider, and prints TAP. Modes: `strict` (the provider
// alone, the default), `fallback` (what it leaves out goes to the CPU provider), `cpu` (without it).
// The named tests must pass; with --all every test is tried, a refusal is a skip, and --json writes
// what came of each for suite.py to judge. With --counted the device itself must have counted
// operators in every test.
#include <cstdio>
#include <fstream>
#include <set>
#include <stdexcept>

#include "engine.h"
#include "tensor_file.h"

namespace enpu::conformance {
namespace {

struct Options {
    std::string data, list, ep, json, mode = "strict", device = "sim";
    bool all = false;
    bool counted = false;
};

Options parse(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--all" || word == "--counted") {
            (word == "--all" ? o.all : o.counted) = true;
            continue;
        }
        std::string* value = word == "--data"     ? &o.data
                             : word == "--list"   ? &o.list
                             : word == "--ep"     ? &o.ep
                             : word == "--json"   ? &o.json
                             : word == "--mode"   ? &o.mode
                             : word == "--device" ? &o.device
                                                  : nullptr;
        if (!value || i + 1 == argc)
            throw std::runtime_error(
                "usage: ort-conformance --data DIR (--list FILE | --all) --ep LIBRARY [--device "
                "SPEC] [--mode strict|fallback|cpu] [--json FILE] [--counted]");
        *value = argv[++i];
    }
    return o;
}

Mode mode_of(const std::string& name) {
    if (name == "strict") return Mode::kStrict;
    if (name == "fallback") return Mode::kFallback;
    if (name == "cpu") return Mode::kCpu;
    throw std::runtime_error("there is no mode '" + name + "'");
}

std::set<std::string> names_of(const Options& options) {
    std::set<std::string> names;
    if (!std::filesystem::is_directory(options.data))
        throw std::runtime_error("there are no tests in '" + options.data + "'");
    if (options.all) {
        for (const auto& entry : std::filesystem::directory_iterator(options.data))
            names.insert(entry.path().filename().string());
        return names;
    }
    std::ifstream list(options.list);
    for (std::string line; std::getline(list, line);) {
        if (!line.empty() && line[0] != '#') names.insert(line);
    }
    if (names.empty()) throw std::runtime_error("the list '" + options.list + "' names no test");
    return names;
}

std::string one_line(std::string text) {
    for (char& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == '#') c = ' ';
    }
    return text;
}

std::string json_string(const std::string& text) {
    std::string out = "\"";
    for (char c : one_line(text)) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + "\"";
}

const char* state_name(Verdict::State state) {
    switch (state) {
        case Verdict::State::kPassed:
            return "passed";
        case Verdict::State::kFailed:
            return "failed";
        default:
            return "refused";
    }
}

// Whether operators were counted, and by the device itself.
bool counted(const std::string& report) {
    return report.find("\"counted_by_device\": true") != std::string::npos &&
           report.find("\"ops_all_runs\": {\"") != std::string::npos;
}

class Output {
  public:
    Output(const Options& options, size_t count) : options_(options) {
        std::printf("1..%zu\n", count);
        if (options.json.empty()) return;
        file_.open(options.json);
        file_ << "{";
    }
    void missing(const std::string& name) {
        std::printf("ok %d - %s # SKIP not in this version of the tests\n", ++number_,
                    name.c_str());
    }
    void verdict(const std::string& name, const Verdict& v) {
        const bool skip = options_.all && v.state == Verdict::State::kRefused;
        std::string why = v.why;
        if (why.empty() && options_.counted && !counted(v.report)) {
            why = "the device counted no operator";
        }
        const bool ok = why.empty() || skip;
        failed_ += !ok;
        std::printf("%s %d - %s%s\n", ok ? "ok" : "not ok", ++number_, name.c_str(),
                    skip ? (" # SKIP " + one_line(why)).c_str() : "");
        if (!ok) std::printf("# %s\n", one_line(why).c_str());
        std::fflush(stdout);
        if (!file_.is_open()) return;
        file_ << (written_++ ? ",\n" : "\n") << json_string(name)
              << ": {\"state\": " << json_string(state_name(v.state))
              << ", \"why\": " << json_string(why)
              << ", \"report\": " << (v.report.empty() ? "null" : v.report) << "}";
    }
    int finish() {
        if (file_.is_open()) {
            file_ << "\n}\n";
            file_.close();
            if (!file_) throw std::runtime_error("'" + options_.json + "' cannot be written");
        }
        return failed_;
    }

  private:
    const Options& options_;
    std::ofstream file_;
    int number_ = 0, failed_ = 0, written_ = 0;
};

int run(const Options& options) {
    const std::set<std::string> names = names_of(options);
    Engine engine(mode_of(options.mode), options.ep, options.device);
    Output output(options, names.size());
    for (const std::string& name : names) {
        const auto dir = std::filesystem::path(options.data) / name;
        if (std::filesystem::exists(dir)) {
            output.verdict(name, engine.run(dir));
        } else {
            output.missing(name);
        }
    }
    return output.finish() ? 1 : 0;
}

}  // namespace
}  // namespace enpu::conformance

int main(int argc, char** argv) {
    try {
        return enpu::conformance::run(enpu::conformance::parse(argc, argv));
    } catch (const std::exception& error) {
        std::printf("Bail out! %s\n", error.what());
        return 1;
    }
}
