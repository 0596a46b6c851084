// SPDX-License-Identifier: MIT
// enpu-ocr: reads the text in a picture with PP-OCR on ONNX Runtime.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>

#include "results.h"

namespace enpu::ocr {
namespace {

constexpr const char* kUsage =
    "usage: enpu-ocr MODEL_DIR IMAGE… [--device npu|sim|cpu-ep|ort-cpu] [--ep LIBRARY] [--json "
    "FILE]\n"
    "                                [--report] [--dump DIR] [--repeat N] [--expect FILE]\n"
    "       enpu-ocr MODEL_DIR --check DIR\n"
    "  --device  where the models run: on the NPU (default), its simulator, the cpu backend of "
    "the\n"
    "            provider, or ONNX Runtime's own CPU provider; else a device spec of the runtime\n"
    "  --ep      the execution provider (default: libenpu-ort-ep.so beside the program or in "
    "../lib)\n"
    "  --json    results for machines\n"
    "  --report  prints every node that did not run on the NPU, with the reason\n"
    "  --dump    writes input and output of every run of a model\n"
    "  --repeat  reads the picture N times; times are of the last one\n"
    "  --expect  fails unless every line of the file is read, and every node ran on the NPU\n"
    "  --check   runs the models on dumped inputs with ONNX Runtime's CPU provider and compares\n";

constexpr double kTolerance = 1e-3;

struct Arguments {
    std::string models, device = "npu", ep, json, dump, check, expect;
    std::vector<std::string> images;
    bool report = false;
    int repeat = 1;
};

Arguments parse(int argc, char** argv) {
    Arguments a;
    std::vector<std::string> plain;
    const std::map<std::string, std::string*> values = {
        {"--device", &a.device}, {"--ep", &a.ep},       {"--json", &a.json},
        {"--dump", &a.dump},     {"--check", &a.check}, {"--expect", &a.expect}};
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const auto it = values.find(word);
        const bool repeat = word == "--repeat";
        if ((it != values.end() || repeat) && i + 1 == argc)
            throw std::runtime_error(word + " needs a value");
        if (it != values.end()) {
            *it->second = argv[++i];
        } else if (repeat) {
            a.repeat = std::atoi(argv[++i]);
            if (a.repeat < 1 || a.repeat > 10000)
                throw std::runtime_error("--repeat takes 1 to 10000");
        } else if (word == "--report") {
            a.report = true;
        } else if (word.starts_with("--")) {
            throw std::runtime_error("unknown option " + word);
        } else {
            plain.push_back(word);
        }
    }
    if (plain.empty()) throw std::runtime_error("MODEL_DIR is needed");
    a.models = plain[0];
    a.images.assign(plain.begin() + 1, plain.end());
    if (a.images.empty() == a.check.empty())
        throw std::runtime_error("either IMAGE or --check is needed");
    if (a.device == "cpu-ep") a.device = "cpu";
    return a;
}

std::string find_model(const std::string& dir, const std::string& part) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
        const std::string name = entry.path().filename().string();
        if (name.find(part) != std::string::npos && entry.path().extension() == ".onnx")
            return entry.path().string();
    }
    throw std::runtime_error("there is no model '*" + part + "*.onnx' in '" + dir + "'");
}

std::string find_ep() {
    const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    for (const char* place : {"libenpu-ort-ep.so", "../lib/libenpu-ort-ep.so"}) {
        if (std::filesystem::exists(here / place)) return (here / place).string();
    }
    throw std::runtime_error("libenpu-ort-ep.so is not beside the program; name it with --ep");
}

struct Picture {
    std::string path;
    std::vector<Line> lines;
    std::vector<Stage> stages;
};

struct Outcome {
    std::vector<Picture> pictures;
    std::vector<Stage> load;
    long total = 0, npu = 0;
    std::vector<std::pair<std::string, NodeCounts>> models;
};

std::string milliseconds(const std::vector<Stage>& stages) {
    std::string text = "{";
    for (const Stage& stage : stages) {
        char ms[32];
        std::snprintf(ms, sizeof(ms), "%.3f", stage.ms);
        text += (text.size() > 1 ? ", " : "") + quoted(stage.name) + ": " + ms;
    }
    return text + "}";
}

std::string to_json(const Arguments& a, const Outcome& o) {
    std::string text = "{\n  \"device\": " + quoted(a.device) +
                       ",\n  \"nodes_total\": " + std::to_string(o.total) +
                       ",\n  \"nodes_npu\": " + std::to_string(o.npu) +
                       ",\n  \"load_ms\": " + milliseconds(o.load) + ",\n  \"pictures\": [";
    for (size_t p = 0; p < o.pictures.size(); ++p) {
        const Picture& picture = o.pictures[p];
        text += std::string(p ? "," : "") + "\n    {\"image\": " + quoted(picture.path) +
                ",\n     \"text\": [";
        for (size_t i = 0; i < picture.lines.size(); ++i)
            text += (i ? ", " : "") + quoted(picture.lines[i].text);
        text += "],\n     \"ms\": " + milliseconds(picture.stages) + "}";
    }
    text += "],\n  \"models\": {";
    for (size_t i = 0; i < o.models.size(); ++i) {
        const auto& [name, counts] = o.models[i];
        text += std::string(i ? ",\n    " : "\n    ") + quoted(name) +
                ": {\"nodes_total\": " + std::to_string(counts.total) +
                ", \"nodes_npu\": " + std::to_string(counts.npu) +
                ", \"device_ops\": " + counts.ops + ", \"left_out\": " + counts.left_out +
                ", \"programs\": " + counts.programs + "}";
    }
    return text + "}\n}\n";
}

void print(const Arguments& a, const Outcome& o) {
    for (const Picture& picture : o.pictures) {
        std::printf("%s:\n", std::filesystem::path(picture.path).filename().c_str());
        for (const Line& line : picture.lines) std::printf("  %s\n", line.text.c_str());
    }
    if (a.device != "ort-cpu") {
        std::printf("nodes on the NPU: %ld of %ld\n", o.npu, o.total);
        for (const auto& [name, counts] : o.models) {
            std::printf("  %s: %ld of %ld; operators counted by the device: %s\n", name.c_str(),
                        counts.npu, counts.total, counts.ops.c_str());
            if (counts.left_out != "[]" && (a.report || counts.left_out.size() < 2000)) {
                std::printf("  not on the NPU: %s\n", counts.left_out.c_str());
            }
        }
    }
    for (const Stage& stage : o.load) std::printf("%-18s %9.1f ms\n", stage.name.c_str(), stage.ms);
    for (const Picture& picture : o.pictures) {
        std::printf("%s:\n", std::filesystem::path(picture.path).filename().c_str());
        for (const Stage& stage : picture.stages)
            std::printf("  %-18s %9.1f ms\n", stage.name.c_str(), stage.ms);
    }
}

// A folder for the provider's reports, gone at the end.
class ReportDir {
  public:
    ReportDir() : path_((std::filesystem::temp_directory_path() / "enpu-ocr-XXXXXX").string()) {
        if (!mkdtemp(path_.data()))
            throw std::runtime_error("no folder for reports can be made in " + path_);
    }
    ~ReportDir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

  private:
    std::string path_;
};

// Lines of the file that were not read.
std::vector<std::string> unread(const std::string& path, const Outcome& o) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("'" + path + "' cannot be read");
    std::vector<std::string> missing;
    for (std::string wanted; std::getline(file, wanted);) {
        bool seen = wanted.empty();
        for (const Picture& picture : o.pictures) {
            for (const Line& line : picture.lines) seen = seen || line.text == wanted;
        }
        if (!seen) missing.push_back(wanted);
    }
    return missing;
}

int read_pictures(const Arguments& a) {
    std::vector<Image> images;
    for (const std::string& path : a.images) images.push_back(load_image(path));
    const ReportDir reports;
    Engine engine(
        {a.device, a.device == "ort-cpu" ? "" : (a.ep.empty() ? find_ep() : a.ep), reports.path()});
    Model detection(engine, "detection", find_model(a.models, "_det_"));
    Model recognition(engine, "recognition", find_model(a.models, "_rec_"));
    Pipeline pipeline(detection, recognition, {});
    Outcome outcome;
    outcome.load = {{"load detection", detection.load_ms()},
                    {"load recognition", recognition.load_ms()}};
    size_t number = 0;
    for (size_t p = 0; p < images.size(); ++p) {
        Picture picture{a.images[p], {}, {}};
        for (int i = 0; i < a.repeat; ++i) {
            pipeline.observer = nullptr;
            if (!a.dump.empty() && i + 1 == a.repeat) {
                pipeline.observer = [&](const Model& model, const Tensor& input,
                                        const Tensor& output) {
                    write_dump(a.dump, number++, model, input, output);
                };
            }
            picture.lines = pipeline.read(images[p]);
        }
        picture.stages = pipeline.stages();
        outcome.pictures.push_back(std::move(picture));
    }
    for (const Model* model : {&detection, &recognition}) {
        if (model->report().empty() || !std::filesystem::exists(model->report())) continue;
        outcome.models.emplace_back(model->name(), read_report(model->report()));
        outcome.total += outcome.models.back().second.total;
        outcome.npu += outcome.models.back().second.npu;
    }
    print(a, outcome);
    if (!a.json.empty()) write_text(a.json, to_json(a, outcome));
    if (a.expect.empty()) return 0;
    const auto missing = unread(a.expect, outcome);
    for (const std::string& line : missing)
        std::fprintf(stderr, "enpu-ocr: not read: %s\n", line.c_str());
    const bool placed =
        a.device == "ort-cpu" || (outcome.total > 0 && outcome.npu == outcome.total);
    if (!placed)
        std::fprintf(stderr, "enpu-ocr: %ld of %ld nodes ran on the NPU\n", outcome.npu,
                     outcome.total);
    return missing.empty() && placed ? 0 : 1;
}

int check_dumps(const Arguments& a) {
    const std::vector<Dump> dumps = read_dumps(a.check);
    if (dumps.empty()) throw std::runtime_error("there are no dumps in '" + a.check + "'");
    Engine engine({"ort-cpu", "", ""});
    Model detection(engine, "detection", find_model(a.models, "_det_"));
    Model recognition(engine, "recognition", find_model(a.models, "_rec_"));
    double worst = 0;
    for (const Dump& dump : dumps) {
        Model& model = dump.model == "detection" ? detection : recognition;
        const double error = relative_error(dump.output, model.run(dump.input));
        std::printf("%-12s relative error %.3e\n", dump.model.c_str(), error);
        worst = std::max(worst, error);
    }
    std::printf("max_rel_err %.3e %s %g\n", worst, worst <= kTolerance ? "<=" : ">", kTolerance);
    if (!a.json.empty()) {
        char number[32];
        std::snprintf(number, sizeof(number), "%.6g",
                      std::min(worst, 1e30));  // JSON has no infinity
        write_text(a.json, std::string("{\"max_rel_err\": ") + number + "}\n");
    }
    return worst <= kTolerance ? 0 : 1;
}

}  // namespace
}  // namespace enpu::ocr

int main(int argc, char** argv) {
    using namespace enpu::ocr;
    try {
        if (argc == 2 && std::string(argv[1]) == "--help") {
            std::fputs(kUsage, stdout);
            return 0;
        }
        const Arguments arguments = parse(argc, argv);
        return arguments.check.empty() ? read_pictures(arguments) : check_dumps(arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "enpu-ocr: %s\n", error.what());
        return 1;
    }
}
