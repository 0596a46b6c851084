/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts: what orders, limits and blames jobs.
 */
#ifndef ENPU_CTX_H
#define ENPU_CTX_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <drm/drm_file.h>
#include <drm/enpu_accel.h>
#include <drm/gpu_scheduler.h>

struct enpu_device;
struct enpu_job;
struct enpu_queue;
struct enpu_vm;
struct enpu_error_record;

/**
 * struct enpu_ctx_engine - a context on one engine
 * @entity: its jobs before the hardware; valid while @ready
 * @ready: made, at the first job; under submit_lock
 * @queue: its jobs in the hardware; set with @ready, used under hw_lock
 */
struct enpu_ctx_engine {
	struct drm_sched_entity entity;
	bool ready;
	struct enpu_queue *queue;
};

/**
 * struct enpu_ctx - a context
 * @ref: the file and each job hold one
 * @edev: device
 * @vm: address space, holds a reference
 * @id: in the file
 * @priority: enum drm_enpu_priority
 * @timeout_ms: time without progress after which a job hangs
 * @max_jobs: cap of unfinished jobs
 * @submit_lock: order of submission; protects entities, queues and @closed
 * @closed: destroyed: takes no more jobs
 * @uqueues: its user-mode queues that are not closed; under submit_lock
 * @lock: protects all below; taken in hard interrupts, inside an engine's lock
 * @dead: errno with which jobs that have not started end, 0 for a healthy context
 * @jobs: unfinished ones in order of submission
 * @unfinished: their number
 * @seqno: given last
 * @status: the record, as user space gets it
 * @engines: one an engine
 */
struct enpu_ctx {
	struct kref ref;
	struct enpu_device *edev;
	struct enpu_vm *vm;
	u32 id;
	u32 priority;
	u32 timeout_ms;
	u32 max_jobs;
	struct mutex submit_lock; /* see above */
	bool closed;
	struct list_head uqueues;
	spinlock_t lock; /* see above */
	int dead;
	struct list_head jobs;
	u32 unfinished;
	u64 seqno;
	struct drm_enpu_ctx_status status;
	struct enpu_ctx_engine engines[];
};

struct enpu_file;

struct enpu_ctx *enpu_ctx_lookup(struct enpu_file *efile, u32 id);
void enpu_ctx_put(struct enpu_ctx *ctx);
void enpu_ctx_close_all(struct enpu_file *efile);
int enpu_ctx_prepare_engine(struct enpu_ctx *ctx, u32 index);
void enpu_ctx_note_failure(struct enpu_ctx *ctx, u64 seqno, u64 job_id, int error,
			   const struct enpu_error_record *record);
void enpu_ctx_kill(struct enpu_ctx *ctx, int error);

int enpu_ctx_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int enpu_ctx_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int enpu_ctx_status_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

#endif
