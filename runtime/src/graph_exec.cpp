// SPDX-License-Identifier: MIT
// Executables of graphs: scheduled and encoded once, launched many times.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "capture.h"
#include "graph.h"
#include "profile.h"

using namespace enpu::rt;

namespace {

// What a fence between two engines costs, about: an interrupt or a wake-up, and another submission.
uint64_t crossing_cost(const enpu_hal_device_info& info) {
    switch (info.class_id) {
        case ENPU_HAL_CLASS_CPU:
            return 10'000;
        case ENPU_HAL_CLASS_GPU:
            return 5'000;
        default:
            return 60'000;
    }
}

uint8_t place_of(const GraphNode& node) {
    if (node.kind == GraphNode::Kind::kHost) return kDagHost;
    if (node.kind == GraphNode::Kind::kEmpty) return kDagCompute | kDagCopy;
    return node.op.is_kernel() ? kDagCompute : kDagCompute | kDagCopy;
}

std::string cycle_text(const GraphNodes& nodes, const std::vector<uint32_t>& cycle) {
    constexpr size_t kShown = 8;
    std::string text;
    for (size_t i = 0; i < cycle.size() && i < kShown; ++i)
        text += node_text(*nodes[cycle[i]], cycle[i]) + " -> ";
    if (cycle.size() > kShown) text += "… " + std::to_string(cycle.size() - kShown) + " more -> ";
    return text + "node " + std::to_string(cycle.front());
}

}  // namespace

rt_graph_exec_impl::~rt_graph_exec_impl() {
    for (const Step& step : steps)
        if (step.handle) device->hal.graph->destroy(step.handle);
    if (times) device->hal.memory->free(times);
}

// -------------------------------------------------------------------------------------------
// schedule

rt_status rt_graph_exec_impl::find_schedule(uint32_t compute, uint32_t copy, uint64_t crossing_ns) {
    std::vector<uint64_t> costs;
    std::vector<uint8_t> places;
    std::vector<uint32_t> begin{0}, dependencies;
    for (const auto& node : nodes) {
        costs.push_back(node->cost_ns ? node->cost_ns : guess_cost(*node));
        places.push_back(place_of(*node));
        dependencies.insert(dependencies.end(), node->dependencies.begin(),
                            node->dependencies.end());
        begin.push_back(static_cast<uint32_t>(dependencies.size()));
    }
    const DagInput input{static_cast<uint32_t>(nodes.size()),
                         costs.data(),
                         places.data(),
                         begin.data(),
                         dependencies.data(),
                         compute,
                         copy,
                         crossing_ns};
    if (!dag.run(input))
        return make_status(RT_INVALID_ARGUMENT, "rt_graph_instantiate",
                           "the graph has a cycle, each node is needed by the next: %s",
                           cycle_text(nodes, dag.cycle).c_str());
    if (dag.lanes == 1 || dag.makespan_ns + dag.serial_ns / 20 < dag.serial_ns) return RT_OK;
    // More engines gain less than a twentieth: not worth the fences.
    DagInput alone = input;
    alone.compute_lanes = 1;
    alone.copy_lanes = 0;
    dag.run(alone);
    return RT_OK;
}

rt_status rt_graph_exec_impl::schedule(uint32_t flags, uint64_t crossing_ns) {
    const bool serial = flags & RT_GRAPH_SERIAL;
    RT_TRY(find_schedule(serial ? 1 : device->compute_lanes(), serial ? 0 : device->copy_lanes(),
                         crossing_ns ? crossing_ns : crossing_cost(device->info)));
    return encode(flags & RT_GRAPH_TIMING);
}

// --------------------------------------------------------------------------------------------
// encode

void rt_graph_exec_impl::add_commands(uint32_t index, bool timing) {
    const DagStep& planned = dag.steps[index];
    Step& step = steps[index];
    step.first_command = static_cast<uint32_t>(commands.size());
    for (uint32_t i = planned.first; i < planned.first + planned.count; ++i) {
        const uint32_t node = dag.sequence[i];
        if (nodes[node]->kind == GraphNode::Kind::kCommand) {
            if (timing) commands.push_back(profile::timestamp_command(times, uint64_t{node} * 16));
            slots[node] = {index, static_cast<uint32_t>(commands.size())};
            commands.push_back(nodes[node]->op.command);
            if (timing)
                commands.push_back(profile::timestamp_command(times, uint64_t{node} * 16 + 8));
        } else {
            slots[node] = {index, UINT32_MAX};
        }
    }
    step.commands = static_cast<uint32_t>(commands.size()) - step.first_command;
}

rt_status rt_graph_exec_impl::encode_step(uint32_t index) {
    Step& step = steps[index];
    const bool copies = dag.steps[index].lane >= device->compute_lanes();
    if (step.commands == 0 || copies || !(device->info.caps & ENPU_HAL_CAP_GRAPH)) return RT_OK;
    enpu_hal_status status{};
    if (device->hal.graph->create(device->handle, commands.data() + step.first_command,
                                  step.commands, &step.handle, &status) == ENPU_HAL_OK)
        return RT_OK;
    rt_status made = from_hal(status, "rt_graph_instantiate");
    const uint64_t wrong = step.first_command + status.op_id - 1;
    for (size_t node = 0; node < nodes.size(); ++node)
        if (rt_status_impl* out = writable(made);
            out && status.op_id && slots[node].step == index && slots[node].command == wrong)
            out->message = node_text(*nodes[node], node) + ": " + out->message;
    return made;
}

// From the ends of steps on their lanes to the steps.
void rt_graph_exec_impl::link_steps() {
    std::vector<uint32_t> of_lane[kMaxLanes];
    for (uint32_t i = 0; i < steps.size(); ++i) of_lane[dag.steps[i].lane].push_back(i);
    const auto step_at = [&](const DagPoint& point) {
        return point.ordinal == 0 ? kLaunchItself : of_lane[point.lane][point.ordinal - 1];
    };
    for (const DagPoint& wait : dag.waits) waits.push_back(step_at(wait));
    for (const DagPoint& wait : dag.join) join.push_back(step_at(wait));
}

// The point that a step waits for, in the launch under way.
LanePoint rt_graph_exec_impl::point_of(uint32_t step, uint64_t launch) const {
    if (step == kLaunchItself) return {0, launch};
    return {dag.steps[step].lane, steps[step].end};
}

rt_status rt_graph_exec_impl::encode(bool timing) {
    steps.resize(dag.steps.size());
    slots.resize(nodes.size());
    if (timing) {
        if (!(device->info.caps & ENPU_HAL_CAP_TIMESTAMP))
            return make_status(RT_UNSUPPORTED, "rt_graph_instantiate",
                               "RT_GRAPH_TIMING: the device %s has no timestamps",
                               device->info.spec);
        void* words = nullptr;
        RT_TRY(device->allocate_host(nodes.size() * 16, "rt_graph_instantiate", &times, &words));
        std::memset(words, 0, nodes.size() * 16);
        time_words = static_cast<const uint64_t*>(words);
    }
    for (uint32_t i = 0; i < steps.size(); ++i) add_commands(i, timing);
    for (uint32_t i = 0; i < steps.size(); ++i) RT_TRY(encode_step(i));
    link_steps();
    return RT_OK;
}

// --------------------------------------------------------------------------------------------
// launch

rt_status rt_graph_exec_impl::wait_idle(uint64_t deadline_ns, const char* origin) {
    if (last.settled()) return RT_OK;
    enpu_hal_status status{};
    // Failed is idle, too.
    return last.wait(deadline_ns, &status) == ENPU_HAL_DEADLINE_EXCEEDED ? from_hal(status, origin)
                                                                         : RT_OK;
}

// For a backend without graphs: as many commands at a time as it takes. Waits go with the first.
rt_status rt_graph_exec_impl::launch_chunks(rt_stream_impl& stream, StreamWork work,
                                            const Step& step) {
    // Recorded, each command is followed by a timestamp.
    const uint32_t limit = device->info.max_commands;
    const uint32_t most =
        std::max<uint32_t>(profile::on(RT_PROFILE_DEVICE) ? limit / 2 - 1 : limit, 1);
    for (uint32_t done = 0; done < step.commands; done += most) {
        work.commands = commands.data() + step.first_command + done;
        work.count = std::min(most, step.commands - done);
        RT_TRY(stream.enqueue_locked(work));
        work.wait = nullptr;
        work.lane_wait_count = 0;
    }
    return RT_OK;
}

rt_status rt_graph_exec_impl::launch_step(rt_stream_impl& stream, uint32_t index, uint64_t launch) {
    const DagStep& planned = dag.steps[index];
    Step& step = steps[index];
    const GraphNode& first = *nodes[dag.sequence[planned.first]];
    LanePoint lane_waits[kMaxLanes];
    for (uint32_t i = 0; i < planned.wait_count; ++i)
        lane_waits[i] = point_of(waits[planned.wait_first + i], launch);
    StreamWork work;
    work.what = planned.count == 1 ? first.what : "graph";
    work.origin = "rt_graph_launch";
    work.lane = planned.lane;
    work.lane_waits = lane_waits;
    work.lane_wait_count = planned.wait_count;
    work.first_node = dag.sequence[planned.first];
    work.nodes = planned.count;
    if (dag.lanes == 1 && index == 0) work.wait = &last;
    if (planned.host) {
        work.function = first.function;
        work.context = first.context;
        return stream.enqueue_locked(work);
    }
    work.graph = step.handle;
    if (step.handle && profile::on(RT_PROFILE_DEVICE)) {
        work.timed = step.timed.take(*device, commands.data() + step.first_command, step.commands);
        work.graph = work.timed ? work.timed->handle() : nullptr;
    }
    if (work.graph) {
        RT_TRY(stream.enqueue_locked(work));
        if (work.timed)
            work.timed->last = {stream.timeline_of(work.lane), stream.enqueued_on(work.lane)};
        return RT_OK;
    }
    if (step.commands != 0) return launch_chunks(stream, work, step);
    return stream.enqueue_locked(work);
}

rt_status rt_graph_exec_impl::launch(rt_stream_impl& stream) {
    constexpr const char* kOrigin = "rt_graph_launch";
    std::lock_guard lock(stream.mutex);
    RT_TRY(stream.check_usable(kOrigin));
    if (stream.capture) return stream.capture_graph(nodes);
    if (stream.main.copies)
        return make_status(RT_UNSUPPORTED, kOrigin,
                           "stream %s works on a copy engine, which runs no graphs",
                           stream.name.c_str());
    RT_TRY(stream.make_lanes(dag.lanes, kOrigin));
    StreamWork meet;
    meet.origin = kOrigin;
    if (dag.lanes > 1) {
        // Other lanes begin after lane 0 is where it is now, which must include all it waits for.
        meet.what = "start of a graph";
        meet.wait = &last;
        if (stream.has_waits() || !last.settled()) RT_TRY(stream.enqueue_locked(meet));
    }
    const uint64_t start = stream.enqueued_on(0);
    rt_status status = RT_OK;
    for (uint32_t i = 0; i < steps.size() && !status; ++i) {
        status = launch_step(stream, i, start);
        steps[i].end = stream.enqueued_on(dag.steps[i].lane);
    }
    if (!status && !join.empty()) {
        LanePoint lane_waits[kMaxLanes];
        for (size_t i = 0; i < join.size(); ++i) lane_waits[i] = point_of(join[i], start);
        meet.what = "end of a graph";
        meet.wait = nullptr;
        meet.lane_waits = lane_waits;
        meet.lane_wait_count = static_cast<uint32_t>(join.size());
        status = stream.enqueue_locked(meet);
    }
    // Half a graph cannot be taken back.
    if (rt_status_impl* failed = status ? writable(status) : nullptr) stream.poison_with(*failed);
    last = {stream.main.timeline, stream.enqueued_on(0)};
    return status;
}

// In sync mode and under a policy: the error comes from the node that has it.
rt_status rt_graph_exec_impl::launch_one_by_one(rt_stream_impl& stream) {
    RT_TRY(wait_idle(stream.deadline(), "rt_graph_launch"));
    for (const DagStep& planned : dag.steps) {
        for (uint32_t i = planned.first; i < planned.first + planned.count; ++i) {
            const GraphNode& node = *nodes[dag.sequence[i]];
            if (node.kind == GraphNode::Kind::kEmpty) continue;
            StreamWork work;
            work.what = node.what;
            work.origin = "rt_graph_launch";
            work.first_node = dag.sequence[i];
            work.nodes = 1;
            work.function = node.function;
            work.context = node.context;
            const Slot& slot = slots[dag.sequence[i]];
            const uint32_t stamps = times ? 1 : 0;  // before and after
            if (!node.function) {
                work.commands = commands.data() + slot.command - stamps;
                work.count = 1 + 2 * stamps;
            }
            RT_TRY(stream.enqueue(work, &last.value, &last.timeline));
        }
    }
    return RT_OK;
}

rt_status rt_graph_exec_impl::update(rt_node node, const enpu_hal_command& changed,
                                     const char* origin) {
    const Slot& slot = slots[node];
    Step& step = steps[slot.step];
    if (step.handle) {
        enpu_hal_status status{};
        if (device->hal.graph->update(step.handle, slot.command - step.first_command, &changed,
                                      &status) != ENPU_HAL_OK)
            return from_hal(status, origin);
        step.timed.update(slot.command - step.first_command, changed);
    }
    nodes[node]->op.assign(changed);
    commands[slot.command] = nodes[node]->op.command;
    return RT_OK;
}

// ------------------------------------------------------------------------------------------
// public

rt_status rt_graph_instantiate(rt_graph graph, rt_graph_exec* exec) {
    return rt_graph_instantiate_with(graph, nullptr, exec);
}

rt_status rt_graph_instantiate_with(rt_graph graph, const rt_graph_options* options,
                                    rt_graph_exec* exec) {
    RT_NOT_NULL(graph);
    RT_NOT_NULL(exec);
    *exec = nullptr;
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_instantiate";
        if (options && options->struct_size < sizeof(*options))
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "options: struct_size is %u, must be at least %zu",
                               options->struct_size, sizeof(*options));
        const rt_graph_options wanted = options ? *options : rt_graph_options{};
        if (wanted.flags & ~uint32_t{RT_GRAPH_SERIAL | RT_GRAPH_TIMING})
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "options: flags has unknown bits: 0x%x", wanted.flags);
        auto made = std::make_unique<rt_graph_exec_impl>(graph->device);
        {
            std::lock_guard lock(graph->mutex);
            for (const auto& node : graph->nodes)
                made->nodes.push_back(std::make_unique<GraphNode>(*node));
        }
        if (made->nodes.empty())
            return make_status(RT_INVALID_ARGUMENT, kOrigin, "the graph is empty");
        RT_TRY(made->schedule(wanted.flags, wanted.crossing_ns));
        *exec = made.release();
        return RT_OK;
    });
}

void rt_graph_exec_destroy(rt_graph_exec exec) {
    if (!exec) return;
    rt_status_free(guarded(__func__, [&] {
        return exec->wait_idle(rt_deadline_ms(60'000), "rt_graph_exec_destroy");
    }));
    delete exec;
}

rt_status rt_graph_launch(rt_graph_exec exec, rt_stream stream) {
    RT_NOT_NULL(exec);
    RT_NOT_NULL(stream);
    return guarded(__func__, [&]() -> rt_status {
        if (exec->device != stream->device)
            return make_status(RT_INVALID_ARGUMENT, "rt_graph_launch",
                               "graph and stream are of different devices");
        std::lock_guard lock(exec->mutex);
        const bool one_by_one =
            (stream->device->sync_mode.load() || stream->device->guarded.load()) &&
            !HostThread::inside(stream->device) && !stream->is_captured();
        RT_TRY(one_by_one ? exec->launch_one_by_one(*stream) : exec->launch(*stream));
        exec->device->counted.launches.fetch_add(1, std::memory_order_relaxed);
        return RT_OK;
    });
}

rt_status rt_graph_exec_get_info(rt_graph_exec exec, rt_graph_info* info) {
    RT_NOT_NULL(exec);
    RT_NOT_NULL(info);
    if (info->struct_size < sizeof(*info))
        return make_status(RT_INVALID_ARGUMENT, __func__, "struct_size is %u, must be at least %zu",
                           info->struct_size, sizeof(*info));
    std::lock_guard lock(exec->mutex);
    info->nodes = static_cast<uint32_t>(exec->nodes.size());
    info->lanes = exec->dag.lanes;
    info->crossing_edges = exec->dag.crossing_edges;
    info->fences = exec->dag.crossing_edges - exec->dag.dropped_waits;
    info->serial_ns = exec->dag.serial_ns;
    info->expected_ns = exec->dag.makespan_ns;
    const uint32_t most = std::max<uint32_t>(exec->device->info.max_commands, 1);
    info->submissions = exec->join.empty() ? 0 : 1;
    for (const auto& step : exec->steps)
        info->submissions +=
            step.handle || step.commands <= most ? 1 : (step.commands + most - 1) / most;
    return RT_OK;
}

rt_status rt_graph_exec_node_time(rt_graph_exec exec, rt_node node, rt_node_time* time) {
    RT_NOT_NULL(exec);
    RT_NOT_NULL(time);
    return guarded(__func__, [&]() -> rt_status {
        constexpr const char* kOrigin = "rt_graph_exec_node_time";
        std::lock_guard lock(exec->mutex);
        if (time->struct_size < sizeof(*time) || node >= exec->nodes.size())
            return make_status(RT_INVALID_ARGUMENT, kOrigin,
                               "struct_size is %u, must be at least %zu, or there is no node %u",
                               time->struct_size, sizeof(*time), node);
        if (!exec->times)
            return make_status(RT_FAILED_PRECONDITION, kOrigin,
                               "the graph was instantiated without RT_GRAPH_TIMING");
        if (!exec->last.timeline || !exec->last.reached())
            return make_status(RT_FAILED_PRECONDITION, kOrigin, "the last launch has not ended");
        const volatile uint64_t* words = exec->time_words + size_t{node} * 2;
        time->lane = exec->dag.steps[exec->slots[node].step].lane;
        time->start_ns = exec->device->ticks_to_ns(words[0]);
        time->end_ns = exec->device->ticks_to_ns(words[1]);
        return RT_OK;
    });
}
