// SPDX-License-Identifier: MIT
// Turns nodes into kernels for one set of input shapes.
#ifndef ENPU_LOWERING_EMITTER_H
#define ENPU_LOWERING_EMITTER_H

#include "builder.h"
#include "graph.h"

namespace enpu::lowering {

class Emitter : public PlanBuilder {
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
    View optional_device(int value) { return value < 0 ? View{} : device(value); }

    void define(int value, View view);
    void define(int value, HostTensorPtr tensor);

    // ---- kernels
    // y = activation(y + residual) for a node whose kernel could not take the residual.
    void finish(const Node& node, const View& y);
    // Whether a residual fits into the kernel that writes `y`.
    bool fits(const Node& node, const Dims& y) const;

    void run();  // all nodes of the graph, then its outputs
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
    bool try_host(const Node& node);
    void emit(const Node& node);
    void finish_outputs();

    const Graph& graph_;
    std::vector<State> states_;
};

// ---- operators, in emit_*.cpp
using EmitFunction = void (*)(Emitter&, const Node&);
EmitFunction find_emitter(const std::string& op);  // NULL when there is none
std::vector<std::string> operators();              // all that find_emitter knows

// All inputs with their dims; `host_inputs[i]` set when the input's values are known (shape
// operands).
Plan lower(const Graph& graph, const std::vector<Dims>& input_dims,
           const std::vector<HostTensorPtr>& host_inputs);

}  // namespace enpu::lowering
#endif
