// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device-local memory: blocks of BAR 4. Nothing is evicted: full is -ENOSPC, and the runtime
 * decides.
 */
#include <linux/io.h>
#include <linux/pci.h>
#include <drm/drm_drv.h>
#include <drm/drm_gem.h>
#include <drm/drm_managed.h>

#include "enpu_bo.h"
#include "enpu_device.h"
#include "enpu_inject.h"
#include "enpu_local.h"
#include "enpu_pm.h"

static void enpu_local_fini(struct drm_device *drm, void *data)
{
	drm_mm_takedown(&to_enpu_device(drm)->local_mm);
}

int enpu_local_init(struct enpu_device *edev)
{
	struct pci_dev *pdev = edev->pdev;
	u64 bar = pci_resource_len(pdev, ENPU_BAR_LOCAL);

	edev->local_bytes = enpu_read64(edev, ENPU_REG_LOCAL_MEM_SIZE);
	if (!edev->local_bytes || edev->local_bytes > bar ||
	    !IS_ALIGNED(edev->local_bytes, ENPU_LARGE_PAGE_SIZE))
		return dev_err_probe(&pdev->dev, -ENODEV,
				     "%#llx bytes of local memory in a BAR of %#llx\n",
				     edev->local_bytes, bar);
	edev->local_phys = pci_resource_start(pdev, ENPU_BAR_LOCAL);
	edev->local_io = devm_ioremap_wc(&pdev->dev, edev->local_phys, edev->local_bytes);
	if (!edev->local_io)
		return -ENOMEM;

	edev->local_free = edev->local_bytes;
	drm_mm_init(&edev->local_mm, 0, edev->local_bytes);
	return drmm_add_action_or_reset(&edev->drm, enpu_local_fini, NULL);
}

static void enpu_local_free(struct drm_gem_object *obj)
{
	struct enpu_device *edev = to_enpu_device(obj->dev);
	struct enpu_bo *bo = to_enpu_bo(obj);

	enpu_local_release(edev, &bo->node);
	enpu_bo_release(bo);
}

static vm_fault_t enpu_local_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct drm_gem_object *obj = vma->vm_private_data;
	struct enpu_device *edev = to_enpu_device(obj->dev);
	u64 offset = (u64)vmf->address - vma->vm_start;
	phys_addr_t phys;
	vm_fault_t ret;
	int idx;

	/* drm_gem_mmap() made vm_pgoff the offset in the object, and checked the length. */
	offset += (u64)vma->vm_pgoff << PAGE_SHIFT;
	if (offset >= obj->size)
		return VM_FAULT_SIGBUS;
	if (!drm_dev_enter(obj->dev, &idx))
		return VM_FAULT_SIGBUS;
	phys = edev->local_phys + to_enpu_bo(obj)->node.start + offset;
	ret = vmf_insert_pfn(vma, vmf->address, PHYS_PFN(phys));
	drm_dev_exit(idx);
	return ret;
}

/* A process that can reach local memory keeps the device awake. Another mapping is there. */
static void enpu_local_vm_open(struct vm_area_struct *vma)
{
	struct drm_gem_object *obj = vma->vm_private_data;

	enpu_pm_get_awake(to_enpu_device(obj->dev));
	drm_gem_vm_open(vma);
}

static void enpu_local_vm_close(struct vm_area_struct *vma)
{
	struct drm_gem_object *obj = vma->vm_private_data;

	enpu_pm_put(to_enpu_device(obj->dev));
	drm_gem_vm_close(vma);
}

static const struct vm_operations_struct enpu_local_vm_ops = {
	.fault = enpu_local_fault,
	.open = enpu_local_vm_open,
	.close = enpu_local_vm_close,
};

static int enpu_local_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	int ret;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	ret = enpu_pm_get(to_enpu_device(obj->dev));
	if (ret)
		return ret;
	vma->vm_pgoff -= drm_vma_node_start(&obj->vma_node);
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_page_prot = pgprot_writecombine(vm_get_page_prot(vma->vm_flags));
	return 0;
}

static const struct drm_gem_object_funcs enpu_local_funcs = {
	.free = enpu_local_free,
	.open = enpu_bo_account_open,
	.close = enpu_bo_account_close,
	.export = enpu_prime_export,
	.mmap = enpu_local_mmap,
	.vm_ops = &enpu_local_vm_ops,
};

/* @size as of enpu_local_round_up(). The memory is cleared before anybody can see the BO. */
struct enpu_bo *enpu_local_create(struct enpu_device *edev, u64 size)
{
	struct enpu_bo *bo;
	int ret, idx;

	bo = enpu_inject_fail(edev) ? NULL : kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	ret = enpu_inject_fail(edev) ? -ENOMEM : enpu_local_alloc(edev, &bo->node, size);
	if (ret) {
		kfree(bo);
		return ERR_PTR(ret);
	}
	bo->kind = ENPU_BO_LOCAL;
	enpu_bo_gem(bo)->funcs = &enpu_local_funcs;
	drm_gem_private_object_init(&edev->drm, enpu_bo_gem(bo), size);
	enpu_bo_count(bo);

	if (!drm_dev_enter(&edev->drm, &idx)) {
		enpu_bo_put(bo);
		return ERR_PTR(-ENODEV);
	}
	memset_io(edev->local_io + bo->node.start, 0, size);
	/* Write-combined stores must be out before another mapping or the device reads. */
	wmb();
	drm_dev_exit(idx);
	return bo;
}
