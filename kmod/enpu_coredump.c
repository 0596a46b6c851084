// SPDX-License-Identifier: GPL-2.0-only
/*
 * Dumps of the device. Recovery takes a snapshot into memory that probe allocated, as it is in the
 * path of fences; a worker copies it and hands it to devcoredump. The format is that of
 * uapi/drm/enpu_dump.h.
 */
#include <linux/delay.h>
#include <linux/devcoredump.h>
#include <linux/kernfs.h>
#include <linux/timekeeping.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>
#include <drm/drm_managed.h>

#include "enpu_coredump.h"
#include "enpu_ctx.h"
#include "enpu_device.h"
#include "enpu_hw_registers.h"
#include "enpu_job.h"
#include "enpu_peek.h"
#include "enpu_queue.h"
#include "enpu_trace.h"
#include "enpu_vm.h"

/* Programs can fault as often as they like. */
#define ENPU_DUMP_FAULT_INTERVAL_NS	(500 * NSEC_PER_MSEC)
/* How long a dump that was dismissed may take to go. */
#define ENPU_DUMP_GOING_MS	50
#define ENPU_DUMP_LOOK_MS	5

/* What a snapshot is about. */
struct enpu_dump_subject {
	enum enpu_dump_reason reason;
	struct enpu_engine *engine;
	struct enpu_queue *queue;
	const struct enpu_error_record *record;
	struct enpu_dump_job job;
	bool has_job;
};

/* Starts a section; its zeroed payload, or NULL when it does not fit beside the last section. */
static void *enpu_dump_begin(struct enpu_coredump *dump, u32 type, u32 index, size_t bytes)
{
	struct enpu_dump_section *section = dump->data + dump->bytes;
	size_t need = sizeof(*section) + ALIGN(bytes, 8);

	if (dump->bytes + need + sizeof(*section) > ENPU_DUMP_MAX_BYTES) {
		dump->flags |= ENPU_DUMP_INCOMPLETE;
		return NULL;
	}
	memset(section, 0, need);
	section->type = type;
	section->index = index;
	section->bytes = bytes;
	dump->sections++;
	dump->bytes += need;
	return section + 1;
}

/* Shortens the section that was begun last to what was used of its payload. */
static void enpu_dump_trim(struct enpu_coredump *dump, void *payload, size_t bytes)
{
	struct enpu_dump_section *section = payload - sizeof(*section);

	section->bytes = bytes;
	dump->bytes = payload + ALIGN(bytes, 8) - dump->data;
}

static void enpu_dump_info(struct enpu_device *edev, const struct enpu_dump_subject *subject)
{
	struct enpu_dump_info *info = enpu_dump_begin(&edev->coredump, ENPU_DUMP_INFO, 0,
						      sizeof(*info));

	if (!info)
		return;
	info->reason = subject->reason;
	info->engine = subject->engine ? subject->engine->index : ENPU_DUMP_NONE;
	info->queue = subject->queue ? subject->queue->id : ENPU_DUMP_NONE;
	info->hw_version = edev->hw_version;
	info->features = edev->features;
	info->compute_engines = edev->num_compute;
	info->copy_engines = edev->num_engines - edev->num_compute;
	info->uapi_minor = ENPU_UAPI_MINOR;
	info->engine_resets = atomic_read(&edev->stats.engine_resets);
	info->device_resets = atomic_read(&edev->stats.device_resets);
	info->hangs = atomic_read(&edev->stats.hangs);
	info->faults = atomic_read(&edev->stats.faults);
	info->device_ns = enpu_read64(edev, ENPU_REG_TIMESTAMP);
	info->monotonic_ns = ktime_get_ns();
	info->realtime_ns = ktime_get_real_ns();
	info->local_bytes = edev->local_bytes;
	strscpy(info->kernel, init_utsname()->release, sizeof(info->kernel));
	strscpy(info->pci, pci_name(edev->pdev), sizeof(info->pci));
}

struct enpu_dump_place {
	u32 offset;
	u32 stride;
	u32 count;
	u8 bytes;
	bool readable;
};

#define ENPU_DUMP_RO	true
#define ENPU_DUMP_RW	true
#define ENPU_DUMP_W1C	true
#define ENPU_DUMP_WO	false
#define ENPU_DUMP_PLACE(name, offset, stride, count, bytes, access) \
	{ offset, stride, count, bytes, ENPU_DUMP_##access },

static const struct enpu_dump_place enpu_dump_places[] = {
	ENPU_REGISTER_LIST(ENPU_DUMP_PLACE)
};

/* Is a register of a block about something that exists? */
static bool enpu_dump_place_used(struct enpu_device *edev, const struct enpu_dump_place *place,
				 u32 i)
{
	if (place->offset >= ENPU_QUEUE_BASE)
		return i < edev->num_queues && edev->queues[i];
	if (place->offset >= ENPU_AS_BASE)
		return i < edev->num_as && edev->vms[i];
	if (place->offset >= ENPU_ENGINE_BASE)
		return i < edev->num_engines;
	return true;
}

static u32 enpu_dump_place_read(struct enpu_device *edev, const struct enpu_dump_place *place,
				struct enpu_dump_register *out)
{
	u32 i, n = 0;

	for (i = 0; i < place->count; i++) {
		u32 offset = place->offset + i * place->stride;

		if (!enpu_dump_place_used(edev, place, i))
			continue;
		out[n].offset = offset;
		out[n].bytes = place->bytes;
		out[n].value = place->bytes == 8 ? enpu_read64(edev, offset) :
						   enpu_read32(edev, offset);
		n++;
	}
	return n;
}

static void enpu_dump_registers(struct enpu_device *edev)
{
	struct enpu_dump_register *out;
	u32 i, total = 0, n = 0;

	for (i = 0; i < ARRAY_SIZE(enpu_dump_places); i++)
		if (enpu_dump_places[i].readable)
			total += enpu_dump_places[i].count;
	out = enpu_dump_begin(&edev->coredump, ENPU_DUMP_REGISTERS, 0, total * sizeof(*out));
	if (!out)
		return;
	for (i = 0; i < ARRAY_SIZE(enpu_dump_places); i++)
		if (enpu_dump_places[i].readable)
			n += enpu_dump_place_read(edev, &enpu_dump_places[i], out + n);
	enpu_dump_trim(&edev->coredump, out, n * sizeof(*out));
}

static void enpu_dump_errors(struct enpu_coredump *dump)
{
	u32 n = min(dump->error_count, ENPU_DUMP_ERROR_LOG), i;
	struct enpu_error_record *out = enpu_dump_begin(dump, ENPU_DUMP_ERRORS, 0,
							n * sizeof(*out));

	for (i = 0; out && i < n; i++)
		out[i] = dump->errors[(dump->error_count - n + i) % ENPU_DUMP_ERROR_LOG];
}

static void enpu_dump_queue(struct enpu_device *edev, struct enpu_queue *queue)
{
	struct enpu_dump_queue *out = enpu_dump_begin(&edev->coredump, ENPU_DUMP_QUEUE, queue->id,
						      sizeof(*out));
	unsigned long flags;

	if (!out)
		return;
	out->id = queue->id;
	out->engine = queue->engine->index;
	out->as_id = queue->ctx->vm->as_id;
	out->ctx_id = queue->ctx->id;
	out->pid = queue->ctx->vm->pid;
	out->ring_log2 = queue->ring_log2;
	out->bus = queue->address;
	out->dead = READ_ONCE(queue->ctx->dead);
	spin_lock_irqsave(&queue->engine->lock, flags);
	out->tail = queue->tail;
	out->done = queue->done;
	out->jobs = list_count_nodes(&queue->jobs);
	spin_unlock_irqrestore(&queue->engine->lock, flags);
}

static void enpu_dump_ring(struct enpu_coredump *dump, struct enpu_queue *queue)
{
	size_t bytes = enpu_ring_bytes(queue->ring_log2);
	void *out = enpu_dump_begin(dump, ENPU_DUMP_RING, queue->id, bytes);

	if (out)
		memcpy(out, queue->memory, bytes);
}

static void enpu_dump_context(struct enpu_coredump *dump, struct enpu_ctx *ctx)
{
	struct enpu_dump_context *out = enpu_dump_begin(dump, ENPU_DUMP_CONTEXT, 0, sizeof(*out));
	unsigned long flags;

	if (!out)
		return;
	out->ctx_id = ctx->id;
	out->priority = ctx->priority;
	out->timeout_ms = ctx->timeout_ms;
	out->pid = ctx->vm->pid;
	out->client_id = ctx->vm->client_id;
	strscpy(out->comm, ctx->vm->comm, sizeof(out->comm));
	spin_lock_irqsave(&ctx->lock, flags);
	out->unfinished = ctx->unfinished;
	out->error = ctx->status.error;
	out->submitted = ctx->seqno;
	spin_unlock_irqrestore(&ctx->lock, flags);
}

/* The job that the queue is at, and the packet in it. */
static void enpu_dump_find_job(struct enpu_device *edev, struct enpu_dump_subject *subject)
{
	struct enpu_queue *queue = subject->queue;
	struct enpu_dump_job *out = &subject->job;
	struct enpu_job *job;
	unsigned long flags;

	spin_lock_irqsave(&queue->engine->lock, flags);
	job = list_first_entry_or_null(&queue->jobs, struct enpu_job, queue_link);
	if (job) {
		subject->has_job = true;
		out->seqno = job->seqno;
		out->job_id = job->job_id;
		out->fence = job->fence;
		out->cmd_va = job->cmd_va;
		out->cmd_bytes = job->cmd_bytes;
		out->running_ns = ktime_get_ns() - job->started_ns;
	}
	spin_unlock_irqrestore(&queue->engine->lock, flags);

	if (subject->record)
		out->packet = le32_to_cpu(subject->record->packet);
	else if (enpu_read32(edev, ENPU_REG_ENGINE_QUEUE(queue->engine->index)) == queue->id)
		out->packet = enpu_read32(edev, ENPU_REG_ENGINE_PACKET(queue->engine->index));
	/* The number comes from the device. */
	if (out->packet >= out->cmd_bytes)
		out->packet = 0;
}

/* As much of the command buffer as is kept, with the packet in question in the middle. */
static void enpu_dump_packets(struct enpu_coredump *dump, struct enpu_vm *vm,
			      const struct enpu_dump_job *job)
{
	u32 bytes = min(job->cmd_bytes, ENPU_DUMP_PACKET_BYTES), start = 0;
	size_t got;
	void *out;

	if (job->packet > bytes / 2)
		start = min(job->packet - bytes / 2, job->cmd_bytes - bytes);
	start = ALIGN_DOWN(start, ENPU_PACKET_ALIGN);
	out = enpu_dump_begin(dump, ENPU_DUMP_PACKETS, start, bytes);
	if (!out)
		return;
	got = enpu_vm_read(vm, job->cmd_va + start, out, bytes);
	if (got < bytes)
		dump->flags |= ENPU_DUMP_INCOMPLETE;
	enpu_dump_trim(dump, out, got);
}

static void enpu_dump_walk(struct enpu_coredump *dump, struct enpu_vm *vm, u64 va)
{
	struct enpu_dump_walk *out = enpu_dump_begin(dump, ENPU_DUMP_WALK, 0, sizeof(*out));

	if (out)
		enpu_vm_walk(vm, va, out);
}

static void enpu_dump_memory(struct enpu_coredump *dump, const struct enpu_dump_subject *subject)
{
	struct enpu_vm *vm = subject->queue->ctx->vm;
	const struct enpu_error_record *record = subject->record;

	if (!enpu_vm_try_lock(vm)) {
		dump->flags |= ENPU_DUMP_INCOMPLETE;
		return;
	}
	if (record && record->kind == ENPU_STATUS_MMU_FAULT)
		enpu_dump_walk(dump, vm, le64_to_cpu(record->va));
	if (subject->has_job) {
		enpu_dump_walk(dump, vm, subject->job.cmd_va);
		enpu_dump_packets(dump, vm, &subject->job);
	}
	mutex_unlock(&vm->lock);
}

/* Everything about the queue that is blamed. */
static void enpu_dump_culprit(struct enpu_device *edev, struct enpu_dump_subject *subject)
{
	struct enpu_coredump *dump = &edev->coredump;
	struct enpu_dump_job *job;

	enpu_dump_context(dump, subject->queue->ctx);
	enpu_dump_find_job(edev, subject);
	if (subject->has_job) {
		job = enpu_dump_begin(dump, ENPU_DUMP_JOB, 0, sizeof(*job));
		if (job)
			*job = subject->job;
	}
	enpu_dump_memory(dump, subject);
	enpu_dump_ring(dump, subject->queue);
}

static void enpu_dump_write(struct enpu_device *edev, struct enpu_dump_subject *subject)
{
	struct enpu_coredump *dump = &edev->coredump;
	struct enpu_dump_header *header = dump->data;
	struct enpu_dump_section *end;
	u32 i;

	dump->bytes = sizeof(*header);
	dump->sections = 1;
	dump->flags = 0;
	enpu_dump_info(edev, subject);
	if (subject->queue)
		enpu_dump_culprit(edev, subject);
	if (subject->reason != ENPU_DUMP_REASON_GONE)
		enpu_dump_registers(edev);
	enpu_dump_errors(dump);
	for (i = 0; i < edev->num_queues; i++)
		if (edev->queues[i])
			enpu_dump_queue(edev, edev->queues[i]);

	/* enpu_dump_begin() kept the room. */
	end = dump->data + dump->bytes;
	memset(end, 0, sizeof(*end));
	end->type = ENPU_DUMP_END;
	dump->bytes += sizeof(*end);
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, ENPU_DUMP_MAGIC, sizeof(header->magic));
	header->major = ENPU_DUMP_MAJOR;
	header->minor = ENPU_DUMP_MINOR;
	header->header_bytes = sizeof(*header);
	header->bytes = dump->bytes;
	header->sections = dump->sections;
	header->flags = dump->flags;
}

/* Which queue an engine is at, if that is known. */
static struct enpu_queue *enpu_dump_occupant(struct enpu_engine *engine)
{
	struct enpu_device *edev = engine->edev;
	u32 id = enpu_read32(edev, ENPU_REG_ENGINE_QUEUE(engine->index));
	struct enpu_queue *queue = id < edev->num_queues ? edev->queues[id] : NULL;

	return queue && queue->engine == engine ? queue : NULL;
}

/*
 * Takes a snapshot before recovery changes what it shows. @engine, @queue and @record may be NULL.
 * A step of the ladder that follows another finds the snapshot of the first still there, and keeps
 * it. Under hw_lock.
 */
void enpu_coredump_take(struct enpu_device *edev, enum enpu_dump_reason reason,
			struct enpu_engine *engine, struct enpu_queue *queue,
			const struct enpu_error_record *record)
{
	struct enpu_coredump *dump = &edev->coredump;
	struct enpu_dump_subject subject = { reason, engine, queue, record };
	u64 now = ktime_get_ns();

	lockdep_assert_held(&edev->hw_lock);
	if (reason == ENPU_DUMP_REASON_FAULT) {
		if (dump->fault_ns && now - dump->fault_ns < ENPU_DUMP_FAULT_INTERVAL_NS)
			goto drop;
		dump->fault_ns = now;
	}
	/* Pairs with the release in the worker: it has read all of the snapshot. */
	if (smp_load_acquire(&dump->full))
		goto drop;
	if (engine && !queue && reason != ENPU_DUMP_REASON_GONE)
		subject.queue = enpu_dump_occupant(engine);
	enpu_dump_write(edev, &subject);
	dump->full = true;
	schedule_work(&dump->work);
	return;
drop:
	atomic_inc(&edev->stats.dumps_dropped);
}

/* A record came; the last ones are in every dump. Under hw_lock. */
void enpu_coredump_note_error(struct enpu_device *edev, const struct enpu_error_record *record)
{
	struct enpu_coredump *dump = &edev->coredump;

	lockdep_assert_held(&edev->hw_lock);
	dump->errors[dump->error_count % ENPU_DUMP_ERROR_LOG] = *record;
	dump->error_count++;
}

static bool enpu_dump_linked(struct device *dev)
{
	struct kernfs_node *link = kernfs_find_and_get(dev->kobj.sd, "devcoredump");

	kernfs_put(link);
	return link;
}

/*
 * An older dump waits. One that was dismissed this moment is no longer found, but its link in our
 * folder goes a little later: devcoredump would fail to make the next, with a trace in the log.
 */
static bool enpu_dump_waits(struct device *dev)
{
	unsigned int tries = ENPU_DUMP_GOING_MS / ENPU_DUMP_LOOK_MS;

	while (enpu_dump_linked(dev)) {
		if (!tries--)
			return true;
		msleep(ENPU_DUMP_LOOK_MS);
	}
	return false;
}

/* Publishes the snapshot, or drops it while an older one waits. */
static void enpu_coredump_work(struct work_struct *work)
{
	struct enpu_device *edev = container_of(work, struct enpu_device, coredump.work);
	struct enpu_coredump *dump = &edev->coredump;
	size_t bytes = dump->bytes;
	void *copy = vmalloc(bytes);

	if (copy)
		memcpy(copy, dump->data, bytes);
	/* Pairs with the acquire in enpu_coredump_take(). */
	smp_store_release(&dump->full, false);
	if (!copy || enpu_dump_waits(edev->drm.dev)) {
		vfree(copy);
		atomic_inc(&edev->stats.dumps_dropped);
		return;
	}
	atomic_inc(&edev->stats.dumps);
	dev_coredumpv(edev->drm.dev, copy, bytes, GFP_KERNEL);
}

static void enpu_coredump_free(struct drm_device *drm, void *data)
{
	vfree(data);
}

int enpu_coredump_init(struct enpu_device *edev)
{
	INIT_WORK(&edev->coredump.work, enpu_coredump_work);
	edev->coredump.data = vzalloc(ENPU_DUMP_MAX_BYTES);
	if (!edev->coredump.data)
		return -ENOMEM;
	return drmm_add_action_or_reset(&edev->drm, enpu_coredump_free, edev->coredump.data);
}

/* Publishes a snapshot that waits; nobody may take one any more. */
void enpu_coredump_fini(struct enpu_device *edev)
{
	flush_work(&edev->coredump.work);
	disable_work_sync(&edev->coredump.work);
}
