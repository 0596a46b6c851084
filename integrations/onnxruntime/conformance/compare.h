// SPDX-License-Identifier: MIT
#ifndef ENPU_CONFORMANCE_COMPARE_H
#define ENPU_CONFORMANCE_COMPARE_H

#include <onnxruntime_cxx_api.h>

#include "tensor_file.h"

namespace enpu::conformance {

// Empty when equal: exactly for integers, within ONNX's own tolerance for floats.
std::string compare(const Ort::Value& got, const StoredTensor& want);

}  // namespace enpu::conformance
#endif
