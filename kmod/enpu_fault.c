// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs file inject_fault, for devices with a fault block: arms faults in the text form of
 * enpu_fault.h, and tells what has fired.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <drm/drm_print.h>

#include "enpu_drv.h"
#include "enpu_fault.h"

#define ENPU_FAULT_TEXT_BYTES 1024

static int enpu_fault_show(struct seq_file *m, void *unused)
{
	static const char * const names[] = ENPU_FAULT_KIND_NAMES;
	struct enpu_device *edev = m->private;
	u32 kind;
	int idx, ret;

	ret = enpu_debugfs_enter(edev, &idx);
	if (ret)
		return ret;
	seq_printf(m, "now %llu\n", enpu_read64(edev, ENPU_REG_TIMESTAMP));
	for (kind = 1; kind < ENPU_FAULT_KINDS; kind++)
		seq_printf(m, "%s %u %llu\n", names[kind],
			   enpu_read32(edev, ENPU_REG_FAULT_FIRED(kind)),
			   enpu_read64(edev, ENPU_REG_FAULT_FIRED_NS(kind)));
	enpu_debugfs_exit(edev, idx);
	return 0;
}

static int enpu_fault_open(struct inode *inode, struct file *file)
{
	return single_open(file, enpu_fault_show, inode->i_private);
}

/* Under hw_lock: the fault block holds one description at a time. */
static void enpu_fault_arm(struct enpu_device *edev, const struct enpu_fault *fault)
{
	lockdep_assert_held(&edev->hw_lock);
	enpu_write32(edev, ENPU_REG_FAULT_KIND, fault->kind);
	enpu_write32(edev, ENPU_REG_FAULT_TARGET, fault->target);
	enpu_write32(edev, ENPU_REG_FAULT_AFTER, fault->after);
	enpu_write32(edev, ENPU_REG_FAULT_TIMES, fault->times);
	enpu_write64(edev, ENPU_REG_FAULT_ARG, fault->argument);
	enpu_write32(edev, ENPU_REG_FAULT_EVERY, fault->every);
	enpu_write64(edev, ENPU_REG_FAULT_SEED, fault->seed);
	enpu_write32(edev, ENPU_REG_FAULT_ARM, fault->kind != ENPU_FAULT_KIND_NONE);
}

/* What cannot be read arms nothing. */
static int enpu_fault_check(struct enpu_device *edev, const char *text)
{
	struct enpu_fault fault;
	const char *at = text, *wrong;

	do {
		wrong = enpu_fault_parse(&at, &fault);
		if (wrong) {
			drm_dbg(&edev->drm, "inject_fault: %s at '%s'\n", wrong, at);
			return -EINVAL;
		}
	} while (*at);
	return 0;
}

static ssize_t enpu_fault_write(struct file *file, const char __user *ubuf, size_t count,
				loff_t *pos)
{
	struct enpu_device *edev = ((struct seq_file *)file->private_data)->private;
	struct enpu_fault fault;
	const char *at;
	char *text;
	int ret, idx;

	if (count >= ENPU_FAULT_TEXT_BYTES)
		return -E2BIG;
	text = memdup_user_nul(ubuf, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	ret = enpu_fault_check(edev, text);
	if (!ret)
		ret = enpu_debugfs_enter(edev, &idx);
	if (ret)
		goto out;
	at = text;
	scoped_guard(mutex, &edev->hw_lock)
		while (*at && !enpu_fault_parse(&at, &fault))
			enpu_fault_arm(edev, &fault);
	enpu_debugfs_exit(edev, idx);
out:
	kfree(text);
	return ret ?: count;
}

static const struct file_operations enpu_fault_fops = {
	.owner = THIS_MODULE,
	.open = enpu_fault_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
	.write = enpu_fault_write,
};

void enpu_fault_debugfs_init(struct enpu_device *edev)
{
	if (edev->features & ENPU_CAP_FEATURES_FAULT_INJECTION)
		debugfs_create_file("inject_fault", 0600, edev->drm.accel->debugfs_root, edev,
				    &enpu_fault_fops);
}
