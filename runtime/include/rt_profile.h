/* SPDX-License-Identifier: MIT */
/*
 * Profiling: what the host asked for, what the driver took over and when the device did it, on one
 * clock (CLOCK_MONOTONIC; device timestamps are converted by the correlation the backend gives).
 *
 *     rt_profile_start(NULL);
 *     … work …
 *     rt_profile_stop(&profile);
 *     rt_profile_write(profile, "trace.pftrace");      // ui.perfetto.dev
 *     rt_profile_print(profile, "/dev/stdout");        // time per kernel
 *
 * Off, it costs one predictable branch per call. On, each operation carries two timestamps more,
 * and a graph is submitted node by node, so that every node shows.
 */
#ifndef ENPU_RT_PROFILE_H
#define ENPU_RT_PROFILE_H

#include "rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rt_profile_impl* rt_profile;

enum rt_profile_flags {
    RT_PROFILE_API = 1u << 0,    /* calls of rt_* by thread */
    RT_PROFILE_DEVICE = 1u << 1, /* operations: time in the driver, in the queue, on the engine */
    RT_PROFILE_MEMORY = 1u << 2, /* bytes used and reserved by the pool over time */
    RT_PROFILE_KERNEL = 1u << 3, /* trace events of the kernel driver, where tracefs can be read */
    RT_PROFILE_HAL = 1u << 4,    /* calls of the backend by thread, with arguments and result, where
                                    the trace layer is in use: ENPU_HAL_LAYERS=trace */
};

typedef struct rt_profile_options {
    uint32_t struct_size;
    uint32_t flags;      /* enum rt_profile_flags; 0: all */
    uint64_t max_events; /* more are dropped and counted; 0: a million */
} rt_profile_options;

typedef struct rt_profile_kernel {
    char name[64]; /* "kernel conv2d_fwd", "copy", "fill" … */
    uint64_t count;
    uint64_t total_ns; /* on the device */
    uint64_t min_ns;
    uint64_t max_ns;
    double mean_ns;
    double share; /* of the time of all */
} rt_profile_kernel;

typedef struct rt_profile_info {
    uint32_t struct_size;        /* set by the caller */
    uint32_t kernel_events_read; /* 1: the kernel driver's trace events are in it */
    uint64_t api_calls;
    uint64_t operations; /* with device times */
    uint64_t memory_samples;
    uint64_t kernel_events;
    uint64_t dropped; /* for want of room, or because a device has no timestamps */
    uint64_t start_ns;
    uint64_t end_ns;
    char kernel_note[128]; /* why there are no kernel events */
    uint64_t hal_calls;    /* of the backend; 0 without the trace layer */
} rt_profile_info;

/* Starts recording for the whole process. RT_FAILED_PRECONDITION when it records already. */
RT_API rt_status rt_profile_start(const rt_profile_options* options);
/* Stops and gives the recording. Work still in flight on a device is waited for, at most
 * deadline_ns; what has not ended then is counted as dropped. */
RT_API rt_status rt_profile_stop(uint64_t deadline_ns, rt_profile* profile);
RT_API void rt_profile_destroy(rt_profile profile); /* NULL is allowed */
RT_API rt_status rt_profile_get_info(rt_profile profile, rt_profile_info* info);
/* Rows by total time, largest first: at most `capacity` are written to rows (NULL with 0), *count
 * is how many there are. */
RT_API rt_status rt_profile_get_kernels(rt_profile profile, rt_profile_kernel* rows,
                                        uint32_t capacity, uint32_t* count);
/* A Perfetto trace (protobuf). */
RT_API rt_status rt_profile_write(rt_profile profile, const char* path);
/* The table of kernels as text. */
RT_API rt_status rt_profile_print(rt_profile profile, const char* path);

#ifdef __cplusplus
}
#endif
#endif
