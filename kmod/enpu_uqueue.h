/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * User-mode queues: a process writes the ring and rings the doorbell itself. The address space, the
 * engine and the place of the queue memory are fixed in registers that only we write; all that the
 * process can put into the memory it does to itself.
 */
#ifndef ENPU_UQUEUE_H
#define ENPU_UQUEUE_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "enpu_doorbell.h"
#include "enpu_queue.h"

struct drm_device;
struct drm_file;
struct enpu_bo;
struct enpu_file;

/**
 * struct enpu_uqueue - a user-mode queue
 * @queue: hardware queue; its memory is the vmapped part of @bo
 * @door: the doorbell page; its GEM object counts references to all of this
 * @bo: has the queue memory, holds a reference
 * @ctx_link: in the context's list; under its submit_lock
 * @closed: the device has no part of it any more; under the context's submit_lock
 * @closing: what ends it is no failure of the context; under hw_lock
 * @lock: protects @waiters
 * @waiters: struct enpu_uqueue_waiter
 * @wait: where they sleep
 * @error: errno of whoever waits, 0 while the queue is alive
 * @torn: fence of the last entry that was torn by somebody else's reset
 * @fence: from the device's register, when the word in memory was wrong
 * @seen: the device's fence at the last look into its register; under the engine's lock
 */
struct enpu_uqueue {
	struct enpu_queue queue;
	struct enpu_doorbell door;
	struct enpu_bo *bo;
	struct list_head ctx_link;
	bool closed;
	bool closing;
	spinlock_t lock; /* see above */
	struct list_head waiters;
	wait_queue_head_t wait;
	int error;
	u64 torn;
	u64 fence;
	u64 seen;
};

static inline struct enpu_uqueue *to_enpu_uqueue(struct enpu_queue *queue)
{
	return container_of(queue, struct enpu_uqueue, queue);
}

/* Of the hardware side, for queues with @user set. */
bool enpu_uqueue_has_work(struct enpu_queue *queue);
bool enpu_uqueue_is_awaited(struct enpu_queue *queue);
unsigned int enpu_uqueue_look(struct enpu_queue *queue);
bool enpu_uqueue_moved(struct enpu_queue *queue);
void enpu_uqueue_take_register(struct enpu_queue *queue, u64 fence);
u64 enpu_uqueue_entry_fence(struct enpu_queue *queue);
bool enpu_uqueue_fail(struct enpu_queue *queue, u64 fence, int error,
		      const struct enpu_error_record *record);
void enpu_uqueue_end(struct enpu_queue *queue, int error);

/* Of the file's side. */
void enpu_uqueue_close(struct enpu_uqueue *uq);
void enpu_uqueue_close_all(struct enpu_file *efile);
void enpu_uqueue_free(struct enpu_uqueue *uq);

int enpu_queue_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int enpu_queue_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int enpu_queue_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

#endif
