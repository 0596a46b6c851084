/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The address space of an open file.
 */
#ifndef ENPU_VM_H
#define ENPU_VM_H

#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_mm.h>

#include "enpu_dma.h"
#include "enpu_hw.h"

struct enpu_bo;
struct enpu_pt;

#define ENPU_AS_NONE	U32_MAX

/* Words of a counter block that have a meaning. */
#define ENPU_COUNTER_WORDS	(ENPU_COUNTER_COPY_BYTES + 1)

/**
 * struct enpu_vm - an address space
 * @ref: the file and each context hold one
 * @edev: device
 * @lock: protects @mappings, @mapping_count, @root and the page tables; outside hw_lock
 * @mappings: struct enpu_mapping by VA
 * @root: root table, NULL when the device has gone
 * @dma: the mapping of all tables
 * @mapping_count: number of @mappings
 * @as_id: number in hardware, ENPU_AS_NONE until the first map or context; under hw_lock
 * @resv_obj: its reservation holds the fence of every job, and is that of the private BOs
 * @handles: BOs of this file
 * @local_bytes: BOs of this file in local memory
 * @host_bytes: other BOs of this file
 * @pid: process that opened the file, for dumps
 * @client_id: of the file, for dumps
 * @comm: name of the process, for dumps
 * @engine_ns: time on compute ([0]) and copy ([1]) engines
 * @counted: what the device had counted before it was last reset or put to sleep; under hw_lock
 */
struct enpu_vm {
	struct kref ref;
	struct enpu_device *edev;
	struct mutex lock; /* see above */
	struct drm_mm mappings;
	u32 mapping_count;
	struct enpu_pt *root;
	struct enpu_dma dma;
	u32 as_id;
	struct drm_gem_object *resv_obj;
	atomic_t handles;
	atomic64_t local_bytes;
	atomic64_t host_bytes;
	pid_t pid;
	u64 client_id;
	char comm[TASK_COMM_LEN];
	atomic64_t engine_ns[2];
	u64 counted[ENPU_COUNTER_WORDS];
};

/**
 * struct enpu_mapping - a range of a BO at a VA
 * @node: VA range
 * @bo: holds a reference
 * @offset: in the BO
 * @flags: DRM_ENPU_MAP_*
 */
struct enpu_mapping {
	struct drm_mm_node node;
	struct enpu_bo *bo;
	u64 offset;
	u32 flags;
};

struct enpu_vm *enpu_vm_create(struct enpu_device *edev, struct drm_file *file);
struct enpu_vm *enpu_vm_get(struct enpu_vm *vm);
void enpu_vm_put(struct enpu_vm *vm);
int enpu_vm_activate(struct enpu_vm *vm);
void enpu_vm_program(struct enpu_vm *vm);
void enpu_vm_count(struct enpu_vm *vm, u64 *words);
void enpu_vm_keep_counters(struct enpu_vm *vm);
struct enpu_bo *enpu_vm_find_bo(struct enpu_vm *vm, u64 va, u64 size, u64 *offset);

int enpu_vm_map_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int enpu_vm_unmap_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

#endif
