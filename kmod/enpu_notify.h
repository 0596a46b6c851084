/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Steps of the recovery ladder, told to traces and, as uevents, to user space.
 */
#ifndef ENPU_NOTIFY_H
#define ENPU_NOTIFY_H

#include <linux/kfifo.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

struct enpu_device;

/* A number that is no engine: the step is about the whole device. */
#define ENPU_NO_ENGINE		0xff
#define ENPU_NOTIFY_DEPTH	32

/* In the order of rising force; what each is called in uevents is in enpu_notify.c. */
enum enpu_step {
	ENPU_STEP_HANG,
	ENPU_STEP_ENGINE_RESET,
	ENPU_STEP_DEVICE_RESET,
	ENPU_STEP_WEDGED,
	ENPU_STEP_GONE,
	ENPU_STEP_RECOVERED,
	ENPU_STEP_IRQ_STORM,
};

struct enpu_notice {
	u8 step;
	u8 engine;
};

/**
 * struct enpu_notifier - uevents that are still to be sent
 * @lock: protects @pending
 * @pending: notices
 * @work: sends them; may allocate, which the path of fences must not
 */
struct enpu_notifier {
	spinlock_t lock; /* see above */
	DECLARE_KFIFO(pending, struct enpu_notice, ENPU_NOTIFY_DEPTH);
	struct work_struct work;
};

void enpu_notifier_init(struct enpu_device *edev);
void enpu_notifier_fini(struct enpu_device *edev);
void enpu_notify(struct enpu_device *edev, enum enpu_step step, u8 engine);

#endif
