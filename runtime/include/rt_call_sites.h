/* SPDX-License-Identifier: MIT */
/*
 * Included by rt.h when RT_CALL_SITES is defined: the functions that enqueue also say where in the
 * program they were called. A macro does not expand inside itself, so each still calls its function.
 */
#ifndef ENPU_RT_CALL_SITES_H
#define ENPU_RT_CALL_SITES_H

#define rt_kernel_launch(...) (rt_call_site(__FILE__, __LINE__), rt_kernel_launch(__VA_ARGS__))
#define rt_memcpy_h2d(...) (rt_call_site(__FILE__, __LINE__), rt_memcpy_h2d(__VA_ARGS__))
#define rt_memcpy_d2h(...) (rt_call_site(__FILE__, __LINE__), rt_memcpy_d2h(__VA_ARGS__))
#define rt_memcpy_h2d_async(...) \
    (rt_call_site(__FILE__, __LINE__), rt_memcpy_h2d_async(__VA_ARGS__))
#define rt_memcpy_d2h_async(...) \
    (rt_call_site(__FILE__, __LINE__), rt_memcpy_d2h_async(__VA_ARGS__))
#define rt_memcpy_d2d(...) (rt_call_site(__FILE__, __LINE__), rt_memcpy_d2d(__VA_ARGS__))
#define rt_memcpy_2d(...) (rt_call_site(__FILE__, __LINE__), rt_memcpy_2d(__VA_ARGS__))
#define rt_fill(...) (rt_call_site(__FILE__, __LINE__), rt_fill(__VA_ARGS__))
#define rt_event_record(...) (rt_call_site(__FILE__, __LINE__), rt_event_record(__VA_ARGS__))
#define rt_graph_launch(...) (rt_call_site(__FILE__, __LINE__), rt_graph_launch(__VA_ARGS__))
#define rt_launch_host_func(...) \
    (rt_call_site(__FILE__, __LINE__), rt_launch_host_func(__VA_ARGS__))

#endif
