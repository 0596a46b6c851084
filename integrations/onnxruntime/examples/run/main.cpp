// SPDX-License-Identifier: MIT
// Runs any ONNX model once on the NPU (or on ONNX Runtime's CPU provider) and says what came out
// and where it ran. One INPUT for each input of the model: .npy, or a picture for an image input.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>

#include "image.h"
#include "npy.h"

namespace enpu::run {
namespace {

constexpr int64_t kImageSide = 224;  // where the model leaves it open

struct Options {
    std::string model, device = "npu", ep = "libenpu-ort-ep.so", report, outputs, compare;
    std::vector<std::string> inputs;
    int top = 5;
};

Options parse(int argc, char** argv) {
    Options o;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        std::string* value = word == "--device"    ? &o.device
                             : word == "--ep"      ? &o.ep
                             : word == "--report"  ? &o.report
                             : word == "--save"    ? &o.outputs
                             : word == "--compare" ? &o.compare
                                                   : nullptr;
        if (value && i + 1 < argc) {
            *value = argv[++i];
        } else if (word.starts_with("--")) {
            throw std::runtime_error(
                "usage: enpu-onnx MODEL INPUT… [--device SPEC|ort-cpu] [--ep LIBRARY] [--report "
                "FILE] "
                "[--save DIR] [--compare DIR]");
        } else if (o.model.empty()) {
            o.model = word;
        } else {
            o.inputs.push_back(word);
        }
    }
    if (o.model.empty()) throw std::runtime_error("usage: enpu-onnx MODEL INPUT…");
    return o;
}

// RGB planes, (pixel / 255 - 0.5) / 0.5.
Array read_picture(const std::string& path, std::vector<int64_t> dims) {
    if (dims.size() != 4) throw std::runtime_error("'" + path + "': the input is no image");
    const int64_t sides[2] = {dims[2] > 0 ? dims[2] : kImageSide,
                              dims[3] > 0 ? dims[3] : kImageSide};
    if (dims[1] > 0 && dims[1] != 3) throw std::runtime_error("the input has not three channels");
    const ocr::Image image = ocr::load_image(path);
    const int width = static_cast<int>(sides[1]), height = static_cast<int>(sides[0]);
    const size_t plane = static_cast<size_t>(width) * static_cast<size_t>(height);
    std::vector<float> planes(3 * plane);
    const auto across = static_cast<float>(image.width) / static_cast<float>(width);
    const auto down = static_cast<float>(image.height) / static_cast<float>(height);
    ocr::sample(image, {{0, 0}, {across, 0}, {0, down}}, width, width, height, planes.data(),
                plane);
    std::swap_ranges(planes.begin(), planes.begin() + static_cast<std::ptrdiff_t>(plane),
                     planes.begin() + static_cast<std::ptrdiff_t>(2 * plane));  // BGR to RGB
    Array array;
    array.dims = {1, 3, sides[0], sides[1]};
    array.bytes.resize(planes.size() * sizeof(float));
    std::memcpy(array.bytes.data(), planes.data(), array.bytes.size());
    return array;
}

Ort::Session open(Ort::Env& env, const Options& o) {
    Ort::SessionOptions options;
    options.SetIntraOpNumThreads(1);
    if (o.device != "ort-cpu") {
        env.RegisterExecutionProviderLibrary("enpu", o.ep);
        Ort::ConstEpDevice found{nullptr};
        for (const Ort::ConstEpDevice& device : env.GetEpDevices()) {
            const char* memory = device.EpMetadata().GetValue("memory");
            if (memory && std::string(memory) == "host") found = device;
        }
        if (!found) throw std::runtime_error("the execution provider offers no device");
        Ort::KeyValuePairs provider;
        provider.Add("device", o.device.c_str());
        if (!o.report.empty()) provider.Add("report", o.report.c_str());
        options.AppendExecutionProvider_V2(env, {found}, provider);
        options.SetGraphOptimizationLevel(ORT_DISABLE_ALL);  // the provider does that work
    }
    return Ort::Session(env, o.model.c_str(), options);
}

Array to_array(const Ort::Value& value) {
    const auto info = value.GetTensorTypeAndShapeInfo();
    Array array{info.GetElementType(), info.GetShape(), {}};
    array.bytes.resize(value.GetTensorSizeInBytes());
    if (!array.bytes.empty()) {
        std::memcpy(array.bytes.data(), value.GetTensorRawData(), array.bytes.size());
    }
    return array;
}

std::vector<float> floats(const Array& array) {
    std::vector<float> values(array.bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
    return values;
}

void show(const std::string& name, const Array& array, int top) {
    std::string dims;
    for (int64_t dim : array.dims) dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    std::printf("%s [%s]", name.c_str(), dims.c_str());
    if (array.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
        const auto values = floats(array);
        std::vector<size_t> order(values.size());
        std::iota(order.begin(), order.end(), size_t{0});
        const auto count = std::min(order.size(), static_cast<size_t>(top));
        std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
                          order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
        std::printf(", largest:");
        for (size_t i = 0; i < count; ++i) std::printf(" %zu: %.5g", order[i], values[order[i]]);
    }
    std::printf("\n");
}

// The largest difference by the largest magnitude; other types must be equal.
double relative_error(const Array& got, const Array& want) {
    if (got.type != want.type || got.dims != want.dims) return INFINITY;
    if (got.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
        return got.bytes == want.bytes ? 0 : INFINITY;
    }
    const auto a = floats(got), b = floats(want);
    double difference = 0, magnitude = 1e-6;
    for (size_t i = 0; i < a.size(); ++i) {
        difference = std::fmax(difference, std::fabs(double{a[i]} - double{b[i]}));
        magnitude = std::fmax(magnitude, std::fabs(double{b[i]}));
    }
    return difference / magnitude;
}

// "nodes_npu": 5 of the report.
long number_in(const std::string& report, const std::string& key) {
    const size_t at = report.find("\"" + key + "\": ");
    return at == std::string::npos ? -1
                                   : std::strtol(report.c_str() + at + key.size() + 4, nullptr, 10);
}

void show_placement(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    const std::string report = text.str();
    const size_t ops = report.find("\"ops\": ");
    std::printf("%ld of %ld nodes on the NPU; counted by the device: %s\n",
                number_in(report, "nodes_npu"), number_in(report, "nodes_total"),
                ops == std::string::npos
                    ? "nothing"
                    : report.substr(ops + 7, report.find('}', ops) - ops - 6).c_str());
}

std::vector<Array> read_inputs(const Ort::Session& session, const Options& o) {
    if (o.inputs.size() != session.GetInputCount()) {
        throw std::runtime_error("the model has " + std::to_string(session.GetInputCount()) +
                                 " inputs, " + std::to_string(o.inputs.size()) + " are given");
    }
    std::vector<Array> arrays;
    for (size_t i = 0; i < o.inputs.size(); ++i) {
        const std::string& path = o.inputs[i];
        const auto dims = session.GetInputTypeInfo(i).GetTensorTypeAndShapeInfo().GetShape();
        arrays.push_back(path.ends_with(".npy") ? read_npy(path) : read_picture(path, dims));
    }
    return arrays;
}

int run(const Options& o) {
    Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "enpu-onnx");
    Ort::Session session = open(env, o);
    Ort::AllocatorWithDefaultOptions allocator;
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    std::vector<Array> arrays = read_inputs(session, o);
    std::vector<std::string> names[2];
    std::vector<Ort::Value> values;
    for (size_t i = 0; i < arrays.size(); ++i) {
        names[0].emplace_back(session.GetInputNameAllocated(i, allocator).get());
        Array& a = arrays[i];
        values.push_back(Ort::Value::CreateTensor(memory, a.bytes.data(), a.bytes.size(),
                                                  a.dims.data(), a.dims.size(), a.type));
    }
    for (size_t i = 0; i < session.GetOutputCount(); ++i) {
        names[1].emplace_back(session.GetOutputNameAllocated(i, allocator).get());
    }
    std::vector<const char*> in, out;
    for (const auto& name : names[0]) in.push_back(name.c_str());
    for (const auto& name : names[1]) out.push_back(name.c_str());
    const auto results =
        session.Run(Ort::RunOptions{}, in.data(), values.data(), in.size(), out.data(), out.size());
    double worst = 0;
    for (size_t i = 0; i < results.size(); ++i) {
        const Array array = to_array(results[i]);
        show(names[1][i], array, o.top);
        const std::string file = "/output_" + std::to_string(i) + ".npy";
        if (!o.outputs.empty()) write_npy(o.outputs + file, array);
        if (!o.compare.empty()) {
            worst = std::fmax(worst, relative_error(read_npy(o.compare + file), array));
        }
    }
    if (!o.report.empty()) show_placement(o.report);
    if (o.compare.empty()) return 0;
    std::printf("max_rel_err %.3g against %s, 1e-3 is allowed\n", worst, o.device.c_str());
    return worst <= 1e-3 ? 0 : 1;
}

}  // namespace
}  // namespace enpu::run

int main(int argc, char** argv) {
    try {
        return enpu::run::run(enpu::run::parse(argc, argv));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "enpu-onnx: %s\n", error.what());
        return 1;
    }
}
