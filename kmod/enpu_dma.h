/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is mapped for DMA. Memory may stay as long as a file is open; that the device can reach it
 * ends with the driver's hold on the device.
 *
 * Whoever maps something does so between drm_dev_enter() and drm_dev_exit(), and uses what a
 * mapping is made of (scatterlists, page tables, rings) there only. So when the device has been
 * unplugged, nothing but the unmapping itself touches it.
 */
#ifndef ENPU_DMA_H
#define ENPU_DMA_H

#include <linux/dma-mapping.h>
#include <linux/list.h>

#include "enpu_device.h"

/**
 * struct enpu_dma - something that is mapped for DMA; zeroed while it is not
 * @link: in the device's list
 * @unmap: takes it from the device, under dma_lock; NULL when it is not mapped
 */
struct enpu_dma {
	struct list_head link;
	void (*unmap)(struct enpu_dma *dma);
};

bool enpu_dma_add(struct enpu_device *edev, struct enpu_dma *dma,
		  void (*unmap)(struct enpu_dma *dma));
void enpu_dma_remove(struct enpu_device *edev, struct enpu_dma *dma);
void enpu_dma_remove_all(struct enpu_device *edev);

/* Zeroed coherent memory of at least a page, or NULL. Sleeps. */
static inline void *enpu_dma_alloc(struct enpu_device *edev, size_t bytes, dma_addr_t *bus)
{
	void *memory = dma_alloc_coherent(edev->drm.dev, bytes, bus, GFP_KERNEL_ACCOUNT);

	if (memory)
		atomic_inc(&edev->live.dma);
	return memory;
}

static inline void enpu_dma_free(struct enpu_device *edev, size_t bytes, void *memory,
				 dma_addr_t bus)
{
	dma_free_coherent(edev->drm.dev, bytes, memory, bus);
	atomic_dec(&edev->live.dma);
}

#endif
