/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One face for the kernel API from 6.12 on. What the kernel at hand has was found by compiling
 * (features/), not by its version.
 */
#ifndef ENPU_COMPAT_H
#define ENPU_COMPAT_H

#include <linux/uaccess.h>
#include <drm/drm_file.h>
#include <drm/drm_print.h>
#include <drm/gpu_scheduler.h>

#include "enpu_features.h"

static inline int enpu_sched_init(struct drm_gpu_scheduler *sched,
				  const struct drm_sched_backend_ops *ops, u32 credits,
				  long timeout, struct workqueue_struct *timeout_wq,
				  const char *name, struct device *dev)
{
#if ENPU_HAVE_SCHED_INIT_ARGS
	const struct drm_sched_init_args args = {
		.ops = ops,
		.num_rqs = DRM_SCHED_PRIORITY_COUNT,
		.credit_limit = credits,
		.timeout = timeout,
		.timeout_wq = timeout_wq,
		.name = name,
		.dev = dev,
	};

	return drm_sched_init(sched, &args);
#else
	return drm_sched_init(sched, ops, NULL, DRM_SCHED_PRIORITY_COUNT, credits, 0, timeout,
			      timeout_wq, NULL, name, dev);
#endif
}

static inline int enpu_sched_job_init(struct drm_sched_job *job, struct drm_sched_entity *entity,
				      u32 credits, void *owner, u64 client_id)
{
#if ENPU_HAVE_SCHED_JOB_CLIENT_ID
	return drm_sched_job_init(job, entity, credits, owner, client_id);
#else
	return drm_sched_job_init(job, entity, credits, owner);
#endif
}

/*
 * The answer of timedout_job() when nothing hangs. Where the scheduler has no such answer, it has
 * taken the job off its list for good, so it is put back; its completion may have come meanwhile,
 * so the scheduler is told to look again.
 */
static inline enum drm_gpu_sched_stat enpu_sched_no_hang(struct drm_sched_job *job)
{
#if ENPU_HAVE_SCHED_STAT_NO_HANG
	return DRM_GPU_SCHED_STAT_NO_HANG;
#else
	struct drm_gpu_scheduler *sched = job->sched;

	spin_lock(&sched->job_list_lock);
	list_add(&job->list, &sched->pending_list);
	spin_unlock(&sched->job_list_lock);
	queue_work(sched->submit_wq, &sched->work_free_job);
	return DRM_GPU_SCHED_STAT_NOMINAL;
#endif
}

static inline int enpu_copy_struct_to_user(void __user *dst, size_t user_size, const void *src,
					   size_t size)
{
#if ENPU_HAVE_COPY_STRUCT_TO_USER
	return copy_struct_to_user(dst, user_size, src, size, NULL);
#else
	size_t copy = min(user_size, size);

	if (user_size > size && clear_user(dst + size, user_size - size))
		return -EFAULT;
	return copy_to_user(dst, src, copy) ? -EFAULT : 0;
#endif
}

static inline void enpu_fdinfo_size(struct drm_printer *p, const char *stat, const char *region,
				    u64 bytes)
{
#if ENPU_HAVE_FDINFO_PRINT_SIZE
	drm_fdinfo_print_size(p, "drm", stat, region, bytes);
#else
	drm_printf(p, "drm-%s-%s:\t%llu KiB\n", stat, region, bytes >> 10);
#endif
}

#endif
