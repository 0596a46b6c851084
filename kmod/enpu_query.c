// SPDX-License-Identifier: GPL-2.0-only
/*
 * QUERY: sizes are negotiated, so that structures can grow.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <drm/drm_drv.h>

#include "enpu_compat.h"
#include "enpu_drv.h"
#include "enpu_inject.h"
#include "enpu_local.h"
#include "enpu_vm.h"

union enpu_answer {
	struct drm_enpu_device_info device;
	struct drm_enpu_opcode_info opcodes;
	struct drm_enpu_memory_info memory;
	u64 counters[ENPU_COUNTER_WORDS];
};

/*
 * While the device is reset by the bus its registers cannot be read, and its clock is told from
 * ours.
 */
static void enpu_query_clock(struct enpu_device *edev, struct drm_enpu_device_info *info)
{
	guard(mutex)(&edev->hw_lock);
	info->monotonic_ns = ktime_get_ns();
	if (edev->running)
		edev->clock_ns = enpu_read64(edev, ENPU_REG_TIMESTAMP) - info->monotonic_ns;
	info->timestamp_ns = info->monotonic_ns + edev->clock_ns;
}

static void enpu_query_device(struct enpu_device *edev, struct drm_enpu_device_info *info)
{
	info->hw_version = edev->hw_version;
	info->features = edev->features;
	info->compute_engines = edev->num_compute;
	info->copy_engines = edev->num_engines - edev->num_compute;
	info->threads = edev->caps.threads;
	info->max_command_bytes = edev->max_command;
	info->max_tensor_bytes = edev->caps.max_tensor;
	info->max_packet_work = edev->caps.max_work;
	info->local_bytes = edev->local_bytes;
	info->va_start = ENPU_VA_START;
	info->va_end = ENPU_VA_END;
	info->page_size = ENPU_PAGE_SIZE;
	info->large_page_size = ENPU_LARGE_PAGE_SIZE;
	enpu_query_clock(edev, info);
	info->reset_count = atomic_read(&edev->stats.engine_resets) +
			    atomic_read(&edev->stats.device_resets);
	info->uapi_minor = ENPU_UAPI_MINOR;
	info->default_timeout_ms = ENPU_DEFAULT_TIMEOUT_MS;
}

static void enpu_query_opcodes(struct enpu_device *edev, struct drm_enpu_opcode_info *info)
{
	static_assert(sizeof(info->dtypes) == sizeof(edev->caps.dtypes));
	info->opcodes = edev->caps.opcodes;
	memcpy(info->dtypes, edev->caps.dtypes, sizeof(info->dtypes));
}

/* Of all the time since the file was opened: sleep and resets take nothing away. */
static void enpu_query_counters(struct enpu_device *edev, struct enpu_vm *vm, u64 *words)
{
	guard(mutex)(&edev->hw_lock);
	memcpy(words, vm->counted, sizeof(vm->counted));
	enpu_vm_count(vm, words);
}

static void enpu_query_memory(struct enpu_device *edev, struct enpu_vm *vm,
			      struct drm_enpu_memory_info *info)
{
	struct enpu_local_usage usage;

	enpu_local_usage(edev, &usage);
	info->local_total = usage.total;
	info->local_free = usage.free;
	info->local_largest = usage.largest;
	info->local_used = atomic64_read(&vm->local_bytes);
	info->host_used = atomic64_read(&vm->host_bytes);
}

/* Fills the answer and returns its size. */
static int enpu_query_fill(struct enpu_device *edev, struct enpu_vm *vm, u32 type,
			   union enpu_answer *answer)
{
	switch (type) {
	case DRM_ENPU_QUERY_DEVICE:
		enpu_query_device(edev, &answer->device);
		return sizeof(answer->device);
	case DRM_ENPU_QUERY_OPCODES:
		enpu_query_opcodes(edev, &answer->opcodes);
		return sizeof(answer->opcodes);
	case DRM_ENPU_QUERY_COUNTERS:
		enpu_query_counters(edev, vm, answer->counters);
		return sizeof(answer->counters);
	case DRM_ENPU_QUERY_MEMORY:
		enpu_query_memory(edev, vm, &answer->memory);
		return sizeof(answer->memory);
	default:
		return -EINVAL;
	}
}

int enpu_query_ioctl(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct enpu_device *edev = to_enpu_device(drm);
	struct drm_enpu_query *args = data;
	union enpu_answer *answer;
	int size, idx, ret = 0;

	answer = enpu_inject_fail(edev) ? NULL : kzalloc(sizeof(*answer), GFP_KERNEL);
	if (!answer)
		return -ENOMEM;
	if (!drm_dev_enter(drm, &idx)) {
		kfree(answer);
		return -ENODEV;
	}
	size = enpu_query_fill(edev, to_enpu_file(file)->vm, args->type, answer);
	drm_dev_exit(idx);

	if (size < 0)
		ret = size;
	else if (args->size)
		ret = enpu_inject_fail(edev) ? -EFAULT :
		      enpu_copy_struct_to_user(u64_to_user_ptr(args->data), args->size, answer,
					       size);
	if (!ret)
		args->size = size;
	kfree(answer);
	return ret;
}
