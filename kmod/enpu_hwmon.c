// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sensors of the device, by the names that monitors read. The device is emulated and so are they,
 * which the labels say. A device that sleeps is not woken for them: -ENODATA.
 */
#include <linux/device.h>
#include <linux/hwmon.h>
#include <linux/hwmon-sysfs.h>
#include <linux/pm_runtime.h>
#include <linux/sysfs.h>
#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "enpu_drv.h"

static const char enpu_hwmon_label[] = "emulated";

static int enpu_hwmon_register(struct enpu_device *edev, u32 reg, u32 *value)
{
	int idx, ret = 0;

	if (!drm_dev_enter(&edev->drm, &idx))
		return -ENODEV;
	if (pm_runtime_get_if_active(edev->drm.dev) <= 0) {
		ret = -ENODATA;
		goto exit;
	}
	*value = enpu_read32(edev, reg);
	if (*value == U32_MAX)
		ret = -ENODEV;
	/* Not as a use: somebody who looks every second keeps nothing awake. */
	pm_runtime_put(edev->drm.dev);
exit:
	drm_dev_exit(idx);
	return ret;
}

static umode_t enpu_hwmon_is_visible(const void *data, enum hwmon_sensor_types type, u32 attr,
				     int channel)
{
	return 0444;
}

static int enpu_hwmon_read(struct device *dev, enum hwmon_sensor_types type, u32 attr, int channel,
			   long *val)
{
	struct enpu_device *edev = dev_get_drvdata(dev);
	u32 value;
	int ret;

	if (type == hwmon_temp && attr == hwmon_temp_input) {
		ret = enpu_hwmon_register(edev, ENPU_REG_SENSOR_TEMP, &value);
		/* Millidegrees on both sides; below zero, too. */
		if (!ret)
			*val = (s32)value;
		return ret;
	}
	if (type == hwmon_power && attr == hwmon_power_input) {
		ret = enpu_hwmon_register(edev, ENPU_REG_SENSOR_POWER, &value);
		/* From mW to uW. */
		if (!ret)
			*val = (long)value * 1000;
		return ret;
	}
	return -EOPNOTSUPP;
}

static int enpu_hwmon_read_string(struct device *dev, enum hwmon_sensor_types type, u32 attr,
				  int channel, const char **str)
{
	*str = enpu_hwmon_label;
	return 0;
}

/* hwmon has no class of clocks; others offer theirs by these names. In Hz. */
static ssize_t freq1_input_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	u32 mhz;
	int ret;

	ret = enpu_hwmon_register(dev_get_drvdata(dev), ENPU_REG_SENSOR_CLOCK, &mhz);
	return ret ?: sysfs_emit(buf, "%llu\n", mhz * 1000000ull);
}
static DEVICE_ATTR_RO(freq1_input);

static ssize_t freq1_label_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", enpu_hwmon_label);
}
static DEVICE_ATTR_RO(freq1_label);

static struct attribute *enpu_hwmon_attrs[] = {
	&dev_attr_freq1_input.attr,
	&dev_attr_freq1_label.attr,
	NULL,
};
ATTRIBUTE_GROUPS(enpu_hwmon);

static const struct hwmon_channel_info * const enpu_hwmon_channels[] = {
	HWMON_CHANNEL_INFO(temp, HWMON_T_INPUT | HWMON_T_LABEL),
	HWMON_CHANNEL_INFO(power, HWMON_P_INPUT | HWMON_P_LABEL),
	NULL,
};

static const struct hwmon_ops enpu_hwmon_ops = {
	.is_visible = enpu_hwmon_is_visible,
	.read = enpu_hwmon_read,
	.read_string = enpu_hwmon_read_string,
};

static const struct hwmon_chip_info enpu_hwmon_chip = {
	.ops = &enpu_hwmon_ops,
	.info = enpu_hwmon_channels,
};

/* Gone with the binding of the driver. A device without them works. */
void enpu_hwmon_init(struct enpu_device *edev)
{
	struct device *dev = edev->drm.dev, *hwmon;

	hwmon = devm_hwmon_device_register_with_info(dev, ENPU_DRIVER_NAME, edev, &enpu_hwmon_chip,
						     enpu_hwmon_groups);
	if (IS_ERR(hwmon))
		drm_warn(&edev->drm, "no sensors: hwmon says %pe\n", hwmon);
}
