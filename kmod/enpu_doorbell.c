// SPDX-License-Identifier: GPL-2.0-only
/*
 * Doorbell pages: mapped into a process, kept away from it while a store must not reach the device.
 *
 * edev.door_lock orders what is mapped against what is taken away. It is outside hw_lock and never
 * taken in the path of fences, as mapping a page allocates and taking one away may wait for those
 * who watch the memory of the process.
 */
#include <linux/mm.h>
#include <drm/drm_drv.h>

#include "enpu_device.h"
#include "enpu_doorbell.h"
#include "enpu_inject.h"
#include "enpu_pm.h"
#include "enpu_uqueue.h"

static struct enpu_doorbell *to_enpu_doorbell(struct drm_gem_object *obj)
{
	return container_of(obj, struct enpu_doorbell, obj);
}

static void enpu_doorbell_free(struct drm_gem_object *obj)
{
	struct enpu_doorbell *door = to_enpu_doorbell(obj);

	if (door->file)
		drm_vma_node_revoke(&obj->vma_node, door->file);
	drm_gem_object_release(obj);
	__free_page(door->instead);
	enpu_uqueue_free(container_of(door, struct enpu_uqueue, door));
}

static vm_fault_t enpu_doorbell_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct enpu_doorbell *door = to_enpu_doorbell(vma->vm_private_data);
	struct enpu_device *edev = to_enpu_device(door->obj.dev);
	phys_addr_t bar;
	vm_fault_t ret;
	int idx;

	mutex_lock(&edev->door_lock);
	if (drm_dev_enter(&edev->drm, &idx)) {
		if (edev->doors_open && !READ_ONCE(door->shut)) {
			bar = pci_resource_start(edev->pdev, ENPU_BAR_DOORBELL);
			ret = vmf_insert_pfn(vma, vmf->address,
					     PHYS_PFN(bar + door->id * ENPU_DOORBELL_STRIDE));
			drm_dev_exit(idx);
			mutex_unlock(&edev->door_lock);
			return ret;
		}
		drm_dev_exit(idx);
	}
	ret = vmf_insert_pfn_prot(vma, vmf->address, page_to_pfn(door->instead),
				  vm_get_page_prot(vma->vm_flags));
	mutex_unlock(&edev->door_lock);
	return ret;
}

/* A process that can ring keeps the device awake. Another mapping is there. */
static void enpu_doorbell_vm_open(struct vm_area_struct *vma)
{
	struct drm_gem_object *obj = vma->vm_private_data;

	enpu_pm_get_awake(to_enpu_device(obj->dev));
	drm_gem_vm_open(vma);
}

static void enpu_doorbell_vm_close(struct vm_area_struct *vma)
{
	struct drm_gem_object *obj = vma->vm_private_data;

	enpu_pm_put(to_enpu_device(obj->dev));
	drm_gem_vm_close(vma);
}

static const struct vm_operations_struct enpu_doorbell_vm_ops = {
	.fault = enpu_doorbell_fault,
	.open = enpu_doorbell_vm_open,
	.close = enpu_doorbell_vm_close,
};

static int enpu_doorbell_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	int ret;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	ret = enpu_pm_get(to_enpu_device(obj->dev));
	if (ret)
		return ret;
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_page_prot = pgprot_noncached(vm_get_page_prot(vma->vm_flags));
	return 0;
}

static const struct drm_gem_object_funcs enpu_doorbell_funcs = {
	.free = enpu_doorbell_free,
	.mmap = enpu_doorbell_mmap,
	.vm_ops = &enpu_doorbell_vm_ops,
};

/* No process reaches the device's page any more when this returns, and none will. Sleeps. */
void enpu_doorbell_shut(struct enpu_doorbell *door)
{
	struct enpu_device *edev = to_enpu_device(door->obj.dev);

	WRITE_ONCE(door->shut, true);
	guard(mutex)(&edev->door_lock);
	drm_vma_node_unmap(&door->obj.vma_node, edev->drm.anon_inode->i_mapping);
}

static void enpu_doorbell_zap(struct work_struct *work)
{
	enpu_doorbell_shut(container_of(work, struct enpu_doorbell, zap));
}

/* The same, a little later. Any context; the owner cancels @zap before it goes. */
void enpu_doorbell_shut_later(struct enpu_doorbell *door)
{
	WRITE_ONCE(door->shut, true);
	schedule_work(&door->zap);
}

/*
 * One reference is the caller's; the last one frees the queue around it. -ENOMEM: nothing is left.
 */
int enpu_doorbell_init(struct enpu_device *edev, struct enpu_doorbell *door)
{
	door->instead = enpu_inject_fail(edev) ? NULL :
			alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!door->instead)
		return -ENOMEM;
	door->obj.funcs = &enpu_doorbell_funcs;
	drm_gem_private_object_init(&edev->drm, &door->obj, ENPU_DOORBELL_STRIDE);
	INIT_WORK(&door->zap, enpu_doorbell_zap);
	return 0;
}

/* Lets a file map the page; where. */
int enpu_doorbell_allow(struct enpu_doorbell *door, struct drm_file *file, u64 *offset)
{
	int ret;

	if (enpu_inject_fail(to_enpu_device(door->obj.dev)))
		return -ENOMEM;
	ret = drm_gem_create_mmap_offset(&door->obj);
	if (!ret)
		ret = drm_vma_node_allow(&door->obj.vma_node, file);
	if (ret)
		return ret;
	door->file = file;
	*offset = drm_vma_node_offset_addr(&door->obj.vma_node);
	return 0;
}

static void enpu_doorbells_set(struct enpu_device *edev, bool open)
{
	guard(mutex)(&edev->door_lock);
	edev->doors_open = open;
	/* Other mappings of the node go too, and come back with the next access. */
	unmap_mapping_range(edev->drm.anon_inode->i_mapping, 0, 0, 1);
}

/* Stores to doorbells do not reach the device from here on. Sleeps; outside hw_lock. */
void enpu_doorbells_close(struct enpu_device *edev)
{
	enpu_doorbells_set(edev, false);
}

/* They do again; what was rung for meanwhile is looked at. Sleeps; outside hw_lock. */
void enpu_doorbells_open(struct enpu_device *edev)
{
	u32 i;

	enpu_doorbells_set(edev, true);
	guard(mutex)(&edev->hw_lock);
	for (i = 0; i < edev->num_queues && edev->running; i++)
		if (edev->queues[i] && edev->queues[i]->user)
			enpu_write32(edev, ENPU_REG_QUEUE_KICK(i), 1);
}
