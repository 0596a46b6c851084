/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM enpu

#if !defined(ENPU_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define ENPU_TRACE_H

#include <linux/tracepoint.h>

#include "enpu_ctx.h"
#include "enpu_device.h"
#include "enpu_job.h"
#include "enpu_queue.h"

TRACE_EVENT(enpu_submit,
	    TP_PROTO(const struct enpu_job *job),
	    TP_ARGS(job),
	    TP_STRUCT__entry(__field(u32, ctx)
			     __field(u32, engine)
			     __field(u64, seqno)
			     __field(u64, job_id)
			     __field(u64, cmd_va)
			     __field(u32, cmd_bytes)),
	    TP_fast_assign(__entry->ctx = job->ctx->id;
			   __entry->engine = job->engine->index;
			   __entry->seqno = job->seqno;
			   __entry->job_id = job->job_id;
			   __entry->cmd_va = job->cmd_va;
			   __entry->cmd_bytes = job->cmd_bytes;),
	    TP_printk("ctx=%u engine=%u seqno=%llu job_id=%#llx cmd_va=%#llx cmd_bytes=%u",
		      __entry->ctx, __entry->engine, __entry->seqno, __entry->job_id,
		      __entry->cmd_va, __entry->cmd_bytes)
);

TRACE_EVENT(enpu_job_run,
	    TP_PROTO(const struct enpu_job *job),
	    TP_ARGS(job),
	    TP_STRUCT__entry(__field(u32, ctx)
			     __field(u32, engine)
			     __field(u32, queue)
			     __field(u64, seqno)
			     __field(u64, fence)),
	    TP_fast_assign(__entry->ctx = job->ctx->id;
			   __entry->engine = job->engine->index;
			   __entry->queue = job->queue->id;
			   __entry->seqno = job->seqno;
			   __entry->fence = job->fence;),
	    TP_printk("ctx=%u engine=%u queue=%u seqno=%llu fence=%llu", __entry->ctx,
		      __entry->engine, __entry->queue, __entry->seqno, __entry->fence)
);

TRACE_EVENT(enpu_job_done,
	    TP_PROTO(const struct enpu_job *job, int error),
	    TP_ARGS(job, error),
	    TP_STRUCT__entry(__field(u32, ctx)
			     __field(u32, engine)
			     __field(u64, seqno)
			     __field(int, error)),
	    TP_fast_assign(__entry->ctx = job->ctx->id;
			   __entry->engine = job->engine->index;
			   __entry->seqno = job->seqno;
			   __entry->error = error;),
	    TP_printk("ctx=%u engine=%u seqno=%llu error=%d", __entry->ctx, __entry->engine,
		      __entry->seqno, __entry->error)
);

TRACE_EVENT(enpu_irq,
	    TP_PROTO(u32 vector, u32 completed),
	    TP_ARGS(vector, completed),
	    TP_STRUCT__entry(__field(u32, vector)
			     __field(u32, completed)),
	    TP_fast_assign(__entry->vector = vector;
			   __entry->completed = completed;),
	    TP_printk("vector=%u completed=%u", __entry->vector, __entry->completed)
);

TRACE_EVENT(enpu_vm_map,
	    TP_PROTO(u32 as_id, u64 va, u64 size, u32 handle, u32 flags),
	    TP_ARGS(as_id, va, size, handle, flags),
	    TP_STRUCT__entry(__field(u32, as_id)
			     __field(u64, va)
			     __field(u64, size)
			     __field(u32, handle)
			     __field(u32, flags)),
	    TP_fast_assign(__entry->as_id = as_id;
			   __entry->va = va;
			   __entry->size = size;
			   __entry->handle = handle;
			   __entry->flags = flags;),
	    TP_printk("as=%u va=%#llx size=%#llx handle=%u flags=%#x", __entry->as_id, __entry->va,
		      __entry->size, __entry->handle, __entry->flags)
);

TRACE_EVENT(enpu_vm_unmap,
	    TP_PROTO(u32 as_id, u64 va, u64 size),
	    TP_ARGS(as_id, va, size),
	    TP_STRUCT__entry(__field(u32, as_id)
			     __field(u64, va)
			     __field(u64, size)),
	    TP_fast_assign(__entry->as_id = as_id;
			   __entry->va = va;
			   __entry->size = size;),
	    TP_printk("as=%u va=%#llx size=%#llx", __entry->as_id, __entry->va, __entry->size)
);

TRACE_EVENT(enpu_error,
	    TP_PROTO(const struct enpu_error_record *record),
	    TP_ARGS(record),
	    TP_STRUCT__entry(__field(u8, kind)
			     __field(u8, engine)
			     __field(u16, queue)
			     __field(u16, opcode)
			     __field(u16, rule)
			     __field(u32, packet)
			     __field(u64, va)
			     __field(u64, fence)),
	    TP_fast_assign(__entry->kind = record->kind;
			   __entry->engine = record->engine;
			   __entry->queue = le16_to_cpu(record->queue);
			   __entry->opcode = le16_to_cpu(record->opcode);
			   __entry->rule = le16_to_cpu(record->rule);
			   __entry->packet = le32_to_cpu(record->packet);
			   __entry->va = le64_to_cpu(record->va);
			   __entry->fence = le64_to_cpu(record->fence);),
	    TP_printk("kind=%u engine=%u queue=%u fence=%llu packet=%#x opcode=%u rule=%u va=%#llx",
		      __entry->kind, __entry->engine, __entry->queue, __entry->fence,
		      __entry->packet, __entry->opcode, __entry->rule, __entry->va)
);

TRACE_EVENT(enpu_step,
	    TP_PROTO(const char *step, u8 engine),
	    TP_ARGS(step, engine),
	    TP_STRUCT__entry(__string(step, step)
			     __field(u8, engine)),
	    TP_fast_assign(__assign_str(step);
			   __entry->engine = engine;),
	    TP_printk("step=%s engine=%d", __get_str(step),
		      __entry->engine == ENPU_NO_ENGINE ? -1 : __entry->engine)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE enpu_trace
#include <trace/define_trace.h>
