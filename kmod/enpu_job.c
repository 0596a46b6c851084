// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life of a job: made by submit, run by the scheduler, ended by the hardware or by whoever cancels
 * it.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <drm/drm_drv.h>

#include "enpu_compat.h"
#include "enpu_ctx.h"
#include "enpu_device.h"
#include "enpu_inject.h"
#include "enpu_job.h"
#include "enpu_pm.h"
#include "enpu_queue.h"
#include "enpu_tdr.h"
#include "enpu_trace.h"

static const char *enpu_fence_driver_name(struct dma_fence *fence)
{
	return "enpu";
}

/* A constant: fences outlive queues and contexts. */
static const char *enpu_fence_timeline_name(struct dma_fence *fence)
{
	return "enpu-queue";
}

/* Of all devices: a fence can outlive its own. */
static atomic_t enpu_fences;

int enpu_live_fences(void)
{
	return atomic_read(&enpu_fences);
}

/* The fence may be the last thing that needs the functions above. */
static void enpu_fence_release(struct dma_fence *fence)
{
	atomic_dec(&enpu_fences);
	dma_fence_free(fence);
	module_put(THIS_MODULE);
}

static const struct dma_fence_ops enpu_fence_ops = {
	.get_driver_name = enpu_fence_driver_name,
	.get_timeline_name = enpu_fence_timeline_name,
	.release = enpu_fence_release,
};

/* Memory only; the caller initialises @base. */
struct enpu_job *enpu_job_create(struct enpu_ctx *ctx, struct enpu_engine *engine)
{
	struct enpu_device *edev = ctx->edev;
	struct enpu_job *job;

	job = enpu_inject_fail(edev) ? NULL : kzalloc(sizeof(*job), GFP_KERNEL_ACCOUNT);
	if (!job)
		return NULL;
	/* run_job() is in the path of fences and must not allocate. */
	job->hw = enpu_inject_fail(edev) ? NULL : kzalloc(sizeof(*job->hw), GFP_KERNEL_ACCOUNT);
	if (!job->hw) {
		kfree(job);
		return NULL;
	}
	kref_get(&ctx->ref);
	job->ctx = ctx;
	job->engine = engine;
	INIT_LIST_HEAD(&job->queue_link);
	INIT_LIST_HEAD(&job->ctx_link);
	/* The ioctl has one. */
	enpu_pm_get_awake(edev);
	atomic_inc(&edev->live_jobs);
	return job;
}

/* Any context without @ctx, else sleeps. */
void enpu_job_free(struct enpu_job *job)
{
	struct enpu_device *edev = job->engine->edev;

	if (job->on_hw)
		dma_fence_put(&job->hw->base);
	else
		kfree(job->hw);
	if (job->ctx)
		enpu_ctx_put(job->ctx);
	kfree(job);
	enpu_pm_put(edev);
	/* Last: whoever waits for it may unload what was used above. */
	if (atomic_dec_and_test(&edev->live_jobs))
		wake_up(&edev->jobs_wait);
}

void enpu_job_free_work(struct work_struct *work)
{
	struct enpu_device *edev = container_of(work, struct enpu_device, free_work);
	struct enpu_job *job, *next;

	llist_for_each_entry_safe(job, next, llist_del_all(&edev->free_jobs), free_link)
		enpu_job_free(job);
}

/* Nobody but the hardware had it. Any context: the end of a context is left to a worker. */
static void enpu_job_free_direct(struct enpu_job *job)
{
	struct enpu_device *edev = job->engine->edev;

	if (refcount_dec_not_one(&job->ctx->ref.refcount)) {
		job->ctx = NULL;
		enpu_job_free(job);
	} else if (llist_add(&job->free_link, &edev->free_jobs)) {
		schedule_work(&edev->free_work);
	}
}

/* Takes the job off its context, and keeps the record of a failure. Once; any context. */
void enpu_job_end(struct enpu_job *job, int error, const struct enpu_error_record *record)
{
	struct enpu_ctx *ctx = job->ctx;
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&ctx->lock, flags);
	first = !job->ended;
	if (first) {
		job->ended = true;
		list_del_init(&job->ctx_link);
		ctx->unfinished--;
		if (error)
			enpu_ctx_note_failure(ctx, job->seqno, job->job_id, error, record);
	}
	spin_unlock_irqrestore(&ctx->lock, flags);
	if (first)
		trace_enpu_job_done(job, error);
}

/* The hardware is done with the job: end it and signal. Under the engine's lock. */
void enpu_job_complete(struct enpu_job *job, int error, const struct enpu_error_record *record)
{
	bool direct = job->direct;

	lockdep_assert_held(&job->engine->lock);
	list_del_init(&job->queue_link);
	/* Before the signal: who is woken by it reads the record. */
	enpu_job_end(job, error, record);
	if (error)
		dma_fence_set_error(&job->hw->base, error);
	/* The scheduler may free the job from here on. */
	dma_fence_signal(&job->hw->base);
	if (direct)
		enpu_job_free_direct(job);
}

/* Asked before each job that waits for nothing else. */
static struct dma_fence *enpu_sched_prepare_job(struct drm_sched_job *base,
						struct drm_sched_entity *entity)
{
	return enpu_queue_wait_room(container_of(base, struct enpu_job, base)->queue);
}

/* Its place in the ring is known: nobody else pushes to the queue until it is there. */
static struct dma_fence *enpu_job_init_fence(struct enpu_job *job)
{
	struct dma_fence *fence = &job->hw->base;

	job->fence = job->queue->tail + 1;
	spin_lock_init(&job->hw->lock);
	dma_fence_init(fence, &enpu_fence_ops, &job->hw->lock, job->queue->fence_context,
		       job->fence);
	__module_get(THIS_MODULE);
	atomic_inc(&enpu_fences);
	job->on_hw = true;
	return fence;
}

/*
 * Puts the job into the ring; 0, or the errno with which it ends unbegun. The queue is kept by the
 * caller.
 */
static int enpu_job_push(struct enpu_job *job)
{
	struct enpu_engine *engine = job->engine;
	struct enpu_queue *queue = job->queue;
	unsigned long flags;
	bool ring = false;
	int error, idx;

	if (!drm_dev_enter(&engine->edev->drm, &idx))
		return -ENODEV;
	spin_lock_irqsave(&engine->lock, flags);
	if (!job->direct)
		queue->scheduled--;
	error = READ_ONCE(job->ctx->dead);
	if (!error) {
		if (!job->direct)
			dma_fence_get(enpu_job_init_fence(job)); /* for the scheduler */
		job->started_ns = ktime_get_ns();
		list_add_tail(&job->queue_link, &queue->jobs);
		trace_enpu_job_run(job);
		ring = enpu_queue_push(queue, job);
		enpu_tdr_start(engine);
	}
	/* Whoever parks the engine spins until the doorbell is rung. */
	preempt_disable();
	spin_unlock_irqrestore(&engine->lock, flags);
	if (ring)
		enpu_queue_ring(queue);
	preempt_enable();
	drm_dev_exit(idx);
	return error;
}

/* The queue stays until this worker rests. */
static struct dma_fence *enpu_sched_run_job(struct drm_sched_job *base)
{
	struct enpu_job *job = container_of(base, struct enpu_job, base);
	struct dma_fence *fence = &job->hw->base;
	bool cookie = dma_fence_begin_signalling();
	int error;

	error = enpu_job_push(job);
	if (error)
		enpu_job_end(job, error, NULL);
	dma_fence_end_signalling(cookie);
	return error ? ERR_PTR(error) : fence;
}

/*
 * A job that has nothing to wait for and room in a ring that only SUBMIT fills goes there without
 * the scheduler; its fence. Under submit_lock, until enpu_job_run_direct().
 */
struct dma_fence *enpu_job_init_direct(struct enpu_job *job)
{
	job->direct = true;
	return enpu_job_init_fence(job);
}

/* Gives the job away. */
void enpu_job_run_direct(struct enpu_job *job)
{
	bool cookie = dma_fence_begin_signalling();
	int error;

	error = enpu_job_push(job);
	if (error) {
		enpu_job_end(job, error, NULL);
		dma_fence_set_error(&job->hw->base, error);
		dma_fence_signal(&job->hw->base);
		enpu_job_free_direct(job);
	}
	dma_fence_end_signalling(cookie);
}

static enum drm_gpu_sched_stat enpu_sched_timedout_job(struct drm_sched_job *base)
{
	struct enpu_job *job = container_of(base, struct enpu_job, base);

	enpu_tdr_tick(job->engine);
	return enpu_sched_no_hang(base);
}

static void enpu_sched_free_job(struct drm_sched_job *base)
{
	struct enpu_job *job = container_of(base, struct enpu_job, base);

	/* A job that was killed with its entity never met the hardware. */
	enpu_job_end(job, -ECANCELED, NULL);
	drm_sched_job_cleanup(base);
	enpu_job_free(job);
}

#if ENPU_HAVE_SCHED_CANCEL_JOB
static void enpu_sched_cancel_job(struct drm_sched_job *base)
{
	struct enpu_job *job = container_of(base, struct enpu_job, base);
	unsigned long flags;

	spin_lock_irqsave(&job->engine->lock, flags);
	if (job->on_hw && !list_empty(&job->queue_link))
		enpu_job_complete(job, -ECANCELED, NULL);
	spin_unlock_irqrestore(&job->engine->lock, flags);
}
#endif

const struct drm_sched_backend_ops enpu_sched_ops = {
	.prepare_job = enpu_sched_prepare_job,
	.run_job = enpu_sched_run_job,
	.timedout_job = enpu_sched_timedout_job,
	.free_job = enpu_sched_free_job,
#if ENPU_HAVE_SCHED_CANCEL_JOB
	.cancel_job = enpu_sched_cancel_job,
#endif
};
