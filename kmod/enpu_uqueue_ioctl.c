// SPDX-License-Identifier: GPL-2.0-only
/*
 * User-mode queues, the side of the file: create, wait, destroy.
 */
#include <linux/hrtimer.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "enpu_bo.h"
#include "enpu_ctx.h"
#include "enpu_drv.h"
#include "enpu_inject.h"
#include "enpu_pte.h"
#include "enpu_uqueue.h"
#include "enpu_vm.h"

#define ENPU_MIN_RING_LOG2	2

/**
 * struct enpu_uqueue_waiter - somebody who waits for a queue
 * @link: in its list
 * @fence: what for
 */
struct enpu_uqueue_waiter {
	struct list_head link;
	u64 fence;
};

/* The last reference is gone. */
void enpu_uqueue_free(struct enpu_uqueue *uq)
{
	struct enpu_device *edev = uq->queue.edev;

	if (uq->queue.memory)
		vunmap(uq->queue.memory);
	if (uq->bo)
		enpu_bo_put(uq->bo);
	enpu_ctx_put(uq->queue.ctx);
	kfree(uq);
	atomic_dec(&edev->live.queues);
}

static void enpu_uqueue_put(struct enpu_uqueue *uq)
{
	drm_gem_object_put(&uq->door.obj);
}

/*
 * Takes the queue from the device. What is in it stops at the next packet, or is reset. Under the
 * context's submit_lock.
 */
void enpu_uqueue_close(struct enpu_uqueue *uq)
{
	struct enpu_device *edev = uq->queue.edev;

	lockdep_assert_held(&uq->queue.ctx->submit_lock);
	if (uq->closed)
		return;
	uq->closed = true;
	list_del_init(&uq->ctx_link);
	/* Before the number can be another's. */
	enpu_doorbell_shut(&uq->door);
	scoped_guard(mutex, &edev->hw_lock)
		uq->closing = true;
	enpu_queue_unregister(&uq->queue);
	disable_work_sync(&uq->door.zap);
}

/* The memory of the queue must be ours to map, and must stay where it is. */
static int enpu_uqueue_find_memory(struct enpu_uqueue *uq, u64 va, u32 log2)
{
	u64 bytes = PAGE_ALIGN(enpu_ring_bytes(log2)), offset;
	struct enpu_vm *vm = uq->queue.ctx->vm;
	void *memory;

	uq->bo = enpu_vm_find_bo(vm, va, bytes, &offset);
	if (!uq->bo || uq->bo->kind != ENPU_BO_HOST)
		return -EINVAL;
	/* The mapping has pinned the pages for the life of the BO. */
	memory = enpu_inject_fail(vm->edev) ? NULL :
		 vmap(uq->bo->shmem.pages + (offset >> PAGE_SHIFT), bytes >> PAGE_SHIFT, VM_MAP,
		      PAGE_KERNEL);
	if (!memory)
		return -ENOMEM;
	enpu_queue_set_memory(&uq->queue, memory, va, log2);
	return 0;
}

/* Takes over a reference of the context. */
static struct enpu_uqueue *enpu_uqueue_alloc(struct enpu_ctx *ctx, struct enpu_engine *engine)
{
	struct enpu_device *edev = ctx->edev;
	struct enpu_uqueue *uq;

	uq = enpu_inject_fail(edev) ? NULL : kzalloc(sizeof(*uq), GFP_KERNEL_ACCOUNT);
	if (!uq || enpu_doorbell_init(edev, &uq->door)) {
		kfree(uq);
		enpu_ctx_put(ctx);
		return NULL;
	}
	atomic_inc(&edev->live.queues);
	enpu_queue_init(&uq->queue, ctx, engine);
	uq->queue.user = true;
	spin_lock_init(&uq->lock);
	INIT_LIST_HEAD(&uq->waiters);
	INIT_LIST_HEAD(&uq->ctx_link);
	init_waitqueue_head(&uq->wait);
	uq->closed = true;
	return uq;
}

static int enpu_uqueue_check(struct enpu_device *edev, const struct drm_enpu_queue_create *args)
{
	const u32 need = ENPU_CAP_FEATURES_USER_QUEUES | ENPU_CAP_FEATURES_IRQ_FENCE;

	if (args->flags || args->pad || args->queue_id || args->doorbell_offset ||
	    args->engine >= edev->num_engines)
		return -EINVAL;
	if (args->ring_log2 < ENPU_MIN_RING_LOG2 || args->ring_log2 > edev->max_ring_log2 ||
	    !enpu_va_range_valid(args->ring_va, PAGE_ALIGN(enpu_ring_bytes(args->ring_log2))))
		return -EINVAL;
	return (edev->features & need) == need ? 0 : -EOPNOTSUPP;
}

/* The device gets the queue, unless the context ends at this very moment. */
static int enpu_uqueue_start(struct enpu_uqueue *uq)
{
	struct enpu_ctx *ctx = uq->queue.ctx;
	int ret;

	guard(mutex)(&ctx->submit_lock);
	if (ctx->closed)
		return -ENOENT;
	ret = READ_ONCE(ctx->dead) ? -ENOTRECOVERABLE : enpu_queue_register(&uq->queue);
	if (ret)
		return ret;
	uq->door.id = uq->queue.id;
	uq->closed = false;
	list_add_tail(&uq->ctx_link, &ctx->uqueues);
	return 0;
}

static void enpu_uqueue_close_and_put(struct enpu_uqueue *uq)
{
	scoped_guard(mutex, &uq->queue.ctx->submit_lock)
		enpu_uqueue_close(uq);
	enpu_uqueue_put(uq);
}

int enpu_queue_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct enpu_device *edev = to_enpu_device(drm);
	struct enpu_file *efile = to_enpu_file(file);
	struct drm_enpu_queue_create *args = data;
	struct enpu_uqueue *uq;
	struct enpu_ctx *ctx;
	u64 offset;
	u32 id;
	int ret;

	ret = enpu_uqueue_check(edev, args);
	if (ret)
		return ret;
	ctx = enpu_ctx_lookup(efile, args->ctx_id);
	if (!ctx)
		return -ENOENT;
	uq = enpu_uqueue_alloc(ctx, &edev->engines[args->engine]);
	if (!uq)
		return -ENOMEM;
	ret = enpu_uqueue_find_memory(uq, args->ring_va, args->ring_log2);
	if (!ret)
		ret = enpu_doorbell_allow(&uq->door, file, &offset);
	if (!ret)
		ret = enpu_uqueue_start(uq);
	if (!ret) {
		/* Published last; another thread may guess the id and destroy the queue at once. */
		drm_gem_object_get(&uq->door.obj);
		ret = enpu_inject_fail(edev) ? -ENOMEM :
		      xa_alloc(&efile->uqueues, &id, uq, XA_LIMIT(1, ENPU_MAX_USER_QUEUES),
			       GFP_KERNEL_ACCOUNT);
		if (ret)
			enpu_uqueue_close_and_put(uq);
	}
	if (!ret) {
		args->queue_id = id;
		args->doorbell_offset = offset;
	}
	enpu_uqueue_put(uq);
	return ret == -EBUSY ? -ENOSPC : ret;
}

int enpu_queue_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_enpu_queue_destroy *args = data;
	struct enpu_uqueue *uq;

	if (args->pad)
		return -EINVAL;
	uq = xa_erase(&to_enpu_file(file)->uqueues, args->queue_id);
	if (!uq)
		return -ENOENT;
	enpu_uqueue_close_and_put(uq);
	return 0;
}

void enpu_uqueue_close_all(struct enpu_file *efile)
{
	struct enpu_uqueue *uq;
	unsigned long id;

	xa_for_each(&efile->uqueues, id, uq)
		enpu_uqueue_close_and_put(uq);
	xa_destroy(&efile->uqueues);
}

/* 1: go on sleeping, else what the wait returns. */
static int enpu_uqueue_result(struct enpu_uqueue *uq, u64 fence)
{
	int error;

	if (le64_to_cpu(READ_ONCE(uq->queue.header->fence)) >= fence ||
	    READ_ONCE(uq->fence) >= fence)
		return 0;
	error = READ_ONCE(uq->error);
	if (error)
		return error;
	return READ_ONCE(uq->torn) >= fence ? -ESTALE : 1;
}

/* Asks for an interrupt at the smallest value that somebody waits for and that is to come. */
static void enpu_uqueue_arm(struct enpu_uqueue *uq)
{
	struct enpu_queue_header *header = uq->queue.header;
	struct enpu_uqueue_waiter *waiter;
	u64 done, next = 0;

	spin_lock(&uq->lock);
	done = le64_to_cpu(READ_ONCE(header->fence));
	list_for_each_entry(waiter, &uq->waiters, link)
		if (waiter->fence > done && (!next || waiter->fence < next))
			next = waiter->fence;
	WRITE_ONCE(header->irq_fence, cpu_to_le64(next));
	spin_unlock(&uq->lock);
	/* Either the device sees it, or we see the device's fence. */
	mb();
}

/* The caller is on the wait queue. */
static bool enpu_uqueue_ready(struct enpu_uqueue *uq, u64 fence, int *result)
{
	*result = enpu_uqueue_result(uq, fence);
	if (*result != 1)
		return true;
	enpu_uqueue_arm(uq);
	*result = enpu_uqueue_result(uq, fence);
	return *result != 1;
}

static int enpu_uqueue_sleep(struct enpu_uqueue *uq, u64 fence, s64 deadline_ns)
{
	struct enpu_uqueue_waiter waiter = { .fence = fence };
	s64 left = deadline_ns - ktime_get_ns();
	int result, ret;

	if (deadline_ns < 0 || left <= 0)
		return -ETIME;
	spin_lock(&uq->lock);
	list_add(&waiter.link, &uq->waiters);
	spin_unlock(&uq->lock);
	ret = wait_event_interruptible_hrtimeout(uq->wait, enpu_uqueue_ready(uq, fence, &result),
						 ns_to_ktime(left));
	spin_lock(&uq->lock);
	list_del(&waiter.link);
	spin_unlock(&uq->lock);
	return ret ?: result;
}

int enpu_queue_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct enpu_file *efile = to_enpu_file(file);
	struct drm_enpu_queue_wait *args = data;
	struct enpu_uqueue *uq;
	int ret;

	if (args->pad)
		return -EINVAL;
	xa_lock(&efile->uqueues);
	uq = xa_load(&efile->uqueues, args->queue_id);
	if (uq)
		drm_gem_object_get(&uq->door.obj);
	xa_unlock(&efile->uqueues);
	if (!uq)
		return -ENOENT;
	ret = enpu_uqueue_result(uq, args->fence);
	if (ret == 1)
		ret = enpu_uqueue_sleep(uq, args->fence, args->timeout_ns);
	enpu_uqueue_put(uq);
	return ret;
}
