// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/PID/fdinfo: the keys of Documentation/gpu/drm-usage-stats.rst, so that common tools show
 * the NPU.
 */
#include <drm/drm_print.h>

#include "enpu_compat.h"
#include "enpu_drv.h"
#include "enpu_vm.h"

static void enpu_fdinfo_engine(struct drm_printer *p, const char *name, u64 ns, u32 capacity)
{
	drm_printf(p, "drm-engine-%s:\t%llu ns\n", name, ns);
	drm_printf(p, "drm-engine-capacity-%s:\t%u\n", name, capacity);
}

/* Nothing is swapped or evicted: all memory is resident. */
static void enpu_fdinfo_region(struct drm_printer *p, const char *name, u64 bytes)
{
	enpu_fdinfo_size(p, "total", name, bytes);
	enpu_fdinfo_size(p, "resident", name, bytes);
}

void enpu_show_fdinfo(struct drm_printer *p, struct drm_file *file)
{
	struct enpu_vm *vm = to_enpu_file(file)->vm;
	struct enpu_device *edev = vm->edev;

	enpu_fdinfo_engine(p, "compute", atomic64_read(&vm->engine_ns[0]), edev->num_compute);
	enpu_fdinfo_engine(p, "copy", atomic64_read(&vm->engine_ns[1]),
			   edev->num_engines - edev->num_compute);
	enpu_fdinfo_region(p, "host", atomic64_read(&vm->host_bytes));
	enpu_fdinfo_region(p, "local", atomic64_read(&vm->local_bytes));
}
