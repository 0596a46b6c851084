/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hardware queues: the ring of a context on an engine, filled by the driver, or by a process
 * (enpu_uqueue.h).
 */
#ifndef ENPU_QUEUE_H
#define ENPU_QUEUE_H

#include <linux/list.h>
#include <linux/types.h>

#include "enpu_dma.h"
#include "enpu_hw.h"
#include "enpu_ring.h"

struct enpu_ctx;
struct enpu_device;
struct enpu_engine;
struct enpu_job;
struct enpu_error_record;

/**
 * struct enpu_queue - a hardware queue
 * @edev: device
 * @engine: engine it is on
 * @ctx: owner, which destroys it before it goes
 * @id: number in hardware
 * @user: the process fills it; there are no @jobs, and what the memory says is its word only
 * @ring_log2: of its entries
 * @address: of the memory for the device: a bus address, or a VA for a process's queue
 * @memory: header, ring and completion records
 * @dma: the mapping of @memory, unless it is a process's
 * @header: first page of @memory
 * @ring: entries
 * @completions: records
 * @fence_context: of the hardware fences
 * @tail: entries written
 * @done: fence completed last, as far as harvested
 * @scheduled: jobs that the scheduler has yet to push; under the engine's lock
 * @late: fence that was there at the last look though its job had not been picked up, else 0; only
 *   the recovery worker looks
 * @jobs: in hardware, in order
 * @link: in the engine's list
 * @enabled: ENABLE is set, or will be with the next restore; under hw_lock
 * @head: where the next start begins; under hw_lock
 * @resume: byte offset in the entry at @head; under hw_lock
 * @fault_taken: the job that faulted the queue has been failed, the queue has not been started
 *   again; under hw_lock
 * @blame: errno for the job with @blame_fence when a reset of ours drops it; 0 when nobody is to
 *   blame; under hw_lock
 * @blame_fence: see @blame
 * @idle_fence: oldest job when the watchdog found the device idle about this queue, else 0; only
 *   the recovery worker looks
 * @idle_ns: when it was found, or kicked again
 */
struct enpu_queue {
	struct enpu_device *edev;
	struct enpu_engine *engine;
	struct enpu_ctx *ctx;
	u32 id;
	bool user;
	u32 ring_log2;
	u64 address;
	void *memory;
	struct enpu_dma dma;
	struct enpu_queue_header *header;
	struct enpu_ring_entry *ring;
	struct enpu_completion *completions;
	u64 fence_context;
	u64 tail;
	u64 done;
	u32 scheduled;
	u64 late;
	struct list_head jobs;
	struct list_head link;
	bool enabled;
	u64 head;
	u64 resume;
	bool fault_taken;
	int blame;
	u64 blame_fence;
	u64 idle_fence;
	u64 idle_ns;
};

void enpu_queue_init(struct enpu_queue *queue, struct enpu_ctx *ctx, struct enpu_engine *engine);
void enpu_queue_set_memory(struct enpu_queue *queue, void *memory, u64 address, u32 ring_log2);
int enpu_queue_register(struct enpu_queue *queue);
void enpu_queue_unregister(struct enpu_queue *queue);
struct enpu_queue *enpu_queue_create(struct enpu_ctx *ctx, struct enpu_engine *engine);
void enpu_queue_destroy(struct enpu_queue *queue);
void enpu_queue_program(struct enpu_queue *queue);
struct dma_fence *enpu_queue_wait_room(struct enpu_queue *queue);
bool enpu_queue_takes_direct(struct enpu_queue *queue);
void enpu_queue_schedule(struct enpu_queue *queue);
bool enpu_queue_harvest_late(struct enpu_queue *queue);
void enpu_queue_ask_stop(struct enpu_queue *queue);
int enpu_queue_wait_stopped(struct enpu_queue *queue, u64 deadline_ns);
bool enpu_queue_push(struct enpu_queue *queue, struct enpu_job *job);
void enpu_queue_ring(struct enpu_queue *queue);
unsigned int enpu_queue_harvest(struct enpu_queue *queue);
void enpu_queue_harvest_register(struct enpu_queue *queue);
unsigned int enpu_engine_harvest(struct enpu_engine *engine);
void enpu_queue_cancel(struct enpu_queue *queue, int error);
bool enpu_queue_fail_head(struct enpu_queue *queue, u64 fence, int error,
			  const struct enpu_error_record *record);
void enpu_queue_shut(struct enpu_queue *queue);
u64 enpu_queue_current_fence(struct enpu_queue *queue);
u64 enpu_queue_finished(struct enpu_queue *queue);
bool enpu_queue_has_work(struct enpu_queue *queue);
bool enpu_queue_is_awaited(struct enpu_queue *queue);

/* The errno of a job that a reset of ours has dropped. Under hw_lock. */
static inline int enpu_queue_reset_errno(struct enpu_queue *queue, u64 fence)
{
	/* A process's word on which entry it is does not take the blame off it. */
	if (queue->blame && (queue->user || fence == queue->blame_fence))
		return queue->blame;
	return -ESTALE;
}

#endif
