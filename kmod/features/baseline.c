// SPDX-License-Identifier: GPL-2.0-only
/* What every supported kernel has. */
#include <linux/module.h>
#include <drm/drm_accel.h>
#include <drm/drm_drv.h>
#include <drm/drm_exec.h>
#include <drm/drm_gem_shmem_helper.h>
#include <drm/drm_syncobj.h>
#include <drm/gpu_scheduler.h>

#if !IS_ENABLED(CONFIG_DRM_ACCEL)
#error "enpu needs a kernel with CONFIG_DRM_ACCEL"
#endif
MODULE_LICENSE("GPL");
