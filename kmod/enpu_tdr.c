// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hang detection. The timeout of the scheduler is only a tick: it says that an engine has work, not
 * that the job it names hangs. Blamed is the queue that occupies the engine, when the engine's
 * progress stands still for the timeout of that queue's context.
 */
#include <linux/bitfield.h>
#include <linux/dma-fence.h>
#include <linux/timekeeping.h>
#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "enpu_ctx.h"
#include "enpu_device.h"
#include "enpu_error.h"
#include "enpu_queue.h"
#include "enpu_reset.h"
#include "enpu_tdr.h"
#include "enpu_uqueue.h"

/* Notes what occupies the engine; returns for how long it has stood still, 0 if it has not. */
static u64 enpu_tdr_watch(struct enpu_engine *engine)
{
	struct enpu_device *edev = engine->edev;
	u32 queue = enpu_read32(edev, ENPU_REG_ENGINE_QUEUE(engine->index));
	u64 fence = enpu_read64(edev, ENPU_REG_ENGINE_FENCE(engine->index));
	u64 progress = enpu_read64(edev, ENPU_REG_ENGINE_PROGRESS(engine->index));
	u64 now = ktime_get_ns();

	if (queue == engine->watch.queue && fence == engine->watch.fence &&
	    progress == engine->watch.progress)
		return now - engine->watch.since_ns;
	engine->watch.queue = queue;
	engine->watch.fence = fence;
	engine->watch.progress = progress;
	engine->watch.since_ns = now;
	return 0;
}

/*
 * A queue that the device calls idle though jobs of it are not begun. A kick may be on its way; one
 * that has not arrived within a tick was lost.
 */
static void enpu_tdr_check_kick(struct enpu_queue *queue)
{
	struct enpu_device *edev = queue->edev;
	u64 fence = enpu_queue_finished(queue) + 1, now = ktime_get_ns();

	if (queue->idle_fence == fence) {
		if (now - queue->idle_ns < ENPU_TICK_MS / 2 * NSEC_PER_MSEC)
			return;
		atomic_inc(&edev->stats.lost_doorbells);
		enpu_write32(edev, ENPU_REG_QUEUE_KICK(queue->id), 1);
	}
	queue->idle_fence = fence;
	queue->idle_ns = now;
}

/* Queues that the device does nothing for, while our side waits for jobs of them. */
static void enpu_tdr_check_idle(struct enpu_engine *engine)
{
	struct enpu_device *edev = engine->edev;
	u32 i, state;

	for (i = 0; i < edev->num_queues; i++) {
		struct enpu_queue *queue = edev->queues[i];

		if (!queue || queue->engine != engine || !queue->enabled ||
		    !(enpu_queue_has_work(queue) || enpu_queue_is_awaited(queue)))
			continue;
		state = FIELD_GET(ENPU_QUEUE_STATUS_STATE,
				  enpu_read32(edev, ENPU_REG_QUEUE_STATUS(i)));
		/* Its record found the FIFO full, or its interrupt is lost. */
		if (state == ENPU_QUEUE_STATE_FAULTED)
			queue_work(edev->recovery_wq, &edev->error_work);
		if (state != ENPU_QUEUE_STATE_IDLE) {
			queue->idle_fence = 0;
			continue;
		}
		enpu_queue_harvest_register(queue);
		if (enpu_queue_has_work(queue))
			enpu_tdr_check_kick(queue);
	}
}

static void enpu_tdr_hang(struct enpu_engine *engine, struct enpu_queue *queue, u64 still_ns)
{
	struct enpu_device *edev = engine->edev;

	dev_notice_ratelimited(edev->drm.dev, "%s hangs: no progress of queue %u (context %u), fence %llu for %llu ms at packet +%#x\n",
			       engine->name, queue->id, queue->ctx->id, engine->watch.fence,
			       still_ns / NSEC_PER_MSEC,
			       enpu_read32(edev, ENPU_REG_ENGINE_PACKET(engine->index)));
	atomic_inc(&edev->stats.hangs);
	queue->blame = -ETIMEDOUT;
	queue->blame_fence = engine->watch.fence;
	engine->watch.queue = U32_MAX;
	enpu_notify(edev, ENPU_STEP_HANG, engine->index);
	enpu_engine_reset_locked(engine, queue, ENPU_DUMP_REASON_HANG);
}

static void enpu_tdr_look(struct enpu_engine *engine)
{
	struct enpu_device *edev = engine->edev;
	struct enpu_queue *queue;
	u64 still_ns;

	if (enpu_device_gone(edev)) {
		enpu_device_reset_locked(edev, ENPU_DUMP_REASON_GONE);
		return;
	}
	enpu_errors_drain(edev);
	enpu_tdr_check_idle(engine);
	still_ns = enpu_tdr_watch(engine);
	if (engine->watch.queue == U32_MAX)
		return;
	/* The number comes from the device. */
	queue = engine->watch.queue < ENPU_MAX_QUEUES ? edev->queues[engine->watch.queue] : NULL;
	if (!queue || queue->engine != engine)
		return;
	if (still_ns >= (u64)queue->ctx->timeout_ms * NSEC_PER_MSEC)
		enpu_tdr_hang(engine, queue, still_ns);
}

/*
 * Called by the scheduler while the oldest job of the engine is not finished. Process context, in
 * the recovery queue.
 */
void enpu_tdr_tick(struct enpu_engine *engine)
{
	struct enpu_device *edev = engine->edev;
	bool cookie = dma_fence_begin_signalling();
	int idx;

	if (!drm_dev_enter(&edev->drm, &idx))
		goto out;
	/* What is found here was finished, but its interrupt has not come within the tick. */
	if (enpu_engine_harvest(engine))
		atomic_inc(&edev->stats.lost_interrupts);
	/* Others may have finished while one is stuck. */
	mutex_lock(&edev->hw_lock);
	if (edev->running)
		enpu_tdr_look(engine);
	mutex_unlock(&edev->hw_lock);
	drm_dev_exit(idx);
out:
	dma_fence_end_signalling(cookie);
}

/* Those who wait, though the interrupt has not come. */
static void enpu_tdr_look_late(struct enpu_engine *engine)
{
	struct enpu_queue *queue;
	unsigned long flags;

	spin_lock_irqsave(&engine->lock, flags);
	list_for_each_entry(queue, &engine->queues, link)
		if (queue->user ? enpu_uqueue_look(queue) : enpu_queue_harvest_late(queue))
			atomic_inc(&engine->edev->stats.lost_interrupts);
	spin_unlock_irqrestore(&engine->lock, flags);
}

/* Must the engine be watched? A queue of a process may have work at any time. */
static bool enpu_engine_has_work(struct enpu_engine *engine)
{
	struct enpu_queue *queue;
	unsigned long flags;
	bool has = false;

	spin_lock_irqsave(&engine->lock, flags);
	list_for_each_entry(queue, &engine->queues, link)
		has |= queue->user ? queue->enabled && READ_ONCE(engine->edev->running) :
				     !list_empty(&queue->jobs);
	spin_unlock_irqrestore(&engine->lock, flags);
	return has;
}

/*
 * The scheduler starts its timeout anew with every job that begins, so programs that keep
 * submitting could put the tick off for ever. This one comes whatever they do.
 */
static void enpu_tdr_watchdog(struct work_struct *work)
{
	struct enpu_engine *engine = container_of(work, struct enpu_engine, watchdog.work);
	struct enpu_device *edev = engine->edev;
	bool cookie = dma_fence_begin_signalling();
	int idx;

	if (!drm_dev_enter(&edev->drm, &idx))
		goto out;
	enpu_tdr_look_late(engine);
	mutex_lock(&edev->hw_lock);
	if (edev->running)
		enpu_tdr_look(engine);
	mutex_unlock(&edev->hw_lock);
	if (enpu_engine_has_work(engine))
		enpu_tdr_start(engine);
	drm_dev_exit(idx);
out:
	dma_fence_end_signalling(cookie);
}

void enpu_tdr_init(struct enpu_engine *engine)
{
	INIT_DELAYED_WORK(&engine->watchdog, enpu_tdr_watchdog);
}

/*
 * A job goes to the hardware, or a queue of a process starts. Any context; a watchdog that runs is
 * left as it is.
 */
void enpu_tdr_start(struct enpu_engine *engine)
{
	queue_delayed_work(engine->edev->recovery_wq, &engine->watchdog,
			   msecs_to_jiffies(ENPU_TICK_MS));
}

/* No watchdog runs any more when this returns. */
void enpu_tdr_fini(struct enpu_device *edev)
{
	u32 i;

	for (i = 0; i < edev->num_engines; i++)
		disable_delayed_work_sync(&edev->engines[i].watchdog);
}
