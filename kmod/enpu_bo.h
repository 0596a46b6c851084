/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buffer objects. A BO holds no pointer to a file: it can outlive the one that made it.
 */
#ifndef ENPU_BO_H
#define ENPU_BO_H

#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <drm/drm_file.h>
#include <drm/drm_gem_shmem_helper.h>
#include <drm/drm_mm.h>

#include "enpu_dma.h"

struct dma_buf;

enum enpu_bo_kind {
	ENPU_BO_HOST,		/* pages of the shmem helper */
	ENPU_BO_IMPORTED,	/* dma-buf of another driver, by the shmem helper too */
	ENPU_BO_LOCAL,		/* block of device-local memory */
	ENPU_BO_USERPTR,	/* pinned pages of a process */
};

/**
 * struct enpu_bo - buffer object
 * @shmem: base; beyond its GEM object only used by HOST and IMPORTED
 * @kind: where the memory is
 * @vm_obj: for a private BO: the object whose reservation it shares
 * @dma: the mapping of its pages, once it was needed; not LOCAL
 * @buf: IMPORTED: where it came from, with a reference, when it is not attached to it any more
 * @counted: in the number of live BOs
 * @fetched: HOST: pages that enpu_bo_fetch() has seen, from the first
 * @node: LOCAL: its block
 * @sgt: USERPTR: DMA addresses; while @dma
 * @pages: USERPTR: pages of the process
 * @pinned: USERPTR: they are pinned
 * @mm: USERPTR: where they are accounted
 * @read_only: USERPTR: the device may not write
 */
struct enpu_bo {
	struct drm_gem_shmem_object shmem;
	enum enpu_bo_kind kind;
	struct drm_gem_object *vm_obj;
	struct enpu_dma dma;
	struct dma_buf *buf;
	bool counted;
	pgoff_t fetched;
	struct drm_mm_node node;
	struct sg_table sgt;
	struct page **pages;
	bool pinned;
	struct mm_struct *mm;
	bool read_only;
};

/* The shmem helper frees what it finds at its own address. */
static_assert(!offsetof(struct enpu_bo, shmem));

static inline struct enpu_bo *to_enpu_bo(struct drm_gem_object *obj)
{
	return container_of(to_drm_gem_shmem_obj(obj), struct enpu_bo, shmem);
}

static inline struct drm_gem_object *enpu_bo_gem(struct enpu_bo *bo)
{
	return &bo->shmem.base;
}

static inline size_t enpu_bo_pages(struct enpu_bo *bo)
{
	return enpu_bo_gem(bo)->size >> PAGE_SHIFT;
}

struct drm_gem_object *enpu_gem_create_object(struct drm_device *drm, size_t size);
struct enpu_bo *enpu_bo_lookup(struct drm_file *file, u32 handle);
void enpu_bo_put(struct enpu_bo *bo);
int enpu_bo_fetch(struct enpu_bo *bo);
struct sg_table *enpu_bo_sgt(struct enpu_bo *bo);
int enpu_bo_account_open(struct drm_gem_object *obj, struct drm_file *file);
void enpu_bo_account_close(struct drm_gem_object *obj, struct drm_file *file);
void enpu_bo_count(struct enpu_bo *bo);
void enpu_bo_uncount(struct enpu_bo *bo);
void enpu_bo_release(struct enpu_bo *bo);

int enpu_bo_create_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int enpu_bo_info_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int enpu_bo_wait_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int enpu_bo_userptr_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

struct drm_gem_object *enpu_prime_import(struct drm_device *drm, struct dma_buf *buf);
struct dma_buf *enpu_prime_export(struct drm_gem_object *obj, int flags);

#endif
