// SPDX-License-Identifier: MIT
// Turns nodes into kernels for one set of input shapes.
#ifndef ENPU_LOWERING_EMITTER_H
#define ENPU_LOWERING_EMITTER_H

#include <cstring>

#include "graph.h"
#include "plan.h"

namespace enpu::lowering {

class Emitter {
  public:
    Emitter(const Graph& graph, Plan& plan);

    // ---- values
    bool known(int value) const { return value >= 0 && state(value).defined; }
    const Dims& dims(int value) const;
    uint32_t dtype(int value) const;
    HostTensorPtr host(int value) const;  // NULL unless it is known while compiling
    // An operand that must be known while compiling; fails otherwise. Empty when left out.
    std::vector<int64_t> integers(int value, const char* what) const;
    View device(int value);  // uploads what is known on the host only
    View upload(HostTensorPtr tensor);
    View optional_device(int value) { return value < 0 ? View{} : device(value); }

    void define(int value, View view);
    void define(int value, HostTensorPtr tensor);

    // ---- kernels
    View temporary(uint32_t dtype, const Dims& dims, const Dims& strides);
    View temporary(uint32_t dtype, const Dims& dims);  // row-major
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
    // y = activation(y + residual) for a node whose kernel could not take the residual.
    void finish(const Node& node, const View& y);
    // Whether a residual fits into the kernel that writes `y`.
    bool fits(const Node& node, const Dims& y) const;

    void run();  // all nodes of the graph, then its outputs
    Plan& plan() { return plan_; }
    const Graph& graph() const { return graph_; }

  private:
    struct State {
        bool defined = false;
        View view;  // absent while on the host only
        HostTensorPtr host;
        Dims dims;
    };
    const State& state(int value) const;
    State& state(int value);
    void add_bytes(uint32_t op, const void* params, size_t bytes, std::vector<View> operands);
    int new_buffer(Buffer buffer);
    bool try_host(const Node& node);
    void emit(const Node& node);
    void finish_outputs();

    const Graph& graph_;
    Plan& plan_;
    std::vector<State> states_;
    std::map<const HostTensor*, View> uploads_;
    std::string node_name_;
};

// ---- operators, in emit_*.cpp
using EmitFunction = void (*)(Emitter&, const Node&);
EmitFunction find_emitter(const std::string& op);  // NULL when there is none

// All inputs with their dims; `host_inputs[i]` set when the input's values are known (shape
// operands).
Plan lower(const Graph& graph, const std::vector<Dims>& input_dims,
           const std::vector<HostTensorPtr>& host_inputs);

}  // namespace enpu::lowering
#endif
