// SPDX-License-Identifier: GPL-2.0-only
/*
 * Contexts: lifetime and the status record.
 */
#include <linux/capability.h>
#include <linux/slab.h>

#include "enpu_ctx.h"
#include "enpu_drv.h"
#include "enpu_inject.h"
#include "enpu_job.h"
#include "enpu_queue.h"
#include "enpu_uqueue.h"
#include "enpu_vm.h"

static void enpu_ctx_free(struct kref *ref)
{
	struct enpu_ctx *ctx = container_of(ref, struct enpu_ctx, ref);

	atomic_dec(&ctx->edev->live.contexts);
	enpu_vm_put(ctx->vm);
	mutex_destroy(&ctx->submit_lock);
	kfree(ctx);
}

void enpu_ctx_put(struct enpu_ctx *ctx)
{
	kref_put(&ctx->ref, enpu_ctx_free);
}

/* The context of an id with a reference, or NULL. */
struct enpu_ctx *enpu_ctx_lookup(struct enpu_file *efile, u32 id)
{
	struct enpu_ctx *ctx;

	xa_lock(&efile->contexts);
	ctx = xa_load(&efile->contexts, id);
	if (ctx)
		kref_get(&ctx->ref);
	xa_unlock(&efile->contexts);
	return ctx;
}

/* Jobs that have not started end with this error from now on. */
void enpu_ctx_kill(struct enpu_ctx *ctx, int error)
{
	unsigned long flags;

	spin_lock_irqsave(&ctx->lock, flags);
	if (!ctx->dead)
		WRITE_ONCE(ctx->dead, error);
	spin_unlock_irqrestore(&ctx->lock, flags);
}

/* A job ended badly; the first one fills the record. @record may be NULL. */
void enpu_ctx_note_failure(struct enpu_ctx *ctx, u64 seqno, u64 job_id, int error,
			   const struct enpu_error_record *record)
{
	struct drm_enpu_ctx_status *status = &ctx->status;

	lockdep_assert_held(&ctx->lock);
	status->failed_jobs++;
	if (status->error)
		return;
	status->error = error;
	status->failed_seqno = seqno;
	status->failed_job_id = job_id;
	status->operand = 0xff;
	if (!record)
		return;
	status->fault_va = le64_to_cpu(record->va);
	status->packet = le32_to_cpu(record->packet);
	status->hw_status = record->kind;
	status->rule = le16_to_cpu(record->rule);
	status->opcode = le16_to_cpu(record->opcode);
	if (record->kind == ENPU_STATUS_BAD_OPERAND)
		status->operand = record->cause;
}

static enum drm_sched_priority enpu_sched_priority(u32 priority)
{
	switch (priority) {
	case DRM_ENPU_PRIORITY_HIGH:
		return DRM_SCHED_PRIORITY_HIGH;
	case DRM_ENPU_PRIORITY_LOW:
		return DRM_SCHED_PRIORITY_LOW;
	default:
		return DRM_SCHED_PRIORITY_NORMAL;
	}
}

/*
 * Makes the entity and the hardware queue of an engine; under submit_lock. -ENOSPC, -ENOMEM,
 * -ENODEV, -EIO.
 */
int enpu_ctx_prepare_engine(struct enpu_ctx *ctx, u32 index)
{
	struct enpu_ctx_engine *slot = &ctx->engines[index];
	struct enpu_engine *engine = &ctx->edev->engines[index];
	struct drm_gpu_scheduler *sched = &engine->sched;
	struct enpu_queue *queue;
	int ret;

	lockdep_assert_held(&ctx->submit_lock);
	if (slot->ready)
		return 0;
	queue = enpu_queue_create(ctx, engine);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	ret = enpu_inject_fail(ctx->edev) ? -ENOMEM :
	      drm_sched_entity_init(&slot->entity, enpu_sched_priority(ctx->priority), &sched, 1,
				    NULL);
	if (ret) {
		enpu_queue_destroy(queue);
		return ret;
	}
	slot->queue = queue;
	slot->ready = true;
	return 0;
}

/*
 * Does not wait for jobs: those that are queued are killed, and freed once their dependencies have
 * signalled. The worker of the scheduler rests meanwhile: when it takes a job of an entity that is
 * being ended, it puts the entity back among those that are to be served, freed or not.
 */
static void enpu_ctx_end_entity(struct enpu_engine *engine, struct drm_sched_entity *entity)
{
	mutex_lock(&engine->entity_lock);
	drm_sched_wqueue_stop(&engine->sched);
	drm_sched_entity_fini(entity);
	drm_sched_wqueue_start(&engine->sched);
	mutex_unlock(&engine->entity_lock);
}

/*
 * Ends a context that no id leads to any more: what waits in the scheduler is dropped, what is in
 * the hardware stops at the next packet (or is reset), and the fences of all signal.
 */
static void enpu_ctx_close(struct enpu_ctx *ctx)
{
	struct enpu_uqueue *uq, *next;
	u32 i;

	enpu_ctx_kill(ctx, -ECANCELED);
	mutex_lock(&ctx->submit_lock);
	ctx->closed = true;
	list_for_each_entry_safe(uq, next, &ctx->uqueues, ctx_link)
		enpu_uqueue_close(uq);
	for (i = 0; i < ctx->edev->num_engines; i++) {
		struct enpu_ctx_engine *slot = &ctx->engines[i];

		if (!slot->ready)
			continue;
		enpu_ctx_end_entity(&ctx->edev->engines[i], &slot->entity);
		enpu_queue_destroy(slot->queue);
		slot->queue = NULL;
		slot->ready = false;
	}
	mutex_unlock(&ctx->submit_lock);
	enpu_ctx_put(ctx);
}

void enpu_ctx_close_all(struct enpu_file *efile)
{
	struct enpu_ctx *ctx;
	unsigned long id;

	xa_for_each(&efile->contexts, id, ctx)
		enpu_ctx_close(ctx);
	xa_destroy(&efile->contexts);
}

static struct enpu_ctx *enpu_ctx_alloc(struct enpu_vm *vm, const struct drm_enpu_ctx_create *args)
{
	struct enpu_device *edev = vm->edev;
	struct enpu_ctx *ctx;

	if (enpu_inject_fail(edev))
		return NULL;
	ctx = kzalloc(struct_size(ctx, engines, edev->num_engines), GFP_KERNEL_ACCOUNT);
	if (!ctx)
		return NULL;
	atomic_inc(&edev->live.contexts);
	kref_init(&ctx->ref);
	ctx->edev = edev;
	ctx->vm = enpu_vm_get(vm);
	ctx->priority = args->priority;
	ctx->timeout_ms = args->timeout_ms ?: ENPU_DEFAULT_TIMEOUT_MS;
	ctx->max_jobs = args->max_jobs ?: ENPU_MAX_JOBS;
	mutex_init(&ctx->submit_lock);
	spin_lock_init(&ctx->lock);
	INIT_LIST_HEAD(&ctx->jobs);
	INIT_LIST_HEAD(&ctx->uqueues);
	return ctx;
}

int enpu_ctx_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct enpu_file *efile = to_enpu_file(file);
	struct drm_enpu_ctx_create *args = data;
	struct enpu_ctx *ctx;
	int ret;

	if (args->flags || args->pad || args->ctx_id || args->priority > DRM_ENPU_PRIORITY_HIGH ||
	    args->timeout_ms > ENPU_MAX_TIMEOUT_MS || args->max_jobs > ENPU_MAX_JOBS)
		return -EINVAL;
	if (args->priority == DRM_ENPU_PRIORITY_HIGH && !capable(CAP_SYS_NICE))
		return -EACCES;
	ret = enpu_vm_activate(efile->vm);
	if (ret)
		return ret;

	ctx = enpu_ctx_alloc(efile->vm, args);
	if (!ctx)
		return -ENOMEM;
	/* Published last; another thread may guess the id and destroy the context at once. */
	kref_get(&ctx->ref);
	ret = enpu_inject_fail(ctx->edev) ? -ENOMEM :
	      xa_alloc(&efile->contexts, &ctx->id, ctx, XA_LIMIT(1, ENPU_MAX_CONTEXTS),
		       GFP_KERNEL_ACCOUNT);
	if (ret)
		enpu_ctx_put(ctx);
	else
		args->ctx_id = ctx->id;
	enpu_ctx_put(ctx);
	return ret == -EBUSY ? -ENOSPC : ret;
}

int enpu_ctx_destroy_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_enpu_ctx_destroy *args = data;
	struct enpu_ctx *ctx;

	if (args->pad)
		return -EINVAL;
	ctx = xa_erase(&to_enpu_file(file)->contexts, args->ctx_id);
	if (!ctx)
		return -ENOENT;
	enpu_ctx_close(ctx);
	return 0;
}

int enpu_ctx_status_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_enpu_ctx_status *args = data;
	u32 id = args->ctx_id;
	struct enpu_ctx *ctx;
	struct enpu_job *first;

	ctx = enpu_ctx_lookup(to_enpu_file(file), id);
	if (!ctx)
		return -ENOENT;
	spin_lock_irq(&ctx->lock);
	*args = ctx->status;
	args->ctx_id = id;
	args->guilty = !!ctx->dead;
	args->submitted = ctx->seqno;
	first = list_first_entry_or_null(&ctx->jobs, struct enpu_job, ctx_link);
	args->completed = first ? first->seqno - 1 : ctx->seqno;
	spin_unlock_irq(&ctx->lock);
	enpu_ctx_put(ctx);
	return 0;
}
