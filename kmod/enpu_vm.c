// SPDX-License-Identifier: GPL-2.0-only
/*
 * Address spaces: VAs come from user space; overlap, range and rights are checked here, page tables
 * follow eagerly.
 */
#include <linux/dma-resv.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <drm/drm_drv.h>
#include <drm/drm_print.h>
#include <drm/drm_utils.h>

#include "enpu_bo.h"
#include "enpu_drv.h"
#include "enpu_inject.h"
#include "enpu_mmu.h"
#include "enpu_pte.h"
#include "enpu_reset.h"
#include "enpu_trace.h"
#include "enpu_vm.h"

static void enpu_resv_free(struct drm_gem_object *obj)
{
	drm_gem_object_release(obj);
	kfree(obj);
}

static const struct drm_gem_object_funcs enpu_resv_funcs = {
	.free = enpu_resv_free,
};

/* An object that is nothing but a reservation. */
static struct drm_gem_object *enpu_resv_create(struct drm_device *drm)
{
	struct drm_gem_object *obj;

	obj = enpu_inject_fail(to_enpu_device(drm)) ? NULL :
						      kzalloc(sizeof(*obj), GFP_KERNEL_ACCOUNT);
	if (obj) {
		obj->funcs = &enpu_resv_funcs;
		drm_gem_private_object_init(drm, obj, PAGE_SIZE);
	}
	return obj;
}

/* All tables go. */
static void enpu_vm_free_tables(struct enpu_dma *dma)
{
	struct enpu_vm *vm = container_of(dma, struct enpu_vm, dma);

	enpu_pt_destroy(vm->edev, vm->root);
	vm->root = NULL;
}

static int enpu_vm_init_tables(struct enpu_vm *vm)
{
	struct enpu_device *edev = vm->edev;
	int idx;

	if (!drm_dev_enter(&edev->drm, &idx))
		return -ENODEV;
	vm->root = enpu_pt_create_root(edev);
	if (vm->root)
		enpu_dma_add(edev, &vm->dma, enpu_vm_free_tables);
	drm_dev_exit(idx);
	return vm->root ? 0 : -ENOMEM;
}

struct enpu_vm *enpu_vm_create(struct enpu_device *edev, struct drm_file *file)
{
	struct enpu_vm *vm;
	int ret = -ENOMEM;

	vm = enpu_inject_fail(edev) ? NULL : kzalloc(sizeof(*vm), GFP_KERNEL_ACCOUNT);
	if (!vm)
		return ERR_PTR(-ENOMEM);
	vm->resv_obj = enpu_resv_create(&edev->drm);
	if (!vm->resv_obj)
		goto free_vm;
	vm->edev = edev;
	ret = enpu_vm_init_tables(vm);
	if (ret)
		goto put_resv;
	kref_init(&vm->ref);
	mutex_init(&vm->lock);
	vm->as_id = ENPU_AS_NONE;
	vm->pid = task_tgid_nr(current);
	vm->client_id = file->client_id;
	get_task_comm(vm->comm, current);
	atomic_inc(&edev->live.vms);
	drm_mm_init(&vm->mappings, ENPU_VA_START, ENPU_VA_END - ENPU_VA_START);
	return vm;

put_resv:
	drm_gem_object_put(vm->resv_obj);
free_vm:
	kfree(vm);
	return ERR_PTR(ret);
}

struct enpu_vm *enpu_vm_get(struct enpu_vm *vm)
{
	kref_get(&vm->ref);
	return vm;
}

/* Tells the hardware about the root table; under hw_lock, while the device runs. */
void enpu_vm_program(struct enpu_vm *vm)
{
	enpu_write64(vm->edev, ENPU_REG_AS_ROOT(vm->as_id),
		     (vm->root->bus & ENPU_AS_ROOT_ADDR) | ENPU_AS_ROOT_VALID);
}

/* Adds what the device has counted since it last started to @words; under hw_lock. */
void enpu_vm_count(struct enpu_vm *vm, u64 *words)
{
	struct enpu_device *edev = vm->edev;
	u32 i;

	lockdep_assert_held(&edev->hw_lock);
	if (!edev->running || vm->as_id == ENPU_AS_NONE || enpu_device_gone(edev))
		return;
	for (i = 0; i < ENPU_COUNTER_WORDS; i++)
		words[i] += enpu_read64(edev, ENPU_REG_COUNTER(vm->as_id, i));
}

/* Before the device forgets what it has counted. */
void enpu_vm_keep_counters(struct enpu_vm *vm)
{
	enpu_vm_count(vm, vm->counted);
	/* What is kept is not counted again should the device not be reset after all. */
	enpu_write32(vm->edev, ENPU_REG_AS_CTRL(vm->as_id), ENPU_AS_CTRL_CLEAR);
}

/*
 * Gives the VM its number in hardware, at the first need. -ENOSPC when none is left, -ENODEV,
 * -EIO.
 */
int enpu_vm_activate(struct enpu_vm *vm)
{
	struct enpu_device *edev = vm->edev;
	int ret = 0, idx;
	u32 id;

	if (READ_ONCE(vm->as_id) != ENPU_AS_NONE)
		return 0;
	if (!drm_dev_enter(&edev->drm, &idx))
		return -ENODEV;
	mutex_lock(&edev->hw_lock);
	if (vm->as_id != ENPU_AS_NONE)
		goto unlock;
	for (id = 0; id < edev->num_as && edev->vms[id]; id++)
		;
	if (enpu_is_wedged(edev)) {
		ret = -EIO;
	} else if (id == edev->num_as) {
		ret = -ENOSPC;
	} else {
		edev->vms[id] = vm;
		WRITE_ONCE(vm->as_id, id);
		/* A device at rest is told when it is started again. */
		if (edev->running) {
			enpu_write32(edev, ENPU_REG_AS_CTRL(id), ENPU_AS_CTRL_CLEAR);
			enpu_vm_program(vm);
		}
	}
unlock:
	mutex_unlock(&edev->hw_lock);
	drm_dev_exit(idx);
	return ret;
}

/*
 * Makes sure that the device uses nothing that is no longer in the page tables, by force if need
 * be.
 */
static void enpu_vm_invalidate(struct enpu_vm *vm)
{
	struct enpu_device *edev = vm->edev;
	int idx;

	if (vm->as_id == ENPU_AS_NONE || !drm_dev_enter(&edev->drm, &idx))
		return;
	if (enpu_tlb_invalidate(edev, vm->as_id)) {
		drm_err(&edev->drm, "TLB invalidation of address space %u does not end\n",
			vm->as_id);
		guard(mutex)(&edev->hw_lock);
		enpu_device_reset_locked(edev, ENPU_DUMP_REASON_TLB);
	}
	drm_dev_exit(idx);
}

static void enpu_vm_deactivate(struct enpu_vm *vm)
{
	struct enpu_device *edev = vm->edev;
	int idx;

	if (vm->as_id == ENPU_AS_NONE)
		return;
	mutex_lock(&edev->hw_lock);
	if (drm_dev_enter(&edev->drm, &idx)) {
		if (edev->running)
			enpu_write64(edev, ENPU_REG_AS_ROOT(vm->as_id), 0);
		if (enpu_tlb_invalidate(edev, vm->as_id)) {
			drm_err(&edev->drm, "TLB invalidation of address space %u does not end\n",
				vm->as_id);
			enpu_device_reset_locked(edev, ENPU_DUMP_REASON_TLB);
		}
		drm_dev_exit(idx);
	}
	/* Not before: the next owner of the number must not meet old translations. */
	edev->vms[vm->as_id] = NULL;
	mutex_unlock(&edev->hw_lock);
}

/* The mapping is in the VM. Under its lock, or when nobody else has it any more. */
static void enpu_mapping_free(struct enpu_vm *vm, struct enpu_mapping *map)
{
	vm->mapping_count--;
	atomic_dec(&vm->edev->live.mappings);
	drm_mm_remove_node(&map->node);
	enpu_bo_put(map->bo);
	kfree(map);
}

static void enpu_vm_release(struct kref *ref)
{
	struct enpu_vm *vm = container_of(ref, struct enpu_vm, ref);
	struct drm_mm_node *node, *next;

	enpu_vm_deactivate(vm);
	drm_mm_for_each_node_safe(node, next, &vm->mappings)
		enpu_mapping_free(vm, container_of(node, struct enpu_mapping, node));
	drm_mm_takedown(&vm->mappings);
	enpu_dma_remove(vm->edev, &vm->dma);
	drm_gem_object_put(vm->resv_obj);
	mutex_destroy(&vm->lock);
	atomic_dec(&vm->edev->live.vms);
	kfree(vm);
}

void enpu_vm_put(struct enpu_vm *vm)
{
	kref_put(&vm->ref, enpu_vm_release);
}

/* Writes the page-table entries of a part of a BO that lies in several pieces. */
static int enpu_vm_map_sgt(struct enpu_vm *vm, struct enpu_mapping *map, struct sg_table *sgt,
			   u64 flags)
{
	u64 va = map->node.start, left = map->node.size, skip = map->offset;
	struct scatterlist *sg;
	int i, ret;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		u64 addr = sg_dma_address(sg), bytes = sg_dma_len(sg);

		if (skip >= bytes) {
			skip -= bytes;
			continue;
		}
		addr += skip;
		bytes = min(bytes - skip, left);
		skip = 0;
		/* A foreign exporter may have pieces that our pages cannot describe. */
		if (!IS_ALIGNED(addr | bytes, ENPU_PAGE_SIZE) || addr & ~ENPU_PTE_ADDR)
			return -EINVAL;
		ret = enpu_pt_map(vm->edev, vm->root, va, addr, bytes, flags);
		if (ret)
			return ret;
		va += bytes;
		left -= bytes;
		if (!left)
			return 0;
	}
	return -EINVAL;
}

static int enpu_vm_write_ptes(struct enpu_vm *vm, struct enpu_mapping *map, struct sg_table *sgt)
{
	struct enpu_bo *bo = map->bo;
	u64 flags = 0;

	if (map->flags & DRM_ENPU_MAP_READ)
		flags |= ENPU_PTE_READ;
	if (map->flags & DRM_ENPU_MAP_WRITE)
		flags |= ENPU_PTE_WRITE;
	if (bo->kind == ENPU_BO_LOCAL)
		return enpu_pt_map(vm->edev, vm->root, map->node.start,
				   bo->node.start + map->offset, map->node.size,
				   flags | ENPU_PTE_LOCAL);
	return enpu_vm_map_sgt(vm, map, sgt, flags);
}

/* Between drm_dev_enter() and drm_dev_exit(). */
static int enpu_vm_insert(struct enpu_vm *vm, struct enpu_mapping *map, struct sg_table *sgt)
{
	LIST_HEAD(emptied);
	int ret;

	if (vm->mapping_count >= ENPU_MAX_MAPPINGS)
		return -ENOSPC;
	ret = drm_mm_reserve_node(&vm->mappings, &map->node);
	if (ret)
		return ret == -ENOSPC ? -EEXIST : ret;
	ret = enpu_vm_write_ptes(vm, map, sgt);
	/* All entries are in memory before a job that uses them can be. */
	dma_wmb();
	if (ret) {
		enpu_pt_clear(vm->root, map->node.start, map->node.size, &emptied);
		enpu_vm_invalidate(vm);
		enpu_pt_free_list(vm->edev, &emptied);
		drm_mm_remove_node(&map->node);
		return ret;
	}
	vm->mapping_count++;
	atomic_inc(&vm->edev->live.mappings);
	return 0;
}

static int enpu_vm_map_check(const struct drm_enpu_vm_map *args, struct enpu_bo *bo)
{
	if (!args->flags || args->flags & ~(DRM_ENPU_MAP_READ | DRM_ENPU_MAP_WRITE))
		return -EINVAL;
	if (!enpu_va_range_valid(args->va, args->size) ||
	    !enpu_sub_range_valid(args->bo_offset, args->size, enpu_bo_gem(bo)->size))
		return -EINVAL;
	if (bo->read_only && args->flags & DRM_ENPU_MAP_WRITE)
		return -EACCES;
	return 0;
}

static int enpu_vm_map_bo(struct enpu_vm *vm, struct enpu_mapping *map)
{
	struct sg_table *sgt = NULL;
	int ret = 0, idx;

	if (!drm_dev_enter(&vm->edev->drm, &idx))
		return -ENODEV;
	if (map->bo->kind != ENPU_BO_LOCAL) {
		sgt = enpu_inject_fail(vm->edev) ? ERR_PTR(-ENOMEM) : enpu_bo_sgt(map->bo);
		ret = PTR_ERR_OR_ZERO(sgt);
	}
	if (!ret) {
		mutex_lock(&vm->lock);
		ret = enpu_vm_insert(vm, map, sgt);
		mutex_unlock(&vm->lock);
	}
	drm_dev_exit(idx);
	return ret;
}

int enpu_vm_map_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct enpu_vm *vm = to_enpu_file(file)->vm;
	struct drm_enpu_vm_map *args = data;
	struct enpu_mapping *map;
	struct enpu_bo *bo;
	int ret;

	bo = enpu_bo_lookup(file, args->handle);
	if (!bo)
		return -ENOENT;
	/* What takes long, to find and clear memory, comes before anybody has to wait for us. */
	ret = enpu_vm_map_check(args, bo) ?: enpu_vm_activate(vm) ?: enpu_bo_fetch(bo);
	if (ret)
		goto put_bo;
	map = enpu_inject_fail(vm->edev) ? NULL : kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	if (!map) {
		ret = -ENOMEM;
		goto put_bo;
	}
	map->node.start = args->va;
	map->node.size = args->size;
	map->bo = bo;
	map->offset = args->bo_offset;
	map->flags = args->flags;

	ret = enpu_vm_map_bo(vm, map);
	if (!ret) {
		trace_enpu_vm_map(vm->as_id, args->va, args->size, args->handle, args->flags);
		return 0;
	}
	kfree(map);
put_bo:
	enpu_bo_put(bo);
	return ret;
}

/*
 * The BO behind [va, va + size) with a reference, and where in it the range starts; NULL unless one
 * mapping, to be read and written, holds all of it.
 */
struct enpu_bo *enpu_vm_find_bo(struct enpu_vm *vm, u64 va, u64 size, u64 *offset)
{
	const u32 need = DRM_ENPU_MAP_READ | DRM_ENPU_MAP_WRITE;
	struct enpu_mapping *map;
	struct drm_mm_node *node;

	guard(mutex)(&vm->lock);
	node = __drm_mm_interval_first(&vm->mappings, va, va + size - 1);
	if (!drm_mm_node_allocated(node) || node->start > va ||
	    node->start + node->size < va + size)
		return NULL;
	map = container_of(node, struct enpu_mapping, node);
	if ((map->flags & need) != need)
		return NULL;
	*offset = map->offset + (va - node->start);
	drm_gem_object_get(enpu_bo_gem(map->bo));
	return map->bo;
}

/* Is [va, va + size) made of whole mappings without a hole? */
static bool enpu_vm_range_whole(struct enpu_vm *vm, u64 va, u64 size)
{
	u64 next = va, end = va + size;
	struct drm_mm_node *node;

	drm_mm_for_each_node_in_range(node, &vm->mappings, va, end) {
		if (node->start != next)
			return false;
		next = node->start + node->size;
	}
	return next == end;
}

static void enpu_vm_remove(struct enpu_vm *vm, u64 va, u64 size)
{
	struct drm_mm_node *node, *next;
	LIST_HEAD(emptied);
	int idx;

	/* The tables of a device that has gone are gone, or go as a whole. */
	if (drm_dev_enter(&vm->edev->drm, &idx)) {
		enpu_pt_clear(vm->root, va, size, &emptied);
		dma_wmb();
		enpu_vm_invalidate(vm);
		enpu_pt_free_list(vm->edev, &emptied);
		drm_dev_exit(idx);
	}
	for (node = __drm_mm_interval_first(&vm->mappings, va, va + size - 1);
	     drm_mm_node_allocated(node) && node->start < va + size; node = next) {
		next = list_next_entry(node, node_list);
		enpu_mapping_free(vm, container_of(node, struct enpu_mapping, node));
	}
}

int enpu_vm_unmap_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct enpu_vm *vm = to_enpu_file(file)->vm;
	struct drm_enpu_vm_unmap *args = data;
	long ret;

	if (args->pad || !enpu_va_range_valid(args->va, args->size))
		return -EINVAL;
	scoped_guard(mutex, &vm->lock)
		if (!enpu_vm_range_whole(vm, args->va, args->size))
			return -EINVAL;

	ret = dma_resv_wait_timeout(vm->resv_obj->resv, DMA_RESV_USAGE_BOOKKEEP, true,
				    drm_timeout_abs_to_jiffies(args->timeout_ns));
	if (!ret)
		return -ETIME;
	if (ret < 0)
		return ret;

	/* Another thread may have been here while we slept. */
	guard(mutex)(&vm->lock);
	if (!enpu_vm_range_whole(vm, args->va, args->size))
		return -EINVAL;
	enpu_vm_remove(vm, args->va, args->size);
	trace_enpu_vm_unmap(vm->as_id, args->va, args->size);
	return 0;
}
