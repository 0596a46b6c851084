/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Page tables of one address space, in coherent host memory.
 */
#ifndef ENPU_MMU_H
#define ENPU_MMU_H

#include <linux/list.h>
#include <linux/types.h>

struct enpu_device;

/**
 * struct enpu_pt - a page table
 * @entries: what the device reads
 * @bus: their bus address
 * @used: valid entries
 * @level: 3 is the root, 0 has 4 KiB leaves
 * @index: of its entry in @parent
 * @parent: table above, NULL for the root
 * @link: in a list of tables that are to be freed
 * @children: tables below; NULL for a leaf and at level 0
 */
struct enpu_pt {
	__le64 *entries;
	dma_addr_t bus;
	u16 used;
	u8 level;
	u16 index;
	struct enpu_pt *parent;
	struct list_head link;
	struct enpu_pt *children[];
};

struct enpu_pt *enpu_pt_create_root(struct enpu_device *edev);
int enpu_pt_map(struct enpu_device *edev, struct enpu_pt *root, u64 va, u64 addr, u64 size,
		u64 flags);
void enpu_pt_clear(struct enpu_pt *root, u64 va, u64 size, struct list_head *emptied);
void enpu_pt_free_list(struct enpu_device *edev, struct list_head *emptied);
void enpu_pt_destroy(struct enpu_device *edev, struct enpu_pt *pt);

#endif
