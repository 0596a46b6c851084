/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Failures on purpose: the n-th allocation or copy of a process fails (debugfs fail_nth), or the
 * n-th step of a probe (module parameter fail_probe). Works on every kernel.
 */
#ifndef ENPU_INJECT_H
#define ENPU_INJECT_H

#include <linux/atomic.h>
#include <linux/sched.h>

#include "enpu_device.h"

/*
 * Stands before whatever can fail for lack of memory or for a bad pointer in the call of a program:
 * true when it shall fail this time. Costs one read while nothing is armed.
 */
static inline bool enpu_inject_fail(struct enpu_device *edev)
{
	struct enpu_inject *inject = &edev->inject;

	if (likely(!READ_ONCE(inject->tgid)) || READ_ONCE(inject->tgid) != task_tgid_nr(current))
		return false;
	if (atomic_dec_return(&inject->left))
		return false;
	WRITE_ONCE(inject->tgid, 0);
	return true;
}

int enpu_probe_step(struct enpu_device *edev);
extern const struct file_operations enpu_fail_nth_fops;

#endif
