// SPDX-License-Identifier: MIT
// C++ owners of graphs (rt_graph.h). Part of rt.hpp: include that.
#pragma once

namespace enpu::rt {

// A graph that can be launched (Stream::launch). Updates block for launches in flight.
class GraphExec : public Owner<rt_graph_exec, rt_graph_exec_destroy> {
  public:
    using Owner::Owner;

    // Another data pointer for one operand of a kernel node.
    void update_kernel(rt_node node, uint32_t operand, void* data, uint64_t deadline_ns) const {
        check(rt_graph_update_kernel(get(), node, operand, data, deadline_ns));
    }
    void update_copy(rt_node node, void* to, const void* from, uint64_t deadline_ns) const {
        check(rt_graph_update_copy(get(), node, to, from, deadline_ns));
    }
    // All nodes as in a graph of the same shape.
    void update(rt_graph graph, uint64_t deadline_ns) const {
        check(rt_graph_exec_update(get(), graph, deadline_ns));
    }
    rt_graph_info info() const {
        auto result = sized<rt_graph_info>();
        check(rt_graph_exec_get_info(get(), &result));
        return result;
    }
    // With RT_GRAPH_TIMING, of the last launch.
    rt_node_time time(rt_node node) const {
        auto result = sized<rt_node_time>();
        check(rt_graph_exec_node_time(get(), node, &result));
        return result;
    }
};

// Each function that adds a node gives its number; `after` are the nodes it depends on.
class Graph : public Owner<rt_graph, rt_graph_destroy> {
  public:
    using Owner::Owner;
    using Nodes = std::span<const rt_node>;
    explicit Graph(const Device& device) : Owner(make(device.get())) {}

    template <typename Params>
    rt_node kernel(rt_kernel kernel, const Params& params, std::span<const rt_operand> operands,
                   Nodes after = {}) const {
        return add([&](rt_node* node) {
            return rt_graph_add_kernel(get(), kernel, &params, sizeof(params), operands.data(),
                                       uint32_t(operands.size()), after.data(),
                                       uint32_t(after.size()), node);
        });
    }
    // For kernels without parameters.
    rt_node kernel(rt_kernel kernel, std::span<const rt_operand> operands, Nodes after = {}) const {
        return add([&](rt_node* node) {
            return rt_graph_add_kernel(get(), kernel, nullptr, 0, operands.data(),
                                       uint32_t(operands.size()), after.data(),
                                       uint32_t(after.size()), node);
        });
    }
    rt_node copy(void* to, const void* from, size_t bytes, Nodes after = {}) const {
        return add([&](rt_node* node) {
            return rt_graph_add_copy(get(), to, from, bytes, after.data(), uint32_t(after.size()),
                                     node);
        });
    }
    template <typename T>
    rt_node fill(void* to, T pattern, size_t count, Nodes after = {}) const {
        static_assert(sizeof(T) <= sizeof(uint64_t));
        uint64_t bits = 0;
        std::memcpy(&bits, &pattern, sizeof(pattern));
        return add([&](rt_node* node) {
            return rt_graph_add_fill(get(), to, bits, sizeof(T), count * sizeof(T), after.data(),
                                     uint32_t(after.size()), node);
        });
    }
    rt_node host(void (*function)(void* context), void* context, Nodes after = {}) const {
        return add([&](rt_node* node) {
            return rt_graph_add_host(get(), function, context, after.data(), uint32_t(after.size()),
                                     node);
        });
    }
    // Does nothing but join what it depends on.
    rt_node empty(Nodes after = {}) const {
        return add([&](rt_node* node) {
            return rt_graph_add_empty(get(), after.data(), uint32_t(after.size()), node);
        });
    }
    void depend(rt_node node, rt_node on) const { check(rt_graph_add_dependency(get(), node, on)); }
    void set_name(rt_node node, const char* name) const {
        check(rt_graph_set_name(get(), node, name));
    }
    void set_cost(rt_node node, uint64_t ns) const { check(rt_graph_set_cost(get(), node, ns)); }
    // Runs each node on the stream and takes its time as its cost.
    void measure(rt_stream stream, uint64_t deadline_ns) const {
        check(rt_graph_measure(get(), stream, deadline_ns));
    }
    GraphExec instantiate() const {
        rt_graph_exec exec = nullptr;
        check(rt_graph_instantiate(get(), &exec));
        return GraphExec(exec);
    }
    GraphExec instantiate(const rt_graph_options& options) const {
        rt_graph_exec exec = nullptr;
        check(rt_graph_instantiate_with(get(), &options, &exec));
        return GraphExec(exec);
    }

  private:
    template <typename Add>
    static rt_node add(Add add) {
        rt_node node = 0;
        check(add(&node));
        return node;
    }
    static rt_graph make(rt_device device) {
        rt_graph graph = nullptr;
        check(rt_graph_create(device, &graph));
        return graph;
    }
};

}  // namespace enpu::rt
