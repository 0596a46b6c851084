/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engine reset, device reset, giving up.
 */
#ifndef ENPU_RESET_H
#define ENPU_RESET_H

#include <linux/types.h>
#include <linux/workqueue.h>
#include <drm/enpu_dump.h>

struct enpu_device;
struct enpu_engine;
struct enpu_queue;

void enpu_engine_reset_locked(struct enpu_engine *engine, struct enpu_queue *culprit,
			      enum enpu_dump_reason reason);
void enpu_device_reset_locked(struct enpu_device *edev, enum enpu_dump_reason reason);
void enpu_device_stop_locked(struct enpu_device *edev);
int enpu_device_restart_locked(struct enpu_device *edev);
void enpu_device_cancel_all(struct enpu_device *edev, int error);
void enpu_reset_work(struct work_struct *work);
void enpu_reset_request(struct enpu_device *edev, unsigned int what);

#endif
