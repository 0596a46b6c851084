/* SPDX-License-Identifier: (GPL-2.0-only WITH Linux-syscall-note) OR MIT */
/* Generated from qemu-device/hw/enpu.toml by generate.py; edit that file. */
#ifndef ENPU_HW_H
#define ENPU_HW_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/types.h>
typedef __u8 enpu_u8;
typedef __le16 enpu_u16;
typedef __le32 enpu_u32;
typedef __le32 enpu_s32;
typedef __le32 enpu_f32;
typedef __le64 enpu_u64;
#define ENPU_ASSERT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes))
#else
#include <stdint.h>
typedef uint8_t enpu_u8;
typedef uint16_t enpu_u16;
typedef uint32_t enpu_u32;
typedef int32_t enpu_s32;
typedef float enpu_f32;
typedef uint64_t enpu_u64;
#ifdef __cplusplus
#define ENPU_ASSERT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#else
#define ENPU_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#endif
/* The kernel has FIELD_GET and FIELD_PREP; these are the same for everybody else. */
#define ENPU_FIELD_GET(mask, value) (((value) & (mask)) / ((mask) & ~((mask) << 1)))
#define ENPU_FIELD_PREP(mask, value) (((value) * ((mask) & ~((mask) << 1))) & (mask))
#endif

#define ENPU_MAGIC 0x55504e45u
#define ENPU_HW_VERSION_MAJOR 1u
#define ENPU_HW_VERSION_MINOR 0u
#define ENPU_PCI_VENDOR 0x1234
#define ENPU_PCI_DEVICE 0x4e50
#define ENPU_PCI_CLASS 0x1200
#define ENPU_PCI_REVISION 0x0001

/* Engines a device can have; compute cores come first, copy engines after them. */
#define ENPU_MAX_ENGINES 0x20u
/* Hardware queues. */
#define ENPU_MAX_QUEUES 0x100u
/* Address spaces. */
#define ENPU_MAX_AS 0x40u
/* MSI-X vectors: 0 reports errors and resets, 1 + engine reports completions. */
#define ENPU_MAX_VECTORS 0x20u
/* Size of the opcode space. */
#define ENPU_MAX_OPCODES 0x40u
/* Highest tensor rank. */
#define ENPU_MAX_RANK 0x8u
/* Most tensors one packet can carry. */
#define ENPU_MAX_OPERANDS 0x8u
/* Largest ring: 2^12 entries. The smallest is 2^2. */
#define ENPU_MAX_RING_LOG2 0xcu
/* Error records kept; later ones are counted in ERR_LOST. */
#define ENPU_ERROR_FIFO_DEPTH 0x40u
/* Small page of the device MMU. */
#define ENPU_PAGE_SIZE 0x1000u
/* Large page of the device MMU (leaf at level 1). */
#define ENPU_LARGE_PAGE_SIZE 0x200000u
/* Bits of a device VA. */
#define ENPU_VA_BITS 0x30u
/* Largest byte span of one tensor (1 GiB); larger is refused with OPERAND_SPAN. */
#define ENPU_MAX_TENSOR_BYTES 0x40000000u
/* Largest work of one packet: multiply-accumulates, or elements for packets without them (2^38); larger is refused. */
#define ENPU_MAX_PACKET_WORK 0x4000000000ull
/* Largest command buffer (64 MiB). */
#define ENPU_MAX_COMMAND_BYTES 0x4000000u
/* Packets start and end at this alignment; a command buffer does too. */
#define ENPU_PACKET_ALIGN 0x10u
/* Header the device writes in front of packed weights. */
#define ENPU_PACKED_HEADER_BYTES 0x100u
/* Ring entries start here in queue memory; the completion records follow the last entry. */
#define ENPU_QUEUE_RING_OFFSET 0x1000u
/* One page a queue in the doorbell BAR; a write of any value anywhere in the page is a kick. */
#define ENPU_DOORBELL_STRIDE 0x1000u

#define ENPU_BAR_REGS 0 /* Registers. 32-bit registers take 4-byte accesses, 64-bit registers 8-byte ones; anything else reads as zero and is ignored. */
#define ENPU_BAR_REGS_SIZE 0x40000u
#define ENPU_BAR_MSIX 1 /* MSI-X table and pending bits. */
#define ENPU_BAR_MSIX_SIZE 0x1000u
#define ENPU_BAR_DOORBELL 2 /* One 4 KiB doorbell page a queue, mappable into a process (64-bit BAR). */
#define ENPU_BAR_DOORBELL_SIZE 0x100000u
#define ENPU_BAR_LOCAL 4 /* Device-local memory, 64-bit prefetchable; the size is LOCAL_MEM_SIZE. */

/* Identification, capabilities, reset, interrupts, TLB, errors, fault injection. */
#define ENPU_REG_ID 0x0u /* read only, 32 bit. Magic number. */
#define ENPU_REG_VERSION 0x4u /* read only, 32 bit. Hardware version. A driver refuses another major number and accepts a larger minor one. */
#define ENPU_VERSION_MINOR 0xffffu
#define ENPU_VERSION_MAJOR 0xffff0000u
#define ENPU_REG_CAP_ENGINES 0x8u /* read only, 32 bit. Engines. */
#define ENPU_CAP_ENGINES_CORES 0xffu /* compute cores */
#define ENPU_CAP_ENGINES_COPY 0xff00u /* copy engines */
#define ENPU_CAP_ENGINES_THREADS 0xff0000u /* host threads a core */
#define ENPU_REG_CAP_LIMITS 0xcu /* read only, 32 bit. Queues and address spaces. */
#define ENPU_CAP_LIMITS_QUEUES 0xffffu
#define ENPU_CAP_LIMITS_AS 0xffff0000u
#define ENPU_REG_CAP_MISC 0x10u /* read only, 32 bit. Address width, vectors, ring size, error FIFO. */
#define ENPU_CAP_MISC_VA_BITS 0xffu
#define ENPU_CAP_MISC_VECTORS 0xff00u
#define ENPU_CAP_MISC_RING_LOG2 0xff0000u
#define ENPU_CAP_MISC_FIFO 0xff000000u
#define ENPU_REG_CAP_FEATURES 0x14u /* read only, 32 bit. Optional features. */
#define ENPU_CAP_FEATURES_FAULT_INJECTION 0x1u /* the fault block works */
#define ENPU_CAP_FEATURES_SYNC 0x2u /* jobs run inside the doorbell write */
#define ENPU_CAP_FEATURES_USER_QUEUES 0x4u /* queue memory may be a device VA */
#define ENPU_CAP_FEATURES_IRQ_FENCE 0x8u /* queue_header.irq_fence is looked at */
#define ENPU_REG_LOCAL_MEM_SIZE 0x18u /* read only, 64 bit. Bytes of device-local memory. */
#define ENPU_REG_CAP_MAX_COMMAND 0x20u /* read only, 32 bit. Largest command buffer in bytes. */
#define ENPU_REG_CAP_MAX_TENSOR 0x28u /* read only, 64 bit. Largest span of a tensor in bytes. */
#define ENPU_REG_CAP_MAX_WORK 0x30u /* read only, 64 bit. Largest work of a packet. */
#define ENPU_REG_TIMESTAMP 0x38u /* read only, 64 bit. Device clock in ns; every timestamp of the device is taken from it. */
#define ENPU_REG_SCRATCH 0x40u /* read/write, 64 bit. No effect; keeps what was written until the next device reset. */
#define ENPU_REG_CAP_OPCODES 0x48u /* read only, 64 bit. Bit n: opcode n exists. */
#define ENPU_REG_CTRL 0x100u /* read/write, 32 bit. Device control. */
#define ENPU_CTRL_ENABLE 0x1u /* engines fetch work */
#define ENPU_CTRL_RESET 0x2u /* write 1: reset the device; reads as zero */
#define ENPU_REG_STATUS 0x104u /* read only, 32 bit. Device status. After a reset, READY set again means that no worker can touch guest memory any more. */
#define ENPU_STATUS_READY 0x1u
#define ENPU_STATUS_RESETTING 0x2u
#define ENPU_STATUS_BUSY 0x4u /* an engine has work */
#define ENPU_REG_RESET_COUNT 0x108u /* read only, 32 bit. Device resets since power-on (survives them). */
#define ENPU_REG_IRQ_ENABLE 0x110u /* read/write, 32 bit. Bit v: vector v may be raised. A vector that becomes enabled while pending is raised at once. */
#define ENPU_REG_IRQ_PENDING 0x114u /* write 1 to clear, 32 bit. Bit v: vector v has been asserted and not yet cleared here. Clear it before looking at the completions. */
#define ENPU_REG_IRQ_TRIGGER 0x118u /* write only, 32 bit. Bit v: assert vector v (self-test). */
#define ENPU_REG_IRQ_COALESCE 0x120u /* read/write, 32 bit. A completion vector is raised after COUNT completions or USEC after the first of them; 0/0 raises at once. Vector 0 never waits. */
#define ENPU_IRQ_COALESCE_COUNT 0xffffu
#define ENPU_IRQ_COALESCE_USEC 0xffff0000u
#define ENPU_REG_IRQ_RAISED 0x128u /* read only, 64 bit. Interrupt messages sent since power-on. */
#define ENPU_REG_KICKS 0x130u /* read only, 64 bit. Writes to the doorbell pages and to QUEUE_KICK since power-on. */
#define ENPU_REG_TLB_INVALIDATE 0x140u /* write only, 32 bit. Drops every cached translation of an address space, or of all. TLB_SEQ grows by one for each write. */
#define ENPU_TLB_INVALIDATE_AS 0xffffu
#define ENPU_TLB_INVALIDATE_ALL 0x80000000u
#define ENPU_REG_TLB_SEQ 0x144u /* read only, 32 bit. Invalidations asked for. */
#define ENPU_REG_TLB_DONE 0x148u /* read only, 32 bit. Invalidations finished: once it has reached the TLB_SEQ read after the write (modulo 2^32), no engine uses an old translation, accesses in flight included. At most one tile later. */
#define ENPU_REG_ERR_COUNT 0x160u /* read only, 32 bit. Error records waiting. */
#define ENPU_REG_ERR_LOST 0x164u /* read only, 32 bit. Records that found the FIFO full. */
#define ENPU_REG_ERR_POP 0x168u /* write only, 32 bit. Any write drops the oldest record. */
#define ENPU_REG_ERR_RECORD(i) (0x180u + (i) * 8u) /* read only, 64 bit. The oldest record (struct enpu_error_record) as eight 64-bit words; zero when there is none. */
#define ENPU_REG_SENSOR_TEMP 0x1d0u /* read only, 32 bit. Emulated temperature in millidegrees Celsius. */
#define ENPU_REG_SENSOR_POWER 0x1d4u /* read only, 32 bit. Emulated power in milliwatts. */
#define ENPU_REG_SENSOR_CLOCK 0x1d8u /* read only, 32 bit. Emulated core clock in MHz. */
#define ENPU_REG_FAULT_KIND 0x200u /* read/write, 32 bit. Kind of the next fault to arm (enum enpu_fault_kind). The fault block reads as zero and ignores writes without CAP_FEATURES.FAULT_INJECTION. */
#define ENPU_REG_FAULT_TARGET 0x204u /* read/write, 32 bit. Engine, vector, queue or address space the fault is for; 0xffffffff means any. */
#define ENPU_REG_FAULT_AFTER 0x208u /* read/write, 32 bit. Events of the kind that pass before the fault fires. */
#define ENPU_REG_FAULT_TIMES 0x20cu /* read/write, 32 bit. How often it fires; 0xffffffff means always. */
#define ENPU_REG_FAULT_ARG 0x210u /* read/write, 64 bit. Argument of the kind (delay in ns, bit mask …). */
#define ENPU_REG_FAULT_ARM 0x218u /* write only, 32 bit. 1 arms the fault described above, 0 clears all faults. */
#define ENPU_REG_FAULT_EVERY 0x21cu /* read/write, 32 bit. 0 or 1: every event fires; n: an event fires with probability 1/n, drawn from FAULT_SEED, the same each time for the same events. */
#define ENPU_REG_FAULT_LAST_NS 0x220u /* read only, 64 bit. Timestamp of the last fault that fired. */
#define ENPU_REG_FAULT_SEED 0x228u /* read/write, 64 bit. Seed of the fault's own random numbers. */
#define ENPU_REG_FAULT_FIRED(i) (0x280u + (i) * 4u) /* read only, 32 bit. How often each kind has fired since power-on. */
#define ENPU_REG_FAULT_FIRED_NS(i) (0x300u + (i) * 8u) /* read only, 64 bit. Timestamp of the last fault of each kind; 0: none since power-on. */
#define ENPU_REG_CAP_OP_DTYPES(i) (0x400u + (i) * 4u) /* read only, 32 bit. Bit d of word n: opcode n takes tensors of dtype d. */

/* One block an engine. */
#define ENPU_ENGINE_BASE 0x1000u
#define ENPU_ENGINE_STRIDE 0x100u
#define ENPU_REG_ENGINE_CTRL(i) (0x1000u + (i) * 0x100u) /* read/write, 32 bit. STOP halts at the next packet boundary and keeps the job (cleared: it goes on). RESET drops the job at the next tile: its queue becomes FAULTED with status ABORTED or TORN; reads as zero when done. */
#define ENPU_ENGINE_CTRL_STOP 0x1u
#define ENPU_ENGINE_CTRL_RESET 0x2u
#define ENPU_REG_ENGINE_STATUS(i) (0x1004u + (i) * 0x100u) /* read only, 32 bit. State of the engine. */
#define ENPU_ENGINE_STATUS_STATE 0xfu /* enum enpu_engine_state */
#define ENPU_ENGINE_STATUS_KIND 0xf0u /* enum enpu_engine_kind */
#define ENPU_REG_ENGINE_QUEUE(i) (0x1008u + (i) * 0x100u) /* read only, 32 bit. Queue whose job occupies the engine, or 0xffffffff. */
#define ENPU_REG_ENGINE_PACKET(i) (0x100cu + (i) * 0x100u) /* read only, 32 bit. Byte offset of the current packet in its command buffer. */
#define ENPU_REG_ENGINE_PROGRESS(i) (0x1010u + (i) * 0x100u) /* read only, 64 bit. Grows with every tile; a busy engine whose value stands still is hung. */
#define ENPU_REG_ENGINE_FENCE(i) (0x1018u + (i) * 0x100u) /* read only, 64 bit. Fence value of the current job. */
#define ENPU_REG_ENGINE_BUSY_NS(i) (0x1020u + (i) * 0x100u) /* read only, 64 bit. Time with a job, in ns, since power-on. */
#define ENPU_REG_ENGINE_JOBS(i) (0x1028u + (i) * 0x100u) /* read only, 64 bit. Jobs completed since power-on. */

/* One block an address space. */
#define ENPU_AS_BASE 0x4000u
#define ENPU_AS_STRIDE 0x20u
#define ENPU_REG_AS_ROOT(i) (0x4000u + (i) * 0x20u) /* read/write, 64 bit. Root page table: bus address, 4 KiB aligned, with VALID. An invalid address space faults every access. */
#define ENPU_AS_ROOT_VALID 0x1ull
#define ENPU_AS_ROOT_ADDR 0xffffffffff000ull /* address bits in place */
#define ENPU_REG_AS_CTRL(i) (0x4008u + (i) * 0x20u) /* write only, 32 bit. CLEAR zeroes the counters of this address space. */
#define ENPU_AS_CTRL_CLEAR 0x1u

/* One block a queue. Only the driver can write here: address space and queue memory are fixed before a process sees the queue. */
#define ENPU_QUEUE_BASE 0x8000u
#define ENPU_QUEUE_STRIDE 0x80u
#define ENPU_REG_QUEUE_CTRL(i) (0x8000u + (i) * 0x80u) /* read/write, 32 bit. ENABLE 0 to 1 starts the queue at QUEUE_HEAD and QUEUE_RESUME; 1 to 0 stops it at the next packet boundary: wait for state DISABLED. The other fields are taken at the start. */
#define ENPU_QUEUE_CTRL_ENABLE 0x1u
#define ENPU_QUEUE_CTRL_VIRT 0x2u /* QUEUE_ADDR is a VA of the queue's own address space, else a bus address */
#define ENPU_QUEUE_CTRL_RING_LOG2 0xf0u
#define ENPU_QUEUE_CTRL_ENGINE 0xff00u
#define ENPU_QUEUE_CTRL_AS 0xff0000u
#define ENPU_QUEUE_CTRL_PRIORITY 0xf000000u /* 0 lowest, 3 highest; equal ones take turns job by job */
#define ENPU_REG_QUEUE_STATUS(i) (0x8004u + (i) * 0x80u) /* read only, 32 bit. State, and the status that faulted the queue. */
#define ENPU_QUEUE_STATUS_STATE 0xfu /* enum enpu_queue_state */
#define ENPU_QUEUE_STATUS_ERROR 0xff00u /* enum enpu_status */
#define ENPU_REG_QUEUE_ADDR(i) (0x8008u + (i) * 0x80u) /* read/write, 64 bit. Queue memory, 4 KiB aligned: struct enpu_queue_header, then at QUEUE_RING_OFFSET 2^RING_LOG2 struct enpu_ring_entry, then as many struct enpu_completion. */
#define ENPU_REG_QUEUE_HEAD(i) (0x8010u + (i) * 0x80u) /* read/write, 64 bit. Ring entries finished (a count; the ring index is its low bits). Written only while the queue is disabled. */
#define ENPU_REG_QUEUE_RESUME(i) (0x8018u + (i) * 0x80u) /* read/write, 64 bit. Byte offset of the packet where the entry at QUEUE_HEAD goes on: not zero when it was stopped between packets. Written only while the queue is disabled. */
#define ENPU_REG_QUEUE_FENCE(i) (0x8020u + (i) * 0x80u) /* read only, 64 bit. Fence value completed last. */
#define ENPU_REG_QUEUE_KICK(i) (0x8028u + (i) * 0x80u) /* write only, 32 bit. Any write does what the doorbell page does. */

/* Counters of one address space: 64-bit words, indexed by enum enpu_counter. */
#define ENPU_COUNTER_BASE 0x20000u
#define ENPU_COUNTER_STRIDE 0x800u
#define ENPU_REG_COUNTER(as_id, word) (ENPU_COUNTER_BASE + (as_id) * ENPU_COUNTER_STRIDE + (word) * 8u)

/* Page-table entry: four levels of 512 64-bit entries (VA bits 47:39, 38:30, 29:21, 20:12). */
#define ENPU_PTE_VALID 0x1ull
#define ENPU_PTE_READ 0x2ull
#define ENPU_PTE_WRITE 0x4ull
#define ENPU_PTE_LOCAL 0x8ull /* the address is an offset in local memory, else a bus address */
#define ENPU_PTE_LARGE 0x80ull /* a 2 MiB leaf; legal in level 1 only */
#define ENPU_PTE_ADDR 0xffffffffff000ull /* address bits in place */

/* ring_entry.flags */
#define ENPU_RING_FLAG_IRQ 0x1u /* raise the engine's vector on completion; without effect in a VIRT queue */

/* ENGINE_STATUS.STATE */
enum enpu_engine_state {
	ENPU_ENGINE_STATE_IDLE = 0,
	ENPU_ENGINE_STATE_RUNNING = 1,
	ENPU_ENGINE_STATE_STOPPED = 2,
	ENPU_ENGINE_STATE_RESETTING = 3,
};

/* ENGINE_STATUS.KIND */
enum enpu_engine_kind {
	ENPU_ENGINE_KIND_COMPUTE = 0,
	ENPU_ENGINE_KIND_COPY = 1,
};

/* QUEUE_STATUS.STATE */
enum enpu_queue_state {
	ENPU_QUEUE_STATE_DISABLED = 0,
	ENPU_QUEUE_STATE_IDLE = 1,
	ENPU_QUEUE_STATE_ACTIVE = 2,
	ENPU_QUEUE_STATE_WAITING = 3,
	ENPU_QUEUE_STATE_FAULTED = 4,
	ENPU_QUEUE_STATE_STOPPING = 5,
};

/* How a job ended (completion record, queue status) and the kind of an error record. */
enum enpu_status {
	ENPU_STATUS_OK = 0,
	ENPU_STATUS_ILLEGAL_PACKET = 1,
	ENPU_STATUS_BAD_OPERAND = 2,
	ENPU_STATUS_MMU_FAULT = 3,
	ENPU_STATUS_DMA_ERROR = 4,
	ENPU_STATUS_ECC_UNCORRECTED = 5,
	ENPU_STATUS_ECC_CORRECTED = 6,
	ENPU_STATUS_ABORTED = 7,
	ENPU_STATUS_TORN = 8,
	ENPU_STATUS_WAIT_TIMEOUT = 9,
	ENPU_STATUS_RING_ERROR = 10,
	ENPU_STATUS_OUT_OF_MEMORY = 11,
	ENPU_STATUS_UNSUPPORTED = 12,
	ENPU_STATUS_LIMIT = 13,
};

/* What a faulting access wanted. */
enum enpu_access {
	ENPU_ACCESS_NONE = 0,
	ENPU_ACCESS_READ = 1,
	ENPU_ACCESS_WRITE = 2,
	ENPU_ACCESS_FETCH = 3,
};

/* Why the MMU refused. */
enum enpu_mmu_cause {
	ENPU_MMU_CAUSE_NONE = 0,
	ENPU_MMU_CAUSE_NOT_MAPPED = 1,
	ENPU_MMU_CAUSE_PERMISSION = 2,
	ENPU_MMU_CAUSE_TABLE = 3,
	ENPU_MMU_CAUSE_RANGE = 4,
	ENPU_MMU_CAUSE_NO_ROOT = 5,
};

/* Element type of a tensor. NONE marks an operand that is left out. */
enum enpu_dtype {
	ENPU_DTYPE_NONE = 0,
	ENPU_DTYPE_F32 = 1,
	ENPU_DTYPE_F16 = 2,
	ENPU_DTYPE_BF16 = 3,
	ENPU_DTYPE_I8 = 4,
	ENPU_DTYPE_U8 = 5,
	ENPU_DTYPE_I32 = 6,
	ENPU_DTYPE_I64 = 7,
	ENPU_DTYPE_BOOL = 8,
};

/* Memory format of a tensor: PLAIN follows the strides, PACKED is the opaque layout that PACK wrote. */
enum enpu_format {
	ENPU_FORMAT_PLAIN = 0,
	ENPU_FORMAT_PACKED = 1,
};

/* Elementwise functions: opcode UNARY, and the activation fused into other operators. a = alpha, b = beta. */
enum enpu_unary {
	ENPU_UNARY_IDENTITY = 0,
	ENPU_UNARY_RELU = 1,
	ENPU_UNARY_LEAKY_RELU = 2,
	ENPU_UNARY_CLIP = 3,
	ENPU_UNARY_SIGMOID = 4,
	ENPU_UNARY_TANH = 5,
	ENPU_UNARY_GELU = 6,
	ENPU_UNARY_GELU_TANH = 7,
	ENPU_UNARY_SILU = 8,
	ENPU_UNARY_HARD_SIGMOID = 9,
	ENPU_UNARY_HARD_SWISH = 10,
	ENPU_UNARY_ELU = 11,
	ENPU_UNARY_SELU = 12,
	ENPU_UNARY_CELU = 13,
	ENPU_UNARY_SOFTPLUS = 14,
	ENPU_UNARY_SOFTSIGN = 15,
	ENPU_UNARY_MISH = 16,
	ENPU_UNARY_THRESHOLDED_RELU = 17,
	ENPU_UNARY_EXP = 18,
	ENPU_UNARY_LOG = 19,
	ENPU_UNARY_SQRT = 20,
	ENPU_UNARY_RSQRT = 21,
	ENPU_UNARY_RECIPROCAL = 22,
	ENPU_UNARY_ABS = 23,
	ENPU_UNARY_NEG = 24,
	ENPU_UNARY_SIGN = 25,
	ENPU_UNARY_FLOOR = 26,
	ENPU_UNARY_CEIL = 27,
	ENPU_UNARY_ROUND = 28,
	ENPU_UNARY_ERF = 29,
	ENPU_UNARY_SIN = 30,
	ENPU_UNARY_COS = 31,
	ENPU_UNARY_TAN = 32,
	ENPU_UNARY_ASIN = 33,
	ENPU_UNARY_ACOS = 34,
	ENPU_UNARY_ATAN = 35,
	ENPU_UNARY_SINH = 36,
	ENPU_UNARY_COSH = 37,
	ENPU_UNARY_ASINH = 38,
	ENPU_UNARY_ACOSH = 39,
	ENPU_UNARY_ATANH = 40,
	ENPU_UNARY_NOT = 41,
	ENPU_UNARY_ISNAN = 42,
	ENPU_UNARY_ISINF = 43,
	ENPU_UNARY_SQUARE = 44,
	ENPU_UNARY_SCALE = 45,
	ENPU_UNARY_BIT_NOT = 46,
	ENPU_UNARY_QUICK_GELU = 47,
	ENPU_UNARY_SHRINK = 48,
};

/* Functions of opcode BINARY. Comparisons and logic give BOOL. */
enum enpu_binary {
	ENPU_BINARY_ADD = 0,
	ENPU_BINARY_SUB = 1,
	ENPU_BINARY_MUL = 2,
	ENPU_BINARY_DIV = 3,
	ENPU_BINARY_MIN = 4,
	ENPU_BINARY_MAX = 5,
	ENPU_BINARY_POW = 6,
	ENPU_BINARY_MOD = 7,
	ENPU_BINARY_FMOD = 8,
	ENPU_BINARY_PRELU = 9,
	ENPU_BINARY_EQ = 16,
	ENPU_BINARY_NE = 17,
	ENPU_BINARY_LT = 18,
	ENPU_BINARY_LE = 19,
	ENPU_BINARY_GT = 20,
	ENPU_BINARY_GE = 21,
	ENPU_BINARY_AND = 22,
	ENPU_BINARY_OR = 23,
	ENPU_BINARY_XOR = 24,
	ENPU_BINARY_BIT_AND = 25,
	ENPU_BINARY_BIT_OR = 26,
	ENPU_BINARY_BIT_XOR = 27,
	ENPU_BINARY_SHIFT_LEFT = 28,
	ENPU_BINARY_SHIFT_RIGHT = 29,
};

/* Functions of opcode POOL. */
enum enpu_pool {
	ENPU_POOL_MAX = 0,
	ENPU_POOL_AVERAGE = 1,
	ENPU_POOL_AVERAGE_INCLUDE_PAD = 2,
};

/* Kinds of opcode NORM. */
enum enpu_norm {
	ENPU_NORM_LAYER = 0,
	ENPU_NORM_RMS = 1,
	ENPU_NORM_BATCH = 2,
	ENPU_NORM_INSTANCE = 3,
	ENPU_NORM_GROUP = 4,
};

/* Functions of opcode REDUCE. */
enum enpu_reduce {
	ENPU_REDUCE_SUM = 0,
	ENPU_REDUCE_MEAN = 1,
	ENPU_REDUCE_MAX = 2,
	ENPU_REDUCE_MIN = 3,
	ENPU_REDUCE_PROD = 4,
	ENPU_REDUCE_L1 = 5,
	ENPU_REDUCE_L2 = 6,
	ENPU_REDUCE_SUM_SQUARE = 7,
	ENPU_REDUCE_LOG_SUM = 8,
	ENPU_REDUCE_LOG_SUM_EXP = 9,
};

/* Modes of opcode PAD. */
enum enpu_pad_mode {
	ENPU_PAD_MODE_CONSTANT = 0,
	ENPU_PAD_MODE_EDGE = 1,
	ENPU_PAD_MODE_REFLECT = 2,
	ENPU_PAD_MODE_WRAP = 3,
};

/* TAKE is ONNX Gather (one axis), ELEMENTS is ONNX GatherElements. */
enum enpu_gather_mode {
	ENPU_GATHER_MODE_TAKE = 0,
	ENPU_GATHER_MODE_ELEMENTS = 1,
};

/* Interpolation of opcode RESIZE. */
enum enpu_resize_mode {
	ENPU_RESIZE_MODE_NEAREST = 0,
	ENPU_RESIZE_MODE_LINEAR = 1,
	ENPU_RESIZE_MODE_CUBIC = 2,
};

/* ONNX coordinate_transformation_mode. */
enum enpu_resize_coord {
	ENPU_RESIZE_COORD_HALF_PIXEL = 0,
	ENPU_RESIZE_COORD_PYTORCH_HALF_PIXEL = 1,
	ENPU_RESIZE_COORD_ALIGN_CORNERS = 2,
	ENPU_RESIZE_COORD_ASYMMETRIC = 3,
	ENPU_RESIZE_COORD_HALF_PIXEL_SYMMETRIC = 4,
	ENPU_RESIZE_COORD_TF_CROP_AND_RESIZE = 5,
};

/* ONNX nearest_mode. */
enum enpu_resize_round {
	ENPU_RESIZE_ROUND_ROUND_PREFER_FLOOR = 0,
	ENPU_RESIZE_ROUND_ROUND_PREFER_CEIL = 1,
	ENPU_RESIZE_ROUND_FLOOR = 2,
	ENPU_RESIZE_ROUND_CEIL = 3,
};

/* What PACK prepares weights for. */
enum enpu_pack_kind {
	ENPU_PACK_KIND_CONV2D = 0,
	ENPU_PACK_KIND_MATMUL = 1,
	ENPU_PACK_KIND_CONV_TRANSPOSE2D = 2,
};

/* Word index in a counter block; words 0 … 63 count packets by opcode. */
enum enpu_counter {
	ENPU_COUNTER_OPCODE0 = 0,
	ENPU_COUNTER_JOBS = 64,
	ENPU_COUNTER_PACKETS = 65,
	ENPU_COUNTER_BUSY_COMPUTE_NS = 66,
	ENPU_COUNTER_BUSY_COPY_NS = 67,
	ENPU_COUNTER_BYTES_READ = 68,
	ENPU_COUNTER_BYTES_WRITTEN = 69,
	ENPU_COUNTER_WORK = 70,
	ENPU_COUNTER_FAULTS = 71,
	ENPU_COUNTER_TLB_HITS = 72,
	ENPU_COUNTER_TLB_MISSES = 73,
	ENPU_COUNTER_STALL_NS = 74,
	ENPU_COUNTER_TILES = 75,
	ENPU_COUNTER_JOBS_FAILED = 76,
	ENPU_COUNTER_COPY_BYTES = 77,
};

/* Faults that can be injected. */
enum enpu_fault_kind {
	ENPU_FAULT_KIND_NONE = 0,
	ENPU_FAULT_KIND_ENGINE_HANG = 1,
	ENPU_FAULT_KIND_ENGINE_SLOW = 2,
	ENPU_FAULT_KIND_IRQ_LOST = 3,
	ENPU_FAULT_KIND_IRQ_REPEATED = 4,
	ENPU_FAULT_KIND_IRQ_SPURIOUS = 5,
	ENPU_FAULT_KIND_IRQ_STORM = 6,
	ENPU_FAULT_KIND_COMPLETION_DELAYED = 7,
	ENPU_FAULT_KIND_COMPLETION_CORRUPTED = 8,
	ENPU_FAULT_KIND_ECC_CORRECTED = 9,
	ENPU_FAULT_KIND_ECC_UNCORRECTED = 10,
	ENPU_FAULT_KIND_DMA_READ = 11,
	ENPU_FAULT_KIND_DMA_WRITE = 12,
	ENPU_FAULT_KIND_MMU_FAULT = 13,
	ENPU_FAULT_KIND_ILLEGAL_PACKET = 14,
	ENPU_FAULT_KIND_DOORBELL_IGNORED = 15,
	ENPU_FAULT_KIND_LOCAL_EXHAUSTED = 16,
	ENPU_FAULT_KIND_RESET_FAILS = 17,
	ENPU_FAULT_KIND_REMOVED = 18,
	ENPU_FAULT_KIND_FENCE_CORRUPTED = 19,
	ENPU_FAULT_KIND_TLB_STUCK = 20,
};

#define ENPU_FAULT_KINDS 21u
/* Initialisers of arrays of strings, by kind: its name in text, and what FAULT_TARGET numbers. */
#define ENPU_FAULT_KIND_NAMES { \
	"none", "engine-hang", "engine-slow", "irq-lost", "irq-repeated", "irq-spurious", \
	"irq-storm", "completion-delayed", "completion-corrupted", "ecc-corrected", "ecc-uncorrected", "dma-read", \
	"dma-write", "mmu-fault", "illegal-packet", "doorbell-ignored", "local-exhausted", "reset-fails", \
	"removed", "fence-corrupted", "tlb-stuck" }
#define ENPU_FAULT_KIND_TARGETS { \
	"", "engine", "engine", "vector", "vector", "vector", \
	"vector", "queue", "queue", "engine", "engine", "engine", \
	"engine", "engine", "engine", "queue", "engine", "engine", \
	"", "queue", "as" }

/* Packet opcodes. */
enum enpu_opcode {
	ENPU_OPCODE_NOP = 0,
	ENPU_OPCODE_COPY = 1,
	ENPU_OPCODE_FILL = 2,
	ENPU_OPCODE_BARRIER = 3,
	ENPU_OPCODE_WAIT = 4,
	ENPU_OPCODE_SIGNAL = 5,
	ENPU_OPCODE_TIMESTAMP = 6,
	ENPU_OPCODE_PACK = 7,
	ENPU_OPCODE_CONV2D = 16,
	ENPU_OPCODE_CONV_TRANSPOSE2D = 17,
	ENPU_OPCODE_MATMUL = 18,
	ENPU_OPCODE_POOL = 19,
	ENPU_OPCODE_UNARY = 20,
	ENPU_OPCODE_BINARY = 21,
	ENPU_OPCODE_SELECT = 22,
	ENPU_OPCODE_SOFTMAX = 23,
	ENPU_OPCODE_NORM = 24,
	ENPU_OPCODE_REDUCE = 25,
	ENPU_OPCODE_ARG = 26,
	ENPU_OPCODE_MOVE = 27,
	ENPU_OPCODE_PAD = 28,
	ENPU_OPCODE_GATHER = 29,
	ENPU_OPCODE_RESIZE = 30,
	ENPU_OPCODE_CAST = 31,
	ENPU_OPCODE_QUANTIZE = 32,
	ENPU_OPCODE_DEQUANTIZE = 33,
};

/* First page of queue memory. Producer and device write different cache lines. */
struct enpu_queue_header {
	enpu_u64 tail; /* producer: entries written (a count). Store with release order, then a full barrier, then read no_doorbell. */
	enpu_u64 irq_fence; /* driver: the completion that takes fence from below this value to it or beyond raises the engine's vector; 0: none does. Store, then a full barrier, then read fence. */
	enpu_u64 reserved0[6];
	enpu_u64 head; /* device: entries finished */
	enpu_u32 no_doorbell; /* device: not 0 while it is polling tail, so a kick can be left out */
	enpu_u32 reserved1;
	enpu_u64 reserved2[6];
	enpu_u64 fence; /* device: fence value completed last; written after the completion record */
	enpu_u64 start_ns; /* device: start of that job */
	enpu_u64 end_ns; /* device: end of that job */
	enpu_u32 status; /* device: enum enpu_status of the job that faulted the queue, else 0 */
	enpu_u32 reserved3;
	enpu_u64 reserved4[12];
};
ENPU_ASSERT_SIZE(struct enpu_queue_header, 256);

/* One job. It carries neither an address space nor a bus address. */
struct enpu_ring_entry {
	enpu_u64 cmd_va; /* command buffer, 16-byte aligned, readable */
	enpu_u32 cmd_bytes; /* its size, a multiple of 16, at most MAX_COMMAND_BYTES */
	enpu_u32 flags; /* RING_FLAG_* */
	enpu_u64 fence; /* value to write on completion; larger than the one before */
	enpu_u64 job_id; /* echoed in error records and traces */
};
ENPU_ASSERT_SIZE(struct enpu_ring_entry, 32);

/* Completion record of the ring entry with the same index. */
struct enpu_completion {
	enpu_u64 fence;
	enpu_u64 start_ns;
	enpu_u64 end_ns;
	enpu_u32 status; /* enum enpu_status */
	enpu_u32 packet; /* byte offset of the packet that failed */
};
ENPU_ASSERT_SIZE(struct enpu_completion, 32);

/* One entry of the error FIFO. */
struct enpu_error_record {
	enpu_u8 kind; /* enum enpu_status */
	enpu_u8 engine;
	enpu_u8 access; /* enum enpu_access */
	enpu_u8 cause; /* enum enpu_mmu_cause, or the number of the operand for BAD_OPERAND */
	enpu_u16 queue;
	enpu_u16 as_id;
	enpu_u64 va; /* faulting VA, or the bus address of a DMA error */
	enpu_u32 packet; /* byte offset in the command buffer */
	enpu_u16 opcode;
	enpu_u16 rule; /* the rule of the packet checker that was broken (hw/rules), 0 if none */
	enpu_u64 fence;
	enpu_u64 job_id;
	enpu_u64 tag; /* tag of the packet */
	enpu_u64 time_ns;
	enpu_u64 detail; /* the value that broke the rule, or more of the kind */
};
ENPU_ASSERT_SIZE(struct enpu_error_record, 64);

/* Header of every packet. */
struct enpu_packet {
	enpu_u16 opcode;
	enpu_u16 flags; /* must be 0 */
	enpu_u32 size; /* bytes, header included, a multiple of 16 */
	enpu_u64 tag; /* free for software; echoed in error records */
};
ENPU_ASSERT_SIZE(struct enpu_packet, 16);

/* Tensor descriptor. Strides count elements and may be 0 (broadcast) or negative (reversed); addr is the element with all indices 0. */
struct enpu_tensor {
	enpu_u64 addr; /* VA, aligned to the element size */
	enpu_u8 dtype;
	enpu_u8 rank;
	enpu_u8 format;
	enpu_u8 reserved0;
	enpu_s32 zero_point; /* i8/u8 only */
	enpu_f32 scale; /* i8/u8 only; 0 reads as 1 */
	enpu_u32 reserved1;
	enpu_u64 bytes; /* PACKED: size of the packed buffer; else 0 */
	enpu_u32 dims[8]; /* unused ones are 0 */
	enpu_s32 strides[8]; /* unused ones are 0 */
};
ENPU_ASSERT_SIZE(struct enpu_tensor, 96);

/* Copies rows of bytes; a 1D copy has height 1. Source and destination must not overlap. */
struct enpu_copy_packet {
	struct enpu_packet header;
	enpu_u64 dst;
	enpu_u64 src;
	enpu_u64 width; /* bytes a row */
	enpu_u32 height; /* rows */
	enpu_u32 reserved;
	enpu_u64 dst_pitch; /* bytes; at least width when height is larger than 1 */
	enpu_u64 src_pitch;
};
ENPU_ASSERT_SIZE(struct enpu_copy_packet, 64);

/* Fills bytes with a pattern of 1, 2, 4 or 8 bytes. */
struct enpu_fill_packet {
	struct enpu_packet header;
	enpu_u64 dst;
	enpu_u64 bytes; /* a multiple of pattern_bytes */
	enpu_u64 pattern;
	enpu_u32 pattern_bytes;
	enpu_u32 reserved;
};
ENPU_ASSERT_SIZE(struct enpu_fill_packet, 48);

/* Goes on when the 64-bit word at addr is at least value; other queues use the engine meanwhile. WAIT_TIMEOUT after timeout_us. */
struct enpu_wait_packet {
	struct enpu_packet header;
	enpu_u64 addr; /* 8-byte aligned */
	enpu_u64 value;
	enpu_u32 timeout_us; /* 1 … 60,000,000 */
	enpu_u32 reserved;
	enpu_u64 reserved1;
};
ENPU_ASSERT_SIZE(struct enpu_wait_packet, 48);

/* Writes the 64-bit value at addr after everything before it. */
struct enpu_signal_packet {
	struct enpu_packet header;
	enpu_u64 addr; /* 8-byte aligned */
	enpu_u64 value;
};
ENPU_ASSERT_SIZE(struct enpu_signal_packet, 32);

/* Writes the device clock at addr. */
struct enpu_timestamp_packet {
	struct enpu_packet header;
	enpu_u64 addr; /* 8-byte aligned */
	enpu_u64 reserved;
};
ENPU_ASSERT_SIZE(struct enpu_timestamp_packet, 32);

/* Puts weights into the device's own layout; packed is PACKED with the same logical dims. A buffer too small for the preferred layout holds the plain one. */
struct enpu_pack_params {
	enpu_u32 kind; /* enum enpu_pack_kind */
	enpu_u32 groups;
};

enum enpu_pack_operand {
	ENPU_PACK_OPERAND_WEIGHTS = 0,
	ENPU_PACK_OPERAND_PACKED = 1,
	ENPU_PACK_OPERANDS = 2,
};

/* x [N,C,H,W], weights [O,C/groups,KH,KW] (PLAIN or PACKED), bias [O], residual as y, y [N,O,OH,OW]. y = act(conv + bias + residual). i8: exact i32 sums of (x - zp)(w - zp), y I32, or I8/U8 = saturate(round_half_even((sum + bias) * scale[o]) + zp) with scale f32 [O] or [1]. */
struct enpu_conv2d_params {
	enpu_u32 stride[2]; /* h, w */
	enpu_u32 pad[4]; /* top, left, bottom, right */
	enpu_u32 dilation[2];
	enpu_u32 groups;
	enpu_u32 act; /* enum enpu_unary */
	enpu_f32 alpha;
	enpu_f32 beta;
};

enum enpu_conv2d_operand {
	ENPU_CONV2D_OPERAND_X = 0,
	ENPU_CONV2D_OPERAND_WEIGHTS = 1,
	ENPU_CONV2D_OPERAND_BIAS = 2,
	ENPU_CONV2D_OPERAND_RESIDUAL = 3,
	ENPU_CONV2D_OPERAND_SCALE = 4,
	ENPU_CONV2D_OPERAND_Y = 5,
	ENPU_CONV2D_OPERANDS = 6,
};

/* x [N,C,H,W], weights [C,O/groups,KH,KW], y [N,O,OH,OW] with OH = (H-1)*stride - pads + dilation*(KH-1) + 1 + output padding (0 … max(stride,dilation)-1, taken from y). */
struct enpu_conv_transpose2d_params {
	enpu_u32 stride[2];
	enpu_u32 pad[4];
	enpu_u32 dilation[2];
	enpu_u32 groups;
	enpu_u32 act;
	enpu_f32 alpha;
	enpu_f32 beta;
};

enum enpu_conv_transpose2d_operand {
	ENPU_CONV_TRANSPOSE2D_OPERAND_X = 0,
	ENPU_CONV_TRANSPOSE2D_OPERAND_WEIGHTS = 1,
	ENPU_CONV_TRANSPOSE2D_OPERAND_BIAS = 2,
	ENPU_CONV_TRANSPOSE2D_OPERAND_Y = 3,
	ENPU_CONV_TRANSPOSE2D_OPERANDS = 4,
};

/* a [...,M,K], b [...,K,N] (PLAIN or PACKED), y [...,M,N], batch dims equal (broadcast by stride 0, transposition by strides); bias and residual broadcast to y. y = act(alpha_mm * a b + bias + residual); i8 as CONV2D with scale [N] or [1]. */
struct enpu_matmul_params {
	enpu_u32 act;
	enpu_f32 alpha;
	enpu_f32 beta;
	enpu_f32 scale; /* alpha_mm; 0 reads as 1 */
};

enum enpu_matmul_operand {
	ENPU_MATMUL_OPERAND_A = 0,
	ENPU_MATMUL_OPERAND_B = 1,
	ENPU_MATMUL_OPERAND_BIAS = 2,
	ENPU_MATMUL_OPERAND_RESIDUAL = 3,
	ENPU_MATMUL_OPERAND_SCALE = 4,
	ENPU_MATMUL_OPERAND_Y = 5,
	ENPU_MATMUL_OPERANDS = 6,
};

/* x [N,C,H,W], y [N,C,OH,OW]. Ceil mode is a larger y: windows may pass the padded edge but start inside it; AVERAGE divides by the valid elements, AVERAGE_INCLUDE_PAD by those inside the padded input. */
struct enpu_pool_params {
	enpu_u32 function; /* enum enpu_pool */
	enpu_u32 kernel[2];
	enpu_u32 stride[2];
	enpu_u32 pad[4];
	enpu_u32 dilation[2];
};

enum enpu_pool_operand {
	ENPU_POOL_OPERAND_X = 0,
	ENPU_POOL_OPERAND_Y = 1,
	ENPU_POOL_OPERANDS = 2,
};

/* y = f(x), same dims. */
struct enpu_unary_params {
	enpu_u32 function; /* enum enpu_unary */
	enpu_f32 alpha;
	enpu_f32 beta;
};

enum enpu_unary_operand {
	ENPU_UNARY_OPERAND_X = 0,
	ENPU_UNARY_OPERAND_Y = 1,
	ENPU_UNARY_OPERANDS = 2,
};

/* y = act(f(a, b)); all three have the dims of y, broadcast operands with stride 0. */
struct enpu_binary_params {
	enpu_u32 function; /* enum enpu_binary */
	enpu_u32 act;
	enpu_f32 alpha;
	enpu_f32 beta;
};

enum enpu_binary_operand {
	ENPU_BINARY_OPERAND_A = 0,
	ENPU_BINARY_OPERAND_B = 1,
	ENPU_BINARY_OPERAND_Y = 2,
	ENPU_BINARY_OPERANDS = 3,
};

enum enpu_select_operand {
	ENPU_SELECT_OPERAND_CONDITION = 0,
	ENPU_SELECT_OPERAND_A = 1,
	ENPU_SELECT_OPERAND_B = 2,
	ENPU_SELECT_OPERAND_Y = 3,
	ENPU_SELECT_OPERANDS = 4,
};

/* Softmax (or its logarithm) along one axis; the maximum is subtracted first. */
struct enpu_softmax_params {
	enpu_u32 axis;
	enpu_u32 log;
};

enum enpu_softmax_operand {
	ENPU_SOFTMAX_OPERAND_X = 0,
	ENPU_SOFTMAX_OPERAND_Y = 1,
	ENPU_SOFTMAX_OPERANDS = 2,
};

/* LAYER and RMS over the dims from axis on (scale and bias broadcast to x); BATCH with mean and variance [C]; INSTANCE over the dims after C; GROUP over groups of C and the dims after it. y = (x - mean) / sqrt(variance + epsilon) * scale + bias. */
struct enpu_norm_params {
	enpu_u32 kind; /* enum enpu_norm */
	enpu_u32 axis;
	enpu_u32 groups;
	enpu_f32 epsilon;
	enpu_u32 act;
	enpu_f32 alpha;
	enpu_f32 beta;
};

enum enpu_norm_operand {
	ENPU_NORM_OPERAND_X = 0,
	ENPU_NORM_OPERAND_SCALE = 1,
	ENPU_NORM_OPERAND_BIAS = 2,
	ENPU_NORM_OPERAND_MEAN = 3,
	ENPU_NORM_OPERAND_VARIANCE = 4,
	ENPU_NORM_OPERAND_Y = 5,
	ENPU_NORM_OPERANDS = 6,
};

/* Reduces the axes in the mask; y has dim 1 there. */
struct enpu_reduce_params {
	enpu_u32 function; /* enum enpu_reduce */
	enpu_u32 axes; /* bit n: axis n */
};

enum enpu_reduce_operand {
	ENPU_REDUCE_OPERAND_X = 0,
	ENPU_REDUCE_OPERAND_Y = 1,
	ENPU_REDUCE_OPERANDS = 2,
};

/* Index of the largest (or smallest) element along an axis, the first (or last) of equal ones; y I32 or I64 with dim 1 there. NaN counts as largest and smallest. */
struct enpu_arg_params {
	enpu_u32 smallest;
	enpu_u32 axis;
	enpu_u32 last;
};

enum enpu_arg_operand {
	ENPU_ARG_OPERAND_X = 0,
	ENPU_ARG_OPERAND_Y = 1,
	ENPU_ARG_OPERANDS = 2,
};

enum enpu_move_operand {
	ENPU_MOVE_OPERAND_X = 0,
	ENPU_MOVE_OPERAND_Y = 1,
	ENPU_MOVE_OPERANDS = 2,
};

/* y is x with before[n] elements in front of axis n; what follows comes from the dims of y. Negative numbers crop. */
struct enpu_pad_params {
	enpu_u32 mode; /* enum enpu_pad_mode */
	enpu_s32 before[8];
	enpu_u32 reserved;
	enpu_u64 value; /* bits of the constant in the dtype of x */
};

enum enpu_pad_operand {
	ENPU_PAD_OPERAND_X = 0,
	ENPU_PAD_OPERAND_Y = 1,
	ENPU_PAD_OPERANDS = 2,
};

/* TAKE: y [x before axis, indices dims, x after axis]. ELEMENTS: y and indices have the same dims. Indices I32 or I64, negative ones count from the end; one out of range fails the job with BAD_OPERAND. */
struct enpu_gather_params {
	enpu_u32 mode; /* enum enpu_gather_mode */
	enpu_u32 axis;
};

enum enpu_gather_operand {
	ENPU_GATHER_OPERAND_X = 0,
	ENPU_GATHER_OPERAND_INDICES = 1,
	ENPU_GATHER_OPERAND_Y = 2,
	ENPU_GATHER_OPERANDS = 3,
};

/* ONNX Resize, opset 19. scale is per axis, 0 reads as y/x. */
struct enpu_resize_params {
	enpu_u32 mode; /* enum enpu_resize_mode */
	enpu_u32 coord; /* enum enpu_resize_coord */
	enpu_u32 round; /* enum enpu_resize_round */
	enpu_f32 cubic_a;
	enpu_u32 exclude_outside;
	enpu_f32 extrapolation;
	enpu_f32 scale[8];
	enpu_f32 roi_start[4]; /* last four axes */
	enpu_f32 roi_end[4];
};

enum enpu_resize_operand {
	ENPU_RESIZE_OPERAND_X = 0,
	ENPU_RESIZE_OPERAND_Y = 1,
	ENPU_RESIZE_OPERANDS = 2,
};

enum enpu_cast_operand {
	ENPU_CAST_OPERAND_X = 0,
	ENPU_CAST_OPERAND_Y = 1,
	ENPU_CAST_OPERANDS = 2,
};

enum enpu_quantize_operand {
	ENPU_QUANTIZE_OPERAND_X = 0,
	ENPU_QUANTIZE_OPERAND_SCALE = 1,
	ENPU_QUANTIZE_OPERAND_ZERO_POINT = 2,
	ENPU_QUANTIZE_OPERAND_Y = 3,
	ENPU_QUANTIZE_OPERANDS = 4,
};

enum enpu_dequantize_operand {
	ENPU_DEQUANTIZE_OPERAND_X = 0,
	ENPU_DEQUANTIZE_OPERAND_SCALE = 1,
	ENPU_DEQUANTIZE_OPERAND_ZERO_POINT = 2,
	ENPU_DEQUANTIZE_OPERAND_Y = 3,
	ENPU_DEQUANTIZE_OPERANDS = 4,
};

#define ENPU_OPERATOR_PARAM_BYTES 112u
/* Every operator packet: header, parameters, then the operands of its opcode as tensor descriptors. */
struct enpu_operator_packet {
	struct enpu_packet header;
	union {
		enpu_u64 raw[ENPU_OPERATOR_PARAM_BYTES / 8];
		struct enpu_pack_params pack;
		struct enpu_conv2d_params conv2d;
		struct enpu_conv_transpose2d_params conv_transpose2d;
		struct enpu_matmul_params matmul;
		struct enpu_pool_params pool;
		struct enpu_unary_params unary;
		struct enpu_binary_params binary;
		struct enpu_softmax_params softmax;
		struct enpu_norm_params norm;
		struct enpu_reduce_params reduce;
		struct enpu_arg_params arg;
		struct enpu_pad_params pad;
		struct enpu_gather_params gather;
		struct enpu_resize_params resize;
	} params; /* bytes past the parameters of the opcode must be 0 */
	struct enpu_tensor operands[];
};
#define ENPU_OPERATOR_PACKET_BYTES(operands) (128u + 96u * (operands))

#endif
