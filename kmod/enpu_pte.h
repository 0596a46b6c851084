/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic of page tables and VA ranges. Pure functions, also built by KUnit.
 */
#ifndef ENPU_PTE_H
#define ENPU_PTE_H

#include <linux/align.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/types.h>
#include <drm/enpu_accel.h>

#include "enpu_hw.h"

#define ENPU_PT_LEVELS	4
#define ENPU_PT_ENTRIES	512

/* Index into a table of the level (3 is the root). */
static inline unsigned int enpu_pt_index(u64 va, unsigned int level)
{
	return (va >> (12 + 9 * level)) & (ENPU_PT_ENTRIES - 1);
}

static inline __le64 enpu_pte_table(u64 table)
{
	return cpu_to_le64((table & ENPU_PTE_ADDR) | ENPU_PTE_VALID);
}

/* A leaf; @flags are ENPU_PTE_READ, _WRITE, _LOCAL, _LARGE. */
static inline __le64 enpu_pte_leaf(u64 addr, u64 flags)
{
	return cpu_to_le64((addr & ENPU_PTE_ADDR) | flags | ENPU_PTE_VALID);
}

/*
 * Bytes that the next leaf at @va can cover when @len contiguous bytes start at @addr: one page of
 * either size.
 */
static inline u64 enpu_leaf_size(u64 va, u64 addr, u64 len)
{
	if (IS_ALIGNED(va | addr, ENPU_LARGE_PAGE_SIZE) && len >= ENPU_LARGE_PAGE_SIZE)
		return ENPU_LARGE_PAGE_SIZE;
	return ENPU_PAGE_SIZE;
}

/* Is [va, va + size) a non-empty, page-aligned range that a program may map? */
static inline bool enpu_va_range_valid(u64 va, u64 size)
{
	u64 end;

	return size && IS_ALIGNED(va | size, ENPU_PAGE_SIZE) && va >= ENPU_VA_START &&
	       !check_add_overflow(va, size, &end) && end <= ENPU_VA_END;
}

/* Is [offset, offset + size) a non-empty, page-aligned part of @total bytes? */
static inline bool enpu_sub_range_valid(u64 offset, u64 size, u64 total)
{
	u64 end;

	return size && IS_ALIGNED(offset | size, ENPU_PAGE_SIZE) &&
	       !check_add_overflow(offset, size, &end) && end <= total;
}

#endif
