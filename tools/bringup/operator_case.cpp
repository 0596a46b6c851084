// SPDX-License-Identifier: MIT
#include "operator_case.h"

#include <algorithm>
#include <cmath>

#include "lib/output.h"
#include "stage.h"

namespace enpu::bringup {
namespace {

using tools::format;

bool close_enough(double got, double want, double tolerance) {
    if (std::isnan(want)) return std::isnan(got);
    if (std::isinf(want)) return got == want;
    return std::fabs(got - want) <= tolerance * std::max(1.0, std::fabs(want));
}

std::string index_text(const Dims& dims, size_t at) {
    std::string text;
    for (size_t axis = dims.size(); axis-- > 0;) {
        text = std::to_string(at % dims[axis]) + (text.empty() ? "" : "," + text);
        at /= dims[axis];
    }
    return "[" + text + "]";
}

void compare(const OperatorCase& test, const Operand& out, const Memory& memory, uint32_t engine) {
    const size_t size = bytes_of(out.dtype);
    for (size_t i = 0; i < test.expected.size(); ++i) {
        const double got = load(out.dtype, memory.host.data() + i * size);
        if (close_enough(got, test.expected[i], test.tolerance)) continue;
        throw StageFailure(format("%s on engine %u: y%s is %.9g, must be %.9g", test.name.c_str(),
                                  engine, index_text(out.dims, i).c_str(), got, test.expected[i]));
    }
}

}  // namespace

void run_case(Machine& machine, const OperatorCase& test, uint32_t engine, bool local) {
    std::vector<enpu_tensor> tensors;
    Memory result;
    const Operand* out = nullptr;
    for (const Operand& operand : test.operands) {
        const size_t size = bytes_of(operand.dtype), count = count_of(operand.dims);
        if (operand.dtype == ENPU_DTYPE_NONE) {
            tensors.push_back(tensor_of(operand, 0));
            continue;
        }
        const Memory memory = machine.allocate(std::max<size_t>(count * size, 64), local);
        for (size_t i = 0; i < operand.values.size(); ++i)
            store(operand.dtype, memory.host.data() + i * size, operand.values[i]);
        if (operand.output) {
            result = memory;
            out = &operand;
        }
        tensors.push_back(tensor_of(operand, memory.va));
    }
    if (test.adjust) test.adjust(tensors);
    machine.must_run(
        test.name, engine,
        Stream().operation(test.opcode, test.params.data(), test.params.size(), tensors));
    compare(test, *out, result, engine);
}

}  // namespace enpu::bringup
