/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Device-local memory: BAR 4.
 */
#ifndef ENPU_LOCAL_H
#define ENPU_LOCAL_H

#include <linux/types.h>

struct drm_mm_node;
struct enpu_bo;
struct enpu_device;

/**
 * struct enpu_local_usage - how full the local memory is
 * @total: bytes
 * @free: bytes
 * @largest: the largest contiguous free piece
 */
struct enpu_local_usage {
	u64 total;
	u64 free;
	u64 largest;
};

int enpu_local_init(struct enpu_device *edev);
u64 enpu_local_round_up(u64 size);
int enpu_local_alloc(struct enpu_device *edev, struct drm_mm_node *node, u64 size);
void enpu_local_release(struct enpu_device *edev, struct drm_mm_node *node);
struct enpu_bo *enpu_local_create(struct enpu_device *edev, u64 size);
void enpu_local_usage(struct enpu_device *edev, struct enpu_local_usage *usage);

#endif
