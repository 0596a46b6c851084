// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts: vector 0 for errors, vector 1 + n for completions of engine n.
 */
#include <linux/interrupt.h>
#include <linux/pci.h>

#include "enpu_device.h"
#include "enpu_queue.h"
#include "enpu_trace.h"

static irqreturn_t enpu_error_irq(int irq, void *data)
{
	struct enpu_device *edev = data;

	trace_enpu_irq(0, 0);
	enpu_write32(edev, ENPU_REG_IRQ_PENDING, BIT(0));
	queue_work(edev->recovery_wq, &edev->error_work);
	return IRQ_HANDLED;
}

static irqreturn_t enpu_engine_irq(int irq, void *data)
{
	struct enpu_engine *engine = data;
	u32 vector = engine->index + 1;

	/* Cleared first: a completion after this raises the vector again. */
	enpu_write32(engine->edev, ENPU_REG_IRQ_PENDING, BIT(vector));
	trace_enpu_irq(vector, enpu_engine_harvest(engine));
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

	ret = pci_request_irq(pdev, 0, enpu_error_irq, NULL, edev, "enpu-error");
	if (ret)
		goto free_vectors;
	for (i = 0; i < edev->num_engines; i++) {
		ret = pci_request_irq(pdev, i + 1, enpu_engine_irq, NULL, &edev->engines[i], "%s",
				      edev->engines[i].name);
		if (ret)
			goto free_irqs;
	}
	return 0;

free_irqs:
	while (i--)
		pci_free_irq(pdev, i + 1, &edev->engines[i]);
	pci_free_irq(pdev, 0, edev);
free_vectors:
	pci_free_irq_vectors(pdev);
	return ret;
}

/* No handler runs any more when this returns. */
void enpu_irq_fini(struct enpu_device *edev)
{
	u32 i;

	for (i = 0; i < edev->num_engines; i++)
		pci_free_irq(edev->pdev, i + 1, &edev->engines[i]);
	pci_free_irq(edev->pdev, 0, edev);
	pci_free_irq_vectors(edev->pdev);
}
