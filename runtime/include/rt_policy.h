/* SPDX-License-Identifier: MIT */
/*
 * Retry and degrade: what the runtime does when an operation fails or its device disappears. Part of
 * rt.h, whose rules hold here too.
 *
 * Under a policy every operation is waited for by the call that enqueues it, and graphs run node by
 * node: only so is it known which inputs are intact. An operation that failed, hung or was torn is
 * done again when its inputs are intact (it does not write what it or an earlier part of it reads, or
 * never began); after that it runs on the first fallback that can take it, from its inputs, and its
 * outputs go back to the device. Nothing of that is silent: it is counted, told to `notice` and found
 * in the report. What cannot be repaired fails as it would without a policy.
 */
#ifndef ENPU_RT_POLICY_H
#define ENPU_RT_POLICY_H

#include "rt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RT_POLICY_FALLBACKS 4u

typedef struct rt_policy {
    uint32_t struct_size;
    uint32_t retries; /* of one operation, on its own device; at most 16 */
    /* Specs of the devices that take over, the first that opens; NULL entries end the list. */
    const char* fallbacks[RT_POLICY_FALLBACKS];
    /* 1: after each operation its output is kept in host memory too, so that work goes on when the
     * device is lost. Costs a copy for each operation and the memory. */
    uint32_t retain;
    uint32_t reserved;
    /* Told of each retry and each operation that ran elsewhere; any thread; must not call rt_*.
     * NULL: a line on stderr. */
    void (*notice)(void* context, const char* text);
    void* context;
} rt_policy;

/* From now on, for all streams of the device. RT_FAILED_PRECONDITION once memory was allocated or
 * streams were made: what is on the device must be known. RT_UNAVAILABLE when no fallback opens. */
RT_API rt_status rt_device_set_policy(rt_device device, const rt_policy* policy);

typedef struct rt_policy_report {
    uint32_t struct_size;
    uint32_t device_lost;  /* 1: the device is gone, everything runs on the fallback */
    uint64_t failures;     /* operations that failed on the device, each try counted */
    uint64_t retries;      /* tries after the first */
    uint64_t repaired;     /* operations that ended well on the device after a retry */
    uint64_t fallback_ops; /* operations that ran on the fallback */
    uint64_t refused;      /* operations that were not repaired */
    char fallback[64];     /* spec of the fallback, "" if none */
    char last_event[256];  /* last sentence for `notice` */
} rt_policy_report;

/* RT_FAILED_PRECONDITION without a policy. */
RT_API rt_status rt_device_policy_report(rt_device device, rt_policy_report* report);

#ifdef __cplusplus
}
#endif
#endif
