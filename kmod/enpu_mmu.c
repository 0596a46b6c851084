// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page tables: four levels, leaves of 4 KiB and 2 MiB. The caller serialises the calls for one root
 * and invalidates the TLB.
 */
#include <linux/slab.h>

#include "enpu_dma.h"
#include "enpu_inject.h"
#include "enpu_mmu.h"
#include "enpu_pte.h"

static struct enpu_pt *enpu_pt_create(struct enpu_device *edev, unsigned int level)
{
	struct enpu_pt *pt;

	if (enpu_inject_fail(edev))
		return NULL;
	pt = kzalloc(struct_size(pt, children, level ? ENPU_PT_ENTRIES : 0), GFP_KERNEL_ACCOUNT);
	if (!pt)
		return NULL;
	pt->entries = enpu_inject_fail(edev) ? NULL :
		      enpu_dma_alloc(edev, ENPU_PAGE_SIZE, &pt->bus);
	if (!pt->entries) {
		kfree(pt);
		return NULL;
	}
	atomic_inc(&edev->live.tables);
	pt->level = level;
	return pt;
}

struct enpu_pt *enpu_pt_create_root(struct enpu_device *edev)
{
	return enpu_pt_create(edev, ENPU_PT_LEVELS - 1);
}

static void enpu_pt_free(struct enpu_device *edev, struct enpu_pt *pt)
{
	enpu_dma_free(edev, ENPU_PAGE_SIZE, pt->entries, pt->bus);
	kfree(pt);
	atomic_dec(&edev->live.tables);
}

static void enpu_pt_set(struct enpu_pt *pt, unsigned int index, __le64 entry)
{
	WRITE_ONCE(pt->entries[index], entry);
	pt->used++;
}

/* The table of @level that covers @va, made if need be. NULL without memory. */
static struct enpu_pt *enpu_pt_walk(struct enpu_device *edev, struct enpu_pt *pt, u64 va,
				    unsigned int level)
{
	while (pt->level > level) {
		unsigned int index = enpu_pt_index(va, pt->level);
		struct enpu_pt *child = pt->children[index];

		if (!child) {
			child = enpu_pt_create(edev, pt->level - 1);
			if (!child)
				return NULL;
			child->parent = pt;
			child->index = index;
			pt->children[index] = child;
			/* The zeroed table must be in memory before the device can find it. */
			dma_wmb();
			enpu_pt_set(pt, index, enpu_pte_table(child->bus));
		}
		pt = child;
	}
	return pt;
}

/*
 * A 2 MiB slot of level 1 that still has an (empty or not) table below cannot take a leaf. VM_UNMAP
 * takes emptied tables away, so this is the case only where 4 KiB pages are mapped, and then the
 * range would overlap; it is checked all the same.
 */
static bool enpu_pt_slot_free(struct enpu_pt *pt, unsigned int index)
{
	return !pt->entries[index] && (!pt->level || !pt->children[index]);
}

/*
 * Maps contiguous memory at a VA. Nothing there may be mapped. On failure the caller clears the
 * whole range. @flags: ENPU_PTE_READ, _WRITE, _LOCAL.
 */
int enpu_pt_map(struct enpu_device *edev, struct enpu_pt *root, u64 va, u64 addr, u64 size,
		u64 flags)
{
	while (size) {
		u64 bytes = enpu_leaf_size(va, addr, size);
		bool large = bytes == ENPU_LARGE_PAGE_SIZE;
		struct enpu_pt *pt = enpu_pt_walk(edev, root, va, large);
		unsigned int index;

		if (!pt)
			return -ENOMEM;
		index = enpu_pt_index(va, pt->level);
		if (WARN_ON_ONCE(!enpu_pt_slot_free(pt, index)))
			return -EEXIST;
		enpu_pt_set(pt, index, enpu_pte_leaf(addr, flags | (large ? ENPU_PTE_LARGE : 0)));
		va += bytes;
		addr += bytes;
		size -= bytes;
	}
	return 0;
}

/*
 * Unlinks a table without entries, and those above that become empty by it; the device may walk
 * them until the TLB is invalidated.
 */
static void enpu_pt_prune(struct enpu_pt *pt, struct list_head *emptied)
{
	while (pt->parent && !pt->used) {
		struct enpu_pt *parent = pt->parent;

		WRITE_ONCE(parent->entries[pt->index], 0);
		parent->children[pt->index] = NULL;
		parent->used--;
		list_add_tail(&pt->link, emptied);
		pt = parent;
	}
}

/*
 * Clears [va, va + size), made of whole leaves or partly of nothing. Emptied tables go to the
 * list, to be freed after the invalidation.
 */
void enpu_pt_clear(struct enpu_pt *root, u64 va, u64 size, struct list_head *emptied)
{
	u64 end = va + size;

	while (va < end) {
		struct enpu_pt *pt = root;
		unsigned int index = enpu_pt_index(va, pt->level);
		u64 span;

		while (pt->level && pt->children[index]) {
			pt = pt->children[index];
			index = enpu_pt_index(va, pt->level);
		}
		span = 1ull << (12 + 9 * pt->level);
		if (pt->entries[index]) {
			WRITE_ONCE(pt->entries[index], 0);
			pt->used--;
		}
		va = ALIGN_DOWN(va, span) + span;
		/* Leaving the table, or done: see whether it is empty. */
		if (!enpu_pt_index(va, pt->level) || va >= end)
			enpu_pt_prune(pt, emptied);
	}
}

void enpu_pt_free_list(struct enpu_device *edev, struct list_head *emptied)
{
	struct enpu_pt *pt, *next;

	list_for_each_entry_safe(pt, next, emptied, link)
		enpu_pt_free(edev, pt);
	INIT_LIST_HEAD(emptied);
}

/*
 * Frees a table and all below (three levels of recursion at most). The device must not use it any
 * more.
 */
void enpu_pt_destroy(struct enpu_device *edev, struct enpu_pt *pt)
{
	unsigned int i;

	if (!pt)
		return;
	if (pt->level)
		for (i = 0; i < ENPU_PT_ENTRIES; i++)
			enpu_pt_destroy(edev, pt->children[i]);
	enpu_pt_free(edev, pt);
}
