// SPDX-License-Identifier: MIT
// Tensors in files as ONNX stores them (TensorProto).
#ifndef ENPU_CONFORMANCE_TENSOR_FILE_H
#define ENPU_CONFORMANCE_TENSOR_FILE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace enpu::conformance {

struct StoredTensor {
    int32_t type = 0;  // of ONNX
    std::vector<int64_t> dims;
    std::vector<std::byte> bytes;
};

size_t type_bytes(int32_t type);  // 0 for types that are not read (strings, 4-bit, complex)
std::string read_bytes(const std::string& path);  // throws std::runtime_error
// Throws std::runtime_error for what is damaged, no tensor, or of a type that is not read.
StoredTensor parse_tensor(const std::string& bytes);

}  // namespace enpu::conformance
#endif
