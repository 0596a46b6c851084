/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What SUBMIT refuses by its arguments alone, before anything is copied or looked up.
 */
#ifndef ENPU_SUBMIT_CHECK_H
#define ENPU_SUBMIT_CHECK_H

#include <linux/align.h>
#include <linux/overflow.h>
#include <drm/enpu_accel.h>

#include "enpu_device.h"
#include "enpu_hw.h"

/* Far above any structure to come; keeps count * stride small. */
#define ENPU_MAX_SYNC_STRIDE	4096

/* 0 or -EINVAL. */
static inline int enpu_submit_check(const struct enpu_device *edev,
				    const struct drm_enpu_submit *args)
{
	u64 end;

	if (args->flags || args->pad || args->seqno || args->engine >= edev->num_engines)
		return -EINVAL;
	if (!args->cmd_bytes || args->cmd_bytes > edev->max_command ||
	    !IS_ALIGNED(args->cmd_va | args->cmd_bytes, ENPU_PACKET_ALIGN) ||
	    args->cmd_va < ENPU_VA_START ||
	    check_add_overflow(args->cmd_va, (u64)args->cmd_bytes, &end) || end > ENPU_VA_END)
		return -EINVAL;
	if (args->sync_count > ENPU_MAX_SYNC_OPS || args->bo_count > ENPU_MAX_SUBMIT_BOS)
		return -EINVAL;
	if (args->sync_count && (args->sync_stride < sizeof(struct drm_enpu_sync_op) ||
				 args->sync_stride > ENPU_MAX_SYNC_STRIDE))
		return -EINVAL;
	return 0;
}

/* An element of the array of sync operations, as far as this kernel knows it. */
static inline bool enpu_submit_sync_valid(const struct drm_enpu_sync_op *op)
{
	return !(op->flags & ~DRM_ENPU_SYNC_SIGNAL);
}

/* An element of the array of BOs. */
static inline bool enpu_submit_bo_valid(const struct drm_enpu_submit_bo *bo)
{
	const u32 known = DRM_ENPU_SUBMIT_BO_READ | DRM_ENPU_SUBMIT_BO_WRITE;

	return bo->flags && !(bo->flags & ~known);
}

#endif
