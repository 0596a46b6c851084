/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * DOC: enpu userspace interface
 *
 * /dev/accel/accelN of the enpu driver. An open file is one address space (VM) of the device.
 * Userspace makes buffer objects (BO), maps them at VAs of its own choice (VM_MAP), makes contexts,
 * and submits command buffers, named by VA, to an engine in a context. Jobs of one (context,
 * engine) run in order; everything else is ordered by sync objects (DRM syncobjs, binary or
 * timeline).
 *
 * Rules for every ioctl: a pad or reserved member that is not 0, or an unknown flag, is -EINVAL; an
 * unknown handle, context or queue is -ENOENT; -ENODEV after the device was removed; -EIO while it
 * is wedged; -EFAULT for a bad pointer; -EINTR or a restart when a wait is interrupted. Sizes,
 * offsets and VAs are bytes, 4 KiB aligned where not said otherwise. Timeouts are absolute
 * CLOCK_MONOTONIC ns; a time in the past polls. Errors that a program can cause are logged at debug
 * level only.
 *
 * How a job that failed is reported: its out-fences signal with the error of the context status
 * record (syncobj timelines cannot carry one, so ENPU_CTX_STATUS is read after every wait). The
 * record's errno is -EFAULT for an MMU fault, -EBADMSG for a packet the device refused, -ETIMEDOUT
 * for a hang, -EREMOTEIO for a DMA or memory (ECC) error, -ESTALE for a job that was torn by the
 * reset of another one, -ECANCELED for jobs of the context that were dropped unrun, -ENOMEM when
 * the device ran out of memory. A context that hung or faulted refuses SUBMIT with -ENOTRECOVERABLE
 * until it is destroyed; a torn one goes on.
 */
#ifndef _UAPI_ENPU_ACCEL_H_
#define _UAPI_ENPU_ACCEL_H_

#include "drm.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define ENPU_UAPI_MAJOR 1
#define ENPU_UAPI_MINOR 0	/* 1.0: everything here */

enum drm_enpu_ioctl_id {
	DRM_ENPU_QUERY = 0,
	DRM_ENPU_BO_CREATE,
	DRM_ENPU_BO_USERPTR,
	DRM_ENPU_BO_INFO,
	DRM_ENPU_BO_WAIT,
	DRM_ENPU_VM_MAP,
	DRM_ENPU_VM_UNMAP,
	DRM_ENPU_CTX_CREATE,
	DRM_ENPU_CTX_DESTROY,
	DRM_ENPU_CTX_STATUS,
	DRM_ENPU_SUBMIT,
	DRM_ENPU_QUEUE_CREATE,
	DRM_ENPU_QUEUE_DESTROY,
	DRM_ENPU_QUEUE_WAIT,
};

/*
 * Caps that keep one program from tying up the kernel; beyond them: -EINVAL for sizes of one call,
 * -ENOSPC for the number of objects.
 */
#define ENPU_MAX_CONTEXTS	64	/* per open file */
#define ENPU_MAX_BOS		16384	/* handles of an open file */
#define ENPU_MAX_MAPPINGS	65536	/* of an open file */
#define ENPU_MAX_SYNC_OPS	256	/* per SUBMIT */
#define ENPU_MAX_SUBMIT_BOS	1024	/* per SUBMIT */
#define ENPU_MAX_JOBS		16384	/* unfinished ones of a context */
#define ENPU_MAX_USER_QUEUES	16	/* of an open file */
/*
 * VAs a program can map: [ENPU_VA_START, ENPU_VA_END). The first page never maps, so a null
 * address faults.
 */
#define ENPU_VA_START		0x10000ull
#define ENPU_VA_END		0x800000000000ull

/**
 * enum drm_enpu_query_type - what DRM_ENPU_QUERY answers
 * @DRM_ENPU_QUERY_DEVICE: struct drm_enpu_device_info
 * @DRM_ENPU_QUERY_OPCODES: struct drm_enpu_opcode_info, what the command processor runs
 * @DRM_ENPU_QUERY_COUNTERS: __u64[], the device's counters of this address space since the file was
 *   opened, indexed by enum enpu_counter of the data sheet; sleep and resets take nothing away
 * @DRM_ENPU_QUERY_MEMORY: struct drm_enpu_memory_info
 */
enum drm_enpu_query_type {
	DRM_ENPU_QUERY_DEVICE = 0,
	DRM_ENPU_QUERY_OPCODES = 1,
	DRM_ENPU_QUERY_COUNTERS = 2,
	DRM_ENPU_QUERY_MEMORY = 3,
};

/**
 * struct drm_enpu_query - ask for information; sizes are negotiated
 * @type: enum drm_enpu_query_type, else -EINVAL
 * @size: in: bytes at @data; out: bytes the kernel has. 0 asks for the size alone. Fewer bytes than
 *   the kernel has are a prefix, more are zero-filled.
 * @data: user pointer
 */
struct drm_enpu_query {
	__u32 type;
	__u32 size;
	__u64 data;
};

/**
 * struct drm_enpu_device_info - identity and limits
 * @hw_version: VERSION register
 * @features: CAP_FEATURES register
 * @compute_engines: engines 0 … compute_engines - 1 compute
 * @copy_engines: the engines after them copy
 * @threads: host threads of a compute engine
 * @max_command_bytes: largest command buffer
 * @max_tensor_bytes: largest span of a tensor
 * @max_packet_work: largest work of one packet
 * @local_bytes: device-local memory
 * @va_start: first VA a program can map
 * @va_end: end of the VAs
 * @page_size: granule of VM_MAP, in bytes
 * @large_page_size: a mapping with VA, offset and placement aligned to it uses one page-table entry
 * @timestamp_ns: device clock when the query ran
 * @monotonic_ns: CLOCK_MONOTONIC at the same time
 * @reset_count: device and engine resets since the module was loaded
 * @uapi_minor: ENPU_UAPI_MINOR of the module
 * @default_timeout_ms: time without progress after which a job counts as hung
 */
struct drm_enpu_device_info {
	__u32 hw_version;
	__u32 features;
	__u32 compute_engines;
	__u32 copy_engines;
	__u32 threads;
	__u32 max_command_bytes;
	__u64 max_tensor_bytes;
	__u64 max_packet_work;
	__u64 local_bytes;
	__u64 va_start;
	__u64 va_end;
	__u32 page_size;
	__u32 large_page_size;
	__u64 timestamp_ns;
	__u64 monotonic_ns;
	__u32 reset_count;
	__u32 uapi_minor;
	__u32 default_timeout_ms;
	__u32 pad;
};

/**
 * struct drm_enpu_opcode_info - what the command processor runs
 * @opcodes: CAP_OPCODES register: bit n, opcode n exists
 * @dtypes: CAP_OP_DTYPES registers: bit d of word n, opcode n takes dtype d
 */
struct drm_enpu_opcode_info {
	__u64 opcodes;
	__u32 dtypes[64];
};

/**
 * struct drm_enpu_memory_info - device-local memory
 * @local_total: bytes
 * @local_free: bytes not allocated to any process
 * @local_largest: largest contiguous piece that is free
 * @local_used: bytes this file holds
 * @host_used: bytes of host memory in BOs of this file
 */
struct drm_enpu_memory_info {
	__u64 local_total;
	__u64 local_free;
	__u64 local_largest;
	__u64 local_used;
	__u64 host_used;
};

/*
 * Placement of a BO; exactly one. HOST: pages of host memory, cached, coherent. LOCAL: device-local
 * memory, contiguous, mapped write-combined; -ENOSPC when it is full.
 */
#define DRM_ENPU_BO_HOST		0x1
#define DRM_ENPU_BO_LOCAL		0x2
/* Private BOs cannot be exported and share the reservation of the VM: jobs need not name them. */
#define DRM_ENPU_BO_PRIVATE		0x4

/**
 * struct drm_enpu_bo_create - make a buffer object; its contents are zero
 * @size: in: bytes, not 0, rounded up to a page (or to 2 MiB for local ones of at least that size);
 *   out: the real size
 * @flags: DRM_ENPU_BO_*
 * @handle: out: GEM handle
 *
 * -ENOMEM, -ENOSPC (local memory full: nothing is evicted; or ENPU_MAX_BOS reached), -EINVAL (also
 * for a size that no VA range can hold).
 */
struct drm_enpu_bo_create {
	__u64 size;
	__u32 flags;
	__u32 handle;
};

/* The device may only read; the pages may be read-only too. */
#define DRM_ENPU_USERPTR_READ_ONLY	0x1

/**
 * struct drm_enpu_bo_userptr - wrap memory of the process; pins it and counts it against
 * RLIMIT_MEMLOCK
 * @addr: page-aligned address
 * @size: bytes, a multiple of the page size, not 0
 * @flags: DRM_ENPU_USERPTR_*
 * @handle: out: GEM handle; cannot be mmapped or exported
 *
 * -ENOMEM with RLIMIT_MEMLOCK reached or for more than the machine has, -EFAULT when a page cannot
 * be had, -EOPNOTSUPP for memory that cannot be pinned for long.
 */
struct drm_enpu_bo_userptr {
	__u64 addr;
	__u64 size;
	__u32 flags;
	__u32 handle;
};

/**
 * struct drm_enpu_bo_info - what a handle is
 * @handle: GEM handle
 * @flags: out: DRM_ENPU_BO_*; neither HOST nor LOCAL for imported ones
 * @size: out: bytes
 * @mmap_offset: out: offset for mmap of the device file, 0 when it cannot be mmapped
 */
struct drm_enpu_bo_info {
	__u32 handle;
	__u32 flags;
	__u64 size;
	__u64 mmap_offset;
};

/* Wait for readers too, so that the BO may be written. */
#define DRM_ENPU_BO_WAIT_WRITE		0x1

/**
 * struct drm_enpu_bo_wait - wait until no submitted job uses a BO
 * @handle: GEM handle
 * @flags: DRM_ENPU_BO_WAIT_*
 * @timeout_ns: absolute
 *
 * -ETIME at the timeout.
 */
struct drm_enpu_bo_wait {
	__u32 handle;
	__u32 flags;
	__s64 timeout_ns;
};

#define DRM_ENPU_MAP_READ		0x1
#define DRM_ENPU_MAP_WRITE		0x2

/**
 * struct drm_enpu_vm_map - map a range of a BO into the address space of this file
 * @va: first VA
 * @bo_offset: start in the BO
 * @size: bytes, not 0; @bo_offset + @size must not pass the BO, @va + @size not va_end: -EINVAL
 * @handle: GEM handle; the mapping keeps the BO alive
 * @flags: DRM_ENPU_MAP_*, at least one; WRITE of a read-only userptr is -EACCES
 *
 * Done when the call returns. -EEXIST when the range overlaps a mapping, -ENOSPC beyond
 * ENPU_MAX_MAPPINGS or when the device has no address space left. The first call for a HOST BO
 * finds its memory (-ENOMEM when there is not enough); others go on meanwhile, and a signal
 * interrupts it.
 */
struct drm_enpu_vm_map {
	__u64 va;
	__u64 bo_offset;
	__u64 size;
	__u32 handle;
	__u32 flags;
};

/**
 * struct drm_enpu_vm_unmap - remove mappings
 * @va: start of a mapping
 * @size: bytes; the range must be made of whole mappings without a hole: -EINVAL
 * @timeout_ns: absolute; how long to wait for jobs of this file that were submitted before
 * @pad: 0
 *
 * Returns when no job can reach the memory any more. -ETIME when jobs are still running at the
 * timeout; nothing is unmapped then.
 */
struct drm_enpu_vm_unmap {
	__u64 va;
	__u64 size;
	__s64 timeout_ns;
	__u64 pad;
};

/**
 * enum drm_enpu_priority - priority of a context
 * @DRM_ENPU_PRIORITY_LOW: background
 * @DRM_ENPU_PRIORITY_NORMAL: default
 * @DRM_ENPU_PRIORITY_HIGH: needs CAP_SYS_NICE: -EACCES
 */
enum drm_enpu_priority {
	DRM_ENPU_PRIORITY_LOW = 0,
	DRM_ENPU_PRIORITY_NORMAL = 1,
	DRM_ENPU_PRIORITY_HIGH = 2,
};

/**
 * struct drm_enpu_ctx_create - make a context
 * @priority: enum drm_enpu_priority
 * @timeout_ms: time without progress after which its jobs count as hung; 0 is the default, at most
 *   600,000
 * @max_jobs: cap of unfinished jobs, 0 is ENPU_MAX_JOBS; beyond it SUBMIT is -EAGAIN
 * @flags: 0
 * @ctx_id: out: not 0
 * @pad: 0
 */
struct drm_enpu_ctx_create {
	__u32 priority;
	__u32 timeout_ms;
	__u32 max_jobs;
	__u32 flags;
	__u32 ctx_id;
	__u32 pad;
};

/**
 * struct drm_enpu_ctx_destroy - end a context; its unfinished jobs are cancelled
 * @ctx_id: context
 * @pad: 0
 */
struct drm_enpu_ctx_destroy {
	__u32 ctx_id;
	__u32 pad;
};

/**
 * struct drm_enpu_ctx_status - the status record of a context
 * @ctx_id: in
 * @error: out: errno (negative) of the first failed job, 0 if none
 * @failed_seqno: out: its sequence number (drm_enpu_submit.seqno)
 * @failed_job_id: out: its job_id
 * @fault_va: out: faulting VA, for -EFAULT
 * @packet: out: byte offset of the packet in its command buffer
 * @hw_status: out: enum enpu_status of the data sheet
 * @rule: out: rule of the packet checker that was broken
 * @operand: out: its operand, 0xff if none
 * @opcode: out
 * @guilty: out: 1 when the context refuses SUBMIT
 * @failed_jobs: out: jobs that failed so far
 * @reset_count: out: resets that hit jobs of this context
 * @submitted: out: sequence number given last
 * @completed: out: all jobs up to this one have ended; per engine the order of submission holds
 */
struct drm_enpu_ctx_status {
	__u32 ctx_id;
	__s32 error;
	__u64 failed_seqno;
	__u64 failed_job_id;
	__u64 fault_va;
	__u32 packet;
	__u16 hw_status;
	__u16 rule;
	__u16 operand;
	__u16 opcode;
	__u32 guilty;
	__u32 failed_jobs;
	__u32 reset_count;
	__u64 submitted;
	__u64 completed;
};

#define DRM_ENPU_SYNC_WAIT		0x0
#define DRM_ENPU_SYNC_SIGNAL		0x1

/**
 * struct drm_enpu_sync_op - a syncobj to wait for before, or to signal after a job
 * @handle: syncobj handle
 * @flags: DRM_ENPU_SYNC_*
 * @point: timeline point (64 bit), 0 for a binary syncobj
 *
 * A wait for a point that nobody has submitted yet is -EINVAL.
 */
struct drm_enpu_sync_op {
	__u32 handle;
	__u32 flags;
	__u64 point;
};

#define DRM_ENPU_SUBMIT_BO_READ		0x1
#define DRM_ENPU_SUBMIT_BO_WRITE	0x2

/**
 * struct drm_enpu_submit_bo - a BO that takes part in implicit synchronisation
 * @handle: GEM handle
 * @flags: DRM_ENPU_SUBMIT_BO_*, at least one
 *
 * Needed for shared (imported or exported) BOs and for those that BO_WAIT is to know of; private
 * ones are covered by the VM.
 */
struct drm_enpu_submit_bo {
	__u32 handle;
	__u32 flags;
};

/**
 * struct drm_enpu_submit - run a command buffer
 * @ctx_id: context
 * @engine: index of an engine
 * @cmd_va: VA of the command buffer, 16-byte aligned; it must not change until the job has ended
 * @cmd_bytes: its size, a multiple of 16, 16 … max_command_bytes
 * @sync_count: entries at @syncs, at most ENPU_MAX_SYNC_OPS
 * @syncs: user pointer to struct drm_enpu_sync_op
 * @sync_stride: bytes from one entry to the next, at least 16
 * @bo_count: entries at @bos, at most ENPU_MAX_SUBMIT_BOS
 * @bos: user pointer to struct drm_enpu_submit_bo
 * @job_id: free for userspace; comes back in the status record, traces and dumps
 * @seqno: out: sequence number in the context, from 1
 * @flags: 0
 * @pad: 0
 *
 * Asynchronous. -EAGAIN when the context has max_jobs unfinished jobs, -ENOSPC when the device has
 * no hardware queue left, -ENOTRECOVERABLE for a guilty context. A call that fails has had no
 * effect.
 */
struct drm_enpu_submit {
	__u32 ctx_id;
	__u32 engine;
	__u64 cmd_va;
	__u32 cmd_bytes;
	__u32 sync_count;
	__u64 syncs;
	__u32 sync_stride;
	__u32 bo_count;
	__u64 bos;
	__u64 job_id;
	__u64 seqno;
	__u32 flags;
	__u32 pad;
};

/**
 * struct drm_enpu_queue_create - make a user-mode queue
 * @ctx_id: context
 * @engine: index of an engine
 * @ring_va: queue memory (struct enpu_queue_header of the data sheet), 4 KiB aligned; all of it in
 *   one mapping, readable and writable, of a HOST BO, which the queue keeps alive
 * @ring_log2: log2 of its entries, 2 … 12
 * @flags: 0
 * @queue_id: out
 * @pad: 0
 * @doorbell_offset: out: offset for mmap of the doorbell page (one page, shared)
 *
 * The process writes entries and the tail, which starts at 0, and stores to the doorbell page when
 * the device asks for it (see the data sheet). Completion is the fence word in the queue memory;
 * flags of entries are 0, as QUEUE_WAIT asks for the interrupts. Jobs of the queue signal no
 * syncobj, and BO_WAIT and VM_UNMAP do not wait for them: memory that is unmapped under a job
 * faults it. While the doorbell page is mapped the device stays awake; after the queue or the
 * device has ended the page leads nowhere, and a store to it is lost.
 *
 * A fault or a hang ends the queue and its context, which takes no more work. An entry that was
 * torn by the reset of another job is left out: its waiters get -ESTALE, the queue goes on.
 * failed_seqno of the status record is the fence of the entry, or 0 for a broken ring.
 *
 * -EOPNOTSUPP when the device has no user-mode queues; -ENOSPC beyond ENPU_MAX_USER_QUEUES or when
 * no hardware queue is left; -EINVAL for memory that is not as above; -ENOTRECOVERABLE for a guilty
 * context.
 */
struct drm_enpu_queue_create {
	__u32 ctx_id;
	__u32 engine;
	__u64 ring_va;
	__u32 ring_log2;
	__u32 flags;
	__u32 queue_id;
	__u32 pad;
	__u64 doorbell_offset;
};

/**
 * struct drm_enpu_queue_destroy - end a user-mode queue; what is in it is dropped
 * @queue_id: queue
 * @pad: 0
 *
 * Waits for the current packet for a second, then resets its engine. Others that wait for the queue
 * get -ECANCELED.
 */
struct drm_enpu_queue_destroy {
	__u32 queue_id;
	__u32 pad;
};

/**
 * struct drm_enpu_queue_wait - sleep until a user-mode queue has completed a fence value
 * @queue_id: queue
 * @pad: 0
 * @fence: value
 * @timeout_ns: absolute
 *
 * -ETIME at the timeout; the errno of the context status record when the queue has faulted or hung,
 * -ESTALE when the entry was torn, -ECANCELED when queue or context were destroyed meanwhile.
 */
struct drm_enpu_queue_wait {
	__u32 queue_id;
	__u32 pad;
	__u64 fence;
	__s64 timeout_ns;
};

#define DRM_IOCTL_ENPU(access, name, type) \
	DRM_##access(DRM_COMMAND_BASE + DRM_ENPU_##name, struct drm_enpu_##type)

#define DRM_IOCTL_ENPU_QUERY		DRM_IOCTL_ENPU(IOWR, QUERY, query)
#define DRM_IOCTL_ENPU_BO_CREATE	DRM_IOCTL_ENPU(IOWR, BO_CREATE, bo_create)
#define DRM_IOCTL_ENPU_BO_USERPTR	DRM_IOCTL_ENPU(IOWR, BO_USERPTR, bo_userptr)
#define DRM_IOCTL_ENPU_BO_INFO		DRM_IOCTL_ENPU(IOWR, BO_INFO, bo_info)
#define DRM_IOCTL_ENPU_BO_WAIT		DRM_IOCTL_ENPU(IOW, BO_WAIT, bo_wait)
#define DRM_IOCTL_ENPU_VM_MAP		DRM_IOCTL_ENPU(IOW, VM_MAP, vm_map)
#define DRM_IOCTL_ENPU_VM_UNMAP		DRM_IOCTL_ENPU(IOW, VM_UNMAP, vm_unmap)
#define DRM_IOCTL_ENPU_CTX_CREATE	DRM_IOCTL_ENPU(IOWR, CTX_CREATE, ctx_create)
#define DRM_IOCTL_ENPU_CTX_DESTROY	DRM_IOCTL_ENPU(IOW, CTX_DESTROY, ctx_destroy)
#define DRM_IOCTL_ENPU_CTX_STATUS	DRM_IOCTL_ENPU(IOWR, CTX_STATUS, ctx_status)
#define DRM_IOCTL_ENPU_SUBMIT		DRM_IOCTL_ENPU(IOWR, SUBMIT, submit)
#define DRM_IOCTL_ENPU_QUEUE_CREATE	DRM_IOCTL_ENPU(IOWR, QUEUE_CREATE, queue_create)
#define DRM_IOCTL_ENPU_QUEUE_DESTROY	DRM_IOCTL_ENPU(IOW, QUEUE_DESTROY, queue_destroy)
#define DRM_IOCTL_ENPU_QUEUE_WAIT	DRM_IOCTL_ENPU(IOW, QUEUE_WAIT, queue_wait)

#if defined(__cplusplus)
}
#endif

#endif /* _UAPI_ENPU_ACCEL_H_ */
