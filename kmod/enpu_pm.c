// SPDX-License-Identifier: GPL-2.0-only
/*
 * System sleep and resets of the function by the bus: the queues are brought to rest, and go on
 * where they were.
 */
#include <linux/pci.h>
#include <linux/pm.h>
#include <drm/drm_drv.h>

#include "enpu_drv.h"
#include "enpu_reset.h"

static void enpu_quiesce(struct enpu_device *edev)
{
	guard(mutex)(&edev->hw_lock);
	if (!edev->running)
		return;
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
	return 0;
}

DEFINE_SIMPLE_DEV_PM_OPS(enpu_pm, enpu_suspend, enpu_resume);

static void enpu_reset_prepare(struct pci_dev *pdev)
{
	enpu_quiesce(to_enpu_device((struct drm_device *)pci_get_drvdata(pdev)));
}

/*
 * A reset by the bus is the way out of the wedged state for those who come; what failed meanwhile
 * stays failed.
 */
static void enpu_reset_done(struct pci_dev *pdev)
{
	struct enpu_device *edev = to_enpu_device((struct drm_device *)pci_get_drvdata(pdev));

	pci_set_master(pdev);
	scoped_guard(mutex, &edev->hw_lock)
		WRITE_ONCE(edev->wedged, false);
	enpu_unquiesce(edev);
}

const struct pci_error_handlers enpu_pci_error_handlers = {
	.reset_prepare = enpu_reset_prepare,
	.reset_done = enpu_reset_done,
};
