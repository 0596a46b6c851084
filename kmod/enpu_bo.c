// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffer objects: creation, information, waiting, accounting. Kinds with files of their own:
 * enpu_local.c, enpu_userptr.c, enpu_prime.c.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/shmem_fs.h>
#include <drm/drm_drv.h>
#include <drm/drm_gem.h>
#include <drm/drm_utils.h>

#include "enpu_bo.h"
#include "enpu_drv.h"
#include "enpu_inject.h"
#include "enpu_local.h"
#include "enpu_vm.h"

/* Larger ones could never be mapped. */
#define ENPU_BO_MAX_BYTES	(ENPU_VA_END - ENPU_VA_START)
/* The shmem helper keeps an array of pages, of at most INT_MAX bytes. */
#define ENPU_HOST_MAX_BYTES	BIT_ULL(39)

/* The BO is complete: from now on it is freed by its last reference. */
void enpu_bo_count(struct enpu_bo *bo)
{
	if (bo->counted)
		return;
	bo->counted = true;
	atomic_inc(&to_enpu_device(enpu_bo_gem(bo)->dev)->live.bos);
}

void enpu_bo_uncount(struct enpu_bo *bo)
{
	if (bo->counted)
		atomic_dec(&to_enpu_device(enpu_bo_gem(bo)->dev)->live.bos);
}

static void enpu_bo_free(struct drm_gem_object *obj)
{
	struct enpu_bo *bo = to_enpu_bo(obj);
	struct drm_gem_object *vm_obj = bo->vm_obj;
	struct dma_buf *buf;

	enpu_bo_uncount(bo);
	enpu_dma_remove(to_enpu_device(obj->dev), &bo->dma);
	buf = bo->buf;
	/* The reservation of a private BO lives in vm_obj, that of an imported one in buf. */
	drm_gem_shmem_free(&bo->shmem);
	if (vm_obj)
		drm_gem_object_put(vm_obj);
	if (buf)
		dma_buf_put(buf);
}

/*
 * Fetches the pages of a host BO into its file, where the helpers find them at once. As that takes
 * the longer the more memory there is, it is done without any lock, and a signal ends it: the next
 * call goes on where this one was. Takes each page of the BO once, whatever the number of calls.
 */
int enpu_bo_fetch(struct enpu_bo *bo)
{
	struct address_space *mapping;
	struct folio *folio;
	pgoff_t next;

	if (bo->kind != ENPU_BO_HOST)
		return 0;
	mapping = enpu_bo_gem(bo)->filp->f_mapping;
	while ((next = READ_ONCE(bo->fetched)) < enpu_bo_pages(bo)) {
		folio = shmem_read_folio_gfp(mapping, next, mapping_gfp_mask(mapping));
		if (IS_ERR(folio))
			return PTR_ERR(folio);
		/* Of two that fetch at once, one finds what the other has fetched. */
		WRITE_ONCE(bo->fetched, folio_next_index(folio));
		folio_put(folio);
		if (signal_pending(current))
			return -ERESTARTSYS;
		cond_resched();
	}
	return 0;
}

static int enpu_shmem_mmap(struct drm_gem_object *obj, struct vm_area_struct *vma)
{
	/* The helper holds the reservation, which may be that of all private BOs. */
	int ret = vma->vm_flags & VM_SHARED ? enpu_bo_fetch(to_enpu_bo(obj)) : 0;
	int idx;

	if (ret)
		return ret == -ERESTARTSYS ? -ERESTARTNOINTR : ret;
	/* The helper asks whether it was imported, which is no longer known afterwards. */
	if (!drm_dev_enter(obj->dev, &idx))
		return -ENODEV;
	ret = drm_gem_shmem_object_mmap(obj, vma);
	drm_dev_exit(idx);
	return ret;
}

static const struct drm_gem_object_funcs enpu_shmem_funcs = {
	.free = enpu_bo_free,
	.open = enpu_bo_account_open,
	.close = enpu_bo_account_close,
	.export = enpu_prime_export,
	.print_info = drm_gem_shmem_object_print_info,
	.pin = drm_gem_shmem_object_pin,
	.unpin = drm_gem_shmem_object_unpin,
	.get_sg_table = drm_gem_shmem_object_get_sg_table,
	.vmap = drm_gem_shmem_object_vmap,
	.vunmap = drm_gem_shmem_object_vunmap,
	.mmap = enpu_shmem_mmap,
	.vm_ops = &drm_gem_shmem_vm_ops,
};

/* Called by the shmem helper, for imports too. */
struct drm_gem_object *enpu_gem_create_object(struct drm_device *drm, size_t size)
{
	struct enpu_bo *bo;

	bo = enpu_inject_fail(to_enpu_device(drm)) ? NULL :
						     kzalloc(sizeof(*bo), GFP_KERNEL_ACCOUNT);
	if (!bo)
		return ERR_PTR(-ENOMEM);
	bo->kind = ENPU_BO_IMPORTED;
	enpu_bo_gem(bo)->funcs = &enpu_shmem_funcs;
	return enpu_bo_gem(bo);
}

static struct enpu_bo *enpu_host_create(struct enpu_device *edev, u64 size)
{
	struct drm_gem_shmem_object *shmem;
	struct enpu_bo *bo;

	if (size > ENPU_HOST_MAX_BYTES || size >> PAGE_SHIFT > totalram_pages())
		return ERR_PTR(-ENOMEM);
	shmem = drm_gem_shmem_create(&edev->drm, size);
	/* What shmem calls a lack of space is one of memory for its inode. */
	if (shmem == ERR_PTR(-ENOSPC))
		return ERR_PTR(-ENOMEM);
	if (IS_ERR(shmem))
		return ERR_CAST(shmem);
	bo = to_enpu_bo(&shmem->base);
	bo->kind = ENPU_BO_HOST;
	enpu_bo_count(bo);
	return bo;
}

/* The BO of a handle with a reference, or NULL. */
struct enpu_bo *enpu_bo_lookup(struct drm_file *file, u32 handle)
{
	struct drm_gem_object *obj = drm_gem_object_lookup(file, handle);

	return obj ? to_enpu_bo(obj) : NULL;
}

void enpu_bo_put(struct enpu_bo *bo)
{
	drm_gem_object_put(enpu_bo_gem(bo));
}

/* The pages stay. */
static void enpu_host_unmap(struct enpu_dma *dma)
{
	struct enpu_bo *bo = container_of(dma, struct enpu_bo, dma);
	struct drm_device *drm = enpu_bo_gem(bo)->dev;
	struct sg_table *sgt = bo->shmem.sgt;

	bo->shmem.sgt = NULL;
	dma_unmap_sgtable(drm->dev, sgt, DMA_BIDIRECTIONAL, 0);
	sg_free_table(sgt);
	kfree(sgt);
	atomic_dec(&to_enpu_device(drm)->live.dma);
}

/*
 * DMA addresses of a BO that is not local; made at the first call, kept until it is freed or the
 * device goes. Between drm_dev_enter() and drm_dev_exit(). Sleeps.
 */
struct sg_table *enpu_bo_sgt(struct enpu_bo *bo)
{
	struct enpu_device *edev = to_enpu_device(enpu_bo_gem(bo)->dev);
	struct sg_table *sgt;

	if (bo->kind == ENPU_BO_USERPTR)
		return &bo->sgt;
	if (bo->kind == ENPU_BO_IMPORTED)
		return bo->shmem.sgt ?: ERR_PTR(-ENXIO);
	sgt = drm_gem_shmem_get_pages_sgt(&bo->shmem);
	if (!IS_ERR(sgt) && enpu_dma_add(edev, &bo->dma, enpu_host_unmap))
		atomic_inc(&edev->live.dma);
	return sgt;
}

/* Frees what every kind that is not the shmem helper's has. */
void enpu_bo_release(struct enpu_bo *bo)
{
	struct drm_gem_object *vm_obj = bo->vm_obj;

	enpu_bo_uncount(bo);
	drm_gem_object_release(enpu_bo_gem(bo));
	if (vm_obj)
		drm_gem_object_put(vm_obj);
	kfree(bo);
}

static atomic64_t *enpu_bo_account(struct drm_gem_object *obj, struct drm_file *file)
{
	struct enpu_vm *vm = to_enpu_file(file)->vm;

	return to_enpu_bo(obj)->kind == ENPU_BO_LOCAL ? &vm->local_bytes : &vm->host_bytes;
}

/* A handle is made, if the file has room for one more. */
int enpu_bo_account_open(struct drm_gem_object *obj, struct drm_file *file)
{
	struct enpu_vm *vm = to_enpu_file(file)->vm;

	if (!atomic_add_unless(&vm->handles, 1, ENPU_MAX_BOS))
		return -ENOSPC;
	atomic64_add(obj->size, enpu_bo_account(obj, file));
	return 0;
}

void enpu_bo_account_close(struct drm_gem_object *obj, struct drm_file *file)
{
	atomic64_sub(obj->size, enpu_bo_account(obj, file));
	atomic_dec(&to_enpu_file(file)->vm->handles);
}

/* A private BO uses the reservation of the VM; nobody else can see the BO yet. */
static void enpu_bo_make_private(struct enpu_bo *bo, struct enpu_vm *vm)
{
	drm_gem_object_get(vm->resv_obj);
	bo->vm_obj = vm->resv_obj;
	enpu_bo_gem(bo)->resv = vm->resv_obj->resv;
}

int enpu_bo_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct enpu_device *edev = to_enpu_device(drm);
	struct drm_enpu_bo_create *args = data;
	u32 placement = args->flags & (DRM_ENPU_BO_HOST | DRM_ENPU_BO_LOCAL);
	struct enpu_bo *bo;
	int ret;

	if (args->flags & ~(DRM_ENPU_BO_HOST | DRM_ENPU_BO_LOCAL | DRM_ENPU_BO_PRIVATE) ||
	    args->handle || !args->size || args->size > ENPU_BO_MAX_BYTES)
		return -EINVAL;
	if (placement != DRM_ENPU_BO_HOST && placement != DRM_ENPU_BO_LOCAL)
		return -EINVAL;

	if (placement == DRM_ENPU_BO_LOCAL)
		bo = enpu_local_create(edev, enpu_local_round_up(args->size));
	else
		bo = enpu_host_create(edev, PAGE_ALIGN(args->size));
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	if (args->flags & DRM_ENPU_BO_PRIVATE)
		enpu_bo_make_private(bo, to_enpu_file(file)->vm);

	args->size = enpu_bo_gem(bo)->size;
	ret = enpu_inject_fail(edev) ? -ENOMEM :
	      drm_gem_handle_create(file, enpu_bo_gem(bo), &args->handle);
	enpu_bo_put(bo);
	return ret;
}

static u32 enpu_bo_flags(struct enpu_bo *bo)
{
	u32 flags = bo->vm_obj ? DRM_ENPU_BO_PRIVATE : 0;

	if (bo->kind == ENPU_BO_LOCAL)
		flags |= DRM_ENPU_BO_LOCAL;
	else if (bo->kind != ENPU_BO_IMPORTED)
		flags |= DRM_ENPU_BO_HOST;
	return flags;
}

int enpu_bo_info_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_enpu_bo_info *args = data;
	struct enpu_bo *bo;
	int ret = 0;

	if (args->flags || args->size || args->mmap_offset)
		return -EINVAL;
	bo = enpu_bo_lookup(file, args->handle);
	if (!bo)
		return -ENOENT;

	args->flags = enpu_bo_flags(bo);
	args->size = enpu_bo_gem(bo)->size;
	if (bo->kind == ENPU_BO_HOST || bo->kind == ENPU_BO_LOCAL) {
		ret = enpu_inject_fail(to_enpu_device(drm)) ? -ENOMEM :
		      drm_gem_create_mmap_offset(enpu_bo_gem(bo));
		if (!ret)
			args->mmap_offset = drm_vma_node_offset_addr(&enpu_bo_gem(bo)->vma_node);
	}
	enpu_bo_put(bo);
	return ret;
}

int enpu_bo_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_enpu_bo_wait *args = data;
	enum dma_resv_usage usage;
	struct enpu_bo *bo;
	long ret;

	if (args->flags & ~DRM_ENPU_BO_WAIT_WRITE)
		return -EINVAL;
	bo = enpu_bo_lookup(file, args->handle);
	if (!bo)
		return -ENOENT;

	/* Jobs do not name private BOs: every job of the VM may use them. */
	usage = bo->vm_obj ? DMA_RESV_USAGE_BOOKKEEP :
		dma_resv_usage_rw(args->flags & DRM_ENPU_BO_WAIT_WRITE);
	ret = dma_resv_wait_timeout(enpu_bo_gem(bo)->resv, usage, true,
				    drm_timeout_abs_to_jiffies(args->timeout_ns));
	enpu_bo_put(bo);
	if (!ret)
		return -ETIME;
	return ret < 0 ? ret : 0;
}
