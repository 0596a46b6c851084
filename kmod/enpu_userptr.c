// SPDX-License-Identifier: GPL-2.0-only
/*
 * BOs that wrap memory of a process: pinned for their life and counted against RLIMIT_MEMLOCK.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <drm/drm_drv.h>
#include <drm/drm_gem.h>

#include "enpu_bo.h"
#include "enpu_drv.h"
#include "enpu_inject.h"

static int enpu_userptr_account(struct mm_struct *mm, unsigned long pages)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	if (atomic64_add_return(pages, &mm->pinned_vm) > limit && !capable(CAP_IPC_LOCK)) {
		atomic64_sub(pages, &mm->pinned_vm);
		return -ENOMEM;
	}
	return 0;
}

static enum dma_data_direction enpu_userptr_dir(struct enpu_bo *bo)
{
	return bo->read_only ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
}

/*
 * A page may be pinned by any number of BOs at once, so none of them owns it for the DMA API. The
 * device is coherent, so there is nothing to synchronise either.
 */
#define ENPU_USERPTR_DMA_ATTRS	DMA_ATTR_SKIP_CPU_SYNC

/* The pages stay pinned, as the limits have them. */
static void enpu_userptr_dma_unmap(struct enpu_dma *dma)
{
	struct enpu_bo *bo = container_of(dma, struct enpu_bo, dma);
	struct drm_device *drm = enpu_bo_gem(bo)->dev;

	dma_unmap_sgtable(drm->dev, &bo->sgt, enpu_userptr_dir(bo), ENPU_USERPTR_DMA_ATTRS);
	sg_free_table(&bo->sgt);
	atomic_dec(&to_enpu_device(drm)->live.dma);
}

/* Undoes as much as was done. */
static void enpu_userptr_release(struct enpu_bo *bo)
{
	struct drm_gem_object *obj = enpu_bo_gem(bo);
	size_t pages = enpu_bo_pages(bo);

	enpu_dma_remove(to_enpu_device(obj->dev), &bo->dma);
	if (bo->pinned)
		unpin_user_pages_dirty_lock(bo->pages, pages, !bo->read_only);
	kvfree(bo->pages);
	if (bo->mm) {
		atomic64_sub(pages, &bo->mm->pinned_vm);
		atomic_long_sub(pages, &to_enpu_device(obj->dev)->live.pinned_pages);
		mmdrop(bo->mm);
	}
}

static void enpu_userptr_free(struct drm_gem_object *obj)
{
	struct enpu_bo *bo = to_enpu_bo(obj);

	enpu_userptr_release(bo);
	enpu_bo_release(bo);
}

static const struct drm_gem_object_funcs enpu_userptr_funcs = {
	.free = enpu_userptr_free,
	.open = enpu_bo_account_open,
	.close = enpu_bo_account_close,
	.export = enpu_prime_export,
};

/* Pins all pages, or none. */
static int enpu_userptr_pin(struct enpu_bo *bo, u64 addr)
{
	unsigned int flags = FOLL_LONGTERM | (bo->read_only ? 0 : FOLL_WRITE);
	size_t pages = enpu_bo_pages(bo), done = 0;
	int ret = 0;

	while (done < pages) {
		ret = pin_user_pages_fast(addr + done * PAGE_SIZE,
					  min_t(size_t, pages - done, 1u << 18), flags,
					  bo->pages + done);
		if (ret <= 0)
			break;
		done += ret;
	}
	bo->pinned = done == pages;
	if (bo->pinned)
		return 0;
	unpin_user_pages(bo->pages, done);
	/* Memory of a device or a file that cannot be held for long. */
	if (ret == -EOPNOTSUPP || ret == -EINVAL)
		return -EOPNOTSUPP;
	return ret < 0 ? ret : -EFAULT;
}

/* Between drm_dev_enter() and drm_dev_exit(). */
static int enpu_userptr_dma_map(struct enpu_bo *bo)
{
	struct drm_gem_object *obj = enpu_bo_gem(bo);
	struct enpu_device *edev = to_enpu_device(obj->dev);
	int ret;

	ret = enpu_inject_fail(edev) ? -ENOMEM :
	      sg_alloc_table_from_pages_segment(&bo->sgt, bo->pages, enpu_bo_pages(bo), 0,
						obj->size, dma_get_max_seg_size(obj->dev->dev),
						GFP_KERNEL);
	if (ret)
		return ret;
	ret = dma_map_sgtable(obj->dev->dev, &bo->sgt, enpu_userptr_dir(bo),
			      ENPU_USERPTR_DMA_ATTRS);
	if (ret) {
		sg_free_table(&bo->sgt);
		return ret;
	}
	atomic_inc(&edev->live.dma);
	enpu_dma_add(edev, &bo->dma, enpu_userptr_dma_unmap);
	return 0;
}

static int enpu_userptr_populate(struct enpu_bo *bo, u64 addr)
{
	struct enpu_device *edev = to_enpu_device(enpu_bo_gem(bo)->dev);
	size_t pages = enpu_bo_pages(bo);
	int ret, idx;

	/* More cannot be pinned; the array of pages alone would take all memory. */
	if (pages > totalram_pages())
		return -ENOMEM;
	ret = enpu_userptr_account(current->mm, pages);
	if (ret)
		return ret;
	mmgrab(current->mm);
	bo->mm = current->mm;
	atomic_long_add(pages, &edev->live.pinned_pages);

	if (!enpu_inject_fail(edev))
		bo->pages = kvmalloc_array(pages, sizeof(*bo->pages), GFP_KERNEL_ACCOUNT);
	if (!bo->pages)
		return -ENOMEM;
	ret = enpu_inject_fail(edev) ? -EFAULT : enpu_userptr_pin(bo, addr);
	if (ret)
		return ret;
	if (!drm_dev_enter(&edev->drm, &idx))
		return -ENODEV;
	ret = enpu_userptr_dma_map(bo);
	drm_dev_exit(idx);
	return ret;
}

int enpu_bo_userptr_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_enpu_bo_userptr *args = data;
	struct enpu_bo *bo;
	u64 end;
	int ret;

	if (args->flags & ~DRM_ENPU_USERPTR_READ_ONLY || args->handle)
		return -EINVAL;
	if (!args->size || !PAGE_ALIGNED(args->addr | args->size) ||
	    check_add_overflow(args->addr, args->size, &end))
		return -EINVAL;
	if (args->addr != untagged_addr(args->addr) ||
	    !access_ok(u64_to_user_ptr(args->addr), args->size))
		return -EFAULT;

	bo = enpu_inject_fail(to_enpu_device(drm)) ? NULL :
						     kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);
	if (!bo)
		return -ENOMEM;
	bo->kind = ENPU_BO_USERPTR;
	bo->read_only = args->flags & DRM_ENPU_USERPTR_READ_ONLY;
	enpu_bo_gem(bo)->funcs = &enpu_userptr_funcs;
	drm_gem_private_object_init(drm, enpu_bo_gem(bo), args->size);
	enpu_bo_count(bo);

	ret = enpu_userptr_populate(bo, args->addr);
	if (!ret)
		ret = enpu_inject_fail(to_enpu_device(drm)) ? -ENOMEM :
		      drm_gem_handle_create(file, enpu_bo_gem(bo), &args->handle);
	enpu_bo_put(bo);
	return ret;
}
