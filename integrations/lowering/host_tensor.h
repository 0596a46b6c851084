// SPDX-License-Identifier: MIT
// Element types and small tensors that live on the host: constants, and shape arithmetic.
#ifndef ENPU_LOWERING_HOST_TENSOR_H
#define ENPU_LOWERING_HOST_TENSOR_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "enpu_hal_ops.h"

namespace enpu::lowering {

using Dims = std::vector<int64_t>;

// What cannot be lowered or run, in one sentence. Caught where the library is left.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& what);

size_t dtype_bytes(uint32_t dtype);      // 0 for NONE and unknown ones
const char* dtype_name(uint32_t dtype);  // "f32"
bool is_float(uint32_t dtype);
std::string to_string(const Dims& dims);  // "[1,3,48,320]"

// Product of dims; fails when one is negative or the product passes 2^40.
int64_t element_count(const Dims& dims);

// Axis counted from the end when negative; fails when out of range.
int64_t normalise_axis(int64_t axis, size_t rank);

// A dense row-major tensor on the host. Read-only once made.
struct HostTensor {
    uint32_t dtype = ENPU_OP_NONE;
    Dims dims;
    std::vector<std::byte> bytes;

    int64_t size() const { return element_count(dims); }
    template <class T>
    const T* data() const {
        return reinterpret_cast<const T*>(bytes.data());
    }
    template <class T>
    T* data() {
        return reinterpret_cast<T*>(bytes.data());
    }
};
using HostTensorPtr = std::shared_ptr<const HostTensor>;

HostTensor make_host_tensor(uint32_t dtype, const Dims& dims);  // zeros
// Likewise, for what no file brings and only dims ask for: fails beyond 2^26 elements.
HostTensor make_table(uint32_t dtype, const Dims& dims);
HostTensorPtr host_i64(const Dims& dims, const std::vector<int64_t>& values);
HostTensorPtr host_f32(const Dims& dims, const std::vector<float>& values);

// As C converts, but saturating where C is undefined; NaN gives 0.
int64_t saturate(double value);

// Elements converted; integers exactly, floats to the nearest.
std::vector<int64_t> as_i64(const HostTensor& tensor);
std::vector<double> as_f64(const HostTensor& tensor);
void store(HostTensor& tensor, int64_t index, double value);
void store(HostTensor& tensor, int64_t index, int64_t value);

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);

}  // namespace enpu::lowering
#endif
