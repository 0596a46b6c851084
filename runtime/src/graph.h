// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <vector>

#include "kernel.h"
#include "stream.h"

namespace enpu::rt {

// One recorded operation. Points into itself, so it stays where it is.
struct GraphNode {
    enpu_hal_command command{};
    enpu_hal_dispatch dispatch{};
    enpu_hal_operand operands[ENPU_OP_MAX_OPERANDS]{};
    alignas(8) unsigned char params[ENPU_OP_MAX_PARAM_BYTES]{};
    rt_operand sources[ENPU_OP_MAX_OPERANDS]{};  // for updates
    std::vector<rt_node> dependencies;
    const char* what = "";

    GraphNode() = default;
    GraphNode(const GraphNode& other) { *this = other; }
    GraphNode& operator=(const GraphNode& other);
};

}  // namespace enpu::rt

struct rt_graph_impl {
    explicit rt_graph_impl(rt_device_impl* owner) : device(owner) { device->retain(); }
    ~rt_graph_impl() { device->release(); }

    rt_device_impl* const device;
    std::mutex mutex;
    std::vector<std::unique_ptr<enpu::rt::GraphNode>> nodes;
};

struct rt_graph_exec_impl {
    explicit rt_graph_exec_impl(rt_device_impl* owner) : device(owner) { device->retain(); }
    ~rt_graph_exec_impl();

    rt_status encode();
    rt_status wait_idle(uint64_t deadline_ns, const char* origin);
    rt_status update(rt_node node, const enpu::rt::GraphNode& changed, uint64_t deadline_ns,
                     const char* origin);

    rt_device_impl* const device;
    std::mutex mutex;
    std::vector<std::unique_ptr<enpu::rt::GraphNode>> nodes;
    std::vector<enpu_hal_command> commands;  // of nodes, in order
    enpu_hal_graph* handle = nullptr;        // null: the backend has no graphs
    enpu::rt::Point last;                    // launch
};
