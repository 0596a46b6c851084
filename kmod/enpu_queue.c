// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hardware queues: memory, registers, pushing entries and picking up completions. The completion
 * path reads memory only.
 */
#include <linux/bitfield.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>
#include <linux/slab.h>
#include <drm/drm_drv.h>

#include "enpu_ctx.h"
#include "enpu_device.h"
#include "enpu_error.h"
#include "enpu_inject.h"
#include "enpu_job.h"
#include "enpu_queue.h"
#include "enpu_reset.h"
#include "enpu_trace.h"
#include "enpu_vm.h"

/*
 * A queue stops at the next packet boundary; the longest packet is far longer than this, so a
 * caller has a way out.
 */
#define ENPU_STOP_TIMEOUT_NS	(1 * NSEC_PER_SEC)

static int enpu_queue_alloc_memory(struct enpu_queue *queue)
{
	if (enpu_inject_fail(queue->edev))
		return -ENOMEM;
	queue->memory = dma_alloc_coherent(&queue->edev->pdev->dev,
					   enpu_ring_bytes(ENPU_RING_LOG2), &queue->bus,
					   GFP_KERNEL_ACCOUNT);
	if (!queue->memory)
		return -ENOMEM;
	queue->header = queue->memory;
	queue->ring = queue->memory + ENPU_QUEUE_RING_OFFSET;
	queue->completions = queue->memory + enpu_ring_completions_offset(ENPU_RING_LOG2);
	return 0;
}

static void enpu_queue_free_memory(struct enpu_queue *queue)
{
	dma_free_coherent(&queue->edev->pdev->dev, enpu_ring_bytes(ENPU_RING_LOG2),
			  queue->memory, queue->bus);
}

/*
 * Starts the queue at @head and @resume. Under hw_lock, while the device runs and the queue is
 * disabled.
 */
void enpu_queue_program(struct enpu_queue *queue)
{
	struct enpu_device *edev = queue->edev;
	u32 id = queue->id;

	queue->fault_taken = false;
	/* The device goes on from here; what it finds may be what a fault has left. */
	WRITE_ONCE(queue->header->fence, cpu_to_le64(queue->done));
	enpu_write64(edev, ENPU_REG_QUEUE_ADDR(id), queue->bus);
	enpu_write64(edev, ENPU_REG_QUEUE_HEAD(id), queue->head);
	enpu_write64(edev, ENPU_REG_QUEUE_RESUME(id), queue->resume);
	enpu_write32(edev, ENPU_REG_QUEUE_CTRL(id), ENPU_QUEUE_CTRL_ENABLE |
		     FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, ENPU_RING_LOG2) |
		     FIELD_PREP(ENPU_QUEUE_CTRL_ENGINE, queue->engine->index) |
		     FIELD_PREP(ENPU_QUEUE_CTRL_AS, queue->ctx->vm->as_id) |
		     FIELD_PREP(ENPU_QUEUE_CTRL_PRIORITY, queue->ctx->priority));
}

/* Finds a number for the queue and starts it; where the device is at rest, its restart does. */
static int enpu_queue_register(struct enpu_queue *queue)
{
	struct enpu_device *edev = queue->edev;
	u32 id;

	guard(mutex)(&edev->hw_lock);
	if (enpu_is_wedged(edev))
		return -EIO;
	for (id = 0; id < edev->num_queues && edev->queues[id]; id++)
		;
	if (id == edev->num_queues)
		return -ENOSPC;
	queue->id = id;
	queue->enabled = true;
	edev->queues[id] = queue;
	if (edev->running)
		enpu_queue_program(queue);

	spin_lock_irq(&queue->engine->lock);
	list_add_tail(&queue->link, &queue->engine->queues);
	spin_unlock_irq(&queue->engine->lock);
	return 0;
}

/* Makes the queue of a context on an engine. -ENOSPC, -ENOMEM, -ENODEV, -EIO. */
struct enpu_queue *enpu_queue_create(struct enpu_ctx *ctx, struct enpu_engine *engine)
{
	struct enpu_device *edev = ctx->edev;
	struct enpu_queue *queue;
	int ret, idx;

	queue = enpu_inject_fail(edev) ? NULL : kzalloc(sizeof(*queue), GFP_KERNEL_ACCOUNT);
	if (!queue)
		return ERR_PTR(-ENOMEM);
	queue->edev = edev;
	queue->engine = engine;
	queue->ctx = ctx;
	queue->fence_context = dma_fence_context_alloc(1);
	INIT_LIST_HEAD(&queue->jobs);
	ret = enpu_queue_alloc_memory(queue);
	if (ret)
		goto free_queue;

	ret = -ENODEV;
	if (drm_dev_enter(&edev->drm, &idx)) {
		ret = enpu_queue_register(queue);
		drm_dev_exit(idx);
	}
	if (ret)
		goto free_memory;
	atomic_inc(&edev->live.queues);
	return queue;

free_memory:
	enpu_queue_free_memory(queue);
free_queue:
	kfree(queue);
	return ERR_PTR(ret);
}

bool enpu_queue_has_jobs(struct enpu_queue *queue)
{
	unsigned long flags;
	bool has;

	spin_lock_irqsave(&queue->engine->lock, flags);
	has = !list_empty(&queue->jobs);
	spin_unlock_irqrestore(&queue->engine->lock, flags);
	return has;
}

/* Asks a queue to stop at the next packet boundary. Under hw_lock, while the device runs. */
void enpu_queue_ask_stop(struct enpu_queue *queue)
{
	if (queue->enabled)
		enpu_write32(queue->edev, ENPU_REG_QUEUE_CTRL(queue->id), 0);
}

/* Waits until an asked queue has stopped, and notes where. -ETIMEDOUT. */
int enpu_queue_wait_stopped(struct enpu_queue *queue, u64 deadline_ns)
{
	struct enpu_device *edev = queue->edev;
	u64 head, resume;

	while (FIELD_GET(ENPU_QUEUE_STATUS_STATE,
			 enpu_read32(edev, ENPU_REG_QUEUE_STATUS(queue->id))) !=
	       ENPU_QUEUE_STATE_DISABLED) {
		if (ktime_get_ns() > deadline_ns)
			return -ETIMEDOUT;
		usleep_range(20, 100);
	}
	head = enpu_read64(edev, ENPU_REG_QUEUE_HEAD(queue->id));
	resume = enpu_read64(edev, ENPU_REG_QUEUE_RESUME(queue->id));
	enpu_queue_harvest(queue);
	/* A job that is done must not run again because its fence word is wrong. */
	if (head != queue->done)
		enpu_queue_harvest_register(queue);
	/* The device's word is taken only as far as it can be true. */
	if (head != queue->done || resume >= edev->max_command ||
	    !IS_ALIGNED(resume, ENPU_PACKET_ALIGN)) {
		head = max(queue->head, queue->done);
		resume = 0;
	}
	queue->head = head;
	queue->resume = resume;
	return 0;
}

/* Takes a job that does not come to an end off its engine; nobody else's may suffer. */
static void enpu_queue_evict(struct enpu_queue *queue)
{
	struct enpu_engine *engine = queue->engine;
	u32 occupant = enpu_read32(queue->edev, ENPU_REG_ENGINE_QUEUE(engine->index));

	queue->blame = -ECANCELED;
	queue->blame_fence = queue->done + 1;
	if (occupant == queue->id)
		enpu_engine_reset_locked(engine, queue, ENPU_DUMP_REASON_EVICT);
	else
		enpu_device_reset_locked(queue->edev, ENPU_DUMP_REASON_EVICT);
	queue->blame = 0;
}

/*
 * Stops a queue for good and cancels what is left in it. A job that does not stop is dropped by an
 * engine reset. Under hw_lock.
 */
void enpu_queue_shut(struct enpu_queue *queue)
{
	struct enpu_device *edev = queue->edev;

	if (queue->enabled && edev->running) {
		enpu_queue_ask_stop(queue);
		if (enpu_queue_wait_stopped(queue, ktime_get_ns() + ENPU_STOP_TIMEOUT_NS))
			enpu_queue_evict(queue);
	}
	queue->enabled = false;
	enpu_queue_harvest(queue);
	enpu_queue_cancel(queue, -ECANCELED);
}

/* The entity of the queue has ended, so nothing is pushed any more. */
void enpu_queue_destroy(struct enpu_queue *queue)
{
	struct enpu_device *edev = queue->edev;
	int idx;

	mutex_lock(&edev->hw_lock);
	if (drm_dev_enter(&edev->drm, &idx)) {
		enpu_queue_shut(queue);
		drm_dev_exit(idx);
	} else {
		enpu_queue_cancel(queue, -ENODEV);
	}
	spin_lock_irq(&queue->engine->lock);
	list_del(&queue->link);
	spin_unlock_irq(&queue->engine->lock);
	edev->queues[queue->id] = NULL;
	mutex_unlock(&edev->hw_lock);

	enpu_queue_free_memory(queue);
	kfree(queue);
	atomic_dec(&edev->live.queues);
}

/*
 * Writes the entry and kicks the device. Under the engine's lock; enpu_queue_wait_room() keeps the
 * ring from being full.
 */
void enpu_queue_push(struct enpu_queue *queue, struct enpu_job *job)
{
	struct enpu_ring_entry *entry = &queue->ring[enpu_ring_slot(job->fence, ENPU_RING_LOG2)];

	lockdep_assert_held(&queue->engine->lock);
	entry->cmd_va = cpu_to_le64(job->cmd_va);
	entry->cmd_bytes = cpu_to_le32(job->cmd_bytes);
	entry->flags = cpu_to_le32(ENPU_RING_FLAG_IRQ);
	entry->fence = cpu_to_le64(job->fence);
	entry->job_id = cpu_to_le64(job->job_id);

	queue->tail = job->fence;
	dma_wmb();
	WRITE_ONCE(queue->header->tail, cpu_to_le64(queue->tail));
	/* Either we see that the device has stopped polling, or it sees the new tail. */
	mb();
	/* A queue that is stopped looks at the ring when it is started again. */
	if (!queue->engine->parked && !READ_ONCE(queue->header->no_doorbell))
		writel(1, queue->edev->doorbells + queue->id * ENPU_DOORBELL_STRIDE);
}

/*
 * What the next job of a queue must wait for, or NULL: its ring may be full. Nobody else waits for
 * that, so jobs that never begin keep only their own queue.
 */
struct dma_fence *enpu_queue_wait_room(struct enpu_queue *queue)
{
	struct dma_fence *fence = NULL;
	struct enpu_job *oldest;
	unsigned long flags;

	spin_lock_irqsave(&queue->engine->lock, flags);
	oldest = list_first_entry_or_null(&queue->jobs, struct enpu_job, queue_link);
	if (oldest && queue->tail - queue->done >= ENPU_RING_ENTRIES)
		fence = dma_fence_get(&oldest->hw->base);
	spin_unlock_irqrestore(&queue->engine->lock, flags);
	return fence;
}

/* Adds the time of a job to its process and to the device. */
static void enpu_queue_account(struct enpu_queue *queue, const struct enpu_completion *record)
{
	u64 start = le64_to_cpu(record->start_ns), end = le64_to_cpu(record->end_ns);

	if (end <= start)
		return;
	atomic64_add(end - start, &queue->ctx->vm->engine_ns[queue->engine->is_copy]);
	atomic64_add(end - start, &queue->edev->stats.busy_ns);
}

/* Completes the jobs up to @fence; their number. Under the engine's lock. */
static unsigned int enpu_queue_harvest_to(struct enpu_queue *queue, u64 fence)
{
	struct enpu_job *job, *next;
	unsigned int count = 0;

	if (!enpu_ring_fence_plausible(fence, queue->done, queue->tail))
		return 0;
	/* The completion records were written before the fence. */
	dma_rmb();
	list_for_each_entry_safe(job, next, &queue->jobs, queue_link) {
		struct enpu_completion *record;
		int error = 0;

		if (job->fence > fence)
			break;
		record = &queue->completions[enpu_ring_slot(job->fence, ENPU_RING_LOG2)];
		enpu_queue_account(queue, record);
		/*
		 * The fence says finished, the record does not: something wrote where it should
		 * not.
		 */
		if (le64_to_cpu(record->fence) != job->fence || record->status) {
			error = -EREMOTEIO;
			enpu_ctx_kill(queue->ctx, -ECANCELED);
			queue_work(queue->edev->recovery_wq, &queue->edev->error_work);
		}
		enpu_job_complete(job, error, NULL);
		count++;
	}
	queue->done = fence;
	return count;
}

/* Completes the jobs that the device says it has finished. Under the engine's lock. */
static unsigned int enpu_queue_harvest_locked(struct enpu_queue *queue)
{
	return enpu_queue_harvest_to(queue, le64_to_cpu(READ_ONCE(queue->header->fence)));
}

/*
 * The fence word in memory is wrong though the device is done with the queue: its register is
 * taken instead. Under hw_lock.
 */
void enpu_queue_harvest_register(struct enpu_queue *queue)
{
	u64 fence = enpu_read64(queue->edev, ENPU_REG_QUEUE_FENCE(queue->id));
	unsigned long flags;
	unsigned int count;

	spin_lock_irqsave(&queue->engine->lock, flags);
	count = enpu_queue_harvest_locked(queue);
	/* Rightly finished; the interrupt has not come within the tick. */
	if (count)
		atomic_inc(&queue->edev->stats.lost_interrupts);
	else if (fence != queue->done && enpu_queue_harvest_to(queue, fence))
		atomic_inc(&queue->edev->stats.bad_fences);
	spin_unlock_irqrestore(&queue->engine->lock, flags);
}

unsigned int enpu_queue_harvest(struct enpu_queue *queue)
{
	unsigned long flags;
	unsigned int count;

	spin_lock_irqsave(&queue->engine->lock, flags);
	count = enpu_queue_harvest_locked(queue);
	spin_unlock_irqrestore(&queue->engine->lock, flags);
	return count;
}

unsigned int enpu_engine_harvest(struct enpu_engine *engine)
{
	struct enpu_queue *queue;
	unsigned int count = 0;
	unsigned long flags;

	spin_lock_irqsave(&engine->lock, flags);
	list_for_each_entry(queue, &engine->queues, link)
		count += enpu_queue_harvest_locked(queue);
	spin_unlock_irqrestore(&engine->lock, flags);
	return count;
}

/* Ends every job of the queue with an error; the hardware must not run them any more. */
void enpu_queue_cancel(struct enpu_queue *queue, int error)
{
	struct enpu_job *job, *next;
	unsigned long flags;

	spin_lock_irqsave(&queue->engine->lock, flags);
	list_for_each_entry_safe(job, next, &queue->jobs, queue_link)
		enpu_job_complete(job, error, NULL);
	spin_unlock_irqrestore(&queue->engine->lock, flags);
}

/*
 * The job with this fence value, the oldest of the queue that is not finished, failed. Any error
 * but -ESTALE (torn by the reset of another) kills the context, and the jobs behind it are
 * cancelled. False when there is no such job. Under hw_lock.
 */
bool enpu_queue_fail_head(struct enpu_queue *queue, u64 fence, int error,
			  const struct enpu_error_record *record)
{
	struct enpu_job *job, *next;
	unsigned long flags;

	spin_lock_irqsave(&queue->engine->lock, flags);
	enpu_queue_harvest_locked(queue);
	job = list_first_entry_or_null(&queue->jobs, struct enpu_job, queue_link);
	if (!job || job->fence != fence) {
		spin_unlock_irqrestore(&queue->engine->lock, flags);
		return false;
	}
	if (error != -ESTALE)
		enpu_ctx_kill(queue->ctx, -ECANCELED);
	enpu_job_complete(job, error, record);
	if (error != -ESTALE)
		list_for_each_entry_safe(job, next, &queue->jobs, queue_link)
			enpu_job_complete(job, -ECANCELED, NULL);
	queue->done = fence;
	queue->head = fence;
	queue->resume = 0;
	queue->fault_taken = true;
	spin_unlock_irqrestore(&queue->engine->lock, flags);
	return true;
}
