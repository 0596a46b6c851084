/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the ioctls share: the state of an open file, and argument checks.
 */
#ifndef ENPU_DRV_H
#define ENPU_DRV_H

#include <linux/xarray.h>
#include <drm/drm_file.h>
#include <drm/enpu_accel.h>

#include "enpu_device.h"

#define ENPU_DRIVER_NAME "enpu"

struct enpu_vm;

/**
 * struct enpu_file - an open file
 * @vm: its address space; outlives it while jobs run
 * @contexts: struct enpu_ctx by id
 * @uqueues: struct enpu_uqueue by id
 */
struct enpu_file {
	struct enpu_vm *vm;
	struct xarray contexts;
	struct xarray uqueues;
};

static inline struct enpu_file *to_enpu_file(struct drm_file *file)
{
	return file->driver_priv;
}

int enpu_query_ioctl(struct drm_device *drm, void *data, struct drm_file *file);
int enpu_submit_ioctl(struct drm_device *drm, void *data, struct drm_file *file);

void enpu_show_fdinfo(struct drm_printer *p, struct drm_file *file);
#if IS_ENABLED(CONFIG_HWMON)
void enpu_hwmon_init(struct enpu_device *edev);
#else
static inline void enpu_hwmon_init(struct enpu_device *edev) { }
#endif
void enpu_debugfs_init(struct enpu_device *edev);
void enpu_fault_debugfs_init(struct enpu_device *edev);
int enpu_debugfs_enter(struct enpu_device *edev, int *idx);
void enpu_debugfs_exit(struct enpu_device *edev, int idx);
extern const struct file_operations enpu_registers_fops;
extern const struct attribute_group *enpu_sysfs_groups[];
extern const struct pci_error_handlers enpu_pci_error_handlers;

#endif
