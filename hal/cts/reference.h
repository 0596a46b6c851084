// SPDX-License-Identifier: MIT
// Arrays of doubles and the references of the kernels: plain loops over indices, written for this
// suite and used by nothing else, so that no library of a backend is compared with itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fixture.h"

namespace enpu::hal::cts {

using Dims = std::vector<int64_t>;

int64_t elements(const Dims& dims);
// The index at place `flat` of a row-major array, and back.
Dims index_at(const Dims& dims, int64_t flat);
int64_t flat_of(const Dims& dims, const Dims& index);

// Row-major values.
struct Array {
    Dims dims;
    std::vector<double> values;

    Array() = default;
    explicit Array(Dims shape, double value = 0)
        : dims(std::move(shape)), values(size_t(elements(dims)), value) {}
    Array(Dims shape, std::vector<double> list) : dims(std::move(shape)), values(std::move(list)) {}
    double& operator[](const Dims& index) { return values[size_t(flat_of(dims, index))]; }
    double operator[](const Dims& index) const { return values[size_t(flat_of(dims, index))]; }
};

// Values between low and high, the same in every run; whole ones for integer dtypes.
Array numbers(const Dims& dims, uint32_t dtype, double low, double high, uint32_t seed);
// What is left of a value in the dtype.
double rounded(uint32_t dtype, double value);
bool is_float(uint32_t dtype);
const char* dtype_name(uint32_t dtype);
// Half a unit of the dtype's last place, relative to 1; 0 for integers.
double precision(uint32_t dtype);

// How a tensor lies in its buffer.
enum class Layout {
    kDense,       // row-major
    kTransposed,  // column-major
    kGaps,        // rows further apart than they are long, and an offset
    kBackwards,   // every axis runs from its end
};
constexpr Layout kLayouts[] = {Layout::kDense, Layout::kTransposed, Layout::kGaps,
                               Layout::kBackwards};
const char* layout_name(Layout layout);

// An operand in local memory that holds the values.
enpu_hal_operand put(Fixture& f, const Array& array, uint32_t dtype,
                     Layout layout = Layout::kDense);
// An operand of these dims whose bytes are all 0xee, gaps too.
enpu_hal_operand room(Fixture& f, const Dims& dims, uint32_t dtype, Layout layout = Layout::kDense);
// The values of an operand; checks that what lies between them is still 0xee when `gaps_kept`.
Array get(Fixture& f, const enpu_hal_operand& operand, bool gaps_kept = false);
// The same tensor with other dims: those that were 1 are repeated by stride 0.
enpu_hal_operand broadcast(enpu_hal_operand operand, const Dims& dims);

// Runs kernels and counts those that the device does not take: a case in which none ran is skipped
// as unsupported, with the device's sentence.
class Runs {
  public:
    explicit Runs(Fixture& f) : f_(f) {}
    // Supported, run, and succeeded; false when it is unsupported.
    bool run(const Kernel& kernel);
    void finish() const;  // SKIPs

  private:
    Fixture& f_;
    size_t ran_ = 0;
    std::string reason_;
};

// Equal within tolerance * max(1, |expected|) plus the rounding of the dtype; integers exactly.
// NaN equals NaN.
void check_equal(const Array& seen, const Array& expected, uint32_t dtype, double tolerance);

}  // namespace enpu::hal::cts
