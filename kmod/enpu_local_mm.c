// SPDX-License-Identifier: GPL-2.0-only
/*
 * The allocator of local memory: blocks by offset, no memory behind them.
 */
#include <linux/align.h>
#include <linux/cleanup.h>
#include <drm/drm_mm.h>

#include "enpu_device.h"
#include "enpu_local.h"

/* Large pages need both ends aligned. */
u64 enpu_local_round_up(u64 size)
{
	return ALIGN(size, size >= ENPU_LARGE_PAGE_SIZE ? ENPU_LARGE_PAGE_SIZE : ENPU_PAGE_SIZE);
}

int enpu_local_alloc(struct enpu_device *edev, struct drm_mm_node *node, u64 size)
{
	u64 align = size >= ENPU_LARGE_PAGE_SIZE ? ENPU_LARGE_PAGE_SIZE : ENPU_PAGE_SIZE;
	/* Small blocks go to the top, so that they do not cut up the room of large ones. */
	enum drm_mm_insert_mode mode = size >= ENPU_LARGE_PAGE_SIZE ? DRM_MM_INSERT_BEST :
				       DRM_MM_INSERT_HIGH;
	int ret;

	guard(mutex)(&edev->local_lock);
	ret = drm_mm_insert_node_generic(&edev->local_mm, node, size, align, 0, mode);
	if (!ret)
		edev->local_free -= size;
	return ret;
}

void enpu_local_release(struct enpu_device *edev, struct drm_mm_node *node)
{
	guard(mutex)(&edev->local_lock);
	edev->local_free += node->size;
	drm_mm_remove_node(node);
}

void enpu_local_usage(struct enpu_device *edev, struct enpu_local_usage *usage)
{
	struct drm_mm_node *hole;
	u64 start, end;

	guard(mutex)(&edev->local_lock);
	usage->total = edev->local_bytes;
	usage->free = edev->local_free;
	usage->largest = 0;
	drm_mm_for_each_hole(hole, &edev->local_mm, start, end)
		usage->largest = max(usage->largest, end - start);
}
