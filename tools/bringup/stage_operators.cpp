// SPDX-License-Identifier: MIT
#include "enpu_hw_tables.h"
#include "lib/output.h"
#include "list.h"
#include "operator_case.h"
#include "rules.h"

namespace enpu::bringup {
namespace {

std::vector<OperatorCase> all_cases() {
    std::vector<OperatorCase> cases = elementwise_cases();
    for (auto family : {movement_cases, reduction_cases, dense_cases})
        for (OperatorCase& test : family()) cases.push_back(std::move(test));
    return cases;
}

// Weights that PACK prepared serve as the plain ones do.
void check_pack(Machine& machine) {
    const enpu_conv2d_params p{{1, 1}, {1, 1, 1, 1}, {1, 1}, 1, 0, 0, 0};
    const Dims xd = {1, 8, 6, 6}, wd = {12, 8, 3, 3}, yd = {1, 12, 6, 6};
    const Operand x = numbers(xd, 400), w = numbers(wd, 401);
    const Memory xm = machine.allocate(x.values.size() * 4, true),
                 wm = machine.allocate(w.values.size() * 4, true),
                 ym = machine.allocate(count_of(yd) * 4, true);
    for (size_t i = 0; i < x.values.size(); ++i)
        xm.as<float>()[i] = static_cast<float>(x.values[i]);
    for (size_t i = 0; i < w.values.size(); ++i)
        wm.as<float>()[i] = static_cast<float>(w.values[i]);
    const enpu_tensor plain = tensor_of(w, wm.va);
    const uint64_t bytes = rules::packed_bytes(plain, ENPU_PACK_KIND_CONV2D, 1);
    const Memory pm = machine.allocate(bytes, true);
    enpu_tensor packed = plain;
    packed.addr = pm.va;
    packed.format = ENPU_FORMAT_PACKED;
    packed.bytes = bytes;
    for (int32_t& stride : packed.strides) stride = 0;
    const enpu_pack_params pack{ENPU_PACK_KIND_CONV2D, 1};
    Stream stream;
    stream.operation(ENPU_OPCODE_PACK, &pack, sizeof(pack), {plain, packed});
    stream.operation(ENPU_OPCODE_CONV2D, &p, sizeof(p),
                     {tensor_of(x, xm.va), packed, enpu_tensor{}, enpu_tensor{}, enpu_tensor{},
                      tensor_of(output(yd), ym.va)});
    machine.must_run("pack, then conv2d with the packed weights", 0, stream);
    const std::vector<double> want = conv2d_reference(x, w, none(), yd, p);
    for (size_t i = 0; i < want.size(); ++i)
        require(std::abs(ym.as<float>()[i] - want[i]) < 1e-4,
                tools::format("conv2d with packed weights: y[%zu] is %g, must be %g", i,
                              double(ym.as<float>()[i]), want[i]));
}

void jobs(Machine& machine) {
    machine.release();
    uint64_t met = 1ull << ENPU_OPCODE_PACK;
    unsigned number = 0;
    for (const OperatorCase& test : all_cases()) {
        met |= 1ull << test.opcode;
        // In local memory, where operands belong, and now and then in host memory.
        run_case(machine, test, number % machine.compute_engines(), number % 3 != 2);
        if (++number % 16 == 0) machine.release();
    }
    check_pack(machine);
    machine.release();
    for (unsigned op = 0; op < ENPU_MAX_OPCODES; ++op) {
        if (enpu_opcodes[op].is_operator && !(met >> op & 1))
            throw StageFailure(std::string("the harness has no case for ") + enpu_opcodes[op].name);
    }
}

}  // namespace

const Stage kOperators = {
    "operators", "every operator of the data sheet against its formula, in double",
    "dims or strides swapped, padding on the wrong side, rounding, an operand taken for another",
    nullptr, jobs};

}  // namespace enpu::bringup
