/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interrupt vectors.
 */
#ifndef ENPU_IRQ_H
#define ENPU_IRQ_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct enpu_device;

/**
 * struct enpu_vector - an MSI-X vector: 0 for errors, 1 + n for completions of engine n
 * @edev: device
 * @index: its number
 * @window: jiffies when @idle began to count; of the handler
 * @idle: interrupts since then that brought nothing; of the handler
 * @polls: times that @poll has yet to look before the vector is let through again
 * @poll: looks for completions while the vector is masked
 */
struct enpu_vector {
	struct enpu_device *edev;
	u32 index;
	unsigned long window;
	u32 idle;
	atomic_t polls;
	struct delayed_work poll;
};

int enpu_irq_init(struct enpu_device *edev);
void enpu_irq_fini(struct enpu_device *edev);
void enpu_irq_unmask_all(struct enpu_device *edev);
void enpu_irq_mask_all(struct enpu_device *edev);

#endif
