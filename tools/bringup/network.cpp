// SPDX-License-Identifier: MIT
#include "network.h"

#include <algorithm>
#include <cmath>

#include "lib/output.h"
#include "operator_case.h"
#include "stage.h"

namespace enpu::bringup {

Memory Network::place(const Operand& operand) {
    const Memory memory = machine_.allocate(std::max<size_t>(count_of(operand.dims) * 4, 64), true);
    for (size_t i = 0; i < operand.values.size(); ++i)
        memory.as<float>()[i] = static_cast<float>(operand.values[i]);
    return memory;
}

void Network::input(const Dims& dims, uint32_t seed) {
    names_.push_back("input");
    values_.push_back(numbers(dims, seed, -1, 1));
    places_.push_back(place(last()));
}

void Network::add(const std::string& layer, uint16_t opcode, const void* params, size_t bytes,
                  std::vector<enpu_tensor> inputs, const Dims& dims, std::vector<double> result) {
    Operand out = output(dims);
    const Memory memory = place(out);
    inputs.push_back(tensor_of(out, memory.va));
    stream_.operation(opcode, params, bytes, inputs);
    out.values = std::move(result);
    names_.push_back(layer);
    values_.push_back(std::move(out));
    places_.push_back(memory);
}

void Network::conv(uint32_t channels, uint32_t kernel, uint32_t stride, uint32_t seed) {
    const Operand x = last();
    const uint32_t half = kernel / 2;
    const enpu_conv2d_params p{
        {stride, stride}, {half, half, half, half}, {1, 1}, 1, ENPU_UNARY_RELU, 0, 0};
    const double spread = 1 / std::sqrt(double(x.dims[1] * kernel * kernel));
    const Operand w = numbers({channels, x.dims[1], kernel, kernel}, seed, -2 * spread, 2 * spread);
    const Operand bias = numbers({channels}, seed + 1, -0.1, 0.1);
    const Dims yd = {x.dims[0], channels, (x.dims[2] - 1) / stride + 1,
                     (x.dims[3] - 1) / stride + 1};
    add("conv " + std::to_string(channels), ENPU_OPCODE_CONV2D, &p, sizeof(p),
        {last_tensor(), tensor_of(w, place(w).va), tensor_of(bias, place(bias).va), enpu_tensor{},
         enpu_tensor{}},
        yd, conv2d_reference(x, w, bias, yd, p));
}

void Network::max_pool() {
    const Operand x = last();
    const enpu_pool_params p{ENPU_POOL_MAX, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}};
    const Dims yd = {x.dims[0], x.dims[1], x.dims[2] / 2, x.dims[3] / 2};
    add("max pool", ENPU_OPCODE_POOL, &p, sizeof(p), {last_tensor()}, yd, pool_reference(x, yd, p));
}

void Network::residual_add(size_t layer) {
    const Operand a = last(), b = values_.at(layer);
    const enpu_binary_params p{ENPU_BINARY_ADD, 0, 0, 0};
    std::vector<double> sum;
    for (size_t i = 0; i < a.values.size(); ++i) sum.push_back(a.values[i] + b.values[i]);
    add("residual", ENPU_OPCODE_BINARY, &p, sizeof(p),
        {last_tensor(), tensor_of(b, places_.at(layer).va)}, a.dims, sum);
}

void Network::flatten_matmul(uint32_t outputs, uint32_t seed) {
    Operand x = last();
    const auto width = static_cast<uint32_t>(count_of(x.dims) / x.dims[0]);
    x.dims = {x.dims[0], width};
    const Operand w = numbers({width, outputs}, seed, -3 / std::sqrt(double(width)),
                              3 / std::sqrt(double(width)));
    const enpu_matmul_params p{0, 0, 0, 1};
    add("matmul " + std::to_string(outputs), ENPU_OPCODE_MATMUL, &p, sizeof(p),
        {tensor_of(x, places_.back().va), tensor_of(w, place(w).va), enpu_tensor{}, enpu_tensor{},
         enpu_tensor{}},
        {x.dims[0], outputs}, matmul_reference(x, w, none()));
}

void Network::softmax() {
    const Operand x = last();
    const enpu_softmax_params p{1, 0};
    add("softmax", ENPU_OPCODE_SOFTMAX, &p, sizeof(p), {last_tensor()}, x.dims,
        softmax_reference(x, 1));
}

void Network::check(const std::string& name, uint32_t engine, double tolerance) {
    machine_.must_run(name, engine, stream_);
    for (size_t layer = 1; layer < values_.size(); ++layer) {
        const Operand& want = values_[layer];
        for (size_t i = 0; i < want.values.size(); ++i) {
            const double got = places_[layer].as<float>()[i];
            if (std::fabs(got - want.values[i]) <=
                tolerance * std::max(1.0, std::fabs(want.values[i])))
                continue;
            throw StageFailure(
                tools::format("%s: element %zu after layer %zu (%s) is %g, must be %g",
                              name.c_str(), i, layer, names_[layer].c_str(), got, want.values[i]));
        }
    }
}

}  // namespace enpu::bringup
