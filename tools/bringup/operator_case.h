// SPDX-License-Identifier: MIT
// One operator with its operands and what it must give, computed in double from its formula in the
// data sheet; nothing of the model or of a framework is used.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "machine.h"
#include "operand.h"

namespace enpu::bringup {

struct OperatorCase {
    std::string name;
    uint16_t opcode = 0;
    std::vector<std::byte> params;
    std::vector<Operand> operands;
    std::vector<double> expected;  // of the output, in order
    double tolerance = 0;          // of the largest of 1 and the result
    // Changes descriptors before they are sent: strides, formats.
    std::function<void(std::vector<enpu_tensor>&)> adjust;

    template <typename Params>
    OperatorCase& with(const Params& value) {
        params.resize(sizeof(value));
        std::memcpy(params.data(), &value, sizeof(value));
        return *this;
    }
};

// Runs one on an engine; a StageFailure names the first element that is wrong.
void run_case(Machine& machine, const OperatorCase& test, uint32_t engine, bool local);

// Cases by family; every opcode of the data sheet is in one of them.
std::vector<OperatorCase> dense_cases();
std::vector<OperatorCase> elementwise_cases();
std::vector<OperatorCase> reduction_cases();
std::vector<OperatorCase> movement_cases();

// Building stones of them, used by the graph stages too.
std::vector<double> conv2d_reference(const Operand& x, const Operand& w, const Operand& bias,
                                     const Dims& y, const enpu_conv2d_params& p);
std::vector<double> matmul_reference(const Operand& a, const Operand& b, const Operand& bias);
std::vector<double> pool_reference(const Operand& x, const Dims& y, const enpu_pool_params& p);
std::vector<double> softmax_reference(const Operand& x, uint32_t axis);

}  // namespace enpu::bringup
