/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Power: who keeps the device awake.
 */
#ifndef ENPU_PM_H
#define ENPU_PM_H

struct enpu_device;

extern const struct dev_pm_ops enpu_pm;

void enpu_pm_start(struct enpu_device *edev);
void enpu_pm_stop(struct enpu_device *edev);
int enpu_pm_get(struct enpu_device *edev);
void enpu_pm_get_awake(struct enpu_device *edev);
void enpu_pm_put(struct enpu_device *edev);

#endif
