// SPDX-License-Identifier: MIT
#include "npy.h"

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace enpu::run {
namespace {

struct Kind {
    const char* name;  // of NumPy
    ONNXTensorElementDataType type;
    size_t bytes;
};

constexpr Kind kKinds[] = {
    {"<f4", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 4},
    {"<f2", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 2},
    {"<f8", ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 8},
    {"<i4", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 4},
    {"<i8", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 8},
    {"|i1", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, 1},
    {"|u1", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 1},
    {"|b1", ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 1},
};
constexpr int64_t kMostElements = int64_t{1} << 28;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
    throw std::runtime_error("'" + path + "': " + why);
}

// What follows 'KEY': in the header, up to `end`.
std::string entry(const std::string& header, const std::string& key, char end,
                  const std::string& path) {
    const size_t at = header.find("'" + key + "':");
    const size_t begin = at == std::string::npos ? at : at + key.size() + 3;
    const size_t stop = begin == std::string::npos ? begin : header.find(end, begin);
    if (stop == std::string::npos) fail(path, "the header has no " + key);
    return header.substr(begin, stop - begin);
}

std::vector<int64_t> read_dims(const std::string& text, const std::string& path) {
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (size_t at = text.find_first_of("0123456789"); at != std::string::npos;
         at = text.find_first_of("0123456789", at)) {
        size_t used = 0;
        const std::string digits = text.substr(at, 12);
        const int64_t dim = std::stoll(digits, &used);
        count *= dim;
        if (dim > kMostElements || count > kMostElements || dims.size() == 8) {
            fail(path, "the shape is too large");
        }
        dims.push_back(dim);
        at += used;
    }
    return dims;
}

}  // namespace

Array read_npy(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    char head[10] = {};
    file.read(head, sizeof(head));
    if (!file || std::memcmp(head, "\x93NUMPY\x01", 7) != 0)
        fail(path, "it is no .npy of version 1");
    uint16_t size = 0;
    std::memcpy(&size, head + 8, sizeof(size));
    std::string header(size, '\0');
    file.read(header.data(), size);
    if (!file) fail(path, "it is cut off");
    if (entry(header, "fortran_order", ',', path).find("False") == std::string::npos) {
        fail(path, "it is not row-major");
    }
    Array array;
    array.dims = read_dims(entry(header, "shape", ')', path), path);
    size_t bytes = 0;
    for (const Kind& kind : kKinds) {
        if (entry(header, "descr", ',', path).find(kind.name) == std::string::npos) continue;
        array.type = kind.type;
        bytes = kind.bytes;
    }
    if (bytes == 0) fail(path, "the element type is not one of f4 f2 f8 i4 i8 i1 u1 b1");
    for (int64_t dim : array.dims) bytes *= static_cast<size_t>(dim);
    array.bytes.resize(bytes);
    file.read(reinterpret_cast<char*>(array.bytes.data()), static_cast<std::streamsize>(bytes));
    if (!file) fail(path, "it is cut off");
    return array;
}

void write_npy(const std::string& path, const Array& array) {
    const char* name = nullptr;
    for (const Kind& kind : kKinds) {
        if (kind.type == array.type) name = kind.name;
    }
    if (!name) fail(path, "an output has an element type that is not written");
    std::string shape;
    for (int64_t dim : array.dims) shape += std::to_string(dim) + ",";
    std::string header = std::string("{'descr': '") + name +
                         "', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.resize((header.size() + 10 + 1 + 63) / 64 * 64 - 10 - 1, ' ');
    header += '\n';
    const auto size = static_cast<uint16_t>(header.size());
    std::ofstream file(path, std::ios::binary);
    file.write("\x93NUMPY\x01\x00", 8);
    file.write(reinterpret_cast<const char*>(&size), sizeof(size));
    file << header;
    file.write(reinterpret_cast<const char*>(array.bytes.data()),
               static_cast<std::streamsize>(array.bytes.size()));
    if (!file) fail(path, "it cannot be written");
}

}  // namespace enpu::run
