// SPDX-License-Identifier: MIT
// Writes kernels and buffers into a plan: what every framework's lowering shares.
#ifndef ENPU_LOWERING_BUILDER_H
#define ENPU_LOWERING_BUILDER_H

#include <cstring>
#include <map>

#include "plan.h"

namespace enpu::lowering {

class PlanBuilder {
  public:
    explicit PlanBuilder(Plan& plan) : plan_(plan) {}

    // ---- operands
    View temporary(uint32_t dtype, const Dims& dims, const Dims& strides);
    View temporary(uint32_t dtype, const Dims& dims);  // row-major
    View upload(HostTensorPtr tensor);                 // a constant, once a plan
    // Device memory of the caller, `bytes` from `address`; nothing is allocated for it.
    View external(void* address, uint64_t bytes, uint32_t dtype, const Dims& dims,
                  const Dims& strides);

    // ---- kernels
    template <class Params>
    void add(uint32_t op, const Params& params, std::vector<View> operands) {
        static_assert(sizeof(Params) <= ENPU_OP_MAX_PARAM_BYTES);
        add_bytes(op, &params, sizeof(Params), std::move(operands));
    }
    void add(uint32_t op, std::vector<View> operands) {
        add_bytes(op, nullptr, 0, std::move(operands));
    }
    void move(const View& x, const View& y);

    // ---- layout
    View dense(const View& view);          // row-major, by a copy if need be
    View channels_last(const View& view);  // likewise
    View reshape(const View& view, const Dims& dims);
    View broadcast(const View& view, const Dims& dims) { return broadcast_view(view, dims); }
    // A constant operand that may be packed; `view` is a view of its upload.
    View packable(const View& view, uint32_t kind, uint32_t groups);

    // What the kernels that follow are for, in messages.
    void set_origin(std::string name) { origin_ = std::move(name); }
    Plan& plan() { return plan_; }

  protected:
    int new_buffer(Buffer buffer);

  private:
    void add_bytes(uint32_t op, const void* params, size_t bytes, std::vector<View> operands);

    Plan& plan_;
    std::map<const HostTensor*, View> uploads_;
    std::string origin_;
};

}  // namespace enpu::lowering
#endif
