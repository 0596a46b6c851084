/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Errors that the device reports: the FIFO, and what they mean for a job.
 */
#ifndef ENPU_ERROR_H
#define ENPU_ERROR_H

#include <linux/errno.h>
#include <linux/workqueue.h>

#include "enpu_hw.h"

struct enpu_device;
struct enpu_queue;

/*
 * The errno of the context status record for a job that ended with this enum enpu_status. Also
 * built by KUnit.
 */
static inline int enpu_status_errno(u32 status)
{
	switch (status) {
	case ENPU_STATUS_MMU_FAULT:
		return -EFAULT;
	case ENPU_STATUS_DMA_ERROR:
	case ENPU_STATUS_ECC_UNCORRECTED:
		return -EREMOTEIO;
	case ENPU_STATUS_WAIT_TIMEOUT:
		return -ETIMEDOUT;
	case ENPU_STATUS_ABORTED:
	case ENPU_STATUS_TORN:
		return -ESTALE;
	case ENPU_STATUS_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EBADMSG;
	}
}

void enpu_error_work(struct work_struct *work);
void enpu_errors_drain(struct enpu_device *edev);
void enpu_queue_check_faulted(struct enpu_queue *queue);

#endif
