/* SPDX-License-Identifier: MIT */
/*
 * More about memory: batches of copies, copies between devices, tensors over memory of the caller,
 * poison mode, and the plan of a graph's memory. Included by rt.h, whose rules hold here too.
 */
#ifndef ENPU_RT_MEMORY_H
#define ENPU_RT_MEMORY_H

#include "rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- many small copies ----------------------------------------------------------------------- */

typedef struct rt_copy {
    void* dst; /* device or pinned memory, on either side */
    const void* src;
    size_t bytes; /* 0: nothing to do */
} rt_copy;

/* Enqueues the copies in order, 64 in one submission; copies whose source and destination both
 * continue those of the copy before become one. Never blocks for the work; all or nothing is
 * enqueued when an argument is wrong. */
RT_API rt_status rt_memcpy_batch(rt_stream stream, const rt_copy* copies, uint32_t count);

/* Submits copies that a stream with RT_STREAM_MERGE_COPIES still holds back. Every call that waits,
 * looks, records an event or enqueues other work does the same by itself. */
RT_API rt_status rt_stream_flush(rt_stream stream);

/* Loads what later work will need (the next inputs, the next layer's weights) on a stream of its
 * own: the copies as rt_memcpy_batch, then `ready` (may be NULL) is recorded behind them. `after`
 * (may be NULL): the copies wait for it, so that they do not overwrite what is still read. */
RT_API rt_status rt_prefetch(rt_stream stream, const rt_copy* copies, uint32_t count,
                             rt_event after, rt_event ready);

/* ---- between devices ------------------------------------------------------------------------- */

/* Which way a copy between two devices went. */
enum rt_peer_path {
    RT_PEER_NONE = 0,   /* nothing was copied */
    RT_PEER_SAME = 1,   /* both pointers belong to one device: an ordinary copy */
    RT_PEER_SHARED = 2, /* through a buffer that both devices reach: the host copies nothing */
    RT_PEER_STAGED = 3, /* through a buffer of each device, and a copy of the host between them */
};
RT_API const char* rt_peer_path_name(enum rt_peer_path path); /* static */

/* Copies from the device of src_stream to that of dst_stream, after all that was enqueued on
 * either. Blocks until the data has arrived, at most the timeout of dst_stream; the second half of
 * a chunk and the first half of the next run side by side. *path (may be NULL) says which way. */
RT_API rt_status rt_memcpy_peer(rt_stream dst_stream, void* dst, rt_stream src_stream,
                                const void* src, size_t bytes, enum rt_peer_path* path);

/* ---- tensors over memory of the caller ------------------------------------------------------- */

/* A tensor that lies in device memory of the caller or in pinned memory (rt_host_alloc,
 * rt_host_register): kernels read and write it in place, nothing is copied. `data` is that of the
 * element with all indices 0. The memory stays the caller's and must outlive the tensor and the
 * work in flight that uses it. */
RT_API rt_status rt_tensor_wrap(rt_stream stream, const struct enpu_op_tensor* desc, void* data,
                                rt_tensor* tensor);

/* ---- poison mode ----------------------------------------------------------------------------- */

/* A debugging aid: rt_free fills the block (after the work that uses it) with NaN-like
 * 0xffdfffdf…, and rt_malloc looks whether that is still there before it hands the block out:
 * RT_FAILED_PRECONDITION tells the first byte that was written after the free and who freed the
 * block. New blocks are filled with 0xfff0fff0…, so that reading what was never written shows.
 * rt_malloc then blocks, at most the stream's timeout. Also switched on by the environment
 * variable ENPU_RT_POISON=1. */
RT_API rt_status rt_pool_set_poison(rt_device device, uint32_t on);

/* ---- validation ------------------------------------------------------------------------------ */

/* For programs under the validation layer (ENPU_HAL_LAYERS=validate): the host is about to read
 * (writes 0) or write (1) pinned memory. Reported when work in flight still writes, or uses, those
 * bytes. Without the layer it does nothing. Never blocks. */
RT_API void rt_note_host_access(const void* pointer, size_t bytes, uint32_t writes);

/* ---- the plan of a graph's memory ------------------------------------------------------------ */

/* A value of a graph: written at step `first`, read the last time at step `last`, both included. */
typedef struct rt_plan_value {
    uint64_t bytes;
    uint32_t first;
    uint32_t last;
    uint64_t offset;   /* out: in the arena */
    uint32_t shares;   /* out: 1: took over the memory of another value in place */
    uint32_t reserved; /* 0 */
} rt_plan_value;

#define RT_PLAN_MAX_CONFLICTS 8u

/* The kernel of `step` may write value `to` over its operand `from`, element by element. It is done
 * when `from` dies there, is at least as large, and no value of `conflicts` (other operands of the
 * kernel, with another layout) lies in the same memory. */
typedef struct rt_plan_reuse {
    uint32_t step;
    uint32_t from;
    uint32_t to;
    uint32_t conflict_count;
    uint32_t conflicts[RT_PLAN_MAX_CONFLICTS];
} rt_plan_reuse;

typedef struct rt_plan_result {
    uint32_t struct_size; /* set by the caller */
    uint32_t in_place;    /* values that took over another's memory */
    uint64_t arena_bytes;
    uint64_t lower_bound_bytes; /* most bytes alive at one step: no plan needs less */
} rt_plan_result;

/* Offsets for all values, multiples of `alignment` (a power of two), such that values alive at one
 * step do not overlap. Reuses are tried in the given order. Needs no device; deterministic. */
RT_API rt_status rt_plan_memory(rt_plan_value* values, uint32_t count, const rt_plan_reuse* reuses,
                                uint32_t reuse_count, uint64_t alignment, rt_plan_result* result);

#ifdef __cplusplus
}
#endif
#endif
