// SPDX-License-Identifier: MIT
// The backend's own kernels: which there are, how a dispatch becomes a launch of one, and their
// code for each generation of GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "driver.h"
#include "packet.h"

namespace enpu::hal::cuda {

// X(id, name in the image)
#define ENPU_CUDA_KERNELS(X)                 \
    X(kTimestamp, "enpu_timestamp")          \
    X(kFill, "enpu_fill")                    \
    X(kUnary, "enpu_unary")                  \
    X(kBinary, "enpu_binary")                \
    X(kSelect, "enpu_select")                \
    X(kCast, "enpu_cast")                    \
    X(kMove, "enpu_move")                    \
    X(kPad, "enpu_pad")                      \
    X(kGather, "enpu_gather")                \
    X(kQuantize, "enpu_quantize")            \
    X(kDequantize, "enpu_dequantize")        \
    X(kResize, "enpu_resize")                \
    X(kPool, "enpu_pool")                    \
    X(kReduce, "enpu_reduce")                \
    X(kSoftmax, "enpu_softmax")              \
    X(kNorm, "enpu_norm")                    \
    X(kMatmulFloat, "enpu_matmul_float")     \
    X(kMatmulInteger, "enpu_matmul_integer") \
    X(kConvFloat, "enpu_conv_float")         \
    X(kConvInteger, "enpu_conv_integer")     \
    X(kConvTransposeFloat, "enpu_conv_transpose_float")

enum class KernelId : uint16_t {
#define ENPU_CUDA_ID(id, name) id,
    ENPU_CUDA_KERNELS(ENPU_CUDA_ID)
#undef ENPU_CUDA_ID
        kCount,
};
constexpr size_t kKernels = static_cast<size_t>(KernelId::kCount);
const char* kernel_name(KernelId id);

constexpr size_t kMaxKernelArgs = 1024;

// One launch: a grid of blocks of one dimension, and the structure of kernels/args.h that the
// kernel takes.
struct KernelCall {
    KernelId id = KernelId::kTimestamp;
    bool fallible = false;  // may report an Offence
    uint32_t grid = 1;
    uint32_t block = 1;
    uint32_t args_bytes = 0;
    alignas(16) unsigned char args[kMaxKernelArgs];

    template <typename Args>
    Args& set(KernelId kernel, uint32_t blocks, uint32_t threads) {
        static_assert(sizeof(Args) <= kMaxKernelArgs && alignof(Args) <= 16);
        id = kernel;
        fallible = false;
        grid = blocks;
        block = threads;
        args_bytes = sizeof(Args);
        return *new (args) Args{};
    }
};

// The launch that runs a packet whose addresses are set. `offence` is where on the GPU a fallible
// kernel reports. UNSUPPORTED with the reason for what the kernels do not do. Allocates nothing.
uint32_t plan_kernel(const PacketStorage& packet, uint64_t offence, KernelCall& call,
                     enpu_hal_status* status);

// The kernels in one context.
class KernelSet {
  public:
    // Loads the code that fits the GPU; when that fails the set has no kernels, and a reason.
    void load(const Driver& api);
    void unload(const Driver& api);
    bool available() const { return available_; }
    const char* reason() const { return reason_.message; }
    Function function(KernelId id) const { return functions_[static_cast<size_t>(id)]; }

  private:
    Result find(const Driver& api, Module module);

    bool available_ = false;
    enpu_hal_status reason_{};
    std::vector<Module> modules_;
    Function functions_[kKernels] = {};
};

}  // namespace enpu::hal::cuda
