// SPDX-License-Identifier: GPL-2.0-only
/*
 * Driver of the enpu neural processing unit: probe, remove, files and the ioctl table.
 */
#include <linux/module.h>
#include <linux/pci.h>
#include <drm/drm_accel.h>
#include <drm/drm_drv.h>
#include <drm/drm_gem_shmem_helper.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_print.h>

#include "enpu_bo.h"
#include "enpu_ctx.h"
#include "enpu_dma.h"
#include "enpu_drv.h"
#include "enpu_inject.h"
#include "enpu_pm.h"
#include "enpu_reset.h"
#include "enpu_tdr.h"
#include "enpu_uqueue.h"
#include "enpu_vm.h"

static int enpu_open(struct drm_device *drm, struct drm_file *file)
{
	struct enpu_device *edev = to_enpu_device(drm);
	struct enpu_file *efile;

	efile = enpu_inject_fail(edev) ? NULL : kzalloc(sizeof(*efile), GFP_KERNEL_ACCOUNT);
	if (!efile)
		return -ENOMEM;
	efile->vm = enpu_vm_create(edev, file);
	if (IS_ERR(efile->vm)) {
		int ret = PTR_ERR(efile->vm);

		kfree(efile);
		return ret;
	}
	xa_init_flags(&efile->contexts, XA_FLAGS_ALLOC1);
	xa_init_flags(&efile->uqueues, XA_FLAGS_ALLOC1);
	atomic_inc(&edev->live.files);
	file->driver_priv = efile;
	return 0;
}

static void enpu_postclose(struct drm_device *drm, struct drm_file *file)
{
	struct enpu_file *efile = to_enpu_file(file);

	enpu_uqueue_close_all(efile);
	enpu_ctx_close_all(efile);
	enpu_vm_put(efile->vm);
	kfree(efile);
	atomic_dec(&to_enpu_device(drm)->live.files);
}

static const struct drm_ioctl_desc enpu_ioctls[] = {
	DRM_IOCTL_DEF_DRV(ENPU_QUERY, enpu_query_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_BO_CREATE, enpu_bo_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_BO_USERPTR, enpu_bo_userptr_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_BO_INFO, enpu_bo_info_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_BO_WAIT, enpu_bo_wait_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_VM_MAP, enpu_vm_map_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_VM_UNMAP, enpu_vm_unmap_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_CTX_CREATE, enpu_ctx_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_CTX_DESTROY, enpu_ctx_destroy_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_CTX_STATUS, enpu_ctx_status_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_SUBMIT, enpu_submit_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_QUEUE_CREATE, enpu_queue_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_QUEUE_DESTROY, enpu_queue_destroy_ioctl, 0),
	DRM_IOCTL_DEF_DRV(ENPU_QUEUE_WAIT, enpu_queue_wait_ioctl, 0),
};

/*
 * Our ioctls keep the device awake, and are refused while it is wedged. Those of the DRM core free
 * and wait, which needs no device.
 */
static long enpu_call(struct file *filp, unsigned int cmd, unsigned long arg,
		      long (*call)(struct file *filp, unsigned int cmd, unsigned long arg))
{
	struct drm_file *file = filp->private_data;
	struct enpu_device *edev = to_enpu_device(file->minor->dev);
	unsigned int nr = _IOC_NR(cmd);
	long ret;

	if (nr < DRM_COMMAND_BASE || nr >= DRM_COMMAND_END)
		return call(filp, cmd, arg);
	if (drm_dev_is_unplugged(&edev->drm))
		return -ENODEV;
	ret = enpu_pm_get(edev);
	if (ret)
		return ret;
	ret = enpu_is_wedged(edev) ? -EIO : call(filp, cmd, arg);
	enpu_pm_put(edev);
	return ret;
}

static long enpu_unlocked_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return enpu_call(filp, cmd, arg, drm_ioctl);
}

#ifdef CONFIG_COMPAT
static long enpu_compat_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return enpu_call(filp, cmd, arg, drm_compat_ioctl);
}
#endif

/* DRM_ACCEL_FOPS with our ioctl entry and fdinfo. */
static const struct file_operations enpu_fops = {
	.owner = THIS_MODULE,
	.open = accel_open,
	.release = drm_release,
	.unlocked_ioctl = enpu_unlocked_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = enpu_compat_ioctl,
#endif
	.poll = drm_poll,
	.read = drm_read,
	.llseek = noop_llseek,
	.mmap = drm_gem_mmap,
	.show_fdinfo = drm_show_fdinfo,
	.fop_flags = FOP_UNSIGNED_OFFSET,
};

static const struct drm_driver enpu_driver = {
	.driver_features = DRIVER_COMPUTE_ACCEL | DRIVER_GEM | DRIVER_SYNCOBJ |
			   DRIVER_SYNCOBJ_TIMELINE,
	.open = enpu_open,
	.postclose = enpu_postclose,
	.gem_create_object = enpu_gem_create_object,
	.gem_prime_import = enpu_prime_import,
	.gem_prime_import_sg_table = drm_gem_shmem_prime_import_sg_table,
	.show_fdinfo = enpu_show_fdinfo,
	.ioctls = enpu_ioctls,
	.num_ioctls = ARRAY_SIZE(enpu_ioctls),
	.fops = &enpu_fops,
	.name = ENPU_DRIVER_NAME,
	.desc = "enpu neural processing unit",
	.major = ENPU_UAPI_MAJOR,
	.minor = ENPU_UAPI_MINOR,
};

static int enpu_start(struct enpu_device *edev)
{
	int ret;

	ret = enpu_irq_init(edev);
	if (ret)
		return ret;
	scoped_guard(mutex, &edev->hw_lock) {
		enpu_hw_enable(edev);
		edev->running = true;
		edev->doors_open = true;
	}
	return 0;
}

/*
 * No interrupt, no recovery and no access of the device to memory after this. The function may be
 * gone already.
 */
static void enpu_stop(struct enpu_device *edev)
{
	scoped_guard(mutex, &edev->hw_lock) {
		edev->running = false;
		if (!enpu_device_gone(edev)) {
			enpu_hw_disable(edev);
			enpu_hw_reset(edev);
		}
		pci_clear_master(edev->pdev);
	}
	enpu_irq_fini(edev);
	enpu_tdr_fini(edev);
	disable_work_sync(&edev->error_work);
	disable_work_sync(&edev->reset_work);
	/* After those that use them. */
	enpu_coredump_fini(edev);
	enpu_notifier_fini(edev);
	scoped_guard(mutex, &edev->hw_lock)
		enpu_device_cancel_all(edev, -ENODEV);
}

static int enpu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct enpu_device *edev;
	int ret;

	edev = devm_drm_dev_alloc(&pdev->dev, &enpu_driver, struct enpu_device, drm);
	if (IS_ERR(edev))
		return PTR_ERR(edev);
	edev->pdev = pdev;
	pci_set_drvdata(pdev, &edev->drm);

	ret = enpu_probe_step(edev) ?: pcim_enable_device(pdev);
	if (!ret)
		ret = enpu_device_init(edev);
	if (!ret)
		ret = enpu_probe_step(edev) ?: enpu_start(edev);
	if (ret)
		return ret;
	ret = enpu_probe_step(edev) ?: drm_dev_register(&edev->drm, 0);
	if (ret) {
		enpu_stop(edev);
		return ret;
	}
	enpu_debugfs_init(edev);
	enpu_hwmon_init(edev);
	enpu_pm_start(edev);
	drm_info(&edev->drm, "%u compute and %u copy engines, %llu MiB local memory\n",
		 edev->num_compute, edev->num_engines - edev->num_compute, edev->local_bytes >> 20);
	return 0;
}

static void enpu_remove(struct pci_dev *pdev)
{
	struct drm_device *drm = pci_get_drvdata(pdev);
	struct enpu_device *edev = to_enpu_device(drm);

	/* First: whoever is in an ioctl leaves, mappings go, and nobody comes in. */
	drm_dev_unplug(drm);
	enpu_pm_stop(edev);
	enpu_stop(edev);
	enpu_dma_remove_all(edev);
	drm_WARN(drm, atomic_read(&edev->live.dma), "%d DMA mappings outlive the device\n",
		 atomic_read(&edev->live.dma));
}

/* A kexec kernel must not be written to by jobs of this one. */
static void enpu_shutdown(struct pci_dev *pdev)
{
	pci_clear_master(pdev);
}

static const struct pci_device_id enpu_pci_ids[] = {
	{ PCI_DEVICE(ENPU_PCI_VENDOR, ENPU_PCI_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, enpu_pci_ids);

static struct pci_driver enpu_pci_driver = {
	.name = ENPU_DRIVER_NAME,
	.id_table = enpu_pci_ids,
	.probe = enpu_probe,
	.remove = enpu_remove,
	.shutdown = enpu_shutdown,
	.driver.pm = pm_ptr(&enpu_pm),
	.dev_groups = enpu_sysfs_groups,
	.err_handler = &enpu_pci_error_handlers,
};
module_pci_driver(enpu_pci_driver);

MODULE_DESCRIPTION("enpu neural processing unit");
MODULE_LICENSE("GPL");
