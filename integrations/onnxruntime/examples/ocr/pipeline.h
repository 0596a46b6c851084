// SPDX-License-Identifier: MIT
// Detection and recognition of lines of text.
#ifndef ENPU_OCR_PIPELINE_H
#define ENPU_OCR_PIPELINE_H

#include <functional>

#include "boxes.h"
#include "model.h"

namespace enpu::ocr {

struct Line {
    Box box;
    std::string text;
    float confidence = 0;  // mean over the characters
};

struct Stage {
    std::string name;
    double ms = 0;
};

struct PipelineOptions {
    int short_side = 320;  // pictures are scaled up until their shorter side has this many pixels
    int long_side = 960;   // and down until the longer one has at most this many
    size_t batch = 4;      // lines recognised at once
    float confidence = 0.5f;
    BoxOptions boxes;
};

// Sees the input and output of every run of a model.
using RunObserver = std::function<void(const Model&, const Tensor& input, const Tensor& output)>;

class Pipeline {
  public:
    Pipeline(Model& detection, Model& recognition, PipelineOptions options);
    std::vector<Line> read(const Image& image);
    RunObserver observer;
    const std::vector<Stage>& stages() const { return stages_; }

  private:
    Tensor run(const char* stage, Model& model, const Tensor& input);
    std::vector<Box> detect(const Image& image);
    void recognise(const Image& image, std::vector<Line>& lines, const std::vector<size_t>& batch);
    template <class F>
    auto timed(const char* name, F&& body);

    Model &detection_, &recognition_;
    PipelineOptions options_;
    std::vector<std::string> characters_;
    std::vector<Stage> stages_;
};

}  // namespace enpu::ocr
#endif
