/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs: one command buffer on its way through scheduler and hardware.
 */
#ifndef ENPU_JOB_H
#define ENPU_JOB_H

#include <linux/dma-fence.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <drm/gpu_scheduler.h>

struct enpu_ctx;
struct enpu_engine;
struct enpu_queue;

/**
 * struct enpu_fence - completion in hardware
 * @base: must be first, dma_fence_free() frees it
 * @lock: of the fence
 */
struct enpu_fence {
	struct dma_fence base;
	spinlock_t lock; /* of @base */
};

/**
 * struct enpu_job - a job
 * @base: for the scheduler
 * @ctx: context, holds a reference
 * @engine: where it runs
 * @queue: hardware queue; lives until the entity of the job has ended
 * @hw: fence of the hardware, allocated at submit, initialised when the job goes to the ring
 * @on_hw: @hw is initialised
 * @direct: the scheduler has no part in it: its fence is @hw, and it is freed when it has ended
 * @ended: taken off the context's list
 * @started_ns: when it went to the ring
 * @cmd_va: command buffer
 * @cmd_bytes: its size
 * @seqno: in the context
 * @job_id: of user space
 * @fence: value in the ring
 * @queue_link: in the queue's list of jobs in hardware; under the engine's lock
 * @ctx_link: in the context's list of unfinished jobs; under the context's lock
 * @free_link: in the device's list of jobs that a worker frees
 */
struct enpu_job {
	struct drm_sched_job base;
	struct enpu_ctx *ctx;
	struct enpu_engine *engine;
	struct enpu_queue *queue;
	struct enpu_fence *hw;
	bool on_hw;
	bool direct;
	bool ended;
	u64 started_ns;
	u64 cmd_va;
	u32 cmd_bytes;
	u64 seqno;
	u64 job_id;
	u64 fence;
	struct list_head queue_link;
	struct list_head ctx_link;
	struct llist_node free_link;
};

struct enpu_error_record;

extern const struct drm_sched_backend_ops enpu_sched_ops;

struct enpu_job *enpu_job_create(struct enpu_ctx *ctx, struct enpu_engine *engine);
void enpu_job_free(struct enpu_job *job);
void enpu_job_free_work(struct work_struct *work);
struct dma_fence *enpu_job_init_direct(struct enpu_job *job);
void enpu_job_run_direct(struct enpu_job *job);
int enpu_live_fences(void);
void enpu_job_end(struct enpu_job *job, int error, const struct enpu_error_record *record);
void enpu_job_complete(struct enpu_job *job, int error, const struct enpu_error_record *record);

#endif
