// SPDX-License-Identifier: MIT
#include "emitter.h"

#include <algorithm>

#include "host_eval.h"
#include "shapes.h"

namespace enpu::lowering {

Emitter::Emitter(const Graph& graph, Plan& plan)
    : PlanBuilder(plan), graph_(graph), states_(graph.values.size()) {
    for (size_t v = 0; v < graph.values.size(); ++v) {
        if (graph.values[v].constant) define(static_cast<int>(v), graph.values[v].constant);
    }
}

const Emitter::State& Emitter::state(int value) const {
    const State& s = states_.at(static_cast<size_t>(value));
    return s;
}

Emitter::State& Emitter::state(int value) {
    return states_.at(static_cast<size_t>(value));
}

const Dims& Emitter::dims(int value) const {
    if (value < 0 || !state(value).defined) fail("an operand is missing");
    return state(value).dims;
}

uint32_t Emitter::dtype(int value) const {
    if (value < 0 || !state(value).defined) fail("an operand is missing");
    const State& s = state(value);
    return s.host ? s.host->dtype : s.view.dtype;
}

HostTensorPtr Emitter::host(int value) const {
    return value < 0 ? nullptr : state(value).host;
}

std::vector<int64_t> Emitter::integers(int value, const char* what) const {
    if (value < 0) return {};
    const HostTensorPtr tensor = host(value);
    if (!tensor)
        fail(std::string(what) + " is computed on the device and not known while compiling");
    return as_i64(*tensor);
}

View Emitter::device(int value) {
    if (value < 0 || !state(value).defined) fail("an operand is missing");
    State& s = state(value);
    if (s.view.absent()) s.view = upload(s.host);
    return s.view;
}

void Emitter::define(int value, View view) {
    if (value < 0) return;
    State& s = state(value);
    s.defined = true;
    s.dims = view.dims;
    s.view = std::move(view);
}

void Emitter::define(int value, HostTensorPtr tensor) {
    if (value < 0) return;
    State& s = state(value);
    s.defined = true;
    s.dims = tensor->dims;
    s.host = std::move(tensor);
}

bool Emitter::fits(const Node& node, const Dims& y) const {
    return node.residual < 0 || broadcast_dims(dims(node.residual), y) == y;
}

void Emitter::finish(const Node& node, const View& y) {
    const View other = device(node.residual);
    const Dims dims = broadcast_dims(y.dims, other.dims);
    const View sum = temporary(y.dtype, dims, strides_like(y, dims));
    const enpu_op_binary_params params{ENPU_OP_BINARY_ADD, node.activation.function,
                                       node.activation.alpha, node.activation.beta};
    add(ENPU_OP_BINARY, params, {broadcast(y, dims), broadcast(other, dims), sum});
    define(node.outputs[0], sum);
}

bool Emitter::try_host(const Node& node) {
    if (node.op == "Shape") {
        const Dims& all = dims(node.input(0));
        const auto rank = static_cast<int64_t>(all.size());
        auto bound = [&](int64_t at) {
            return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
        };
        const int64_t start = bound(node.integer("start", 0)),
                      end = bound(node.integer("end", rank));
        std::vector<int64_t> part;
        for (int64_t i = start; i < end; ++i) part.push_back(all[static_cast<size_t>(i)]);
        define(node.outputs[0], host_i64({static_cast<int64_t>(part.size())}, part));
        return true;
    }
    if (node.op == "Size") {
        define(node.outputs[0], host_i64({}, {element_count(dims(node.input(0)))}));
        return true;
    }
    if (!host_evaluable(node.op)) return false;
    std::vector<HostTensorPtr> inputs;
    for (int v : node.inputs) {
        if (v >= 0 && !host(v)) return false;
        inputs.push_back(host(v));
    }
    const auto results = host_evaluate(node, inputs);
    if (results.size() < node.outputs.size()) return false;
    for (size_t i = 0; i < node.outputs.size(); ++i) define(node.outputs[i], results[i]);
    return true;
}

void Emitter::emit(const Node& node) {
    set_origin(node.op + " '" + node.name + "'");
    if (try_host(node)) return;
    const EmitFunction function = find_emitter(node.op);
    if (!function) fail("there is no such operator on the device");
    function(*this, node);
}

void Emitter::run() {
    check_nodes(graph_);
    for (const Node& node : graph_.nodes) {
        try {
            emit(node);
        } catch (const Error& error) {
            fail(node.op + " '" + node.name + "': " + error.what());
        }
    }
    finish_outputs();
}

void Emitter::finish_outputs() {
    set_origin("output");
    for (int v : graph_.outputs) {
        PlanOutput output;
        output.dtype = dtype(v);
        output.dims = dims(v);
        output.host = host(v);
        if (!output.host) output.view = dense(device(v));
        plan().outputs.push_back(std::move(output));
    }
}

Plan lower(const Graph& graph, const std::vector<Dims>& input_dims,
           const std::vector<HostTensorPtr>& host_inputs) {
    Plan plan;
    Emitter emitter(graph, plan);
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
        const int v = graph.inputs[i];
        const uint32_t dtype = graph.values[static_cast<size_t>(v)].dtype;
        if (host_inputs[i]) {
            emitter.define(v, host_inputs[i]);
            continue;
        }
        if (input_dims[i].size() > ENPU_OP_MAX_RANK) fail("an input has a rank over 8");
        const int64_t count = element_count(input_dims[i]);
        if (count == 0) {
            emitter.define(v, std::make_shared<HostTensor>(make_host_tensor(dtype, input_dims[i])));
            continue;
        }
        Buffer buffer;
        buffer.kind = Buffer::Kind::kInput;
        buffer.index = static_cast<int>(i);
        buffer.bytes = static_cast<uint64_t>(count) * dtype_bytes(dtype);
        plan.buffers.push_back(buffer);
        emitter.define(v, View{static_cast<int>(plan.buffers.size()) - 1, 0, dtype, input_dims[i],
                               row_major_strides(input_dims[i])});
    }
    emitter.run();
    plan_memory(plan);
    return plan;
}

}  // namespace enpu::lowering
