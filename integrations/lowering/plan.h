// SPDX-License-Identifier: MIT
// The result of lowering a graph for one set of input shapes: kernels over buffers. No device is
// needed to make one.
#ifndef ENPU_LOWERING_PLAN_H
#define ENPU_LOWERING_PLAN_H

#include <array>
#include <optional>

#include "host_tensor.h"

namespace enpu::lowering {

// A tensor inside a buffer. Offset and strides count elements. buffer -1: left out.
struct View {
    int buffer = -1;
    int64_t offset = 0;
    uint32_t dtype = ENPU_OP_NONE;
    Dims dims;
    Dims strides;
    int32_t zero_point = 0;  // of I8 and U8 in integer products

    bool absent() const { return buffer < 0; }
};

struct Buffer {
    enum class Kind { kTemporary, kInput, kConstant, kExternal };
    Kind kind = Kind::kTemporary;
    uint64_t bytes = 0;
    int index = -1;  // kInput: of the graph's inputs; kConstant: of Plan::constants
    int first = -1;  // kernels of the first write and the last use; outputs live to the end
    int last = -1;
    bool in_place = false;    // took over the memory of an operand that dies as it is written
    uint64_t offset = 0;      // temporaries and inputs: in the arena
    void* address = nullptr;  // kExternal: device memory of the caller
};

// Data that every program of a session shares. With pack >= 0, `view` of it is put into the
// device's own layout where the device has one.
struct Constant {
    HostTensorPtr tensor;
    int pack = -1;  // enum enpu_op_pack_kind
    uint32_t groups = 1;
    Dims dims;
    Dims strides;
};

struct Kernel {
    uint32_t op = 0;  // enum enpu_op
    std::array<unsigned char, ENPU_OP_MAX_PARAM_BYTES> params{};
    uint32_t params_bytes = 0;
    std::vector<View> operands;  // the last one is written
    bool in_place = false;       // may write over an operand of the same layout that dies here
    std::string node;
};

struct PlanOutput {
    View view;  // dense row-major, or absent when `host` is set
    HostTensorPtr host;
    uint32_t dtype = ENPU_OP_NONE;
    Dims dims;
};

struct Plan {
    std::vector<Buffer> buffers;
    std::vector<Constant> constants;
    std::vector<Kernel> kernels;
    std::vector<PlanOutput> outputs;
    uint64_t arena_bytes = 0;
    uint64_t lower_bound_bytes = 0;  // most bytes alive at one kernel: no plan needs less
};

constexpr uint64_t kBufferAlign = 256;

// Lifetimes, in-place reuse and offsets of temporaries and inputs, by rt_plan_memory.
void plan_memory(Plan& plan);

// ---- views
Dims channels_last_strides(const Dims& dims);  // of N,C,spatial…
bool is_dense(const View& view, const Dims& strides);
bool is_row_major(const View& view);
// Dense strides with the axes in the order of the view's own (broadcast axes: row-major).
Dims strides_like(const View& view, const Dims& dims);
// The same elements with other dims, without a copy; nullopt when strides do not allow it.
std::optional<View> reshape_view(const View& view, const Dims& dims);
View transpose_view(const View& view, const std::vector<int64_t>& permutation);
View broadcast_view(const View& view, const Dims& dims);

}  // namespace enpu::lowering
#endif
