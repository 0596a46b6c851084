// SPDX-License-Identifier: GPL-2.0-only
/*
 * Steps of the recovery ladder. A step is traced at once; its uevent is sent by a worker, as that
 * allocates and recovery must not.
 */
#include <linux/kobject.h>
#include <drm/drm_file.h>
#include <drm/drm_print.h>

#include "enpu_device.h"
#include "enpu_notify.h"
#include "enpu_trace.h"

static const char *const enpu_step_names[] = {
	[ENPU_STEP_HANG] = "hang",
	[ENPU_STEP_ENGINE_RESET] = "engine-reset",
	[ENPU_STEP_DEVICE_RESET] = "device-reset",
	[ENPU_STEP_WEDGED] = "wedged",
	[ENPU_STEP_GONE] = "gone",
	[ENPU_STEP_RECOVERED] = "recovered",
	[ENPU_STEP_IRQ_STORM] = "irq-storm",
};

/*
 * An accelerator node has no primary minor, which the DRM helper for WEDGED needs, so it is sent
 * from here, with the words of that helper.
 */
static const char *enpu_step_wedged(enum enpu_step step)
{
	switch (step) {
	case ENPU_STEP_WEDGED:
		return "WEDGED=bus-reset";
	case ENPU_STEP_GONE:
		return "WEDGED=unknown";
	default:
		return NULL;
	}
}

static void enpu_notify_send(struct enpu_device *edev, const struct enpu_notice *notice)
{
	char step[32], engine[40];
	char *envp[4] = { step };
	int n = 1;

	snprintf(step, sizeof(step), "ENPU_STEP=%s", enpu_step_names[notice->step]);
	if (notice->engine < edev->num_engines) {
		snprintf(engine, sizeof(engine), "ENPU_ENGINE=%s",
			 edev->engines[notice->engine].name);
		envp[n++] = engine;
	}
	if (enpu_step_wedged(notice->step))
		envp[n++] = (char *)enpu_step_wedged(notice->step);
	kobject_uevent_env(&edev->drm.accel->kdev->kobj, KOBJ_CHANGE, envp);
}

static void enpu_notify_work(struct work_struct *work)
{
	struct enpu_device *edev = container_of(work, struct enpu_device, notifier.work);
	struct enpu_notice notice;

	while (kfifo_out_spinlocked(&edev->notifier.pending, &notice, 1, &edev->notifier.lock))
		enpu_notify_send(edev, &notice);
}

void enpu_notifier_init(struct enpu_device *edev)
{
	spin_lock_init(&edev->notifier.lock);
	INIT_KFIFO(edev->notifier.pending);
	INIT_WORK(&edev->notifier.work, enpu_notify_work);
}

/* Sends what is left; nobody may notify any more. */
void enpu_notifier_fini(struct enpu_device *edev)
{
	flush_work(&edev->notifier.work);
	disable_work_sync(&edev->notifier.work);
}

/* Any context. @engine: its index or ENPU_NO_ENGINE. */
void enpu_notify(struct enpu_device *edev, enum enpu_step step, u8 engine)
{
	struct enpu_notice notice = { .step = step, .engine = engine };

	trace_enpu_step(enpu_step_names[step], engine);
	/* Dozens of steps in the time of one uevent: the log and the counters have them. */
	if (!kfifo_in_spinlocked(&edev->notifier.pending, &notice, 1, &edev->notifier.lock))
		atomic_inc(&edev->stats.notices_dropped);
	schedule_work(&edev->notifier.work);
}
