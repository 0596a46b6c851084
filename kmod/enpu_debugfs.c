// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs: what the engines and queues do, which VAs are mapped, and a way to ask for a reset.
 */
#include <linux/bitfield.h>
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <drm/drm_debugfs.h>
#include <drm/drm_drv.h>

#include "enpu_bo.h"
#include "enpu_ctx.h"
#include "enpu_drv.h"
#include "enpu_inject.h"
#include "enpu_job.h"
#include "enpu_pm.h"
#include "enpu_queue.h"
#include "enpu_reset.h"
#include "enpu_vm.h"

/* Registers are about to be touched: the device is there and awake. */
int enpu_debugfs_enter(struct enpu_device *edev, int *idx)
{
	int ret = enpu_pm_get(edev);

	if (ret)
		return ret;
	if (drm_dev_enter(&edev->drm, idx))
		return 0;
	enpu_pm_put(edev);
	return -ENODEV;
}

void enpu_debugfs_exit(struct enpu_device *edev, int idx)
{
	drm_dev_exit(idx);
	enpu_pm_put(edev);
}

static int enpu_engines_show(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;
	struct enpu_device *edev = to_enpu_device(entry->dev);
	u32 i;
	int idx, ret;

	ret = enpu_debugfs_enter(edev, &idx);
	if (ret)
		return ret;
	for (i = 0; i < edev->num_engines; i++)
		seq_printf(m, "%s: state %u queue %d packet +%#x progress %llu jobs %llu busy %llu ns\n",
			   edev->engines[i].name,
			   (u32)FIELD_GET(ENPU_ENGINE_STATUS_STATE,
					  enpu_read32(edev, ENPU_REG_ENGINE_STATUS(i))),
			   (s32)enpu_read32(edev, ENPU_REG_ENGINE_QUEUE(i)),
			   enpu_read32(edev, ENPU_REG_ENGINE_PACKET(i)),
			   enpu_read64(edev, ENPU_REG_ENGINE_PROGRESS(i)),
			   enpu_read64(edev, ENPU_REG_ENGINE_JOBS(i)),
			   enpu_read64(edev, ENPU_REG_ENGINE_BUSY_NS(i)));
	seq_printf(m, "wedged %d, engine resets %d, device resets %d, live jobs %d\n",
		   enpu_is_wedged(edev), atomic_read(&edev->stats.engine_resets),
		   atomic_read(&edev->stats.device_resets), atomic_read(&edev->live_jobs));
	enpu_debugfs_exit(edev, idx);
	return 0;
}

/* Monitors read this all the time: it must not wake a device that sleeps, nor keep one awake. */
static int enpu_queues_show(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;
	struct enpu_device *edev = to_enpu_device(entry->dev);
	u32 i;
	int idx;

	if (!drm_dev_enter(&edev->drm, &idx))
		return -ENODEV;
	mutex_lock(&edev->hw_lock);
	for (i = 0; i < edev->num_queues; i++) {
		struct enpu_queue *queue = edev->queues[i];
		u32 status = 0;

		if (!queue)
			continue;
		/* One that runs is awake. */
		if (edev->running)
			status = enpu_read32(edev, ENPU_REG_QUEUE_STATUS(i));
		seq_printf(m, "%u: %s%s ", i, queue->user ? "user " : "", queue->engine->name);
		seq_printf(m, "as %u ctx %u state %u error %u tail %llu done %llu dead %d\n",
			   queue->ctx->vm->as_id, queue->ctx->id,
			   (u32)FIELD_GET(ENPU_QUEUE_STATUS_STATE, status),
			   (u32)FIELD_GET(ENPU_QUEUE_STATUS_ERROR, status),
			   le64_to_cpu(READ_ONCE(queue->header->tail)),
			   le64_to_cpu(READ_ONCE(queue->header->fence)), queue->ctx->dead);
	}
	mutex_unlock(&edev->hw_lock);
	drm_dev_exit(idx);
	return 0;
}

/*
 * A VM is freed only after it left the table, under hw_lock; its mappings need its own lock, which
 * is outside ours.
 */
static struct enpu_vm *enpu_debugfs_vm(struct enpu_device *edev, u32 as_id)
{
	struct enpu_vm *vm;

	guard(mutex)(&edev->hw_lock);
	vm = edev->vms[as_id];
	return vm && kref_get_unless_zero(&vm->ref) ? vm : NULL;
}

static int enpu_vms_show(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;
	struct enpu_device *edev = to_enpu_device(entry->dev);
	struct drm_mm_node *node;
	u32 i;

	for (i = 0; i < edev->num_as; i++) {
		struct enpu_vm *vm = enpu_debugfs_vm(edev, i);

		if (!vm)
			continue;
		mutex_lock(&vm->lock);
		seq_printf(m, "as %u:\n", i);
		drm_mm_for_each_node(node, &vm->mappings) {
			struct enpu_mapping *map = container_of(node, struct enpu_mapping, node);

			seq_printf(m, "  %#014llx + %#llx kind %u offset %#llx flags %#x\n",
				   node->start, node->size, map->bo->kind, map->offset, map->flags);
		}
		mutex_unlock(&vm->lock);
		enpu_vm_put(vm);
	}
	return 0;
}

/* All 0 when no file is open and nothing is shared, but for fences that others hold. */
static int enpu_live_show(struct seq_file *m, void *unused)
{
	struct drm_debugfs_entry *entry = m->private;
	struct enpu_device *edev = to_enpu_device(entry->dev);
	struct enpu_live *live = &edev->live;

	seq_printf(m, "files %d\nvms %d\ncontexts %d\nqueues %d\nbos %d\nmappings %d\ntables %d\ndma %d\n",
		   atomic_read(&live->files), atomic_read(&live->vms),
		   atomic_read(&live->contexts), atomic_read(&live->queues),
		   atomic_read(&live->bos), atomic_read(&live->mappings),
		   atomic_read(&live->tables), atomic_read(&live->dma));
	seq_printf(m, "pinned_pages %ld\njobs %d\nfences %d\nlocal_bytes %llu\n",
		   atomic_long_read(&live->pinned_pages), atomic_read(&edev->live_jobs),
		   enpu_live_fences(), edev->local_bytes - READ_ONCE(edev->local_free));
	return 0;
}

static const struct drm_debugfs_info enpu_debugfs_files[] = {
	{ "engines", enpu_engines_show, 0, NULL },
	{ "queues", enpu_queues_show, 0, NULL },
	{ "vms", enpu_vms_show, 0, NULL },
	{ "live", enpu_live_show, 0, NULL },
};

/* "device" or the index of an engine. */
static ssize_t enpu_force_reset_write(struct file *file, const char __user *ubuf, size_t count,
				      loff_t *pos)
{
	struct enpu_device *edev = file->private_data;
	char text[16];
	int idx, ret;
	ssize_t len;
	u32 engine;

	len = simple_write_to_buffer(text, sizeof(text) - 1, pos, ubuf, count);
	if (len < 0)
		return len;
	text[len] = '\0';
	if (!strcmp(strim(text), "device"))
		engine = ENPU_RESET_DEVICE;
	else if (kstrtou32(strim(text), 0, &engine) || engine >= edev->num_engines)
		return -EINVAL;
	ret = enpu_debugfs_enter(edev, &idx);
	if (ret)
		return ret;
	enpu_reset_request(edev, engine);
	flush_work(&edev->reset_work);
	enpu_debugfs_exit(edev, idx);
	return count;
}

static const struct file_operations enpu_force_reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = enpu_force_reset_write,
};

void enpu_debugfs_init(struct enpu_device *edev)
{
	drm_debugfs_add_files(&edev->drm, enpu_debugfs_files, ARRAY_SIZE(enpu_debugfs_files));
	debugfs_create_file("force_reset", 0200, edev->drm.accel->debugfs_root, edev,
			    &enpu_force_reset_fops);
	debugfs_create_file("registers", 0600, edev->drm.accel->debugfs_root, edev,
			    &enpu_registers_fops);
	enpu_fault_debugfs_init(edev);
	debugfs_create_file("fail_nth", 0600, edev->drm.accel->debugfs_root, edev,
			    &enpu_fail_nth_fops);
}
