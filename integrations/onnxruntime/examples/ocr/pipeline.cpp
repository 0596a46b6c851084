// SPDX-License-Identifier: MIT
#include "pipeline.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <sstream>
#include <stdexcept>

namespace enpu::ocr {
namespace {

constexpr int kLineHeight = 48;
constexpr int kMinLineWidth = 320;
constexpr int kMaxLineWidth = 4800;
constexpr int kWidthStep = 64;  // widths are rounded up, so that few shapes have to be compiled

int multiple_of_32(double size) {
    return std::max(32, static_cast<int>(std::lround(size / 32)) * 32);
}

// A line that stands upright is read turned by 90 degrees.
Box upright(const Box& box) {
    if (box.height() < 1.5f * box.width()) return box;
    Box turned = box;
    for (size_t i = 0; i < 4; ++i) turned.corner[i] = box.corner[(i + 1) % 4];
    return turned;
}

int line_width(const Box& box) {
    const double width = std::ceil(kLineHeight * box.width() / std::max(box.height(), 1.0f));
    return static_cast<int>(std::clamp<double>(width, 8, kMaxLineWidth));
}

// First index of the largest of n values that are not negative: their bits compare like integers.
size_t largest(const float* values, size_t n) {
    const auto* bits = reinterpret_cast<const int32_t*>(values);
    size_t best = 0;
    for (size_t i = 1; i < n; ++i) {
        if (bits[i] > bits[best]) best = i;
    }
    return best;
}

// Best class of each step; repeats and the blank (class 0) go.
void decode(const float* scores, size_t steps, size_t classes,
            const std::vector<std::string>& characters, Line& line) {
    size_t previous = 0, count = 0;
    float sum = 0;
    for (size_t t = 0; t < steps; ++t) {
        const float* row = scores + t * classes;
        const size_t best = largest(row, classes);
        if (best != 0 && best != previous) {
            line.text += characters[best];
            sum += row[best];
            ++count;
        }
        previous = best;
    }
    line.confidence = count ? sum / static_cast<float>(count) : 0;
}

// Class 0 is the blank, the last one a space.
std::vector<std::string> read_characters(Model& model) {
    std::istringstream text(model.metadata("character"));
    std::vector<std::string> characters = {""};
    for (std::string line; std::getline(text, line);) characters.push_back(line);
    if (characters.size() < 2)
        throw std::runtime_error("the recognition model carries no character list");
    characters.emplace_back(" ");
    return characters;
}

}  // namespace

Pipeline::Pipeline(Model& detection, Model& recognition, PipelineOptions options)
    : detection_(detection),
      recognition_(recognition),
      options_(options),
      characters_(read_characters(recognition)) {}

template <class F>
auto Pipeline::timed(const char* name, F&& body) {
    const double start = now_ms();
    auto result = body();
    const double ms = now_ms() - start;
    for (Stage& stage : stages_) {
        if (stage.name == name) {
            stage.ms += ms;
            return result;
        }
    }
    stages_.push_back({name, ms});
    return result;
}

Tensor Pipeline::run(const char* stage, Model& model, const Tensor& input) {
    Tensor output = timed(stage, [&] { return model.run(input); });
    if (observer) observer(model, input, output);  // not part of the stage's time
    return output;
}

std::vector<Box> Pipeline::detect(const Image& image) {
    const double short_side = std::min(image.width, image.height),
                 long_side = std::max(image.width, image.height);
    double ratio = std::max(1.0, options_.short_side / short_side);
    ratio = std::min(ratio, options_.long_side / long_side);
    const int width = multiple_of_32(image.width * ratio),
              height = multiple_of_32(image.height * ratio);
    const float scale_x = static_cast<float>(image.width) / static_cast<float>(width);
    const float scale_y = static_cast<float>(image.height) / static_cast<float>(height);
    const Tensor input = timed("detection input", [&] {
        const size_t plane = static_cast<size_t>(width) * static_cast<size_t>(height);
        Tensor tensor{{1, 3, height, width}, std::vector<float>(3 * plane)};
        sample(image, {{0, 0}, {scale_x, 0}, {0, scale_y}}, width, width, height,
               tensor.data.data(), plane);
        return tensor;
    });
    const Tensor map = run("detection", detection_, input);
    if (map.dims != std::vector<int64_t>{1, 1, height, width}) {
        throw std::runtime_error("the detection model gives a map of another size than its input");
    }
    return timed("boxes", [&] {
        return find_boxes(map.data.data(), width, height, scale_x, scale_y, options_.boxes);
    });
}

void Pipeline::recognise(const Image& image, std::vector<Line>& lines,
                         const std::vector<size_t>& batch) {
    int width = kMinLineWidth;
    for (size_t i : batch) width = std::max(width, line_width(lines[i].box));
    width = (width + kWidthStep - 1) / kWidthStep * kWidthStep;
    const Tensor input = timed("recognition input", [&] {
        const size_t plane = static_cast<size_t>(width) * kLineHeight;
        Tensor tensor{{static_cast<int64_t>(batch.size()), 3, kLineHeight, width},
                      std::vector<float>(batch.size() * 3 * plane)};
        for (size_t n = 0; n < batch.size(); ++n) {
            const Box& box = lines[batch[n]].box;
            const int used = std::min(line_width(box), width);
            const Point* c = box.corner;
            const auto w = static_cast<float>(used), h = static_cast<float>(kLineHeight);
            const Sampling where = {c[0],
                                    {(c[1].x - c[0].x) / w, (c[1].y - c[0].y) / w},
                                    {(c[3].x - c[0].x) / h, (c[3].y - c[0].y) / h}};
            sample(image, where, used, width, kLineHeight, tensor.data.data() + n * 3 * plane,
                   plane);
        }
        return tensor;
    });
    const Tensor scores = run("recognition", recognition_, input);
    if (scores.dims.size() != 3 || scores.dims[0] != static_cast<int64_t>(batch.size()) ||
        scores.dims[2] != static_cast<int64_t>(characters_.size())) {
        throw std::runtime_error("the recognition model's output does not fit its character list");
    }
    timed("decoding", [&] {
        const auto steps = static_cast<size_t>(scores.dims[1]),
                   classes = static_cast<size_t>(scores.dims[2]);
        for (size_t n = 0; n < batch.size(); ++n) {
            decode(scores.data.data() + n * steps * classes, steps, classes, characters_,
                   lines[batch[n]]);
        }
        return 0;
    });
}

std::vector<Line> Pipeline::read(const Image& image) {
    stages_.clear();
    std::vector<Line> lines;
    for (const Box& box : detect(image)) lines.push_back({upright(box), {}, 0});
    // Lines of similar length share a batch, so that little is computed on padding.
    std::vector<size_t> order(lines.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return line_width(lines[a].box) < line_width(lines[b].box);
    });
    for (size_t at = 0; at < order.size(); at += options_.batch) {
        const size_t end = std::min(at + options_.batch, order.size());
        recognise(image, lines,
                  {order.begin() + static_cast<std::ptrdiff_t>(at),
                   order.begin() + static_cast<std::ptrdiff_t>(end)});
    }
    std::erase_if(lines, [&](const Line& line) {
        return line.text.empty() || line.confidence < options_.confidence;
    });
    return lines;
}

}  // namespace enpu::ocr
