// SPDX-License-Identifier: MIT
// What a run leaves behind: a JSON file, and dumps that another provider's results are compared
// with.
#ifndef ENPU_OCR_RESULTS_H
#define ENPU_OCR_RESULTS_H

#include "pipeline.h"

namespace enpu::ocr {

// One run of a model as a file DIR/NUMBER-NAME.run: both tensors.
void write_dump(const std::string& dir, size_t number, const Model& model, const Tensor& input,
                const Tensor& output);
struct Dump {
    std::string model;
    Tensor input, output;
};
// All dumps of a folder, by number. Throws std::runtime_error for one that is damaged.
std::vector<Dump> read_dumps(const std::string& dir);

// Largest difference over the largest magnitude of `reference`; infinite for other dims.
double relative_error(const Tensor& result, const Tensor& reference);

// Numbers that the execution provider wrote to its report.
struct NodeCounts {
    long total = 0;
    long npu = 0;
    std::string left_out;  // the JSON array
    std::string ops;       // the JSON object with the device's own operator counts over all runs
    std::string programs;  // the JSON array of what was compiled, with its memory
};
NodeCounts read_report(const std::string& path);

std::string quoted(const std::string& text);
void write_text(const std::string& path, const std::string& text);

}  // namespace enpu::ocr
#endif
