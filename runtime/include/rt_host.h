/* SPDX-License-Identifier: MIT */
/*
 * The host's part in stream order: functions that are called between operations, and notices of
 * completion. Part of rt.h, whose rules hold here too.
 *
 * Functions are called by one thread of the device, one after the other, and never under a lock of
 * the runtime. They may enqueue work and look (rt_stream_query, rt_event_query); a call that would
 * wait gives RT_FAILED_PRECONDITION there, because it might wait for the very function it is called
 * from. A long one holds up the others of its device.
 */
#ifndef ENPU_RT_HOST_H
#define ENPU_RT_HOST_H

#include "rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An operation of the stream: called when all that was enqueued before has ended well, and what is
 * enqueued later waits for it to return. Not called when something before failed. */
RT_API rt_status rt_launch_host_func(rt_stream stream, void (*function)(void* context),
                                     void* context);
/* Called once when all that was enqueued so far has ended, with RT_OK or with the failure, which is
 * valid during the call. Later work does not wait for it. Also called when the stream is reset or
 * destroyed before. */
RT_API rt_status rt_stream_on_completion(rt_stream stream,
                                         void (*function)(void* context, rt_status status),
                                         void* context);

#ifdef __cplusplus
}
#endif
#endif
