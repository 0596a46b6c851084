/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Doorbell pages in processes. A page that must not be reached, because its queue has ended or the
 * device sleeps or is gone, is exchanged for one of plain memory: a store is then lost, never a
 * fault.
 */
#ifndef ENPU_DOORBELL_H
#define ENPU_DOORBELL_H

#include <linux/workqueue.h>
#include <drm/drm_gem.h>

struct drm_file;
struct enpu_device;

/**
 * struct enpu_doorbell - the doorbell page of a user-mode queue
 * @obj: makes the page mappable for one file, and counts references
 * @file: which may map it; a key only
 * @id: number of the queue in hardware, valid until @shut
 * @shut: the page of the device is not mapped any more
 * @zap: takes it out of the process; not from the path of fences, which must not wait for that
 * @instead: plain memory
 */
struct enpu_doorbell {
	struct drm_gem_object obj;
	struct drm_file *file;
	u32 id;
	bool shut;
	struct work_struct zap;
	struct page *instead;
};

int enpu_doorbell_init(struct enpu_device *edev, struct enpu_doorbell *door);
int enpu_doorbell_allow(struct enpu_doorbell *door, struct drm_file *file, u64 *offset);
void enpu_doorbell_shut(struct enpu_doorbell *door);
void enpu_doorbell_shut_later(struct enpu_doorbell *door);
void enpu_doorbells_close(struct enpu_device *edev);
void enpu_doorbells_open(struct enpu_device *edev);

#endif
