/* SPDX-License-Identifier: MIT */
/*
 * Double buffering, ready made: while the engines compute item n, the copy engine loads item n + 1
 * and stores item n - 1.
 *
 *     rt_pipeline_create(device, &desc, &pipeline);
 *     for each item:
 *         while (rt_pipeline_free_slots(pipeline) == 0) take(rt_pipeline_pop(...));
 *         rt_pipeline_input(pipeline, deadline, &host);   // pinned memory of the next slot
 *         fill host;
 *         rt_pipeline_push(pipeline, NULL, 0);            // load, compute, store: all enqueued
 *     while (rt_pipeline_in_flight(pipeline)) take(rt_pipeline_pop(...));
 *
 * Items come out in the order they went in. One thread may push while another pops.
 */
#ifndef ENPU_RT_PIPELINE_H
#define ENPU_RT_PIPELINE_H

#include "rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rt_pipeline_impl* rt_pipeline;

#define RT_PIPELINE_MAX_SLOTS 16u

/* Memory of one slot, the same for every item that uses it: a graph recorded over it fits for ever.
 */
typedef struct rt_pipeline_slot {
    uint32_t index;
    uint32_t reserved;
    void* input;       /* device memory, input_bytes */
    void* output;      /* device memory, output_bytes */
    void* host_input;  /* pinned memory, input_bytes */
    void* host_output; /* pinned memory, output_bytes; NULL unless output_in_place */
} rt_pipeline_slot;

/* Enqueues the work on `stream` that turns slot->input into slot->output; does not wait. A status
 * that it returns becomes that of rt_pipeline_push. */
typedef rt_status (*rt_pipeline_compute)(void* context, rt_stream stream,
                                         const rt_pipeline_slot* slot);

typedef struct rt_pipeline_desc {
    uint32_t struct_size; /* set by the caller */
    uint32_t slots;       /* 1 … RT_PIPELINE_MAX_SLOTS; 2 is double buffering */
    uint64_t input_bytes;
    uint64_t output_bytes;
    rt_pipeline_compute compute;
    void* context;
    /* Inputs and outputs of kernels that are used once may stay in pinned memory where the engines
     * reach it: 1 skips the copy, slot->input (output) is then host_input (host_output). With
     * output_in_place a slot is not free again before its output was released (next pop,
     * rt_pipeline_release).
     */
    uint32_t input_in_place;
    uint32_t output_in_place;
    uint64_t timeout_ns; /* of the streams; 0: their default */
} rt_pipeline_desc;

/* A part of an item's input that lies elsewhere: copied from `src` (pinned memory) to `offset` in
 * the slot's input. */
typedef struct rt_pipeline_piece {
    uint64_t offset;
    const void* src;
    size_t bytes;
} rt_pipeline_piece;

/* Allocates all memory, streams and events: pushing and popping asks the driver for none. */
RT_API rt_status rt_pipeline_create(rt_device device, const rt_pipeline_desc* desc,
                                    rt_pipeline* pipeline);
/* Blocks for the work in flight, at most the timeout of the streams. NULL is allowed. */
RT_API void rt_pipeline_destroy(rt_pipeline pipeline);
/* For set-up that has to happen before the first item (a graph over each slot, weights). */
RT_API rt_status rt_pipeline_get_slot(rt_pipeline pipeline, uint32_t index, rt_pipeline_slot* slot);
RT_API uint32_t rt_pipeline_slots(rt_pipeline pipeline);
RT_API uint32_t rt_pipeline_free_slots(rt_pipeline pipeline);
RT_API uint32_t rt_pipeline_in_flight(rt_pipeline pipeline); /* pushed and not popped */
/* *host is the pinned input of the next item. Blocks until a slot is free (another thread pops). */
RT_API rt_status rt_pipeline_input(rt_pipeline pipeline, uint64_t deadline_ns, void** host);
/* Enqueues the item: its input (pieces NULL: all of the pinned input of the slot; else the pieces,
 * merged into as few submissions as they fit in), the compute callback, its output. Needs a free
 * slot: RT_FAILED_PRECONDITION otherwise. Never blocks for the work. */
RT_API rt_status rt_pipeline_push(rt_pipeline pipeline, const rt_pipeline_piece* pieces,
                                  uint32_t count);
/* Blocks until the oldest item is done; *host is its output in pinned memory, valid until the next
 * pop. RT_NOT_FOUND when nothing is in flight. The failure of an item is given by its pop: the
 * pipeline goes on after rt_pipeline_reset. */
RT_API rt_status rt_pipeline_pop(rt_pipeline pipeline, uint64_t deadline_ns, const void** host);
/* The caller is done with the output of the last pop; the next pop says so too. With
 * output_in_place this frees its slot. */
RT_API void rt_pipeline_release(rt_pipeline pipeline);
/* Drops what is in flight and resets the streams. Blocks as rt_stream_reset. */
RT_API rt_status rt_pipeline_reset(rt_pipeline pipeline);

#ifdef __cplusplus
}
#endif
#endif
