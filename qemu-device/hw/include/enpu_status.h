/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * What a job's end means to software: the errno of a context's status record, the same from the kernel driver and the simulator.
 */
#ifndef ENPU_STATUS_H
#define ENPU_STATUS_H

#ifdef __KERNEL__
#include <linux/errno.h>
#else
#include <errno.h>
#endif
#include "enpu_hw.h"

/*
 * enpu_status_errno() - The negative errno for a job that ended with a status (enum enpu_status) other than OK.
 *
 * A job dropped by a reset is -ESTALE here; whose hang it was only the driver knows.
 */
static inline int enpu_status_errno(uint32_t status)
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

#endif
