// SPDX-License-Identifier: GPL-2.0-only
/*
 * Looking into an address space for a dump. Runs in the path of fences: no wait, no allocation.
 */
#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/io.h>

#include "enpu_bo.h"
#include "enpu_device.h"
#include "enpu_mmu.h"
#include "enpu_peek.h"
#include "enpu_pte.h"
#include "enpu_vm.h"

#define ENPU_PEEK_TRIES	20

/*
 * Takes the lock of a VM where hw_lock is held, which is inside it: only as long as somebody who
 * holds it can be expected to let go. The caller unlocks.
 */
bool enpu_vm_try_lock(struct enpu_vm *vm)
{
	int i;

	for (i = 0; i < ENPU_PEEK_TRIES; i++) {
		if (mutex_trylock(&vm->lock))
			return true;
		usleep_range(200, 500);
	}
	return false;
}

/* Copies a piece of one page of a BO that is mapped, and so pinned. */
static bool enpu_bo_peek(struct enpu_device *edev, struct enpu_bo *bo, u64 offset, void *to,
			 size_t bytes)
{
	struct page **pages = bo->kind == ENPU_BO_USERPTR ? bo->pages : bo->shmem.pages;

	if (bo->kind == ENPU_BO_LOCAL) {
		if (enpu_device_gone(edev))
			return false;
		memcpy_fromio(to, edev->local_io + bo->node.start + offset, bytes);
		return true;
	}
	/* Memory of another driver. */
	if (!pages)
		return false;
	memcpy_from_page(to, pages[offset >> PAGE_SHIFT], offset_in_page(offset), bytes);
	return true;
}

static struct enpu_mapping *enpu_vm_find(struct enpu_vm *vm, u64 va)
{
	struct drm_mm_node *node = __drm_mm_interval_first(&vm->mappings, va, va);

	if (!drm_mm_node_allocated(node) || node->start > va || va - node->start >= node->size)
		return NULL;
	return container_of(node, struct enpu_mapping, node);
}

/*
 * Copies what is at a VA, up to the first page that is not mapped or cannot be read; the number of
 * bytes. Under the VM's lock.
 */
size_t enpu_vm_read(struct enpu_vm *vm, u64 va, void *to, size_t bytes)
{
	size_t done = 0;

	lockdep_assert_held(&vm->lock);
	while (done < bytes) {
		struct enpu_mapping *map = enpu_vm_find(vm, va + done);
		size_t piece = min(bytes - done, PAGE_SIZE - offset_in_page(va + done));

		if (!map || !enpu_bo_peek(vm->edev, map->bo,
					  map->offset + (va + done - map->node.start), to + done,
					  piece))
			break;
		done += piece;
	}
	return done;
}

/* The way of the MMU from the root to the entry of a VA. Under the VM's lock. */
void enpu_vm_walk(struct enpu_vm *vm, u64 va, struct enpu_dump_walk *walk)
{
	struct enpu_pt *pt = vm->root;

	lockdep_assert_held(&vm->lock);
	walk->va = va;
	walk->as_id = vm->as_id;
	while (pt) {
		struct enpu_dump_level *level = &walk->levels[walk->depth++];
		unsigned int index = enpu_pt_index(va, pt->level);

		level->table = pt->bus;
		level->index = index;
		level->level = pt->level;
		level->entry = le64_to_cpu(READ_ONCE(pt->entries[index]));
		pt = pt->level ? pt->children[index] : NULL;
	}
}
