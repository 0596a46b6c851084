// SPDX-License-Identifier: MIT
// The peer of the operators: oneDNN as its documentation recommends it. Layouts are its own choice (format
// "any"), weights are reordered beforehand, the instruction set is what the processor has, scratch is its
// own, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace enpu::bench {

struct ConvShape {
    const char* name;
    uint32_t channels, size, outputs, kernel, stride, groups;

    uint32_t pad() const { return kernel / 2; }
    uint32_t out() const { return (size + 2 * pad() - kernel) / stride + 1; }
};
struct MatmulShape {
    const char* name;
    uint32_t m, n, k;
};

// Runs once; returns ns. `note` tells which implementation it is.
struct Peer {
    std::function<double()> run;
    std::string note;
};

Peer onednn_conv(const ConvShape& shape);
Peer onednn_matmul(const MatmulShape& shape);
// u8 by s8. What is exact everywhere: its integer kernels where the processor accumulates products in 32
// bits, else its f32 kernels, which are then an upper bound of what an exact product over f32 can be.
Peer onednn_conv_integer(const ConvShape& shape);
Peer onednn_matmul_integer(const MatmulShape& shape);
Peer onednn_softmax(uint32_t rows, uint32_t columns);
Peer onednn_layer_norm(uint32_t rows, uint32_t columns);

}  // namespace enpu::bench
