// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hardware queues: memory, registers, pushing entries and picking up completions. The completion
 * path reads memory only.
 */
#include <linux/bitfield.h>
#include <linux/delay.h>
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
#include "enpu_tdr.h"
#include "enpu_trace.h"
#include "enpu_uqueue.h"
#include "enpu_vm.h"

/*
 * A queue stops at the next packet boundary; the longest packet is far longer than this, so a
 * caller has a way out.
 */
#define ENPU_STOP_TIMEOUT_NS	(1 * NSEC_PER_SEC)

void enpu_queue_init(struct enpu_queue *queue, struct enpu_ctx *ctx, struct enpu_engine *engine)
{
	queue->edev = ctx->edev;
	queue->engine = engine;
	queue->ctx = ctx;
	INIT_LIST_HEAD(&queue->jobs);
	INIT_LIST_HEAD(&queue->link);
}

/* @memory is that of enpu_ring_bytes() bytes which the device finds at @address. */
void enpu_queue_set_memory(struct enpu_queue *queue, void *memory, u64 address, u32 ring_log2)
{
	queue->ring_log2 = ring_log2;
	queue->address = address;
	queue->memory = memory;
	queue->header = memory;
	queue->ring = memory + ENPU_QUEUE_RING_OFFSET;
	queue->completions = memory + enpu_ring_completions_offset(ring_log2);
}

static void enpu_queue_free_memory(struct enpu_dma *dma)
{
	struct enpu_queue *queue = container_of(dma, struct enpu_queue, dma);

	enpu_dma_free(queue->edev, enpu_ring_bytes(queue->ring_log2), queue->memory,
		      queue->address);
}

static int enpu_queue_alloc_memory(struct enpu_queue *queue)
{
	dma_addr_t bus;
	void *memory;

	if (enpu_inject_fail(queue->edev))
		return -ENOMEM;
	memory = enpu_dma_alloc(queue->edev, enpu_ring_bytes(ENPU_RING_LOG2), &bus);
	if (!memory)
		return -ENOMEM;
	enpu_queue_set_memory(queue, memory, bus, ENPU_RING_LOG2);
	enpu_dma_add(queue->edev, &queue->dma, enpu_queue_free_memory);
	return 0;
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
	if (!queue->user)
		WRITE_ONCE(queue->header->fence, cpu_to_le64(queue->done));
	enpu_write64(edev, ENPU_REG_QUEUE_ADDR(id), queue->address);
	enpu_write64(edev, ENPU_REG_QUEUE_HEAD(id), queue->head);
	enpu_write64(edev, ENPU_REG_QUEUE_RESUME(id), queue->resume);
	enpu_write32(edev, ENPU_REG_QUEUE_CTRL(id), ENPU_QUEUE_CTRL_ENABLE |
		     (queue->user ? ENPU_QUEUE_CTRL_VIRT : 0) |
		     FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, queue->ring_log2) |
		     FIELD_PREP(ENPU_QUEUE_CTRL_ENGINE, queue->engine->index) |
		     FIELD_PREP(ENPU_QUEUE_CTRL_AS, queue->ctx->vm->as_id) |
		     FIELD_PREP(ENPU_QUEUE_CTRL_PRIORITY, queue->ctx->priority));
	/* Nobody tells when a process has put work into it. */
	if (queue->user)
		enpu_tdr_start(queue->engine);
}

/* Where the device is at rest, its restart starts the queue. */
static int enpu_queue_register_locked(struct enpu_queue *queue)
{
	struct enpu_device *edev = queue->edev;
	u32 id;

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

/* Finds a number for a complete queue and starts it. -ENOSPC, -ENODEV, -EIO. */
int enpu_queue_register(struct enpu_queue *queue)
{
	struct enpu_device *edev = queue->edev;
	int ret, idx;

	if (!drm_dev_enter(&edev->drm, &idx))
		return -ENODEV;
	scoped_guard(mutex, &edev->hw_lock)
		ret = enpu_queue_register_locked(queue);
	drm_dev_exit(idx);
	return ret;
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
	enpu_queue_init(queue, ctx, engine);
	queue->fence_context = dma_fence_context_alloc(1);
	ret = -ENODEV;
	if (drm_dev_enter(&edev->drm, &idx)) {
		ret = enpu_queue_alloc_memory(queue) ?: enpu_queue_register(queue);
		drm_dev_exit(idx);
	}
	if (ret) {
		enpu_dma_remove(edev, &queue->dma);
		kfree(queue);
		return ERR_PTR(ret);
	}
	atomic_inc(&edev->live.queues);
	return queue;
}

/* Fence of the oldest entry that is not finished. Under hw_lock. */
u64 enpu_queue_current_fence(struct enpu_queue *queue)
{
	return queue->user ? enpu_uqueue_entry_fence(queue) : queue->done + 1;
}

/* Entries that are finished. Under hw_lock, while the device runs. */
u64 enpu_queue_finished(struct enpu_queue *queue)
{
	return queue->user ? enpu_read64(queue->edev, ENPU_REG_QUEUE_HEAD(queue->id)) :
			     READ_ONCE(queue->done);
}

/* Is there something in the queue for the device to do? Under hw_lock, while the device runs. */
bool enpu_queue_has_work(struct enpu_queue *queue)
{
	unsigned long flags;
	bool has;

	if (queue->user)
		return enpu_uqueue_has_work(queue);
	spin_lock_irqsave(&queue->engine->lock, flags);
	has = !list_empty(&queue->jobs);
	spin_unlock_irqrestore(&queue->engine->lock, flags);
	return has;
}

/* Does somebody wait for completions of the queue? */
bool enpu_queue_is_awaited(struct enpu_queue *queue)
{
	return queue->user ? enpu_uqueue_is_awaited(queue) : enpu_queue_has_work(queue);
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
	/*
	 * A process's queue has no other count, and only itself to lose. It goes on behind a fault.
	 * Of ours, a job that is done must not run again because its fence word is wrong.
	 */
	if (queue->user)
		queue->done = queue->fault_taken ? head + 1 : head;
	else if (head != queue->done)
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
	queue->blame_fence = queue->user ?
			     enpu_read64(queue->edev, ENPU_REG_ENGINE_FENCE(engine->index)) :
			     queue->done + 1;
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

/* The device has no part of the queue any more when this returns. What was in it has ended. */
void enpu_queue_unregister(struct enpu_queue *queue)
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
}

/* The entity of the queue has ended, so nothing is pushed any more. */
void enpu_queue_destroy(struct enpu_queue *queue)
{
	struct enpu_device *edev = queue->edev;

	enpu_queue_unregister(queue);
	enpu_dma_remove(edev, &queue->dma);
	kfree(queue);
	atomic_dec(&edev->live.queues);
}

/*
 * Writes the entry. Whether the caller has to enpu_queue_ring() when it has let go of the engine's
 * lock, under which it calls this; enpu_queue_wait_room() keeps the ring from being full.
 */
bool enpu_queue_push(struct enpu_queue *queue, struct enpu_job *job)
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
	if (queue->engine->parked || READ_ONCE(queue->header->no_doorbell))
		return false;
	atomic_inc(&queue->engine->ringing);
	return true;
}

/*
 * Kicks the device. Without the engine's lock: a store to a doorbell leaves the guest, and may come
 * back late, while the handler of the interrupt that it brings would spin on another CPU.
 */
void enpu_queue_ring(struct enpu_queue *queue)
{
	writel(1, queue->edev->doorbells + queue->id * ENPU_DOORBELL_STRIDE);
	/* Pairs with enpu_park_engines(). */
	atomic_dec_return_release(&queue->engine->ringing);
}

/*
 * May SUBMIT push a job itself? So it stays until it does: nobody else pushes while the scheduler
 * has nothing. Under submit_lock.
 */
bool enpu_queue_takes_direct(struct enpu_queue *queue)
{
	unsigned long flags;
	bool takes;

	spin_lock_irqsave(&queue->engine->lock, flags);
	takes = !queue->scheduled && queue->tail - queue->done < ENPU_RING_ENTRIES;
	spin_unlock_irqrestore(&queue->engine->lock, flags);
	return takes;
}

/* The scheduler gets a job of the queue. Under submit_lock. */
void enpu_queue_schedule(struct enpu_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->engine->lock, flags);
	queue->scheduled++;
	spin_unlock_irqrestore(&queue->engine->lock, flags);
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
	if (queue->user)
		return enpu_uqueue_look(queue);
	return enpu_queue_harvest_to(queue, le64_to_cpu(READ_ONCE(queue->header->fence)));
}

/*
 * What a tick has found finished is picked up at the next one, if no interrupt has done so: whether
 * that was. Under the engine's lock.
 */
bool enpu_queue_harvest_late(struct enpu_queue *queue)
{
	u64 fence = le64_to_cpu(READ_ONCE(queue->header->fence));
	bool late = queue->late > queue->done && enpu_queue_harvest_locked(queue);

	queue->late = fence > queue->done ? fence : 0;
	return late;
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

	if (queue->user) {
		enpu_uqueue_take_register(queue, fence);
		return;
	}
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

	if (queue->user) {
		enpu_uqueue_end(queue, error);
		return;
	}
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

	if (queue->user)
		return enpu_uqueue_fail(queue, fence, error, record);
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
