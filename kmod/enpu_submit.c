// SPDX-License-Identifier: GPL-2.0-only
/*
 * SUBMIT: check, collect dependencies, lock all reservations, arm, publish. A call that fails has
 * had no effect; nothing fails after the job is armed.
 */
#include <linux/dma-fence-chain.h>
#include <linux/dma-resv.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/drm_exec.h>
#include <drm/drm_syncobj.h>

#include "enpu_bo.h"
#include "enpu_compat.h"
#include "enpu_ctx.h"
#include "enpu_drv.h"
#include "enpu_inject.h"
#include "enpu_job.h"
#include "enpu_queue.h"
#include "enpu_submit_check.h"
#include "enpu_trace.h"
#include "enpu_vm.h"

/**
 * struct enpu_signal - an out-fence
 * @syncobj: holds a reference
 * @chain: link for a timeline, NULL for a binary one
 * @point: of the timeline
 */
struct enpu_signal {
	struct drm_syncobj *syncobj;
	struct dma_fence_chain *chain;
	u64 point;
};

/**
 * struct enpu_submit - a SUBMIT in the making
 * @file: who asks
 * @args: what
 * @ctx: context, holds a reference
 * @job: the job, NULL once it is pushed
 * @job_ready: the scheduler has initialised it
 * @sync_ops: copied array
 * @signals: from it
 * @signal_count: their number
 * @bo_args: copied array
 * @bos: of it, hold references; the first @bo_count
 * @bo_count: those looked up so far
 */
struct enpu_submit {
	struct drm_file *file;
	struct drm_enpu_submit *args;
	struct enpu_ctx *ctx;
	struct enpu_job *job;
	bool job_ready;
	struct drm_enpu_sync_op *sync_ops;
	struct enpu_signal *signals;
	u32 signal_count;
	struct drm_enpu_submit_bo *bo_args;
	struct enpu_bo **bos;
	u32 bo_count;
};

static bool enpu_submit_fails(struct enpu_submit *sub)
{
	return enpu_inject_fail(sub->ctx->edev);
}

static int enpu_submit_copy_syncs(struct enpu_submit *sub)
{
	const struct drm_enpu_submit *args = sub->args;
	u32 i;
	int ret;

	if (!args->sync_count)
		return 0;
	if (!enpu_submit_fails(sub))
		sub->sync_ops = kvcalloc(args->sync_count, sizeof(*sub->sync_ops), GFP_KERNEL);
	if (!enpu_submit_fails(sub))
		sub->signals = kvcalloc(args->sync_count, sizeof(*sub->signals), GFP_KERNEL);
	if (!sub->sync_ops || !sub->signals)
		return -ENOMEM;
	for (i = 0; i < args->sync_count; i++) {
		struct drm_enpu_sync_op *op = &sub->sync_ops[i];

		void __user *from = u64_to_user_ptr(args->syncs + (u64)i * args->sync_stride);

		ret = enpu_submit_fails(sub) ? -EFAULT :
		      copy_struct_from_user(op, sizeof(*op), from, args->sync_stride);
		if (ret)
			return ret == -E2BIG ? -EINVAL : ret;
		if (!enpu_submit_sync_valid(op))
			return -EINVAL;
	}
	return 0;
}

static int enpu_submit_lookup_bos(struct enpu_submit *sub)
{
	const struct drm_enpu_submit *args = sub->args;
	u32 i;

	if (!args->bo_count)
		return 0;
	if (!enpu_submit_fails(sub))
		sub->bo_args = kvmalloc_array(args->bo_count, sizeof(*sub->bo_args), GFP_KERNEL);
	if (!enpu_submit_fails(sub))
		sub->bos = kvmalloc_array(args->bo_count, sizeof(*sub->bos), GFP_KERNEL);
	if (!sub->bo_args || !sub->bos)
		return -ENOMEM;
	if (enpu_submit_fails(sub) ||
	    copy_from_user(sub->bo_args, u64_to_user_ptr(args->bos),
			   args->bo_count * sizeof(*sub->bo_args)))
		return -EFAULT;
	for (i = 0; i < args->bo_count; i++) {
		if (!enpu_submit_bo_valid(&sub->bo_args[i]))
			return -EINVAL;
		sub->bos[i] = enpu_bo_lookup(sub->file, sub->bo_args[i].handle);
		if (!sub->bos[i])
			return -ENOENT;
		sub->bo_count++;
	}
	return 0;
}

static int enpu_submit_add_wait(struct enpu_submit *sub, const struct drm_enpu_sync_op *op)
{
	struct dma_fence *fence;
	int ret;

	ret = drm_syncobj_find_fence(sub->file, op->handle, op->point, 0, &fence);
	if (ret)
		return ret;
	if (enpu_submit_fails(sub)) {
		dma_fence_put(fence);
		return -ENOMEM;
	}
	/* Takes the reference, on failure too. */
	return drm_sched_job_add_dependency(&sub->job->base, fence);
}

/* Everything that could fail when the fence is published is done here. */
static int enpu_submit_add_signal(struct enpu_submit *sub, const struct drm_enpu_sync_op *op)
{
	struct enpu_signal *signal = &sub->signals[sub->signal_count];

	signal->syncobj = drm_syncobj_find(sub->file, op->handle);
	if (!signal->syncobj)
		return -ENOENT;
	sub->signal_count++;
	signal->point = op->point;
	if (op->point) {
		signal->chain = enpu_submit_fails(sub) ? NULL : dma_fence_chain_alloc();
		if (!signal->chain)
			return -ENOMEM;
	}
	return 0;
}

static int enpu_submit_add_signals(struct enpu_submit *sub)
{
	u32 i;
	int ret;

	for (i = 0; i < sub->args->sync_count; i++) {
		if (!(sub->sync_ops[i].flags & DRM_ENPU_SYNC_SIGNAL))
			continue;
		ret = enpu_submit_add_signal(sub, &sub->sync_ops[i]);
		if (ret)
			return ret;
	}
	return 0;
}

/* Has all that the program wants waited for happened? */
static bool enpu_submit_explicit_done(struct enpu_submit *sub)
{
	struct dma_fence *fence;
	bool done = true;
	u32 i;

	for (i = 0; done && i < sub->args->sync_count; i++) {
		const struct drm_enpu_sync_op *op = &sub->sync_ops[i];

		if (op->flags & DRM_ENPU_SYNC_SIGNAL)
			continue;
		/* One that fails is told by who adds it. */
		if (drm_syncobj_find_fence(sub->file, op->handle, op->point, 0, &fence))
			return false;
		done = dma_fence_is_signaled(fence);
		dma_fence_put(fence);
	}
	return done;
}

/*
 * Reserves room for the fence everywhere; two slots, as a BO may be named for reading and for
 * writing.
 */
static int enpu_submit_lock(struct enpu_submit *sub, struct drm_exec *exec)
{
	u32 i;
	int ret;

	if (enpu_submit_fails(sub))
		return -ENOMEM;
	drm_exec_until_all_locked(exec) {
		ret = drm_exec_prepare_obj(exec, sub->ctx->vm->resv_obj, 1);
		drm_exec_retry_on_contention(exec);
		if (ret)
			return ret;
		for (i = 0; i < sub->bo_count; i++) {
			ret = drm_exec_prepare_obj(exec, enpu_bo_gem(sub->bos[i]), 2);
			drm_exec_retry_on_contention(exec);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* A private BO is covered by the reservation of the VM. */
static bool enpu_submit_bo_implicit(struct enpu_submit *sub, u32 i)
{
	return !sub->bos[i]->vm_obj;
}

static int enpu_submit_add_implicit(struct enpu_submit *sub)
{
	u32 i;
	int ret;

	for (i = 0; i < sub->bo_count; i++) {
		if (!enpu_submit_bo_implicit(sub, i))
			continue;
		if (enpu_submit_fails(sub))
			return -ENOMEM;
		ret = drm_sched_job_add_implicit_dependencies(&sub->job->base,
							      enpu_bo_gem(sub->bos[i]),
							      sub->bo_args[i].flags &
							      DRM_ENPU_SUBMIT_BO_WRITE);
		if (ret)
			return ret;
	}
	return 0;
}

/* Under the reservations. */
static bool enpu_submit_implicit_done(struct enpu_submit *sub)
{
	u32 i;

	for (i = 0; i < sub->bo_count; i++) {
		bool write = sub->bo_args[i].flags & DRM_ENPU_SUBMIT_BO_WRITE;

		if (enpu_submit_bo_implicit(sub, i) &&
		    !dma_resv_test_signaled(enpu_bo_gem(sub->bos[i])->resv,
					    dma_resv_usage_rw(write)))
			return false;
	}
	return true;
}

/* Makes it a job of the scheduler, and tells that what to wait for. Under the reservations. */
static int enpu_submit_schedule(struct enpu_submit *sub)
{
	struct enpu_ctx_engine *slot = &sub->ctx->engines[sub->args->engine];
	u32 i;
	int ret;

	ret = enpu_submit_fails(sub) ? -ENOMEM :
	      enpu_sched_job_init(&sub->job->base, &slot->entity, 1, sub->ctx,
				  sub->file->client_id);
	if (ret)
		return ret;
	sub->job_ready = true;
	for (i = 0; i < sub->args->sync_count; i++) {
		if (sub->sync_ops[i].flags & DRM_ENPU_SYNC_SIGNAL)
			continue;
		ret = enpu_submit_add_wait(sub, &sub->sync_ops[i]);
		if (ret)
			return ret;
	}
	return enpu_submit_add_implicit(sub);
}

static void enpu_submit_publish(struct enpu_submit *sub, struct dma_fence *fence)
{
	u32 i;

	dma_resv_add_fence(sub->ctx->vm->resv_obj->resv, fence, DMA_RESV_USAGE_BOOKKEEP);
	for (i = 0; i < sub->bo_count; i++) {
		bool write = sub->bo_args[i].flags & DRM_ENPU_SUBMIT_BO_WRITE;

		if (enpu_submit_bo_implicit(sub, i))
			dma_resv_add_fence(enpu_bo_gem(sub->bos[i])->resv, fence,
					   write ? DMA_RESV_USAGE_WRITE : DMA_RESV_USAGE_READ);
	}
	for (i = 0; i < sub->signal_count; i++) {
		struct enpu_signal *signal = &sub->signals[i];

		if (!signal->chain) {
			drm_syncobj_replace_fence(signal->syncobj, fence);
			continue;
		}
		drm_syncobj_add_point(signal->syncobj, signal->chain, fence, signal->point);
		signal->chain = NULL;
	}
}

/* Counts the job into the context, if it takes one more. */
static int enpu_submit_enter(struct enpu_submit *sub)
{
	struct enpu_ctx *ctx = sub->ctx;
	struct enpu_job *job = sub->job;
	int ret = 0;

	spin_lock_irq(&ctx->lock);
	if (ctx->dead) {
		ret = -ENOTRECOVERABLE;
	} else if (ctx->unfinished >= ctx->max_jobs) {
		ret = -EAGAIN;
	} else {
		job->seqno = ++ctx->seqno;
		ctx->unfinished++;
		list_add_tail(&job->ctx_link, &ctx->jobs);
	}
	spin_unlock_irq(&ctx->lock);
	return ret;
}

/* There is nothing to wait for: no worker has to come between. Nothing can fail. */
static void enpu_submit_push_direct(struct enpu_submit *sub)
{
	struct enpu_job *job = sub->job;

	sub->args->seqno = job->seqno;
	enpu_submit_publish(sub, enpu_job_init_direct(job));
	trace_enpu_submit(job);
	sub->job = NULL;
	enpu_job_run_direct(job);
}

/* From arming to pushing; the reservations are locked, nothing can fail. */
static void enpu_submit_push(struct enpu_submit *sub)
{
	struct enpu_job *job = sub->job;
	struct dma_fence *fence;

	sub->args->seqno = job->seqno;
	drm_sched_job_arm(&job->base);
	fence = &job->base.s_fence->finished;
	/*
	 * An engine runs several queues in any order: that a job was handed over says nothing to
	 * one of another queue.
	 */
	set_bit(DRM_SCHED_FENCE_DONT_PIPELINE, &fence->flags);
	enpu_submit_publish(sub, fence);
	trace_enpu_submit(job);
	sub->job = NULL;
	enpu_queue_schedule(job->queue);
	drm_sched_entity_push_job(&job->base);
}

static int enpu_submit_locked(struct enpu_submit *sub)
{
	struct enpu_ctx *ctx = sub->ctx;
	u32 engine = sub->args->engine;
	struct drm_exec exec;
	bool direct;
	int ret;

	if (ctx->closed)
		return -ENOENT;
	ret = enpu_ctx_prepare_engine(ctx, engine);
	if (ret)
		return ret;
	sub->job->queue = ctx->engines[engine].queue;
	ret = enpu_submit_add_signals(sub);
	if (ret)
		return ret;
	direct = enpu_queue_takes_direct(sub->job->queue) && enpu_submit_explicit_done(sub);

	drm_exec_init(&exec, DRM_EXEC_INTERRUPTIBLE_WAIT | DRM_EXEC_IGNORE_DUPLICATES,
		      sub->bo_count + 1);
	ret = enpu_submit_lock(sub, &exec);
	if (!ret) {
		direct = direct && enpu_submit_implicit_done(sub);
		ret = direct ? 0 : enpu_submit_schedule(sub);
	}
	if (!ret)
		ret = enpu_submit_enter(sub);
	if (!ret && direct)
		enpu_submit_push_direct(sub);
	else if (!ret)
		enpu_submit_push(sub);
	drm_exec_fini(&exec);
	return ret;
}

static void enpu_submit_fini(struct enpu_submit *sub)
{
	u32 i;

	if (sub->job_ready && sub->job)
		drm_sched_job_cleanup(&sub->job->base);
	if (sub->job)
		enpu_job_free(sub->job);
	for (i = 0; i < sub->signal_count; i++) {
		dma_fence_chain_free(sub->signals[i].chain);
		drm_syncobj_put(sub->signals[i].syncobj);
	}
	for (i = 0; i < sub->bo_count; i++)
		enpu_bo_put(sub->bos[i]);
	kvfree(sub->bos);
	kvfree(sub->bo_args);
	kvfree(sub->signals);
	kvfree(sub->sync_ops);
	enpu_ctx_put(sub->ctx);
}

int enpu_submit_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct enpu_device *edev = to_enpu_device(drm);
	struct drm_enpu_submit *args = data;
	struct enpu_submit sub = { .file = file, .args = args };
	int ret;

	ret = enpu_submit_check(edev, args);
	if (ret)
		return ret;
	sub.ctx = enpu_ctx_lookup(to_enpu_file(file), args->ctx_id);
	if (!sub.ctx)
		return -ENOENT;
	ret = READ_ONCE(sub.ctx->dead) ? -ENOTRECOVERABLE : 0;
	if (!ret)
		ret = enpu_submit_copy_syncs(&sub);
	if (!ret)
		ret = enpu_submit_lookup_bos(&sub);
	if (ret)
		goto fini;

	ret = -ENOMEM;
	sub.job = enpu_job_create(sub.ctx, &edev->engines[args->engine]);
	if (!sub.job)
		goto fini;
	sub.job->cmd_va = args->cmd_va;
	sub.job->cmd_bytes = args->cmd_bytes;
	sub.job->job_id = args->job_id;

	ret = mutex_lock_interruptible(&sub.ctx->submit_lock);
	if (!ret) {
		ret = enpu_submit_locked(&sub);
		mutex_unlock(&sub.ctx->submit_lock);
	}
fini:
	enpu_submit_fini(&sub);
	return ret;
}
