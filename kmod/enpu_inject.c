// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failures on purpose. Those of a probe come by module parameter, as there is no device to ask yet.
 */
#include <linux/debugfs.h>
#include <linux/moduleparam.h>
#include <linux/uaccess.h>

#include "enpu_inject.h"

static uint fail_probe;
module_param(fail_probe, uint, 0600);
MODULE_PARM_DESC(fail_probe, "for tests: the step of a probe that fails, from 1; 0 for none");

/* Stands before each step of a probe: 0, or -ENOMEM when that step shall fail. */
int enpu_probe_step(struct enpu_device *edev)
{
	return ++edev->inject.probe_steps == READ_ONCE(fail_probe) ? -ENOMEM : 0;
}

/* "N": the N-th allocation or copy from now in this process fails, 0 disarms. */
static ssize_t enpu_fail_nth_write(struct file *file, const char __user *ubuf, size_t count,
				   loff_t *pos)
{
	struct enpu_device *edev = file->private_data;
	int ret;
	u32 n;

	ret = kstrtou32_from_user(ubuf, count, 0, &n);
	if (ret)
		return ret;
	if (n > INT_MAX)
		return -EINVAL;
	WRITE_ONCE(edev->inject.tgid, 0);
	atomic_set(&edev->inject.left, n);
	WRITE_ONCE(edev->inject.tgid, n ? task_tgid_nr(current) : 0);
	return count;
}

/* How many it takes yet; 0 when it has fired. */
static ssize_t enpu_fail_nth_read(struct file *file, char __user *ubuf, size_t count, loff_t *pos)
{
	struct enpu_device *edev = file->private_data;
	char text[16];
	int len;

	len = scnprintf(text, sizeof(text), "%u\n",
			READ_ONCE(edev->inject.tgid) ? atomic_read(&edev->inject.left) : 0);
	return simple_read_from_buffer(ubuf, count, pos, text, len);
}

const struct file_operations enpu_fail_nth_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = enpu_fail_nth_read,
	.write = enpu_fail_nth_write,
};
