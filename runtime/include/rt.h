/* SPDX-License-Identifier: MIT */
/*
 * The runtime: one program on the NPU, its simulator or the CPU, chosen by a device spec at run
 * time.
 *
 *     rt_device_open("npu", &device);
 *     rt_stream_create(device, NULL, &stream);
 *     rt_tensor_alloc(stream, &desc, &x);
 *     rt_memcpy_h2d(stream, rt_tensor_data(x), in, rt_tensor_bytes(x));
 *     rt_kernel_lookup(device, "conv2d_fwd", &kernel);
 *     rt_kernel_launch(stream, kernel, NULL, &params, sizeof params, operands, 6);
 *     rt_stream_sync(stream, rt_deadline_ms(1000));
 *     rt_memcpy_d2h(stream, out, rt_tensor_data(y), rt_tensor_bytes(y));
 *
 * Status. Every function that can fail returns an rt_status: RT_OK (NULL), or an object that the
 * caller reads and frees with rt_status_free. A call that fails has no effect. What fails after it
 * was enqueued is reported by the next call that waits for it, with the operation and the place
 * where it was enqueued; the stream is then poisoned: calls on it give RT_STREAM_POISONED until
 * rt_stream_reset.
 *
 * Threads. Every function may be called from any thread, on the same object too; calls on one
 * stream are ordered as they happen to come. Destroying an object while another call uses it is a
 * fault of the caller.
 *
 * Fork. A device does not survive fork(): in the child every call on it gives
 * RT_FAILED_PRECONDITION, and closing or destroying its objects does nothing. The child may open
 * devices of its own.
 *
 * Waiting. Functions do not block unless they say so; those that do take an absolute deadline in ns
 * of rt_now_ns() (0: only look), or use the timeout of the stream. RT_DEADLINE_EXCEEDED leaves the
 * work running.
 *
 * Device pointers. rt_malloc and rt_tensor_data give a `void*` that names device memory: arithmetic
 * inside the allocation is fine, reading through it is not, unless rt_device_info.host_visible says
 * so. It belongs to one device.
 */
#ifndef ENPU_RT_H
#define ENPU_RT_H

#include <stddef.h>
#include <stdint.h>

#include "enpu_hal_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RT_API __attribute__((visibility("default")))
#else
#define RT_API
#endif

#define RT_VERSION_MAJOR 0u
#define RT_VERSION_MINOR 1u

typedef struct rt_device_impl* rt_device;
typedef struct rt_stream_impl* rt_stream;
typedef struct rt_event_impl* rt_event;
typedef struct rt_tensor_impl* rt_tensor;
typedef const struct rt_kernel_impl* rt_kernel;
typedef struct rt_status_impl* rt_status;

/* ---- status, time ---------------------------------------------------------------------------- */

#define RT_OK ((rt_status)0)

/* Codes. 1 … 14 mean the same as enum enpu_hal_code. */
enum rt_code {
    RT_CODE_OK = 0,
    RT_INVALID_ARGUMENT = 1,
    RT_NOT_FOUND = 2,
    RT_PERMISSION_DENIED = 3,
    RT_RESOURCE_EXHAUSTED = 4,
    RT_UNAVAILABLE = 5,
    RT_UNSUPPORTED = 6,
    RT_DEADLINE_EXCEEDED = 7,
    RT_FAILED_PRECONDITION = 8,
    RT_INTERNAL = 9,
    RT_ABORTED = 10,
    RT_WORK_FAILED = 11,
    RT_WORK_TIMEOUT = 12,
    RT_DATA_LOSS = 13,
    RT_DEVICE_LOST = 14,
    RT_STREAM_POISONED = 15, /* earlier work of the stream failed; the message repeats why */
};

/* All take RT_OK too. Strings live as long as the status. */
RT_API enum rt_code rt_status_code(rt_status status);
RT_API const char* rt_code_name(enum rt_code code); /* "invalid-argument"; static */
/* A sentence: what, which operand or argument, which rule. "" for RT_OK. */
RT_API const char* rt_status_message(rt_status status);
/* Function that found it, and for asynchronous work "kernel conv2d_fwd, operation 17 of stream 3,
 * enqueued by rt_kernel_launch". */
RT_API const char* rt_status_origin(rt_status status);
RT_API int32_t
rt_status_device_code(rt_status status); /* errno of the driver, CUresult …; 0 if none */
RT_API uint64_t rt_status_operation(
    rt_status status); /* number of the operation in its stream, from 1; 0 if none */
/* What that operation was, "kernel conv2d_fwd" or "graph node 7 (copy)"; "" if none. */
RT_API const char* rt_status_operation_name(rt_status status);
/* Name of the stream it concerns; "" if none. */
RT_API const char* rt_status_stream(rt_status status);
/* Where the caller enqueued the operation, "serve.c:120", when it said so (RT_CALL_SITES,
 * rt_call_site); else "". */
RT_API const char* rt_status_call_site(rt_status status);
/* Time from the enqueueing of the operation to its failure being found; for a deadline that passed,
 * how long the call waited. 0: unknown. */
RT_API uint64_t rt_status_elapsed_ns(rt_status status);
RT_API void rt_status_free(rt_status status);

/* Says where in the program the next operation of the calling thread is enqueued; file is static.
 * Costs two stores. Define RT_CALL_SITES before including this header and the functions that
 * enqueue do it by themselves (macros of the same name, in C and C++); rt.hpp does it always. */
RT_API void rt_call_site(const char* file, uint32_t line);

RT_API uint64_t rt_now_ns(void);             /* CLOCK_MONOTONIC */
RT_API uint64_t rt_deadline_ms(uint64_t ms); /* now + ms, saturating */
RT_API uint64_t rt_deadline_ns(uint64_t ns);

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct rt_device_info {
    uint32_t struct_size;  /* set by the caller to sizeof(rt_device_info) */
    uint32_t host_visible; /* 1: device pointers can be read by the host (after a sync) */
    char spec[64];         /* opens it again */
    char name[64];
    char driver[64];
    char backend[16];     /* "npu", "cpu" … */
    uint64_t local_bytes; /* device-local memory; 0 where it is the host's */
    uint64_t local_free;  /* of it, not allocated by anybody; 0 from rt_device_enumerate */
    uint64_t max_tensor_bytes;
    uint32_t compute_engines;
    uint32_t copy_engines;
    uint32_t threads;
    uint32_t is_simulator;
} rt_device_info;

/* Device number `index` over all backends, without opening it; RT_NOT_FOUND past the last. "sim" is
 * listed last but for "cpu". */
RT_API rt_status rt_device_enumerate(uint32_t index, rt_device_info* info);
/* Opens "npu" (the first one), "npu:/dev/accel/accel0", "sim",
 * "sim:cores=2,threads=1,local-mem=256M", "cpu", "cpu:threads=2". Each call gives a device of its
 * own, with its own address space and pool. */
RT_API rt_status rt_device_open(const char* spec, rt_device* device);
/* Closes when its streams, events, tensors and graphs are gone too: they keep it alive. NULL is
 * allowed. */
RT_API void rt_device_close(rt_device device);
RT_API rt_status rt_device_get_info(rt_device device, rt_device_info* info);
/* Sync mode, for debugging: every operation is waited for (at most its stream's timeout) by the call
 * that enqueues it, so that its error comes from that call; graphs run node by node. Off by default;
 * ENPU_RT_SYNC=1 in the environment turns it on for every device that is opened. */
RT_API rt_status rt_device_set_sync_mode(rt_device device, uint32_t on);
/* RT_OK, or RT_DEVICE_LOST with the reason. Never blocks. */
RT_API rt_status rt_device_check(rt_device device);
/* Blocks until everything enqueued on all streams so far is done; the first failure found. */
RT_API rt_status rt_device_sync(rt_device device, uint64_t deadline_ns);

typedef struct rt_counters {
    uint32_t struct_size; /* set by the caller */
    uint32_t from_device; /* 1: `ops` … `faults` were counted by the device itself, 0: it has no
                             counters and they are 0 */
    uint64_t ops[64];     /* kernels run, by enum enpu_op */
    uint64_t jobs;
    uint64_t jobs_failed;
    uint64_t copies;
    uint64_t copy_bytes;
    uint64_t busy_compute_ns;
    uint64_t busy_copy_ns;
    uint64_t work; /* multiply-accumulates, or elements written */
    uint64_t faults;
    /* From here on counted by the runtime. */
    uint64_t launches; /* kernels and graphs enqueued */
    uint64_t submissions;
    uint64_t bytes_h2d;
    uint64_t bytes_d2h;
    uint64_t bytes_d2d;
    uint64_t backend_allocations; /* buffers asked from the driver */
    uint64_t copies_enqueued;     /* copies that were asked for */
    uint64_t copies_merged;       /* of them, those that went with an earlier one's submission */
    /* By the device: who ran its kernels, where it has more than its own. */
    uint64_t library_ops[64];  /* of `ops`: by a library of the vendor (cuBLASLt, cuDNN) */
    uint64_t library_refusals; /* kernels that such a library gave back: the device's own ran */
} rt_counters;

/* Counters of this opening of the device. */
RT_API rt_status rt_device_get_counters(rt_device device, rt_counters* counters);

/* ---- streams --------------------------------------------------------------------------------- */

typedef struct rt_stream_options {
    uint32_t struct_size;
    int32_t priority;     /* -1, 0, 1; a hint */
    uint64_t timeout_ns;  /* of calls that block without a deadline of their own; 0: 60 s */
    const char* name;     /* for messages and traces; copied; NULL: a number */
    uint32_t flags;       /* enum rt_stream_flags */
    uint32_t wait_policy; /* enum rt_wait_policy, of calls that block on this stream */
    uint64_t hang_ns;     /* work without progress for so long has hung; 0: the device's default */
} rt_stream_options;

enum rt_stream_flags {
    /* Works on a copy engine, beside the compute engines: takes copies, fills and events only. An
     * ordinary stream where the device has no copy engine. */
    RT_STREAM_COPY_ENGINE = 1u << 0,
    /* Small copies (up to 64 KiB each) are held back and submitted together, at the latest when
     * something of the stream is waited for, looked at or enqueued that is no small copy. */
    RT_STREAM_MERGE_COPIES = 1u << 1,
};

/* How a call that blocks passes the time. */
enum rt_wait_policy {
    RT_WAIT_BLOCK = 0, /* sleeps: no CPU time, some microseconds to wake up */
    RT_WAIT_SPIN = 1,  /* asks again and again: fastest, a core is busy */
    RT_WAIT_YIELD = 2, /* asks, but lets other threads run in between */
};

/* Work of one stream runs in the order it was enqueued; streams run side by side. options NULL:
 * defaults. */
RT_API rt_status rt_stream_create(rt_device device, const rt_stream_options* options,
                                  rt_stream* stream);
/* Blocks for the work in flight, at most the stream's timeout. Memory freed on it goes back to the
 * pool. NULL is allowed. */
RT_API void rt_stream_destroy(rt_stream stream);
/* Blocks until all that was enqueued is done. On the failure of an operation: its status, and the
 * stream is poisoned. */
RT_API rt_status rt_stream_sync(rt_stream stream, uint64_t deadline_ns);
/* *done is 1 when nothing is in flight. Never blocks. */
RT_API rt_status rt_stream_query(rt_stream stream, uint32_t* done);
/* Later work of the stream waits for the event (of the same device). An event never recorded is no
 * wait. */
RT_API rt_status rt_stream_wait_event(rt_stream stream, rt_event event);
/* Forgets the failure and makes the stream usable again, also after a hang or a reset of the device.
 * Waits for what is in flight (a hang is ended after the stream's hang_ns), at most the stream's
 * timeout; drops what then has not run. Events recorded before stand for dropped work. Also waits
 * for a host function that runs. */
RT_API rt_status rt_stream_reset(rt_stream stream);

/* Timeout of the calls that block on the stream without a deadline of their own, from now on; 0:
 * 60 s. */
RT_API rt_status rt_stream_set_timeout(rt_stream stream, uint64_t timeout_ns);

/* ---- events ---------------------------------------------------------------------------------- */

enum rt_event_flags { RT_EVENT_DEFAULT = 0, RT_EVENT_TIMING = 1u << 0 };

RT_API rt_status rt_event_create(rt_device device, uint32_t flags, rt_event* event);
RT_API void rt_event_destroy(rt_event event); /* NULL is allowed; work that waits for it goes on */
/* The event now stands for all that has been enqueued on the stream. Without RT_EVENT_TIMING no
 * driver call. */
RT_API rt_status rt_event_record(rt_event event, rt_stream stream);
RT_API rt_status rt_event_query(rt_event event, uint32_t* done);
RT_API rt_status rt_event_wait(rt_event event, uint64_t deadline_ns); /* blocks */
/* Device time between two recorded, finished RT_EVENT_TIMING events; RT_FAILED_PRECONDITION
 * otherwise. */
RT_API rt_status rt_event_elapsed_ns(rt_event start, rt_event end, int64_t* ns);

/* ---- memory ---------------------------------------------------------------------------------- */

/* Device memory from the pool, 256-byte aligned, contents unspecified; usable by work enqueued on
 * `stream` from now on, by other streams after an event. RT_RESOURCE_EXHAUSTED when the device is
 * full even after the pool gave back what it held (that may block, at most the stream's timeout).
 * No driver call in steady state. */
RT_API rt_status rt_malloc(rt_stream stream, size_t bytes, void** pointer);
/* Frees in stream order: what was enqueued before may still use it. Work of other streams must have
 * been ordered before by an event. NULL is allowed. */
RT_API rt_status rt_free(rt_stream stream, void* pointer);
/* Pinned host memory that the engines reach and the host reads and writes directly: copies from and
 * to it are asynchronous, and kernels take it as an operand without a copy. 256-byte aligned. */
RT_API rt_status rt_host_alloc(rt_device device, size_t bytes, void** pointer);
/* Nothing in flight uses it. NULL is allowed. */
RT_API rt_status rt_host_free(rt_device device, void* pointer);
/* Pins memory of the caller in place, page aligned; RT_UNSUPPORTED where the backend cannot.
 * Unregister when nothing in flight uses it. */
RT_API rt_status rt_host_register(rt_device device, void* pointer, size_t bytes);
RT_API rt_status rt_host_unregister(rt_device device, void* pointer);

typedef struct rt_pool_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t reserved_bytes; /* held from the driver */
    uint64_t used_bytes;     /* handed out, rounded to size classes */
    uint64_t peak_used_bytes;
    uint64_t allocations; /* rt_malloc calls that succeeded */
    uint64_t live;        /* not yet freed */
    uint64_t reuses;      /* of them without a driver call */
    uint64_t waits;       /* had to wait for work in flight */
    uint64_t peak_reserved_bytes;
    uint64_t driver_calls; /* buffers asked from the driver and given back to it */
    uint64_t trims;
} rt_pool_stats;

RT_API rt_status rt_pool_get_stats(rt_device device, rt_pool_stats* stats);
/* Gives memory that nobody uses back to the driver until at most keep_bytes are held. Never blocks.
 */
RT_API rt_status rt_pool_trim(rt_device device, uint64_t keep_bytes);

/* ---- copies ---------------------------------------------------------------------------------- */

/* h2d and d2h: when the host side is pinned the call is asynchronous; when it is pageable it has
 * finished with the host pointer on return (and d2h blocks, at most the stream's timeout). The
 * _async ones never block and refuse pageable memory with RT_INVALID_ARGUMENT. */
RT_API rt_status rt_memcpy_h2d(rt_stream stream, void* device_dst, const void* host_src,
                               size_t bytes);
RT_API rt_status rt_memcpy_d2h(rt_stream stream, void* host_dst, const void* device_src,
                               size_t bytes);
RT_API rt_status rt_memcpy_h2d_async(rt_stream stream, void* device_dst, const void* pinned_src,
                                     size_t bytes);
RT_API rt_status rt_memcpy_d2h_async(rt_stream stream, void* pinned_dst, const void* device_src,
                                     size_t bytes);
/* Inside one device, asynchronous; no overlap. */
RT_API rt_status rt_memcpy_d2d(rt_stream stream, void* device_dst, const void* device_src,
                               size_t bytes);
/* Rows of `width` bytes; both sides device or pinned memory, asynchronous. Emulated by rows where
 * the backend has no 2D copy. */
RT_API rt_status rt_memcpy_2d(rt_stream stream, void* dst, size_t dst_pitch, const void* src,
                              size_t src_pitch, size_t width, size_t height);
/* Repeats the low pattern_bytes (1, 2, 4, 8) of pattern; bytes is a multiple of it. Asynchronous.
 */
RT_API rt_status rt_fill(rt_stream stream, void* device_dst, uint64_t pattern,
                         uint32_t pattern_bytes, size_t bytes);

/* ---- tensors --------------------------------------------------------------------------------- */

/* Makes *desc a dense row-major tensor (last dim fastest). rank up to ENPU_OP_MAX_RANK, dims at
 * least 1. */
RT_API rt_status rt_tensor_desc_init(struct enpu_op_tensor* desc, uint32_t dtype, uint32_t rank,
                                     const int64_t* dims);
/* The same with dims N,C,H,W and the strides of channels-last. */
RT_API rt_status rt_tensor_desc_init_nhwc(struct enpu_op_tensor* desc, uint32_t dtype,
                                          const int64_t dims[4]);
/* Bytes an allocation for this tensor needs (dense, or packed_bytes); RT_INVALID_ARGUMENT for
 * negative strides or an overflow. */
RT_API rt_status rt_tensor_desc_bytes(const struct enpu_op_tensor* desc, uint64_t* bytes);

/* Reference-counted memory from the pool of the stream's device, with one reference. It lives until
 * the last reference is gone and the last operation in flight that got it as rt_operand.tensor has
 * ended. */
RT_API rt_status rt_tensor_alloc(rt_stream stream, const struct enpu_op_tensor* desc,
                                 rt_tensor* tensor);
RT_API void rt_tensor_retain(rt_tensor tensor);
RT_API void rt_tensor_release(rt_tensor tensor); /* NULL is allowed */
RT_API void* rt_tensor_data(rt_tensor tensor);
RT_API uint64_t rt_tensor_bytes(rt_tensor tensor);
RT_API const struct enpu_op_tensor* rt_tensor_desc(rt_tensor tensor);

/* ---- kernels --------------------------------------------------------------------------------- */

/* An operand of a kernel. Left out: all zero. */
typedef struct rt_operand {
    void* data; /* device or pinned pointer of the element with all indices 0; NULL with `tensor`:
                   its data */
    rt_tensor tensor; /* or NULL: when set, kept alive and ordered by the runtime */
    struct enpu_op_tensor desc;
} rt_operand;

/* Hints for backends that divide work themselves; fixed-function ones ignore them. */
typedef struct rt_launch_hints {
    uint32_t struct_size;
    uint32_t grid[3];
    uint32_t block[3];
} rt_launch_hints;

/* Names: enum enpu_op in enpu_hal_ops.h. The kernel belongs to the device. RT_NOT_FOUND lists the
 * names there are. */
RT_API rt_status rt_kernel_lookup(rt_device device, const char* name, rt_kernel* kernel);
RT_API rt_status rt_kernel_for_op(rt_device device, enum enpu_op op, rt_kernel* kernel);
RT_API const char* rt_kernel_name(rt_kernel kernel);
RT_API uint32_t rt_kernel_operands(rt_kernel kernel);
/* RT_OK, or RT_UNSUPPORTED / RT_INVALID_ARGUMENT with the reason. Pointers are not looked at: an
 * operand with a dtype is present. */
RT_API rt_status rt_kernel_supported(rt_kernel kernel, const void* params, size_t params_bytes,
                                     const rt_operand* operands, uint32_t operand_count);
/* Enqueues. All arguments are copied before it returns. hints may be NULL. */
RT_API rt_status rt_kernel_launch(rt_stream stream, rt_kernel kernel, const rt_launch_hints* hints,
                                  const void* params, size_t params_bytes,
                                  const rt_operand* operands, uint32_t operand_count);
/* Size of the packed form of weights; RT_UNSUPPORTED when they are best left as they are. Then
 * launch "pack_weights" into that many bytes, described by a desc with the same dims, format
 * PACKED, packed_bytes as returned, strides 0. */
RT_API rt_status rt_packed_size(rt_device device, const struct enpu_op_tensor* weights,
                                const struct enpu_op_pack_params* params, uint64_t* bytes);

#ifdef __cplusplus
}
#endif

#include "rt_graph.h"
#include "rt_host.h"
#include "rt_memory.h"
#include "rt_pipeline.h"
#include "rt_policy.h"
#include "rt_profile.h"
#ifdef RT_CALL_SITES
#include "rt_call_sites.h"
#endif
#endif
