/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Dumps of the device for /sys/class/devcoredump.
 */
#ifndef ENPU_COREDUMP_H
#define ENPU_COREDUMP_H

#include <linux/types.h>
#include <linux/workqueue.h>
#include <drm/enpu_dump.h>

#include "enpu_hw.h"

struct enpu_device;
struct enpu_engine;
struct enpu_queue;

#define ENPU_DUMP_ERROR_LOG	32

/**
 * struct enpu_coredump - a dump in the making, and what it will tell of the past
 * @data: ENPU_DUMP_MAX_BYTES, allocated with the device; under hw_lock while not @full, else of
 *   @work
 * @bytes: used
 * @sections: written
 * @flags: ENPU_DUMP_*
 * @full: a snapshot waits for @work
 * @work: hands the snapshot to devcoredump
 * @fault_ns: when the last dump of a mere fault was made; under hw_lock
 * @errors: the last error records; under hw_lock
 * @error_count: all records so far
 */
struct enpu_coredump {
	void *data;
	size_t bytes;
	u32 sections;
	u32 flags;
	bool full;
	struct work_struct work;
	u64 fault_ns;
	struct enpu_error_record errors[ENPU_DUMP_ERROR_LOG];
	u32 error_count;
};

int enpu_coredump_init(struct enpu_device *edev);
void enpu_coredump_fini(struct enpu_device *edev);
void enpu_coredump_note_error(struct enpu_device *edev, const struct enpu_error_record *record);
void enpu_coredump_take(struct enpu_device *edev, enum enpu_dump_reason reason,
			struct enpu_engine *engine, struct enpu_queue *queue,
			const struct enpu_error_record *record);

#endif
