// SPDX-License-Identifier: MIT
// Arrays in NumPy's file format.
#ifndef ENPU_RUN_NPY_H
#define ENPU_RUN_NPY_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <onnxruntime_cxx_api.h>

namespace enpu::run {

struct Array {
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    std::vector<int64_t> dims;
    std::vector<std::byte> bytes;  // row-major
};

// Little-endian, row-major arrays of numbers and booleans. Throws std::runtime_error that names the
// file and the reason.
Array read_npy(const std::string& path);
void write_npy(const std::string& path, const Array& array);

}  // namespace enpu::run
#endif
