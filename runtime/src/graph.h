// SPDX-License-Identifier: MIT
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dag.h"
#include "kernel.h"
#include "profile_graph.h"
#include "record.h"
#include "stream.h"

namespace enpu::rt {

struct GraphNode {
    enum class Kind { kCommand, kHost, kEmpty };

    Kind kind = Kind::kCommand;
    OpRecord op;                      // kCommand
    HostFunction function = nullptr;  // kHost
    void* context = nullptr;
    std::vector<rt_node> dependencies;
    const char* what = "";  // static: "kernel conv2d_fwd"
    std::string name;       // of the caller, may be empty
    uint64_t cost_ns = 0;   // 0: to be guessed

    std::string label() const {
        return name.empty() ? what : std::string(what) + " '" + name + "'";
    }
    bool is(enpu_hal_command_kind wanted) const {
        return kind == Kind::kCommand && op.command.kind == static_cast<uint32_t>(wanted);
    }
};

// "node 3 (kernel binary 'add')".
std::string node_text(const GraphNode& node, size_t index);

// A guess at how long the node takes on an engine, for scheduling: only proportions matter.
uint64_t guess_cost(const GraphNode& node);

using GraphNodes = std::vector<std::unique_ptr<GraphNode>>;

}  // namespace enpu::rt

struct rt_graph_impl {
    explicit rt_graph_impl(rt_device_impl* owner) : device(owner) {}

    // Appends a node that depends on `dependencies`, which exist.
    rt_node append(std::unique_ptr<enpu::rt::GraphNode> node,
                   const std::vector<rt_node>& dependencies);
    // Appends all nodes of another graph after `dependencies`; *ends are those nothing follows.
    void append_all(const enpu::rt::GraphNodes& from, const std::vector<rt_node>& dependencies,
                    std::vector<rt_node>& ends);

    const enpu::rt::DeviceRef device;
    std::mutex mutex;
    enpu::rt::GraphNodes nodes;
};

struct rt_graph_exec_impl {
    explicit rt_graph_exec_impl(rt_device_impl* owner) : device(owner) {}
    ~rt_graph_exec_impl();

    rt_status schedule(uint32_t flags, uint64_t crossing_ns);
    rt_status encode(bool timing);
    // With the mutex held.
    rt_status launch(rt_stream_impl& stream);
    rt_status launch_one_by_one(rt_stream_impl& stream);
    rt_status wait_idle(uint64_t deadline_ns, const char* origin);
    rt_status update(rt_node node, const enpu_hal_command& changed, const char* origin);

    // One submission, or several where the backend has no graphs and takes few commands at once.
    struct Step {
        uint32_t first_command = 0, commands = 0;
        enpu_hal_graph* handle = nullptr;      // null: commands are submitted as they are
        uint64_t end = 0;                      // value of its lane, in the last launch
        enpu::rt::profile::TimedGraphs timed;  // of recordings
    };
    struct Slot {  // where a node is
        uint32_t step = 0, command = 0;
    };

    const enpu::rt::DeviceRef device;
    std::mutex mutex;
    enpu::rt::GraphNodes nodes;
    enpu::rt::DagScheduler dag;
    std::vector<Step> steps;                 // of dag.steps
    std::vector<Slot> slots;                 // of nodes
    std::vector<enpu_hal_command> commands;  // of all steps
    static constexpr uint32_t kLaunchItself = UINT32_MAX;
    std::vector<uint32_t> waits;       // steps of dag.waits, or kLaunchItself
    std::vector<uint32_t> join;        // steps of dag.join
    enpu_hal_buffer* times = nullptr;  // begin and end of each node
    const uint64_t* time_words = nullptr;
    enpu::rt::Point last;  // launch

  private:
    rt_status find_schedule(uint32_t compute, uint32_t copy, uint64_t crossing_ns);
    void add_commands(uint32_t step, bool timing);
    void link_steps();
    enpu::rt::LanePoint point_of(uint32_t step, uint64_t launch) const;
    rt_status encode_step(uint32_t step);
    rt_status launch_step(rt_stream_impl& stream, uint32_t step, uint64_t launch);
    rt_status launch_chunks(rt_stream_impl& stream, StreamWork work, const Step& step);
};
