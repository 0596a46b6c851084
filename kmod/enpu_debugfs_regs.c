// SPDX-License-Identifier: GPL-2.0-only
/*
 * debugfs file "registers": the register BAR by pread() and pwrite() of one whole register at its
 * offset, for the register tool. The kernel does not map a BAR that a driver holds into a process.
 */
#include <linux/debugfs.h>
#include <linux/uaccess.h>

#include "enpu_drv.h"
#include "enpu_hw_registers.h"

#define ENPU_REGISTER_ACCESS_RO		0x1
#define ENPU_REGISTER_ACCESS_WO		0x2
#define ENPU_REGISTER_ACCESS_RW		0x3
#define ENPU_REGISTER_ACCESS_W1C	0x3

#define ENPU_COUNTER_END (ENPU_COUNTER_BASE + ENPU_COUNTER_STRIDE * ENPU_MAX_AS)

static const struct enpu_register {
	const char *name;
	u32 offset;
	u32 stride;
	u32 count;
	u8 bytes;
	u8 access;
} enpu_register_table[] = {
#define ENPU_REGISTER(_name, _offset, _stride, _count, _bytes, _access) \
	{ .name = #_name, .offset = (_offset), .stride = (_stride), .count = (_count), \
	  .bytes = (_bytes), .access = ENPU_REGISTER_ACCESS_##_access },
	ENPU_REGISTER_LIST(ENPU_REGISTER)
#undef ENPU_REGISTER
};

static bool enpu_register_is(const struct enpu_register *reg, loff_t pos)
{
	u64 from = pos - reg->offset;

	return pos >= reg->offset && from < (u64)reg->stride * reg->count &&
	       from % reg->stride == 0;
}

/* One access to one register of its own width, in a direction that it has. */
static int enpu_register_check(loff_t pos, size_t count, u8 access)
{
	int i;

	if (pos >= ENPU_COUNTER_BASE && pos < ENPU_COUNTER_END && pos % sizeof(u64) == 0)
		return count == sizeof(u64) && access == ENPU_REGISTER_ACCESS_RO ? 0 : -EINVAL;
	for (i = 0; i < ARRAY_SIZE(enpu_register_table); i++) {
		const struct enpu_register *reg = &enpu_register_table[i];

		if (enpu_register_is(reg, pos))
			return count == reg->bytes && (reg->access & access) ? 0 : -EINVAL;
	}
	return -ENXIO;
}

static ssize_t enpu_registers_read(struct file *file, char __user *ubuf, size_t count, loff_t *pos)
{
	struct enpu_device *edev = file->private_data;
	u64 value;
	int ret, idx;

	ret = enpu_register_check(*pos, count, ENPU_REGISTER_ACCESS_RO);
	if (ret)
		return ret;
	ret = enpu_debugfs_enter(edev, &idx);
	if (ret)
		return ret;
	value = count == sizeof(u64) ? enpu_read64(edev, *pos) : enpu_read32(edev, *pos);
	enpu_debugfs_exit(edev, idx);
	if (count == sizeof(u64))
		ret = put_user(value, (u64 __user *)ubuf);
	else
		ret = put_user((u32)value, (u32 __user *)ubuf);
	return ret ? ret : count;
}

/* The driver does not know what is written here: for bring-up, and to break things on purpose. */
static ssize_t enpu_registers_write(struct file *file, const char __user *ubuf, size_t count,
				    loff_t *pos)
{
	struct enpu_device *edev = file->private_data;
	u64 value;
	u32 half;
	int ret, idx;

	ret = enpu_register_check(*pos, count, ENPU_REGISTER_ACCESS_WO);
	if (ret)
		return ret;
	if (count == sizeof(u64)) {
		ret = get_user(value, (u64 __user *)ubuf);
	} else {
		ret = get_user(half, (u32 __user *)ubuf);
		value = half;
	}
	if (ret)
		return ret;
	ret = enpu_debugfs_enter(edev, &idx);
	if (ret)
		return ret;
	scoped_guard(mutex, &edev->hw_lock) {
		if (count == sizeof(u64))
			enpu_write64(edev, *pos, value);
		else
			enpu_write32(edev, *pos, value);
	}
	enpu_debugfs_exit(edev, idx);
	return count;
}

const struct file_operations enpu_registers_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = enpu_registers_read,
	.write = enpu_registers_write,
};
