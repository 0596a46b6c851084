// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sleep, of the system or of an idle device alone, and resets of the function by the bus: the
 * queues are brought to rest, and go on where they were.
 *
 * The device is awake while an ioctl of ours runs, while a job is not freed, and while local memory
 * or a doorbell is mapped by a process or another device. Closing a file needs no awake device: a
 * queue or an address space that ends meanwhile is not told to the device again.
 */
#include <linux/pci.h>
#include <linux/pm.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>
#include <drm/drm_drv.h>

#include "enpu_doorbell.h"
#include "enpu_drv.h"
#include "enpu_pm.h"
#include "enpu_reset.h"

/* An idle device goes to sleep after this; the usual delay between two inferences is shorter. */
#define ENPU_AUTOSUSPEND_MS	2000

/* From now on no doorbell is rung; what is written to the rings waits. */
static void enpu_park_engines(struct enpu_device *edev)
{
	u32 i;

	for (i = 0; i < edev->num_engines; i++) {
		spin_lock_irq(&edev->engines[i].lock);
		edev->engines[i].parked = true;
		spin_unlock_irq(&edev->engines[i].lock);
		/* Pairs with enpu_queue_ring(): its store is behind us. */
		while (atomic_read_acquire(&edev->engines[i].ringing))
			cpu_relax();
	}
}

static void enpu_quiesce(struct enpu_device *edev)
{
	guard(mutex)(&edev->hw_lock);
	if (!edev->running)
		return;
	enpu_park_engines(edev);
	enpu_device_stop_locked(edev);
	enpu_hw_disable(edev);
	edev->running = false;
}

static int enpu_unquiesce(struct enpu_device *edev)
{
	guard(mutex)(&edev->hw_lock);
	if (enpu_is_wedged(edev))
		return -EIO;
	return enpu_device_restart_locked(edev);
}

static int enpu_suspend(struct device *dev)
{
	struct enpu_device *edev = to_enpu_device((struct drm_device *)dev_get_drvdata(dev));

	enpu_doorbells_close(edev);
	/* The recovery queue keeps running, but finds a device that does not. */
	enpu_quiesce(edev);
	flush_workqueue(edev->recovery_wq);
	return 0;
}

static int enpu_resume(struct device *dev)
{
	struct enpu_device *edev = to_enpu_device((struct drm_device *)dev_get_drvdata(dev));

	pci_set_master(edev->pdev);
	enpu_unquiesce(edev);
	enpu_doorbells_open(edev);
	return 0;
}

/*
 * Nobody needs the device: there is no job. One that does not answer stays awake, as the PCI core
 * would save what its configuration space reads.
 */
static int enpu_runtime_suspend(struct device *dev)
{
	struct enpu_device *edev = to_enpu_device((struct drm_device *)dev_get_drvdata(dev));

	if (enpu_is_wedged(edev) || enpu_device_gone(edev))
		return -EBUSY;
	enpu_quiesce(edev);
	return 0;
}

/* A device that does not come back is wedged, which every ioctl tells; power management goes on. */
static int enpu_runtime_resume(struct device *dev)
{
	enpu_unquiesce(to_enpu_device((struct drm_device *)dev_get_drvdata(dev)));
	return 0;
}

const struct dev_pm_ops enpu_pm = {
	SYSTEM_SLEEP_PM_OPS(enpu_suspend, enpu_resume)
	RUNTIME_PM_OPS(enpu_runtime_suspend, enpu_runtime_resume, NULL)
};

/*
 * The PCI core saves the configuration space around a reset. If the device did not answer just then
 * it has saved all ones, and written them back to a device that has come back meanwhile.
 */
static void enpu_mend_config(struct enpu_device *edev)
{
	struct pci_dev *pdev = edev->pdev;
	u32 bar;

	pci_read_config_dword(pdev, PCI_BASE_ADDRESS_0 + 4 * ENPU_BAR_REGS, &bar);
	if ((bar & PCI_BASE_ADDRESS_MEM_MASK) ==
	    (lower_32_bits(pci_bus_address(pdev, ENPU_BAR_REGS)) & PCI_BASE_ADDRESS_MEM_MASK))
		return;
	if (!pci_load_saved_state(pdev, edev->config))
		pci_restore_state(pdev);
}

/* The PCI core has given the driver an awake device with a reference. */
void enpu_pm_start(struct enpu_device *edev)
{
	struct device *dev = edev->drm.dev;

	/* Without it a device that was away during a reset stays away until it is bound anew. */
	pci_save_state(edev->pdev);
	edev->config = pci_store_saved_state(edev->pdev);
	pm_runtime_set_autosuspend_delay(dev, ENPU_AUTOSUSPEND_MS);
	pm_runtime_use_autosuspend(dev);
	pm_runtime_allow(dev);
	enpu_pm_put(edev);
}

/* Undoes enpu_pm_start(). The PCI core has woken the device. */
void enpu_pm_stop(struct enpu_device *edev)
{
	struct device *dev = edev->drm.dev;

	pm_runtime_get_noresume(dev);
	pm_runtime_forbid(dev);
	pm_runtime_dont_use_autosuspend(dev);
	kfree(edev->config);
}

/* Wakes the device and keeps it awake. Sleeps; takes hw_lock. 0 or the errno of an ioctl. */
int enpu_pm_get(struct enpu_device *edev)
{
	if (pm_runtime_resume_and_get(edev->drm.dev) >= 0)
		return 0;
	return drm_dev_is_unplugged(&edev->drm) ? -ENODEV : -EIO;
}

/* One more reference, where the caller has one. Any context. */
void enpu_pm_get_awake(struct enpu_device *edev)
{
	pm_runtime_get_noresume(edev->drm.dev);
}

/* Any context. */
void enpu_pm_put(struct enpu_device *edev)
{
	pm_runtime_mark_last_busy(edev->drm.dev);
	pm_runtime_put_autosuspend(edev->drm.dev);
}

static void enpu_reset_prepare(struct pci_dev *pdev)
{
	struct enpu_device *edev = to_enpu_device((struct drm_device *)pci_get_drvdata(pdev));

	enpu_doorbells_close(edev);
	enpu_quiesce(edev);
}

/*
 * A reset by the bus is the way out of the wedged state for those who come; what failed meanwhile
 * stays failed.
 */
static void enpu_reset_done(struct pci_dev *pdev)
{
	struct enpu_device *edev = to_enpu_device((struct drm_device *)pci_get_drvdata(pdev));
	bool wedged;

	enpu_mend_config(edev);
	pci_set_master(pdev);
	scoped_guard(mutex, &edev->hw_lock) {
		wedged = edev->wedged;
		WRITE_ONCE(edev->wedged, false);
	}
	if (!enpu_unquiesce(edev) && wedged)
		enpu_notify(edev, ENPU_STEP_RECOVERED, ENPU_NO_ENGINE);
	enpu_doorbells_open(edev);
}

const struct pci_error_handlers enpu_pci_error_handlers = {
	.reset_prepare = enpu_reset_prepare,
	.reset_done = enpu_reset_done,
};
