// SPDX-License-Identifier: GPL-2.0-only
/*
 * Resets, in three steps of force: one engine, the device, wedged. Jobs that have not begun run
 * again from their ring; a job that is stopped between packets resumes there; a job torn inside a
 * packet fails with -ESTALE.
 */
#include <linux/bitfield.h>
#include <linux/dma-fence.h>
#include <linux/iopoll.h>
#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "enpu_ctx.h"
#include "enpu_device.h"
#include "enpu_error.h"
#include "enpu_queue.h"
#include "enpu_reset.h"
#include "enpu_vm.h"

#define ENPU_ENGINE_RESET_TIMEOUT_US	(2 * USEC_PER_SEC)
#define ENPU_STOP_ALL_TIMEOUT_NS	(1 * NSEC_PER_SEC)
/* A reset that does not end is asked for once more before the device is given up. */
#define ENPU_DEVICE_RESET_TRIES		2

/*
 * Ends every job that is in hardware, and those that come. Under hw_lock; the hardware must not
 * run.
 */
void enpu_device_cancel_all(struct enpu_device *edev, int error)
{
	u32 i;

	for (i = 0; i < edev->num_queues; i++) {
		struct enpu_queue *queue = edev->queues[i];

		if (!queue)
			continue;
		queue->enabled = false;
		enpu_ctx_kill(queue->ctx, error);
		enpu_queue_harvest(queue);
		enpu_queue_cancel(queue, error);
	}
}

/* No reset helps. Without bus mastering the device reaches no memory, whatever it does. */
static void enpu_wedge(struct enpu_device *edev, bool gone)
{
	if (edev->wedged)
		return;
	if (gone)
		drm_err(&edev->drm, "the device is gone: its registers read as all ones\n");
	else
		drm_err(&edev->drm, "the device does not answer a reset; it is out of use until the bus resets it\n");
	pci_clear_master(edev->pdev);
	WRITE_ONCE(edev->wedged, true);
	edev->running = false;
	enpu_device_cancel_all(edev, -EIO);
	enpu_notify(edev, gone ? ENPU_STEP_GONE : ENPU_STEP_WEDGED, ENPU_NO_ENGINE);
}

/*
 * One queue before a device reset. Its job fails when it does not come to rest, and when it is the
 * one that hung: a device that stands still may well stop at a packet.
 */
static void enpu_queue_stop(struct enpu_queue *queue, u64 deadline_ns)
{
	bool stopped = !enpu_queue_wait_stopped(queue, deadline_ns);
	u64 fence;

	enpu_queue_harvest(queue);
	fence = enpu_queue_current_fence(queue);
	if (!stopped) {
		queue->head = queue->done;
		queue->resume = 0;
	}
	if (!stopped || enpu_queue_reset_errno(queue, fence) != -ESTALE)
		enpu_queue_fail_head(queue, fence, enpu_queue_reset_errno(queue, fence), NULL);
	queue->blame = 0;
}

/*
 * Brings all queues to rest between packets, as far as they do, and keeps what the device would
 * forget. Under hw_lock.
 */
void enpu_device_stop_locked(struct enpu_device *edev)
{
	u64 deadline = ktime_get_ns() + ENPU_STOP_ALL_TIMEOUT_NS;
	u32 i;

	lockdep_assert_held(&edev->hw_lock);
	enpu_errors_drain(edev);
	for (i = 0; i < edev->num_queues; i++)
		if (edev->queues[i])
			enpu_queue_ask_stop(edev->queues[i]);
	for (i = 0; i < edev->num_queues; i++)
		if (edev->queues[i] && edev->queues[i]->enabled)
			enpu_queue_stop(edev->queues[i], deadline);
	for (i = 0; i < edev->num_as; i++)
		if (edev->vms[i])
			enpu_vm_keep_counters(edev->vms[i]);
}

/* The reset itself. -ETIMEDOUT when it never ends, -ENODEV when the device is gone. */
static int enpu_device_reset_try(struct enpu_device *edev)
{
	int ret, i;

	/* Memory that is being unmapped stays in use until the reset is over. */
	guard(mutex)(&edev->tlb_lock);
	for (i = 0; i < ENPU_DEVICE_RESET_TRIES; i++) {
		ret = enpu_hw_reset(edev);
		if (!ret || ret == -ENODEV)
			return ret;
		atomic_inc(&edev->stats.failed_resets);
		dev_warn_ratelimited(edev->drm.dev, "the device does not leave reset\n");
	}
	return ret;
}

/*
 * Doorbells are rung again. A queue that is not started yet ignores them. Time at rest is no time
 * without progress.
 */
static void enpu_unpark_engines(struct enpu_device *edev)
{
	u32 i;

	for (i = 0; i < edev->num_engines; i++) {
		edev->engines[i].watch.since_ns = ktime_get_ns();
		spin_lock_irq(&edev->engines[i].lock);
		edev->engines[i].parked = false;
		spin_unlock_irq(&edev->engines[i].lock);
	}
}

/* Resets a stopped device, tells it again what it has forgotten, and lets the queues go on. */
int enpu_device_restart_locked(struct enpu_device *edev)
{
	u32 i;
	int ret;

	lockdep_assert_held(&edev->hw_lock);
	ret = enpu_device_reset_try(edev);
	if (ret) {
		enpu_wedge(edev, ret == -ENODEV);
		return ret;
	}
	for (i = 0; i < edev->num_as; i++)
		if (edev->vms[i])
			enpu_vm_program(edev->vms[i]);
	enpu_hw_enable(edev);
	enpu_unpark_engines(edev);
	for (i = 0; i < edev->num_queues; i++) {
		struct enpu_queue *queue = edev->queues[i];

		if (!queue || !queue->enabled)
			continue;
		enpu_queue_harvest(queue);
		if (READ_ONCE(queue->ctx->dead)) {
			queue->enabled = false;
			enpu_queue_cancel(queue, -ECANCELED);
		} else {
			enpu_queue_program(queue);
		}
	}
	edev->running = true;
	return 0;
}

/* Under hw_lock. On return the device runs, or is wedged. @reason is for the dump. */
void enpu_device_reset_locked(struct enpu_device *edev, enum enpu_dump_reason reason)
{
	lockdep_assert_held(&edev->hw_lock);
	if (!edev->running)
		return;
	if (enpu_device_gone(edev)) {
		enpu_coredump_take(edev, ENPU_DUMP_REASON_GONE, NULL, NULL, NULL);
		enpu_wedge(edev, true);
		return;
	}
	enpu_coredump_take(edev, reason, NULL, NULL, NULL);
	dev_notice_ratelimited(edev->drm.dev, "device reset\n");
	enpu_notify(edev, ENPU_STEP_DEVICE_RESET, ENPU_NO_ENGINE);
	atomic_inc(&edev->stats.device_resets);
	enpu_device_stop_locked(edev);
	enpu_device_restart_locked(edev);
}

/*
 * Drops the job that occupies an engine. @culprit is the queue to blame if it is the one (its
 * @blame is the errno), NULL when nobody is. Other engines go on. Falls back to a device reset.
 * @reason is for the dump. Under hw_lock.
 */
void enpu_engine_reset_locked(struct enpu_engine *engine, struct enpu_queue *culprit,
			      enum enpu_dump_reason reason)
{
	struct enpu_device *edev = engine->edev;
	u32 ctrl, i;
	int ret;

	lockdep_assert_held(&edev->hw_lock);
	if (!edev->running)
		return;
	enpu_coredump_take(edev, reason, engine, culprit, NULL);
	dev_notice_ratelimited(edev->drm.dev, "reset of engine %s\n", engine->name);
	enpu_notify(edev, ENPU_STEP_ENGINE_RESET, engine->index);
	atomic_inc(&edev->stats.engine_resets);
	enpu_write32(edev, ENPU_REG_ENGINE_CTRL(engine->index), ENPU_ENGINE_CTRL_RESET);
	ret = readl_poll_timeout(edev->regs + ENPU_REG_ENGINE_CTRL(engine->index), ctrl,
				 !(ctrl & ENPU_ENGINE_CTRL_RESET), 100,
				 ENPU_ENGINE_RESET_TIMEOUT_US);
	if (ret) {
		atomic_inc(&edev->stats.failed_resets);
		dev_warn_ratelimited(edev->drm.dev, "engine %s does not leave reset\n",
				     engine->name);
		enpu_device_reset_locked(edev, reason);
		return;
	}
	enpu_errors_drain(edev);
	for (i = 0; i < edev->num_queues; i++)
		if (edev->queues[i] && edev->queues[i]->engine == engine)
			enpu_queue_check_faulted(edev->queues[i]);
	if (culprit)
		culprit->blame = 0;
	/* Queues of dead contexts, and one that was torn without blame. */
	queue_work(edev->recovery_wq, &edev->error_work);
}

/* Resets that were asked for from outside; a hung job is to blame as in a timeout. */
void enpu_reset_work(struct work_struct *work)
{
	struct enpu_device *edev = container_of(work, struct enpu_device, reset_work);
	bool cookie = dma_fence_begin_signalling();
	unsigned int i;
	int idx;

	if (!drm_dev_enter(&edev->drm, &idx))
		goto out;
	mutex_lock(&edev->hw_lock);
	for (i = 0; i < edev->num_engines; i++)
		if (test_and_clear_bit(i, edev->reset_request))
			enpu_engine_reset_locked(&edev->engines[i], NULL,
						 ENPU_DUMP_REASON_REQUEST);
	if (test_and_clear_bit(ENPU_RESET_DEVICE, edev->reset_request))
		enpu_device_reset_locked(edev, ENPU_DUMP_REASON_REQUEST);
	mutex_unlock(&edev->hw_lock);
	drm_dev_exit(idx);
out:
	dma_fence_end_signalling(cookie);
}

/* @what: an engine's index or ENPU_RESET_DEVICE. Does not wait. */
void enpu_reset_request(struct enpu_device *edev, unsigned int what)
{
	set_bit(what, edev->reset_request);
	queue_work(edev->recovery_wq, &edev->reset_work);
}
