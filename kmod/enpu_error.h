/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Errors that the device reports: the FIFO, and what they mean for a job.
 */
#ifndef ENPU_ERROR_H
#define ENPU_ERROR_H

#include <linux/workqueue.h>

#include "enpu_status.h"

struct enpu_device;
struct enpu_queue;

void enpu_error_work(struct work_struct *work);
void enpu_errors_drain(struct enpu_device *edev);
void enpu_queue_check_faulted(struct enpu_queue *queue);

#endif
