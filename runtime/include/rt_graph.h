/* SPDX-License-Identifier: MIT */
/*
 * Graphs: operations with dependencies, recorded once, by hand or by capturing streams; checked,
 * scheduled and encoded once; launched many times. Part of rt.h, whose rules hold here too.
 */
#ifndef ENPU_RT_GRAPH_H
#define ENPU_RT_GRAPH_H

#include "rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rt_graph_impl* rt_graph;
typedef struct rt_graph_exec_impl* rt_graph_exec;
typedef uint32_t rt_node; /* index in its graph, from 0 */

/* ---- recording ------------------------------------------------------------------------------- */

/* Pointers are not kept alive: what the graph names must live as long as its executables.
 * `dependencies` name nodes of the graph that are there already; rt_graph_add_dependency takes any
 * two. A node that shares memory with another, unless both only read it, must depend on it or the
 * other way round, directly or through others. */
RT_API rt_status rt_graph_create(rt_device device, rt_graph* graph);
RT_API void rt_graph_destroy(
    rt_graph graph); /* executables made from it stay valid; NULL is allowed */
RT_API rt_status rt_graph_add_kernel(rt_graph graph, rt_kernel kernel, const void* params,
                                     size_t params_bytes, const rt_operand* operands,
                                     uint32_t operand_count, const rt_node* dependencies,
                                     uint32_t dependency_count, rt_node* node);
/* Device and pinned pointers in any direction; *node may be NULL as above. */
RT_API rt_status rt_graph_add_copy(rt_graph graph, void* dst, const void* src, size_t bytes,
                                   const rt_node* dependencies, uint32_t dependency_count,
                                   rt_node* node);
RT_API rt_status rt_graph_add_fill(rt_graph graph, void* dst, uint64_t pattern,
                                   uint32_t pattern_bytes, size_t bytes,
                                   const rt_node* dependencies, uint32_t dependency_count,
                                   rt_node* node);
/* A call on the host when the dependencies are done; the rules of rt_launch_host_func hold. */
RT_API rt_status rt_graph_add_host(rt_graph graph, void (*function)(void* context), void* context,
                                   const rt_node* dependencies, uint32_t dependency_count,
                                   rt_node* node);
/* Does nothing, but has dependencies: a place where ways meet. */
RT_API rt_status rt_graph_add_empty(rt_graph graph, const rt_node* dependencies,
                                    uint32_t dependency_count, rt_node* node);
/* `node` runs after `dependency`. Cycles are found by rt_graph_instantiate. */
RT_API rt_status rt_graph_add_dependency(rt_graph graph, rt_node node, rt_node dependency);
/* For messages; copied. */
RT_API rt_status rt_graph_set_name(rt_graph graph, rt_node node, const char* name);
/* How long the node is expected to take. Without it the runtime guesses from the shapes. */
RT_API rt_status rt_graph_set_cost(rt_graph graph, rt_node node, uint64_t ns);
/* Runs the graph once on the stream, node by node, and takes the device time of each as its cost.
 * Host nodes are called. RT_UNSUPPORTED where the device has no timestamps. Blocks until the
 * deadline. */
RT_API rt_status rt_graph_measure(rt_graph graph, rt_stream stream, uint64_t deadline_ns);

/* ---- executables ----------------------------------------------------------------------------- */

enum rt_graph_flags {
    RT_GRAPH_SERIAL = 1u << 0, /* everything on the launching stream's own queue */
    RT_GRAPH_TIMING = 1u << 1, /* records when each node began and ended, by the device's clock */
};

typedef struct rt_graph_options {
    uint32_t struct_size;
    uint32_t flags;       /* enum rt_graph_flags */
    uint64_t crossing_ns; /* what a dependency between two engines costs; 0: the device's figure */
} rt_graph_options;

/* Schedules the nodes, the longest way first, onto the engines of the device (one of them only when
 * more gain nothing), and encodes them. An edge between engines is at most one fence, none when
 * others imply it. A cycle is refused with the names of the nodes on it, an empty graph too; the
 * sentence of an error names the node. options NULL: defaults. */
RT_API rt_status rt_graph_instantiate(rt_graph graph, rt_graph_exec* exec);
RT_API rt_status rt_graph_instantiate_with(rt_graph graph, const rt_graph_options* options,
                                           rt_graph_exec* exec);
/* Blocks for its launches in flight, at most 60 s. NULL is allowed. */
RT_API void rt_graph_exec_destroy(rt_graph_exec exec);
/* Enqueues the whole graph in the order of the stream: it begins after what was enqueued before, and
 * what is enqueued later begins after it. Launches of one executable run one after the other, on
 * whichever streams. Allocates nothing. When the device takes only a part of it (queue full for the
 * stream's timeout) the stream is poisoned. */
RT_API rt_status rt_graph_launch(rt_graph_exec exec, rt_stream stream);

/* Give a node of the executable new addresses; shapes and parameters stay. Blocks for launches in
 * flight, until the deadline. */
RT_API rt_status rt_graph_update_kernel(rt_graph_exec exec, rt_node node, uint32_t operand,
                                        void* data, uint64_t deadline_ns);
RT_API rt_status rt_graph_update_copy(rt_graph_exec exec, rt_node node, void* dst, const void* src,
                                      uint64_t deadline_ns);
/* All nodes at once, from a graph with the same nodes and dependencies in the same order: that of
 * capturing the same code once more. Only addresses may differ; RT_INVALID_ARGUMENT names the first
 * node that differs otherwise, and the executable is as before. Blocks as above. */
RT_API rt_status rt_graph_exec_update(rt_graph_exec exec, rt_graph graph, uint64_t deadline_ns);

typedef struct rt_graph_info {
    uint32_t struct_size;
    uint32_t nodes;
    uint32_t lanes;          /* queues it runs on */
    uint32_t submissions;    /* of one launch */
    uint32_t crossing_edges; /* dependencies between lanes */
    uint32_t fences;         /* of them, waited for; the others are implied */
    uint64_t serial_ns;      /* sum of the costs */
    uint64_t expected_ns;    /* of one launch, by the costs */
} rt_graph_info;

RT_API rt_status rt_graph_exec_get_info(rt_graph_exec exec, rt_graph_info* info);

typedef struct rt_node_time {
    uint32_t struct_size;
    uint32_t lane;             /* 0: the queue of the launching stream */
    uint64_t start_ns, end_ns; /* of the device's clock; 0 for empty and host nodes */
} rt_node_time;

/* Of the last launch, which must have ended; RT_FAILED_PRECONDITION when it has not, or without
 * RT_GRAPH_TIMING. */
RT_API rt_status rt_graph_exec_node_time(rt_graph_exec exec, rt_node node, rt_node_time* time);

/* ---- capture --------------------------------------------------------------------------------- */

/* From now on operations of the stream become nodes of a graph instead of being enqueued, one after
 * the other. A stream that waits for an event recorded in the capture joins it; at the end every
 * joined stream must have been waited for again by the stream that began. What cannot be recorded
 * (calls that block, pageable memory, rt_free, timing events) is refused with the reason and leaves
 * the capture as it is. */
RT_API rt_status rt_stream_begin_capture(rt_stream stream);
/* Ends it on all its streams. On an error (a stream that was not joined again: named) there is no
 * graph. */
RT_API rt_status rt_stream_end_capture(rt_stream stream, rt_graph* graph);
RT_API rt_status rt_stream_is_capturing(rt_stream stream, uint32_t* capturing);

#ifdef __cplusplus
}
#endif
#endif
