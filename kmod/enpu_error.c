// SPDX-License-Identifier: GPL-2.0-only
/*
 * The error FIFO. Each record is copied out of the device once and bounded before it is used.
 */
#include <linux/bitfield.h>
#include <linux/dma-fence.h>
#include <drm/drm_drv.h>
#include <drm/drm_print.h>

#include "enpu_ctx.h"
#include "enpu_device.h"
#include "enpu_error.h"
#include "enpu_queue.h"
#include "enpu_trace.h"

static void enpu_error_read(struct enpu_device *edev, struct enpu_error_record *record)
{
	__le64 words[sizeof(*record) / sizeof(__le64)];
	int i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = cpu_to_le64(enpu_read64(edev, ENPU_REG_ERR_RECORD(i)));
	memcpy(record, words, sizeof(*record));
}

/* A job failed. A program can cause this at will, so it is logged at debug level only. */
static void enpu_error_fail_job(struct enpu_device *edev, const struct enpu_error_record *record)
{
	u16 id = le16_to_cpu(record->queue);
	struct enpu_queue *queue = id < ENPU_MAX_QUEUES ? edev->queues[id] : NULL;
	u64 fence = le64_to_cpu(record->fence);
	int error = enpu_status_errno(record->kind);

	if (!queue)
		return;
	/* A job that a reset dropped is in the dump of that reset. */
	if (record->kind == ENPU_STATUS_ABORTED || record->kind == ENPU_STATUS_TORN)
		error = enpu_queue_reset_errno(queue, fence);
	else
		enpu_coredump_take(edev, ENPU_DUMP_REASON_FAULT, queue->engine, queue, record);
	/* A broken ring has no current entry. */
	if (record->kind == ENPU_STATUS_RING_ERROR)
		fence = enpu_queue_current_fence(queue);
	if (!enpu_queue_fail_head(queue, fence, error, record))
		drm_dbg(&edev->drm, "queue %u: error record for a job that is not there (fence %llu)\n",
			id, fence);
}

static void enpu_error_handle(struct enpu_device *edev, const struct enpu_error_record *record)
{
	drm_dbg(&edev->drm,
		"queue %u engine %u: status %u at packet +%#x (opcode %u, rule %u), va %#llx\n",
		le16_to_cpu(record->queue), record->engine, record->kind,
		le32_to_cpu(record->packet), le16_to_cpu(record->opcode), le16_to_cpu(record->rule),
		le64_to_cpu(record->va));
	trace_enpu_error(record);
	enpu_coredump_note_error(edev, record);

	if (record->kind == ENPU_STATUS_ECC_CORRECTED) {
		atomic_inc(&edev->stats.ecc_corrected);
		return;
	}
	atomic_inc(&edev->stats.faults);
	enpu_error_fail_job(edev, record);
}

/*
 * Handles what the FIFO holds now. Bounded, so that a device which never runs dry does not keep
 * us. Under hw_lock, while the device runs.
 */
void enpu_errors_drain(struct enpu_device *edev)
{
	struct enpu_error_record record;
	int i;

	lockdep_assert_held(&edev->hw_lock);
	for (i = 0; i < ENPU_ERROR_FIFO_DEPTH; i++) {
		if (!enpu_read32(edev, ENPU_REG_ERR_COUNT))
			return;
		enpu_error_read(edev, &record);
		enpu_write32(edev, ENPU_REG_ERR_POP, 1);
		enpu_error_handle(edev, &record);
	}
	queue_work(edev->recovery_wq, &edev->error_work);
}

/*
 * A queue can be faulted though its record found the FIFO full. Under hw_lock, while the device
 * runs.
 */
void enpu_queue_check_faulted(struct enpu_queue *queue)
{
	u64 fence;
	u32 status;
	int error;

	if (!queue->enabled || queue->fault_taken)
		return;
	/* A process can break its ring without work. */
	if (!queue->user && !enpu_queue_has_work(queue))
		return;
	status = enpu_read32(queue->edev, ENPU_REG_QUEUE_STATUS(queue->id));
	if (FIELD_GET(ENPU_QUEUE_STATUS_STATE, status) != ENPU_QUEUE_STATE_FAULTED)
		return;
	enpu_queue_harvest(queue);
	error = enpu_status_errno(FIELD_GET(ENPU_QUEUE_STATUS_ERROR, status));
	fence = enpu_queue_current_fence(queue);
	if (error == -ESTALE)
		error = enpu_queue_reset_errno(queue, fence);
	enpu_queue_fail_head(queue, fence, error, NULL);
}

/*
 * After a record was handled, a queue may have a dead context, or be faulted with jobs that shall
 * run.
 */
static void enpu_queue_settle(struct enpu_queue *queue)
{
	u32 status;

	if (!queue->enabled)
		return;
	if (READ_ONCE(queue->ctx->dead)) {
		enpu_queue_shut(queue);
		return;
	}
	status = enpu_read32(queue->edev, ENPU_REG_QUEUE_STATUS(queue->id));
	if (FIELD_GET(ENPU_QUEUE_STATUS_STATE, status) != ENPU_QUEUE_STATE_FAULTED)
		return;
	/* Its record may have come after we looked. */
	enpu_errors_drain(queue->edev);
	enpu_queue_check_faulted(queue);
	if (READ_ONCE(queue->ctx->dead)) {
		enpu_queue_shut(queue);
		return;
	}
	/* Torn by the reset of another: goes on behind the torn job. */
	enpu_queue_ask_stop(queue);
	if (!enpu_queue_wait_stopped(queue, ktime_get_ns() + NSEC_PER_SEC))
		enpu_queue_program(queue);
}

void enpu_error_work(struct work_struct *work)
{
	struct enpu_device *edev = container_of(work, struct enpu_device, error_work);
	bool cookie = dma_fence_begin_signalling();
	u32 i;
	int idx;

	if (!drm_dev_enter(&edev->drm, &idx))
		goto out;
	mutex_lock(&edev->hw_lock);
	if (edev->running)
		enpu_errors_drain(edev);
	for (i = 0; i < edev->num_queues && edev->running; i++)
		if (edev->queues[i])
			enpu_queue_settle(edev->queues[i]);
	mutex_unlock(&edev->hw_lock);
	drm_dev_exit(idx);
out:
	dma_fence_end_signalling(cookie);
}
