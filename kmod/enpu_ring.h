/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Layout and arithmetic of queue memory. Pure functions, also built by KUnit.
 *
 * Entry number n (from 0) carries fence value n + 1, so the number of finished entries, the
 * device's head and the last completed fence value are the same count.
 */
#ifndef ENPU_RING_H
#define ENPU_RING_H

#include <linux/types.h>

#include "enpu_hw.h"

static inline u32 enpu_ring_slot(u64 fence, u32 log2)
{
	return (fence - 1) & ((1u << log2) - 1);
}

static inline u32 enpu_ring_completions_offset(u32 log2)
{
	return ENPU_QUEUE_RING_OFFSET + (sizeof(struct enpu_ring_entry) << log2);
}

static inline u32 enpu_ring_bytes(u32 log2)
{
	return enpu_ring_completions_offset(log2) + (sizeof(struct enpu_completion) << log2);
}

/*
 * Can the device have completed @fence, when it had completed @done and @tail entries were
 * written?
 */
static inline bool enpu_ring_fence_plausible(u64 fence, u64 done, u64 tail)
{
	return fence >= done && fence <= tail;
}

#endif
