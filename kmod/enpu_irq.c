// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts: vector 0 for errors, vector 1 + n for completions of engine n. A vector that keeps
 * coming without bringing anything is masked, and its engine is polled for a while.
 */
#include <linux/dma-fence.h>
#include <linux/interrupt.h>
#include <linux/pci.h>
#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "enpu_device.h"
#include "enpu_inject.h"
#include "enpu_irq.h"
#include "enpu_queue.h"
#include "enpu_trace.h"
#include "enpu_uqueue.h"

/* A storm: so many interrupts for nothing in so short a time. */
#define ENPU_STORM_COUNT	32
#define ENPU_STORM_WINDOW	(HZ / 10)
/* How a masked vector is replaced, and for how long. */
#define ENPU_STORM_POLL_MS	5
#define ENPU_STORM_POLLS	40

static void enpu_irq_set_mask(struct enpu_device *edev, u32 set, u32 clear)
{
	unsigned long flags;

	spin_lock_irqsave(&edev->irq_lock, flags);
	edev->irq_enabled = (edev->irq_enabled & ~clear) | set;
	enpu_write32(edev, ENPU_REG_IRQ_ENABLE, edev->irq_enabled);
	spin_unlock_irqrestore(&edev->irq_lock, flags);
}

/* Under hw_lock. */
void enpu_irq_unmask_all(struct enpu_device *edev)
{
	enpu_irq_set_mask(edev, GENMASK(edev->num_engines, 0), 0);
}

/* Under hw_lock. */
void enpu_irq_mask_all(struct enpu_device *edev)
{
	enpu_irq_set_mask(edev, 0, U32_MAX);
}

/* Does what the handler of the vector does; whether there was something to do. */
static bool enpu_vector_look(struct enpu_vector *vector)
{
	struct enpu_device *edev = vector->edev;
	u32 count = 0;

	if (vector->index)
		count = enpu_engine_harvest(&edev->engines[vector->index - 1]);
	else
		count = enpu_read32(edev, ENPU_REG_ERR_COUNT);
	if (count && !vector->index)
		queue_work(edev->recovery_wq, &edev->error_work);
	trace_enpu_irq(vector->index, count);
	return count;
}

/* It may have come for a process that has stopped waiting. */
static bool enpu_vector_users_moved(struct enpu_vector *vector)
{
	struct enpu_engine *engine;
	struct enpu_queue *queue;
	unsigned long flags;
	bool moved = false;

	if (!vector->index)
		return false;
	engine = &vector->edev->engines[vector->index - 1];
	spin_lock_irqsave(&engine->lock, flags);
	list_for_each_entry(queue, &engine->queues, link)
		moved |= queue->user && enpu_uqueue_moved(queue);
	spin_unlock_irqrestore(&engine->lock, flags);
	return moved;
}

static void enpu_vector_poll(struct work_struct *work)
{
	struct enpu_vector *vector = container_of(work, struct enpu_vector, poll.work);
	struct enpu_device *edev = vector->edev;
	bool cookie = dma_fence_begin_signalling();
	int idx;

	if (!drm_dev_enter(&edev->drm, &idx))
		goto out;
	enpu_vector_look(vector);
	if (atomic_dec_if_positive(&vector->polls) > 0)
		queue_delayed_work(edev->recovery_wq, &vector->poll,
				   msecs_to_jiffies(ENPU_STORM_POLL_MS));
	else
		scoped_guard(mutex, &edev->hw_lock)
			if (edev->running)
				enpu_irq_set_mask(edev, BIT(vector->index), 0);
	drm_dev_exit(idx);
out:
	dma_fence_end_signalling(cookie);
}

/* In the handler: the vector came for nothing. */
static void enpu_vector_idle(struct enpu_vector *vector)
{
	struct enpu_device *edev = vector->edev;

	if (!vector->idle || time_after(jiffies, vector->window + ENPU_STORM_WINDOW)) {
		vector->window = jiffies;
		vector->idle = 0;
	}
	if (++vector->idle < ENPU_STORM_COUNT)
		return;
	vector->idle = 0;
	enpu_irq_set_mask(edev, 0, BIT(vector->index));
	atomic_inc(&edev->stats.irq_storms);
	enpu_notify(edev, ENPU_STEP_IRQ_STORM,
		    vector->index ? vector->index - 1 : ENPU_NO_ENGINE);
	/* Messages that were under way may find the work queued, and prolong it. */
	atomic_set(&vector->polls, ENPU_STORM_POLLS);
	queue_delayed_work(edev->recovery_wq, &vector->poll,
			   msecs_to_jiffies(ENPU_STORM_POLL_MS));
}

static irqreturn_t enpu_irq(int irq, void *data)
{
	struct enpu_vector *vector = data;

	/*
	 * Each assertion sends a message, also of a vector that is pending: that is for who unmasks
	 * it. So a completion does not pay for a register access, which leaves the guest.
	 */
	if (!vector->index)
		enpu_write32(vector->edev, ENPU_REG_IRQ_PENDING, BIT(vector->index));
	if (enpu_vector_look(vector) || enpu_vector_users_moved(vector))
		vector->idle = 0;
	else
		enpu_vector_idle(vector);
	return IRQ_HANDLED;
}

/* The device sends what it means by the number of the vector, so fewer than all do not do. */
int enpu_irq_init(struct enpu_device *edev)
{
	struct pci_dev *pdev = edev->pdev;
	u32 count = edev->num_engines + 1, i;
	int ret;

	ret = pci_alloc_irq_vectors(pdev, count, count, PCI_IRQ_MSIX);
	if (ret < 0)
		return dev_err_probe(&pdev->dev, ret, "no %u MSI-X vectors\n", count);

	spin_lock_init(&edev->irq_lock);
	for (i = 0; i < count; i++) {
		struct enpu_vector *vector = &edev->vectors[i];

		vector->edev = edev;
		vector->index = i;
		INIT_DELAYED_WORK(&vector->poll, enpu_vector_poll);
		ret = enpu_probe_step(edev) ?:
		      pci_request_irq(pdev, i, enpu_irq, NULL, vector, "%s",
				      i ? edev->engines[i - 1].name : "enpu-error");
		if (ret)
			goto free_irqs;
	}
	return 0;

free_irqs:
	while (i--)
		pci_free_irq(pdev, i, &edev->vectors[i]);
	pci_free_irq_vectors(pdev);
	return ret;
}

/* No handler and no poll runs any more when this returns. */
void enpu_irq_fini(struct enpu_device *edev)
{
	u32 i;

	for (i = 0; i <= edev->num_engines; i++) {
		pci_free_irq(edev->pdev, i, &edev->vectors[i]);
		disable_delayed_work_sync(&edev->vectors[i].poll);
	}
	pci_free_irq_vectors(edev->pdev);
}
