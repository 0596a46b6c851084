// SPDX-License-Identifier: GPL-2.0-only
/*
 * The list of what is mapped for DMA.
 *
 * edev.dma_lock is held while something is unmapped, by its owner or because the device goes: who
 * comes second finds it done, and waits until it is. It is inside vm.lock and
 * drm_device.object_name_lock, outside the reservations.
 */
#include "enpu_dma.h"

/* It has just been mapped, unless it was so already; whether it is new. Sleeps. */
bool enpu_dma_add(struct enpu_device *edev, struct enpu_dma *dma,
		  void (*unmap)(struct enpu_dma *dma))
{
	guard(mutex)(&edev->dma_lock);
	if (dma->unmap)
		return false;
	dma->unmap = unmap;
	list_add_tail(&dma->link, &edev->dma);
	return true;
}

static void enpu_dma_unmap(struct enpu_dma *dma)
{
	list_del(&dma->link);
	dma->unmap(dma);
	dma->unmap = NULL;
}

/* Its owner gives it up. Nothing happens when it is not mapped (any more). Sleeps. */
void enpu_dma_remove(struct enpu_device *edev, struct enpu_dma *dma)
{
	guard(mutex)(&edev->dma_lock);
	if (dma->unmap)
		enpu_dma_unmap(dma);
}

/* The device has been unplugged and stopped: it can reach no memory. Neither may it be able to. */
void enpu_dma_remove_all(struct enpu_device *edev)
{
	struct enpu_dma *dma, *next;

	/* The core looks under this lock at how a buffer was imported. */
	guard(mutex)(&edev->drm.object_name_lock);
	guard(mutex)(&edev->dma_lock);
	list_for_each_entry_safe(dma, next, &edev->dma, link) {
		enpu_dma_unmap(dma);
		cond_resched();
	}
}
