// SPDX-License-Identifier: GPL-2.0-only
/*
 * Identification, capabilities, and the parts of the hardware that belong to no other object.
 */
#include <linux/bitfield.h>
#include <linux/dma-mapping.h>
#include <linux/iopoll.h>
#include <linux/timekeeping.h>
#include <drm/drm_managed.h>
#include <drm/drm_print.h>

#include "enpu_compat.h"
#include "enpu_device.h"
#include "enpu_error.h"
#include "enpu_inject.h"
#include "enpu_job.h"
#include "enpu_local.h"
#include "enpu_reset.h"
#include "enpu_tdr.h"

/* A reset waits for one tile of every engine, in an emulator on a busy host. */
#define ENPU_RESET_TIMEOUT_US	(3 * USEC_PER_SEC)
#define ENPU_TLB_TIMEOUT_US	(5 * USEC_PER_SEC)

static int enpu_identify(struct enpu_device *edev)
{
	u32 id = enpu_read32(edev, ENPU_REG_ID);

	if (id != ENPU_MAGIC)
		return dev_err_probe(edev->drm.dev, -ENODEV,
				     "ID register reads %#x, expected %#x\n", id, ENPU_MAGIC);

	edev->hw_version = enpu_read32(edev, ENPU_REG_VERSION);
	if (FIELD_GET(ENPU_VERSION_MAJOR, edev->hw_version) != ENPU_HW_VERSION_MAJOR)
		return dev_err_probe(edev->drm.dev, -ENODEV,
				     "hardware version %u.%u, this driver knows %u.x\n",
				     FIELD_GET(ENPU_VERSION_MAJOR, edev->hw_version),
				     FIELD_GET(ENPU_VERSION_MINOR, edev->hw_version),
				     ENPU_HW_VERSION_MAJOR);
	return 0;
}

static void enpu_read_query_caps(struct enpu_device *edev)
{
	struct enpu_caps *caps = &edev->caps;
	int i;

	caps->threads = FIELD_GET(ENPU_CAP_ENGINES_THREADS,
				  enpu_read32(edev, ENPU_REG_CAP_ENGINES));
	caps->max_tensor = enpu_read64(edev, ENPU_REG_CAP_MAX_TENSOR);
	caps->max_work = enpu_read64(edev, ENPU_REG_CAP_MAX_WORK);
	caps->opcodes = enpu_read64(edev, ENPU_REG_CAP_OPCODES);
	for (i = 0; i < ENPU_MAX_OPCODES; i++)
		caps->dtypes[i] = enpu_read32(edev, ENPU_REG_CAP_OP_DTYPES(i));
	edev->clock_ns = enpu_read64(edev, ENPU_REG_TIMESTAMP) - ktime_get_ns();
}

/* Capabilities come from the device, so they are bounded by what the driver has room for. */
static int enpu_read_caps(struct enpu_device *edev)
{
	u32 engines = enpu_read32(edev, ENPU_REG_CAP_ENGINES);
	u32 limits = enpu_read32(edev, ENPU_REG_CAP_LIMITS);
	u32 misc = enpu_read32(edev, ENPU_REG_CAP_MISC);
	u32 copy = FIELD_GET(ENPU_CAP_ENGINES_COPY, engines);

	edev->features = enpu_read32(edev, ENPU_REG_CAP_FEATURES);
	edev->num_compute = FIELD_GET(ENPU_CAP_ENGINES_CORES, engines);
	edev->num_engines = edev->num_compute + copy;
	edev->num_queues = min_t(u32, FIELD_GET(ENPU_CAP_LIMITS_QUEUES, limits), ENPU_MAX_QUEUES);
	edev->num_as = min_t(u32, FIELD_GET(ENPU_CAP_LIMITS_AS, limits), ENPU_MAX_AS);
	edev->max_ring_log2 = min_t(u32, FIELD_GET(ENPU_CAP_MISC_RING_LOG2, misc),
				    ENPU_MAX_RING_LOG2);
	edev->max_command = min_t(u32, enpu_read32(edev, ENPU_REG_CAP_MAX_COMMAND),
				  ENPU_MAX_COMMAND_BYTES);

	/* Vector 0 is for errors, and the interrupt registers have a bit for each vector. */
	if (!edev->num_compute || !copy || edev->num_engines >= ENPU_MAX_VECTORS)
		return dev_err_probe(edev->drm.dev, -ENODEV, "%u compute and %u copy engines\n",
				     edev->num_compute, copy);
	if (!edev->num_queues || !edev->num_as)
		return dev_err_probe(edev->drm.dev, -ENODEV, "%u queues, %u address spaces\n",
				     edev->num_queues, edev->num_as);
	if (edev->max_ring_log2 < ENPU_RING_LOG2 ||
	    FIELD_GET(ENPU_CAP_MISC_VA_BITS, misc) < ENPU_VA_BITS ||
	    FIELD_GET(ENPU_CAP_MISC_VECTORS, misc) < edev->num_engines + 1)
		return dev_err_probe(edev->drm.dev, -ENODEV,
				     "ring, address width or vectors too small (CAP_MISC %#x)\n",
				     misc);
	enpu_read_query_caps(edev);
	return 0;
}

static int enpu_map_bars(struct enpu_device *edev)
{
	struct pci_dev *pdev = edev->pdev;
	static const struct {
		int bar;
		resource_size_t size;
	} need[] = {
		{ ENPU_BAR_REGS, ENPU_BAR_REGS_SIZE },
		{ ENPU_BAR_DOORBELL, ENPU_BAR_DOORBELL_SIZE },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(need); i++) {
		if (pci_resource_len(pdev, need[i].bar) < need[i].size)
			return dev_err_probe(&pdev->dev, -ENODEV,
					     "BAR %d: %#llx bytes, needs %#llx\n", need[i].bar,
					     (u64)pci_resource_len(pdev, need[i].bar),
					     (u64)need[i].size);
	}
	edev->regs = pcim_iomap_region(pdev, ENPU_BAR_REGS, "enpu");
	if (IS_ERR(edev->regs))
		return PTR_ERR(edev->regs);
	edev->doorbells = pcim_iomap_region(pdev, ENPU_BAR_DOORBELL, "enpu");
	if (IS_ERR(edev->doorbells))
		return PTR_ERR(edev->doorbells);
	return 0;
}

static int enpu_set_dma_mask(struct enpu_device *edev)
{
	struct device *dev = &edev->pdev->dev;
	int ret;

	ret = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(52));
	if (ret)
		ret = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(48));
	if (ret)
		return dev_err_probe(dev, ret, "no usable DMA mask\n");
	dma_set_max_seg_size(dev, UINT_MAX);
	return 0;
}

/*
 * Resets the device to its power-on state; when it returns 0, no worker of it touches memory.
 * Needs hw_lock or exclusive access.
 */
int enpu_hw_reset(struct enpu_device *edev)
{
	u32 status;
	int ret;

	enpu_write32(edev, ENPU_REG_CTRL, ENPU_CTRL_RESET);
	ret = readl_poll_timeout(edev->regs + ENPU_REG_STATUS, status,
				 (status & ENPU_STATUS_READY) && !(status & ENPU_STATUS_RESETTING),
				 1000, ENPU_RESET_TIMEOUT_US);
	if (status == U32_MAX)
		return -ENODEV;
	return ret;
}

/* Lets the engines run and the vectors through. */
void enpu_hw_enable(struct enpu_device *edev)
{
	enpu_write32(edev, ENPU_REG_IRQ_COALESCE, 0);
	enpu_write32(edev, ENPU_REG_IRQ_PENDING, U32_MAX);
	enpu_irq_unmask_all(edev);
	enpu_write32(edev, ENPU_REG_CTRL, ENPU_CTRL_ENABLE);
}

void enpu_hw_disable(struct enpu_device *edev)
{
	enpu_irq_mask_all(edev);
	enpu_write32(edev, ENPU_REG_CTRL, 0);
}

/*
 * Returns once no engine uses an old translation of the address space, accesses in flight included.
 * -ETIMEDOUT means that the device may still reach what was unmapped: the caller must reset it.
 * Sleeps.
 */
int enpu_tlb_invalidate(struct enpu_device *edev, u32 as_id)
{
	u32 seq, done;

	guard(mutex)(&edev->tlb_lock);
	/* At rest it reaches no memory, and forgets everything before it runs again. */
	if (!READ_ONCE(edev->running))
		return 0;
	enpu_write32(edev, ENPU_REG_TLB_INVALIDATE, FIELD_PREP(ENPU_TLB_INVALIDATE_AS, as_id));
	seq = enpu_read32(edev, ENPU_REG_TLB_SEQ);
	return readl_poll_timeout(edev->regs + ENPU_REG_TLB_DONE, done, (s32)(done - seq) >= 0, 20,
				  ENPU_TLB_TIMEOUT_US);
}

static void enpu_engines_fini(struct drm_device *drm, void *data)
{
	struct enpu_device *edev = to_enpu_device(drm);
	u32 i;

	/* Killed jobs wait for foreign fences, and are freed by a worker of the scheduler. */
	if (!wait_event_timeout(edev->jobs_wait, !atomic_read(&edev->live_jobs), 10 * HZ))
		drm_err(drm, "%d jobs still wait for foreign fences\n",
			atomic_read(&edev->live_jobs));
	flush_work(&edev->free_work);
	for (i = 0; i < edev->num_engines; i++)
		if (edev->engines[i].sched.ops)
			drm_sched_fini(&edev->engines[i].sched);
}

int enpu_engines_init(struct enpu_device *edev)
{
	u32 i;
	int ret;

	edev->engines = drmm_kcalloc(&edev->drm, edev->num_engines, sizeof(*edev->engines),
				     GFP_KERNEL);
	if (!edev->engines)
		return -ENOMEM;
	ret = drmm_add_action_or_reset(&edev->drm, enpu_engines_fini, NULL);
	if (ret)
		return ret;

	for (i = 0; i < edev->num_engines; i++) {
		struct enpu_engine *engine = &edev->engines[i];
		bool copy = i >= edev->num_compute;

		engine->edev = edev;
		engine->index = i;
		engine->is_copy = copy;
		engine->watch.queue = U32_MAX;
		enpu_tdr_init(engine);
		snprintf(engine->name, sizeof(engine->name), "enpu-%s%u", copy ? "copy" : "compute",
			 copy ? i - edev->num_compute : i);
		mutex_init(&engine->entity_lock);
		spin_lock_init(&engine->lock);
		INIT_LIST_HEAD(&engine->queues);
		ret = enpu_sched_init(&engine->sched, &enpu_sched_ops, ENPU_CREDITS,
				      msecs_to_jiffies(ENPU_TICK_MS), edev->recovery_wq,
				      engine->name, edev->drm.dev);
		if (ret) {
			engine->sched.ops = NULL;
			return ret;
		}
	}
	return 0;
}

static void enpu_destroy_wq(struct drm_device *drm, void *wq)
{
	destroy_workqueue(wq);
}

static int enpu_software_init(struct enpu_device *edev)
{
	struct drm_device *drm = &edev->drm;
	int ret;

	ret = drmm_mutex_init(drm, &edev->hw_lock);
	if (!ret)
		ret = drmm_mutex_init(drm, &edev->tlb_lock);
	if (!ret)
		ret = drmm_mutex_init(drm, &edev->door_lock);
	if (!ret)
		ret = drmm_mutex_init(drm, &edev->dma_lock);
	if (!ret)
		ret = drmm_mutex_init(drm, &edev->local_lock);
	if (ret)
		return ret;
	INIT_LIST_HEAD(&edev->dma);
	init_waitqueue_head(&edev->jobs_wait);
	init_llist_head(&edev->free_jobs);
	INIT_WORK(&edev->free_work, enpu_job_free_work);
	INIT_WORK(&edev->error_work, enpu_error_work);
	INIT_WORK(&edev->reset_work, enpu_reset_work);
	enpu_notifier_init(edev);

	edev->recovery_wq = alloc_ordered_workqueue("enpu-recovery", WQ_MEM_RECLAIM);
	if (!edev->recovery_wq)
		return -ENOMEM;
	return drmm_add_action_or_reset(drm, enpu_destroy_wq, edev->recovery_wq);
}

/* Whoever had the device before may have left it in a state that only the bus ends. */
static int enpu_first_reset(struct enpu_device *edev)
{
	struct pci_dev *pdev = edev->pdev;
	int ret;

	pci_set_master(pdev);
	ret = enpu_hw_reset(edev);

	if (ret == -ETIMEDOUT) {
		dev_warn(&pdev->dev, "the device does not leave reset; the function is reset by the bus\n");
		pci_save_state(pdev);
		ret = pcie_reset_flr(pdev, PCI_RESET_DO_RESET);
		pci_restore_state(pdev);
		ret = ret ?: enpu_hw_reset(edev);
	}
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "the device does not leave reset\n");
	return 0;
}

/* Everything up to a running, idle device without interrupts. Each step may fail in a test. */
int enpu_device_init(struct enpu_device *edev)
{
	static int (*const steps[])(struct enpu_device *edev) = {
		enpu_software_init, enpu_coredump_init, enpu_map_bars,	  enpu_identify,
		enpu_read_caps,	    enpu_set_dma_mask,	enpu_first_reset, enpu_local_init,
		enpu_engines_init,
	};
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		ret = enpu_probe_step(edev) ?: steps[i](edev);
		if (ret)
			return ret;
	}
	return 0;
}
