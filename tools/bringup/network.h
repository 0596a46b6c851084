// SPDX-License-Identifier: MIT
// Small networks for the last stages: layers in one command buffer, and the same in double.
#pragma once

#include <string>
#include <vector>

#include "machine.h"
#include "operand.h"

namespace enpu::bringup {

// A chain of layers over one activation that stays in local memory.
class Network {
  public:
    explicit Network(Machine& machine) : machine_(machine) {}

    void input(const Dims& dims, uint32_t seed);
    void conv(uint32_t channels, uint32_t kernel, uint32_t stride, uint32_t seed);  // with ReLU
    void max_pool();                                                                // 2x2
    void residual_add(size_t layer);  // adds the activation after `layer`
    void flatten_matmul(uint32_t outputs, uint32_t seed);
    void softmax();

    size_t layers() const { return values_.size(); }
    // Runs all layers as one job and compares the activation after each; a StageFailure names the
    // first layer that differs by more than the tolerance.
    void check(const std::string& name, uint32_t engine, double tolerance);

  private:
    Memory place(const Operand& operand);
    void add(const std::string& layer, uint16_t opcode, const void* params, size_t bytes,
             std::vector<enpu_tensor> inputs, const Dims& dims, std::vector<double> result);
    const Operand& last() const { return values_.back(); }
    enpu_tensor last_tensor() const { return tensor_of(last(), places_.back().va); }

    Machine& machine_;
    Stream stream_;
    std::vector<std::string> names_;
    std::vector<Operand> values_;  // activations, the input first
    std::vector<Memory> places_;
};

}  // namespace enpu::bringup
