// SPDX-License-Identifier: GPL-2.0-only
/*
 * User-mode queues, the side of the hardware: completion, failure, end. The fence word is in memory
 * that the process can write; whoever believes it is the process.
 *
 * A waiter puts the value it wants into the queue memory, then looks at the fence once more, then
 * sleeps; the device writes the fence, then looks at the value, then interrupts. One of the two
 * sees the other. A look every tick covers what a process does to the value.
 */
#include <linux/bitfield.h>
#include <linux/wait.h>

#include "enpu_ctx.h"
#include "enpu_device.h"
#include "enpu_uqueue.h"

bool enpu_uqueue_is_awaited(struct enpu_queue *queue)
{
	/*
	 * Whoever waits looks at the fence itself, after it is on the list and the device knows.
	 * Not waitqueue_active(): who has just been woken is off that queue for a moment.
	 */
	return !list_empty(&to_enpu_uqueue(queue)->waiters);
}

/* Has the process written entries that the device has not finished? Under hw_lock. */
bool enpu_uqueue_has_work(struct enpu_queue *queue)
{
	return le64_to_cpu(READ_ONCE(queue->header->tail)) !=
	       enpu_read64(queue->edev, ENPU_REG_QUEUE_HEAD(queue->id));
}

/*
 * Wakes those who wait; 1 when the value that they wait for is there. Under the engine's lock, in
 * hard interrupts.
 */
unsigned int enpu_uqueue_look(struct enpu_queue *queue)
{
	u64 wanted = le64_to_cpu(READ_ONCE(queue->header->irq_fence));

	if (!enpu_uqueue_is_awaited(queue))
		return 0;
	wake_up_all(&to_enpu_uqueue(queue)->wait);
	return wanted && wanted <= le64_to_cpu(READ_ONCE(queue->header->fence));
}

/*
 * The device has completed something since the last call, by its own word: an interrupt for which
 * nobody waited any more was not for nothing. Under the engine's lock.
 */
bool enpu_uqueue_moved(struct enpu_queue *queue)
{
	struct enpu_uqueue *uq = to_enpu_uqueue(queue);
	u64 fence = enpu_read64(queue->edev, ENPU_REG_QUEUE_FENCE(queue->id));
	bool moved = fence != uq->seen;

	uq->seen = fence;
	return moved;
}

/* The device has nothing to do and somebody waits: its register may know more than the memory. */
void enpu_uqueue_take_register(struct enpu_queue *queue, u64 fence)
{
	struct enpu_uqueue *uq = to_enpu_uqueue(queue);

	if (fence > uq->fence && fence > le64_to_cpu(READ_ONCE(queue->header->fence))) {
		atomic_inc(&queue->edev->stats.bad_fences);
		WRITE_ONCE(uq->fence, fence);
	}
	wake_up_all(&uq->wait);
}

/* Fence of the entry that the device is at, as the process wrote it. Under hw_lock. */
u64 enpu_uqueue_entry_fence(struct enpu_queue *queue)
{
	u64 head = enpu_read64(queue->edev, ENPU_REG_QUEUE_HEAD(queue->id));
	u32 slot = enpu_ring_slot(head + 1, queue->ring_log2);

	return le64_to_cpu(READ_ONCE(queue->ring[slot].fence));
}

/* The queue takes no more work; waiters return @error. Any context. */
void enpu_uqueue_end(struct enpu_queue *queue, int error)
{
	struct enpu_uqueue *uq = to_enpu_uqueue(queue);

	if (!cmpxchg(&uq->error, 0, error))
		enpu_doorbell_shut_later(&uq->door);
	wake_up_all(&uq->wait);
}

static void enpu_uqueue_note(struct enpu_uqueue *uq, u64 fence, int error,
			     const struct enpu_error_record *record)
{
	struct enpu_ctx *ctx = uq->queue.ctx;
	unsigned long flags;

	spin_lock_irqsave(&ctx->lock, flags);
	enpu_ctx_note_failure(ctx, fence, record ? le64_to_cpu(record->job_id) : 0, error, record);
	spin_unlock_irqrestore(&ctx->lock, flags);
}

/*
 * The entry that the device was at failed. Torn by the reset of another (-ESTALE), the queue goes
 * on behind it; anything else ends it and its context. Under hw_lock, while the device runs or is
 * being reset.
 */
bool enpu_uqueue_fail(struct enpu_queue *queue, u64 fence, int error,
		      const struct enpu_error_record *record)
{
	struct enpu_uqueue *uq = to_enpu_uqueue(queue);
	struct enpu_device *edev = queue->edev;
	u32 status = enpu_read32(edev, ENPU_REG_QUEUE_STATUS(queue->id));

	/* A record may be about an earlier owner of the number. */
	if (record && (queue->fault_taken || FIELD_GET(ENPU_QUEUE_STATUS_STATE, status) !=
		       ENPU_QUEUE_STATE_FAULTED))
		return false;
	queue->head = enpu_read64(edev, ENPU_REG_QUEUE_HEAD(queue->id)) + 1;
	queue->resume = 0;
	queue->fault_taken = true;
	if (uq->closing)
		return true;
	enpu_uqueue_note(uq, fence, error, record);
	if (error == -ESTALE) {
		WRITE_ONCE(uq->torn, fence);
		wake_up_all(&uq->wait);
		return true;
	}
	enpu_ctx_kill(queue->ctx, -ECANCELED);
	enpu_uqueue_end(queue, error);
	return true;
}
