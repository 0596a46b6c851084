/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/*
 * DOC: enpu device dump
 *
 * What /sys/class/devcoredump/devcdN/data holds after a reset or a fault of an enpu device. One
 * dump waits at a time: while it has not been read (write anything to the file) or has not expired
 * (five minutes), later ones are counted in dumps_dropped and thrown away.
 *
 * A dump is little-endian: struct enpu_dump_header, then sections, each a struct enpu_dump_section
 * and its payload, padded with zeroes to 8 bytes. The last one is ENPU_DUMP_END; a dump without it
 * was cut off. A reader skips types it does not know, takes a payload that is longer than it
 * expects as one of a newer minor version, and refuses another major version. Arrays have no count
 * of their own: it is the size of the payload divided by that of an element.
 *
 * Structures of the hardware (enpu_error_record, enpu_queue_header, enpu_ring_entry,
 * enpu_completion, packets, registers) are those of the data sheet, docs/hardware.md.
 */
#ifndef _UAPI_ENPU_DUMP_H_
#define _UAPI_ENPU_DUMP_H_

#include <linux/types.h>

#if defined(__cplusplus)
extern "C" {
#endif

#define ENPU_DUMP_MAGIC		"ENPUDUMP"
#define ENPU_DUMP_MAJOR		1
#define ENPU_DUMP_MINOR		0
/* No dump is larger. */
#define ENPU_DUMP_MAX_BYTES	262144
/* Most bytes of a command buffer that are kept, around the packet the engine was at. */
#define ENPU_DUMP_PACKET_BYTES	65536

/* Something did not fit, or could not be read without waiting. */
#define ENPU_DUMP_INCOMPLETE	0x1

/**
 * struct enpu_dump_header - start of a dump
 * @magic: ENPU_DUMP_MAGIC, without its terminating zero
 * @major: ENPU_DUMP_MAJOR
 * @minor: ENPU_DUMP_MINOR of the writer
 * @header_bytes: size of this structure; the first section begins there
 * @bytes: size of the dump
 * @sections: their number, ENPU_DUMP_END included
 * @flags: ENPU_DUMP_INCOMPLETE
 */
struct enpu_dump_header {
	__u8 magic[8];
	__u16 major;
	__u16 minor;
	__u32 header_bytes;
	__u64 bytes;
	__u32 sections;
	__u32 flags;
};

/**
 * enum enpu_dump_type - type of a section
 * @ENPU_DUMP_INFO: struct enpu_dump_info; always the first
 * @ENPU_DUMP_REGISTERS: struct enpu_dump_register[]: every readable register of the data sheet, of
 *   blocks those in use
 * @ENPU_DUMP_ERRORS: struct enpu_error_record[], the last ones, oldest first
 * @ENPU_DUMP_QUEUE: struct enpu_dump_queue; one for each queue that has a number
 * @ENPU_DUMP_RING: memory of the queue named by the index: header page, entries, completions
 * @ENPU_DUMP_JOB: struct enpu_dump_job: the job that is blamed
 * @ENPU_DUMP_PACKETS: bytes of its command buffer; the index is the offset of the first
 * @ENPU_DUMP_WALK: struct enpu_dump_walk: of the faulting VA, and of the command buffer
 * @ENPU_DUMP_CONTEXT: struct enpu_dump_context: the context that is blamed
 * @ENPU_DUMP_END: no payload; the last
 */
enum enpu_dump_type {
	ENPU_DUMP_INFO = 1,
	ENPU_DUMP_REGISTERS = 2,
	ENPU_DUMP_ERRORS = 3,
	ENPU_DUMP_QUEUE = 4,
	ENPU_DUMP_RING = 5,
	ENPU_DUMP_JOB = 6,
	ENPU_DUMP_PACKETS = 7,
	ENPU_DUMP_WALK = 8,
	ENPU_DUMP_CONTEXT = 9,
	ENPU_DUMP_END = 255,
};

/**
 * struct enpu_dump_section - start of a section
 * @type: enum enpu_dump_type
 * @index: which one of the type, see there; else 0
 * @bytes: of the payload, without padding
 */
struct enpu_dump_section {
	__u32 type;
	__u32 index;
	__u64 bytes;
};

/**
 * enum enpu_dump_reason - why the dump was made
 * @ENPU_DUMP_REASON_HANG: an engine made no progress for the timeout of the context
 * @ENPU_DUMP_REASON_EVICT: a job of a context that ended did not leave its engine
 * @ENPU_DUMP_REASON_REQUEST: somebody asked for the reset (debugfs)
 * @ENPU_DUMP_REASON_FAULT: a job failed; nothing is reset
 * @ENPU_DUMP_REASON_TLB: an invalidation did not end
 * @ENPU_DUMP_REASON_GONE: the device reads as all ones
 */
enum enpu_dump_reason {
	ENPU_DUMP_REASON_HANG = 1,
	ENPU_DUMP_REASON_EVICT = 2,
	ENPU_DUMP_REASON_REQUEST = 3,
	ENPU_DUMP_REASON_FAULT = 4,
	ENPU_DUMP_REASON_TLB = 5,
	ENPU_DUMP_REASON_GONE = 6,
};

/* A number that names nothing. */
#define ENPU_DUMP_NONE 0xffffffffu

/**
 * struct enpu_dump_info - device and occasion
 * @reason: enum enpu_dump_reason
 * @engine: engine it is about, or ENPU_DUMP_NONE
 * @queue: queue that is blamed, or ENPU_DUMP_NONE
 * @hw_version: VERSION register
 * @features: CAP_FEATURES register
 * @compute_engines: engines 0 … compute_engines - 1 compute
 * @copy_engines: the engines after them copy
 * @uapi_minor: ENPU_UAPI_MINOR of the driver
 * @engine_resets: before this one
 * @device_resets: before this one
 * @hangs: including this one
 * @faults: including this one
 * @device_ns: device clock
 * @monotonic_ns: CLOCK_MONOTONIC at the same time
 * @realtime_ns: CLOCK_REALTIME
 * @local_bytes: size of the local memory
 * @kernel: release of the kernel, zero-terminated
 * @pci: address of the PCI function, zero-terminated
 */
struct enpu_dump_info {
	__u32 reason;
	__u32 engine;
	__u32 queue;
	__u32 hw_version;
	__u32 features;
	__u32 compute_engines;
	__u32 copy_engines;
	__u32 uapi_minor;
	__u32 engine_resets;
	__u32 device_resets;
	__u32 hangs;
	__u32 faults;
	__u64 device_ns;
	__u64 monotonic_ns;
	__u64 realtime_ns;
	__u64 local_bytes;
	__u8 kernel[64];
	__u8 pci[32];
};

/**
 * struct enpu_dump_register - a register
 * @offset: in BAR 0
 * @bytes: its width, 4 or 8
 * @value: what it read
 */
struct enpu_dump_register {
	__u32 offset;
	__u32 bytes;
	__u64 value;
};

/**
 * struct enpu_dump_queue - a hardware queue, as the driver sees it
 * @id: its number
 * @engine: engine
 * @as_id: address space
 * @ctx_id: context, in its file
 * @pid: process that opened the file
 * @ring_log2: log2 of the entries
 * @tail: entries written
 * @done: entries completed
 * @bus: bus address of the queue memory
 * @jobs: jobs in hardware
 * @dead: errno of the context, 0 for a healthy one
 */
struct enpu_dump_queue {
	__u32 id;
	__u32 engine;
	__u32 as_id;
	__u32 ctx_id;
	__u32 pid;
	__u32 ring_log2;
	__u64 tail;
	__u64 done;
	__u64 bus;
	__u32 jobs;
	__s32 dead;
};

/**
 * struct enpu_dump_job - the job that is blamed
 * @seqno: in its context
 * @job_id: of user space
 * @fence: value in the ring
 * @cmd_va: command buffer
 * @cmd_bytes: its size
 * @packet: offset of the packet that the engine was at
 * @running_ns: since the driver handed it over
 */
struct enpu_dump_job {
	__u64 seqno;
	__u64 job_id;
	__u64 fence;
	__u64 cmd_va;
	__u32 cmd_bytes;
	__u32 packet;
	__u64 running_ns;
};

/**
 * struct enpu_dump_level - a step of a walk
 * @table: bus address of the table
 * @entry: what is in it
 * @index: of the entry
 * @level: 3 is the root
 */
struct enpu_dump_level {
	__u64 table;
	__u64 entry;
	__u32 index;
	__u32 level;
};

/**
 * struct enpu_dump_walk - how a VA is translated
 * @va: address
 * @as_id: address space
 * @depth: steps at @levels
 * @levels: from the root down
 */
struct enpu_dump_walk {
	__u64 va;
	__u32 as_id;
	__u32 depth;
	struct enpu_dump_level levels[4];
};

/**
 * struct enpu_dump_context - the context that is blamed
 * @ctx_id: in its file
 * @priority: enum drm_enpu_priority
 * @timeout_ms: time without progress after which its jobs hang
 * @unfinished: jobs
 * @pid: process that opened the file
 * @error: of the status record, before this event
 * @client_id: of the open file, as in fdinfo
 * @submitted: sequence number given last
 * @comm: name of the process, zero-terminated
 */
struct enpu_dump_context {
	__u32 ctx_id;
	__u32 priority;
	__u32 timeout_ms;
	__u32 unfinished;
	__u32 pid;
	__s32 error;
	__u64 client_id;
	__u64 submitted;
	__u8 comm[16];
};

#if defined(__cplusplus)
}
#endif

#endif /* _UAPI_ENPU_DUMP_H_ */
