// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attributes of the PCI device. The first four have the names that monitoring tools know from
 * other NPUs.
 */
#include <linux/device.h>
#include <linux/math64.h>
#include <linux/sysfs.h>

#include "enpu_drv.h"
#include "enpu_local.h"

static struct enpu_device *dev_to_enpu(struct device *dev)
{
	return to_enpu_device((struct drm_device *)dev_get_drvdata(dev));
}

/* Time that engines had a job, all engines added up, in us. */
static ssize_t npu_busy_time_us_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n",
			  (u64)atomic64_read(&dev_to_enpu(dev)->stats.busy_ns) / NSEC_PER_USEC);
}
static DEVICE_ATTR_RO(npu_busy_time_us);

/* A reader that comes sooner gets what the one before got. */
#define ENPU_LOAD_WINDOW_NS	(100 * NSEC_PER_MSEC)

/*
 * Share of the time since the last look that engines had a job, over all engines. Jobs count when
 * they end.
 */
static ssize_t npu_busy_percent_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct enpu_device *edev = dev_to_enpu(dev);
	struct enpu_load *load = &edev->load;
	u64 now = ktime_get_ns(), busy;

	guard(mutex)(&edev->local_lock);
	if (now - load->since_ns >= ENPU_LOAD_WINDOW_NS) {
		busy = atomic64_read(&edev->stats.busy_ns);
		load->percent = min_t(u64, 100, div64_u64((busy - load->busy_ns) * 100,
							  (now - load->since_ns) *
							  edev->num_engines));
		load->since_ns = now;
		load->busy_ns = busy;
	}
	return sysfs_emit(buf, "%u\n", load->percent);
}
static DEVICE_ATTR_RO(npu_busy_percent);

/* Local memory in bytes. */
static ssize_t npu_memory_total_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", dev_to_enpu(dev)->local_bytes);
}
static DEVICE_ATTR_RO(npu_memory_total);

/* Local memory in use, in bytes. */
static ssize_t npu_memory_utilization_show(struct device *dev, struct device_attribute *attr,
					   char *buf)
{
	struct enpu_local_usage usage;

	enpu_local_usage(dev_to_enpu(dev), &usage);
	return sysfs_emit(buf, "%llu\n", usage.total - usage.free);
}
static DEVICE_ATTR_RO(npu_memory_utilization);

/* Counters of events since the module was bound. */
#define ENPU_COUNTER(name)								\
static ssize_t name##_show(struct device *dev, struct device_attribute *attr, char *buf) \
{											\
	return sysfs_emit(buf, "%u\n", atomic_read(&dev_to_enpu(dev)->stats.name));	\
}											\
static DEVICE_ATTR_RO(name)

ENPU_COUNTER(engine_resets);
ENPU_COUNTER(device_resets);
ENPU_COUNTER(failed_resets);
ENPU_COUNTER(hangs);
ENPU_COUNTER(faults);
ENPU_COUNTER(ecc_corrected);
ENPU_COUNTER(lost_interrupts);
ENPU_COUNTER(lost_doorbells);
ENPU_COUNTER(bad_fences);
ENPU_COUNTER(irq_storms);
ENPU_COUNTER(dumps);
ENPU_COUNTER(dumps_dropped);
ENPU_COUNTER(notices_dropped);

static struct attribute *enpu_attrs[] = {
	&dev_attr_npu_busy_time_us.attr,
	&dev_attr_npu_busy_percent.attr,
	&dev_attr_npu_memory_total.attr,
	&dev_attr_npu_memory_utilization.attr,
	&dev_attr_engine_resets.attr,
	&dev_attr_device_resets.attr,
	&dev_attr_hangs.attr,
	&dev_attr_faults.attr,
	&dev_attr_ecc_corrected.attr,
	&dev_attr_lost_interrupts.attr,
	&dev_attr_lost_doorbells.attr,
	&dev_attr_bad_fences.attr,
	&dev_attr_failed_resets.attr,
	&dev_attr_irq_storms.attr,
	&dev_attr_dumps.attr,
	&dev_attr_dumps_dropped.attr,
	&dev_attr_notices_dropped.attr,
	NULL,
};

static const struct attribute_group enpu_group = {
	.attrs = enpu_attrs,
};

const struct attribute_group *enpu_sysfs_groups[] = {
	&enpu_group,
	NULL,
};
