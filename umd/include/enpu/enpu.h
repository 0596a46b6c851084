/* SPDX-License-Identifier: MIT */
/*
 * libenpu: the user-mode driver of the enpu NPU. One C API over two ways down: the kernel driver
 * (/dev/accel/accelN) and the simulator in the process ("sim"), which runs the same packets through
 * the same rings and MMU.
 *
 *     struct enpu_device *device;
 *     struct enpu_buffer *a, *b;
 *     struct enpu_context *context;
 *     struct enpu_timeline *timeline;
 *     struct enpu_builder *builder;
 *     struct enpu_command *command;
 *
 *     enpu_device_open(NULL, &device, &error);
 *     enpu_buffer_create(device, bytes, ENPU_BUFFER_LOCAL, &a, &error);
 *     enpu_buffer_create(device, bytes, ENPU_BUFFER_HOST, &b, &error);
 *     enpu_context_create(device, NULL, &context, &error);
 *     enpu_timeline_create(device, 0, &timeline, &error);
 *     enpu_builder_create(device, ENPU_ENGINE_KIND_COPY, &builder, &error);
 *     enpu_build_copy(builder, a, 0, b, 0, bytes, &error);
 *     enpu_builder_finish(builder, &command, &error);
 *     enpu_submit(context, engine, command, NULL, 0, &(struct enpu_point){timeline, 1}, 1, 0, NULL,
 *                 &error);
 *     enpu_context_wait(context, timeline, 1, enpu_deadline_after(1000000000), &error);
 *
 * Conventions, unless a function says otherwise:
 *  - Result: 0 (or a count, where said) or a negative errno from the list below. The same number
 * and a sentence that names where, what and why go to *error, which may be NULL. On success *error
 * is not touched. A call that fails has had no effect; out-parameters are then NULL or 0.
 *  - Objects are reference-counted: create, open, wrap and import return one reference, release
 * drops one (NULL is allowed). An object holds references to what it was made from (a buffer to its
 * device, a command to its buffers), so any order of release is right. Release never blocks for a
 * job: memory that jobs in flight use is freed after them.
 *  - Every function may be called from any thread at any time; only a builder belongs to one thread
 * at a time.
 *  - No function blocks, except those that take a deadline. Deadlines are absolute CLOCK_MONOTONIC
 * times in ns; one in the past polls.
 *  - Sizes and offsets are bytes, times ns.
 *  - enums, parameter structs and tensor descriptors are those of the hardware (enpu_hw.h,
 * docs/hardware.md).
 */
#ifndef ENPU_ENPU_H
#define ENPU_ENPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "enpu_hw.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every addition; the SONAME changes when something is removed or changed. */
#define ENPU_API_VERSION 1

/* -------------------------------------------------------------------------------------------------------------------------
 * errors
 *
 * Codes (negative errno), stable:
 *   -EINVAL           an argument or a packet breaks a rule; the sentence names operand and rule
 *   -ENODEV           no such device, or it was removed
 *   -EACCES           no permission (device node, HIGH priority, writing to a read-only buffer)
 *   -EPROTO           the device or the driver speaks another version
 *   -ENOMEM           host memory, RLIMIT_MEMLOCK
 *   -ENOSPC           device-local memory, VA space, contexts or hardware queues used up
 *   -ETIME            the deadline passed; nothing was lost, the same wait may be called again
 *   -EBUSY            the command has jobs in flight and cannot be patched
 *   -EAGAIN           the context has its maximum of unfinished jobs; wait for one and submit again
 *   -EOPNOTSUPP       this device, node or buffer cannot do that; the sentence says why
 *   -EIO              the device is wedged
 * Why a job failed (context status, enpu_context_wait):
 *   -EFAULT           it touched a VA that is not mapped so
 *   -EBADMSG          the device refused a packet
 *   -ETIMEDOUT        it hung and was reset, or a WAIT packet ran out of time
 *   -EREMOTEIO        DMA or memory (ECC) error
 *   -ESTALE           torn by the reset of another job; may be run again when its inputs are intact
 *   -ECANCELED        dropped before it ran, because an earlier job of its context failed
 *   -ENOMEM           the device ran out of working memory
 *   -ENOTRECOVERABLE  submit: the context is guilty of a fault or a hang; make a new one
 */
struct enpu_error {
    int code;
    char message[508]; /* one sentence, always terminated */
};

/* ---- devices --------------------------------------------------------------------------------- */
struct enpu_device;

struct enpu_device_entry {
    char spec[64]; /* for enpu_device_open: "/dev/accel/accel0", "sim" */
    char name[64]; /* for people: driver and bus address */
};

/*
 * Lists the kernel's enpu devices in order of their nodes, then the simulator. Writes at most
 * `capacity` entries; returns how many there are.
 */
int enpu_enumerate(struct enpu_device_entry* entries, size_t capacity, struct enpu_error* error);

/*
 * Opens a device; each open device is an address space of its own.
 *   "/dev/accel/accelN"    a node of the kernel driver; anything else behind it is -ENODEV with the
 *                          name that was found
 *   "npu"                  the first such node
 *   "sim", "sim:options"   a new simulator; options are comma-separated: cores=2 threads=1
 *                          copy-engines=2 local-mem=256M (suffix K, M, G) ram=1G (host memory it
 *                          can allocate; nothing is reserved up front) fault-injection=on|off
 *                          faults=FAULTS, which arms them and turns injection on. So does the
 *                          environment variable ENPU_SIM_FAULTS; its faults come after those.
 *   NULL or ""             the environment variable ENPU_DEVICE, else as "npu"
 * Never falls back to the simulator by itself.
 */
int enpu_device_open(const char* spec, struct enpu_device** device, struct enpu_error* error);
struct enpu_device* enpu_device_retain(struct enpu_device* device);
void enpu_device_release(struct enpu_device* device);

struct enpu_device_info {
    char spec[64];
    uint32_t simulator;       /* 1: runs in this process */
    uint32_t hw_version;      /* ENPU_VERSION_* */
    uint32_t features;        /* ENPU_CAP_FEATURES_* */
    uint32_t compute_engines; /* engines 0 … compute_engines - 1 */
    uint32_t copy_engines;    /* the engines after them */
    uint32_t threads;         /* host threads of a compute engine */
    uint32_t page_size;
    uint32_t max_command_bytes;
    uint64_t max_tensor_bytes;
    uint64_t max_packet_work;
    uint64_t local_bytes;
    uint32_t default_timeout_ms;
    uint32_t reset_count;              /* when the device was opened */
    uint64_t opcodes;                  /* bit n: opcode n exists */
    uint32_t dtypes[ENPU_MAX_OPCODES]; /* bit d of word n: opcode n takes dtype d */
};

/* What the device is; read when it was opened, never changes. The pointer lives as long as the
 * device. */
const struct enpu_device_info* enpu_device_get_info(const struct enpu_device* device);

struct enpu_memory_info {
    uint64_t local_total;
    uint64_t local_free;
    uint64_t local_largest; /* largest contiguous free piece */
    uint64_t local_used;    /* by this open device */
    uint64_t host_used;     /* host memory in buffers of this open device */
};
int enpu_device_get_memory(struct enpu_device* device, struct enpu_memory_info* info,
                           struct enpu_error* error);

/*
 * The device's own counters of this address space, indexed by enum enpu_counter. Writes at most
 * `capacity` words; returns how many there are.
 */
int enpu_device_get_counters(struct enpu_device* device, uint64_t* counters, size_t capacity,
                             struct enpu_error* error);

/* The device clock (as TIMESTAMP packets write it) and CLOCK_MONOTONIC at the same moment. */
int enpu_device_get_clock(struct enpu_device* device, uint64_t* device_ns, uint64_t* monotonic_ns,
                          struct enpu_error* error);

/*
 * Arms injected faults on a simulator opened with fault-injection=on. `faults` is a text such as
 * "engine-hang:engine=0:after=3;irq-lost:times=always" (enpu_fault.h); "none" clears all. -EINVAL for
 * what cannot be read, which arms nothing; -ENOSPC for a target that the device lacks or for more than 16,
 * which clears all.
 * -EOPNOTSUPP elsewhere: a real device takes faults through its driver's debugfs.
 */
int enpu_device_inject_faults(struct enpu_device* device, const char* faults,
                              struct enpu_error* error);
/*
 * How often injected faults of a kind (enum enpu_fault_kind) have fired, and the device clock when the last
 * one did (0: none; may be NULL). Counted by the device. Same conditions.
 */
int enpu_device_get_faults_fired(struct enpu_device* device, uint32_t kind, uint32_t* fired,
                                 uint64_t* last_ns, struct enpu_error* error);

/* ---- buffers --------------------------------------------------------------------------------- */
struct enpu_buffer;

/* Placement: exactly one. */
#define ENPU_BUFFER_HOST (1u << 0) /* host memory, cached */
/* Device memory, contiguous. The CPU sees it write-combined: write in order, do not read in loops. */
#define ENPU_BUFFER_LOCAL (1u << 1)
/* Options. */
#define ENPU_BUFFER_SHARED (1u << 2)    /* can be exported */
#define ENPU_BUFFER_READ_ONLY (1u << 3) /* the device only reads it */

/*
 * Makes a zeroed buffer, mapped in the device's address space until its last reference and the last
 * job that uses it are gone. -ENOSPC when local memory is full (nothing is evicted), -ENOMEM. When
 * freed memory still waits for jobs, this call waits for them, 10 s at most.
 */
int enpu_buffer_create(struct enpu_device* device, uint64_t bytes, uint32_t flags,
                       struct enpu_buffer** buffer, struct enpu_error* error);

/*
 * Makes memory of this process a buffer without a copy (pins its pages, counted against
 * RLIMIT_MEMLOCK). Any address and size; `flags` is 0 or READ_ONLY. The memory must stay allocated
 * until the buffer has no reference and no job; it is cached and coherent. Cannot be exported.
 */
int enpu_buffer_wrap(struct enpu_device* device, void* memory, uint64_t bytes, uint32_t flags,
                     struct enpu_buffer** buffer, struct enpu_error* error);

/* A new dma-buf descriptor (close-on-exec, owned by the caller) of a SHARED buffer. -EOPNOTSUPP on
 * the simulator. */
int enpu_buffer_export(struct enpu_buffer* buffer, int* fd, struct enpu_error* error);
/* A buffer over a dma-buf of any driver; `fd` stays the caller's. -EOPNOTSUPP on the simulator. */
int enpu_buffer_import(struct enpu_device* device, int fd, uint32_t flags,
                       struct enpu_buffer** buffer, struct enpu_error* error);

struct enpu_buffer* enpu_buffer_retain(struct enpu_buffer* buffer);
void enpu_buffer_release(struct enpu_buffer* buffer);

uint64_t enpu_buffer_bytes(const struct enpu_buffer* buffer); /* as asked for */
uint64_t enpu_buffer_va(const struct enpu_buffer* buffer);    /* device VA of byte 0 */
uint32_t enpu_buffer_flags(const struct enpu_buffer* buffer);

/*
 * CPU address of byte 0; mapped on the first call, the same on every later one, valid while the
 * caller has a reference. The CPU and the device see each other's writes when a timeline orders
 * them. -EOPNOTSUPP for imported buffers that cannot be mapped.
 */
int enpu_buffer_map(struct enpu_buffer* buffer, void** address, struct enpu_error* error);

/*
 * Waits until no job uses a SHARED or imported buffer, those of other processes and drivers
 * included: to read it, or with `write` to write it. -ETIME at the deadline.
 */
int enpu_buffer_wait(struct enpu_buffer* buffer, bool write, int64_t deadline_ns,
                     struct enpu_error* error);

/* -------------------------------------------------------------------------------------------------------------------------
 * timelines
 *
 * A 64-bit value that only grows. Jobs and the host wait for points of it and signal them. */
struct enpu_timeline;

struct enpu_point {
    struct enpu_timeline* timeline;
    uint64_t value; /* not 0 */
};

/* now + ns, saturated: for the deadline parameters. */
int64_t enpu_deadline_after(uint64_t ns);

int enpu_timeline_create(struct enpu_device* device, uint64_t initial,
                         struct enpu_timeline** timeline, struct enpu_error* error);
struct enpu_timeline* enpu_timeline_retain(struct enpu_timeline* timeline);
void enpu_timeline_release(struct enpu_timeline* timeline);

/*
 * Blocks until the timeline has reached `value`, submitted yet or not. -ETIME at the deadline. A
 * point is reached too when its job failed: use enpu_context_wait, or look at
 * enpu_context_get_status afterwards.
 */
int enpu_timeline_wait(struct enpu_timeline* timeline, uint64_t value, int64_t deadline_ns,
                       struct enpu_error* error);
/*
 * The same for 1 … 256 points: all of them, or with `any` at least one, whose index then goes to
 * *first (may be NULL).
 */
int enpu_timelines_wait(const struct enpu_point* points, size_t count, bool any,
                        int64_t deadline_ns, size_t* first, struct enpu_error* error);
/* Value reached so far. */
int enpu_timeline_query(struct enpu_timeline* timeline, uint64_t* value, struct enpu_error* error);
/* Signals a point from the host. Not larger than what was reached or submitted is -EINVAL. */
int enpu_timeline_signal(struct enpu_timeline* timeline, uint64_t value, struct enpu_error* error);
/* To share it with another process (a descriptor of the caller's, close-on-exec). -EOPNOTSUPP on
 * the simulator. */
int enpu_timeline_export(struct enpu_timeline* timeline, int* fd, struct enpu_error* error);
int enpu_timeline_import(struct enpu_device* device, int fd, struct enpu_timeline** timeline,
                         struct enpu_error* error);

/* -------------------------------------------------------------------------------------------------------------------------
 * contexts
 *
 * A line of work with its own errors. Jobs of one (context, engine) run in order; all else is
 * ordered by timelines. */
struct enpu_context;

enum enpu_priority {
    ENPU_PRIORITY_LOW = 0,
    ENPU_PRIORITY_NORMAL = 1,
    ENPU_PRIORITY_HIGH = 2, /* needs CAP_SYS_NICE */
};

struct enpu_context_config {
    uint32_t priority;   /* enum enpu_priority */
    uint32_t timeout_ms; /* without progress after which a job counts as hung; 0: the default; at
                            most 600,000 */
    uint32_t max_jobs;   /* unfinished ones; 0: 16,384 */
    uint32_t reserved;   /* 0 */
};

/* `config` may be NULL: NORMAL priority, defaults. -ENOSPC beyond 64 contexts of an open device. */
int enpu_context_create(struct enpu_device* device, const struct enpu_context_config* config,
                        struct enpu_context** context, struct enpu_error* error);
struct enpu_context* enpu_context_retain(struct enpu_context* context);
/* The last release cancels the jobs that have not ended; their signal points are reached all the
 * same. */
void enpu_context_release(struct enpu_context* context);

struct enpu_context_status {
    int code;               /* negative errno of the first failed job, 0 if none */
    uint32_t guilty;        /* 1: submit is refused with -ENOTRECOVERABLE */
    uint64_t failed_seqno;  /* of the first failed job */
    uint64_t failed_job_id; /* as given to enpu_submit */
    uint64_t fault_va;      /* for -EFAULT */
    uint32_t packet;        /* byte offset of the packet in its command buffer */
    uint16_t hw_status;     /* enum enpu_status */
    uint16_t rule;          /* of the packet checker, 0 if none */
    uint16_t operand;       /* index, 0xff if none */
    uint16_t opcode;
    uint32_t failed_jobs; /* so far */
    uint32_t reset_count; /* resets that hit this context */
    uint64_t submitted;   /* sequence number given last */
    uint64_t completed;   /* all jobs up to this one have ended */
    char message[320]; /* the failure in one sentence, with opcode, operand and rule; empty if none
                        */
};
int enpu_context_get_status(struct enpu_context* context, struct enpu_context_status* status,
                            struct enpu_error* error);

/*
 * enpu_timeline_wait, then the context's status: 0 when the point is reached and no job of the
 * context has failed that was not reported by this function before. A guilty context reports its
 * failure on every call.
 */
int enpu_context_wait(struct enpu_context* context, struct enpu_timeline* timeline, uint64_t value,
                      int64_t deadline_ns, struct enpu_error* error);

/* -------------------------------------------------------------------------------------------------------------------------
 * commands
 *
 * A builder collects packets; finish turns them into a command, which is submitted as often as
 * wanted. Each packet is checked with the rules of the hardware, against the device's capabilities,
 * and each operand against its buffer: it must lie inside, and an output must not lie in a
 * READ_ONLY one. */
struct enpu_builder;
struct enpu_command;

/*
 * A tensor operand: `tensor` (its addr is ignored) at `offset` bytes into `buffer`, where the
 * element with all indices 0 lies. A NULL pointer to an operand, or dtype NONE, leaves an optional
 * operand out.
 */
struct enpu_operand {
    struct enpu_buffer* buffer;
    uint64_t offset;
    struct enpu_tensor tensor;
};

/*
 * Fills a descriptor of a dense row-major PLAIN tensor: strides from dims. -EINVAL for a rank over
 * 8, an unknown dtype or strides that overflow.
 */
int enpu_tensor_init(struct enpu_tensor* tensor, uint32_t dtype, uint32_t rank,
                     const uint32_t* dims, struct enpu_error* error);
/* The bytes that a PLAIN or PACKED tensor touches: [offset + *begin, offset + *begin + *bytes);
 * *begin is 0 or negative. */
int enpu_tensor_span(const struct enpu_tensor* tensor, int64_t* begin, uint64_t* bytes,
                     struct enpu_error* error);
/* Buffer bytes that PACK needs for weights in the preferred layout (enum enpu_pack_kind); 0 when
 * they cannot be packed. */
uint64_t enpu_packed_bytes(const struct enpu_tensor* weights, uint32_t kind, uint32_t groups);

/*
 * Would the device run this operator? Checks everything but the buffers: 0, or -EINVAL/-EOPNOTSUPP
 * with the reason. `tensors` in the order of the opcode (dtype NONE: left out; addr is ignored),
 * `params` the parameter struct of the opcode, or NULL when it has none.
 */
int enpu_check_operator(struct enpu_device* device, uint32_t opcode, const void* params,
                        size_t params_bytes, const struct enpu_tensor* tensors, size_t count,
                        struct enpu_error* error);

/* A builder for engines of one kind (enum enpu_engine_kind). */
int enpu_builder_create(struct enpu_device* device, uint32_t engine_kind,
                        struct enpu_builder** builder, struct enpu_error* error);
void enpu_builder_release(struct enpu_builder* builder);
/* Tag of the packets that follow; comes back in error records. */
void enpu_builder_set_tag(struct enpu_builder* builder, uint64_t tag);
/* Drops all packets. */
void enpu_builder_reset(struct enpu_builder* builder);
/* Bytes so far. */
size_t enpu_builder_bytes(const struct enpu_builder* builder);
/* The packets as they are, for tests, tools and dumps. Valid until the next call on the builder. */
const void* enpu_builder_packets(const struct enpu_builder* builder);

/*
 * Each enpu_build_* appends one packet and returns its index (0, 1, …), which enpu_command_patch
 * takes, or a negative errno, the builder then being as before. Operand numbers of packets without
 * tensors: COPY has dst 0, src 1; the others have one, 0.
 */
int enpu_build_nop(struct enpu_builder* builder, struct enpu_error* error);
int enpu_build_barrier(struct enpu_builder* builder, struct enpu_error* error);
int enpu_build_copy(struct enpu_builder* builder, struct enpu_buffer* dst, uint64_t dst_offset,
                    struct enpu_buffer* src, uint64_t src_offset, uint64_t bytes,
                    struct enpu_error* error);
struct enpu_copy_2d {
    struct enpu_buffer *dst, *src;
    uint64_t dst_offset, src_offset;
    uint64_t dst_pitch, src_pitch; /* bytes from row to row, at least width */
    uint64_t width;                /* bytes */
    uint32_t height;               /* rows */
    uint32_t reserved;             /* 0 */
};
int enpu_build_copy_2d(struct enpu_builder* builder, const struct enpu_copy_2d* copy,
                       struct enpu_error* error);
/* Repeats the low pattern_bytes (1, 2, 4 or 8) of `pattern`; `bytes` is a multiple of them. */
int enpu_build_fill(struct enpu_builder* builder, struct enpu_buffer* dst, uint64_t offset,
                    uint64_t bytes, uint64_t pattern, uint32_t pattern_bytes,
                    struct enpu_error* error);
/* Goes on when the 64-bit word at offset is at least `value`; fails the job after timeout_us (1 …
 * 60,000,000). */
int enpu_build_wait(struct enpu_builder* builder, struct enpu_buffer* buffer, uint64_t offset,
                    uint64_t value, uint32_t timeout_us, struct enpu_error* error);
int enpu_build_signal(struct enpu_builder* builder, struct enpu_buffer* buffer, uint64_t offset,
                      uint64_t value, struct enpu_error* error);
int enpu_build_timestamp(struct enpu_builder* builder, struct enpu_buffer* buffer, uint64_t offset,
                         struct enpu_error* error);

/*
 * Any operator, by opcode: what the typed functions below do. `operands` in the order of the
 * opcode.
 */
int enpu_build_operator(struct enpu_builder* builder, uint32_t opcode, const void* params,
                        size_t params_bytes, const struct enpu_operand* const* operands,
                        size_t count, struct enpu_error* error);

/* One function an operator family; see docs/hardware.md for what each computes. Operands marked
 * "opt" may be NULL. */
int enpu_build_pack(struct enpu_builder* builder, const struct enpu_pack_params* params,
                    const struct enpu_operand* weights, const struct enpu_operand* packed,
                    struct enpu_error* error);
int enpu_build_conv2d(struct enpu_builder* builder, const struct enpu_conv2d_params* params,
                      const struct enpu_operand* x, const struct enpu_operand* weights,
                      const struct enpu_operand* bias_opt, const struct enpu_operand* residual_opt,
                      const struct enpu_operand* scale_opt, const struct enpu_operand* y,
                      struct enpu_error* error);
int enpu_build_conv_transpose2d(struct enpu_builder* builder,
                                const struct enpu_conv_transpose2d_params* params,
                                const struct enpu_operand* x, const struct enpu_operand* weights,
                                const struct enpu_operand* bias_opt, const struct enpu_operand* y,
                                struct enpu_error* error);
int enpu_build_matmul(struct enpu_builder* builder, const struct enpu_matmul_params* params,
                      const struct enpu_operand* a, const struct enpu_operand* b,
                      const struct enpu_operand* bias_opt, const struct enpu_operand* residual_opt,
                      const struct enpu_operand* scale_opt, const struct enpu_operand* y,
                      struct enpu_error* error);
int enpu_build_pool(struct enpu_builder* builder, const struct enpu_pool_params* params,
                    const struct enpu_operand* x, const struct enpu_operand* y,
                    struct enpu_error* error);
int enpu_build_unary(struct enpu_builder* builder, const struct enpu_unary_params* params,
                     const struct enpu_operand* x, const struct enpu_operand* y,
                     struct enpu_error* error);
int enpu_build_binary(struct enpu_builder* builder, const struct enpu_binary_params* params,
                      const struct enpu_operand* a, const struct enpu_operand* b,
                      const struct enpu_operand* y, struct enpu_error* error);
int enpu_build_select(struct enpu_builder* builder, const struct enpu_operand* condition,
                      const struct enpu_operand* a, const struct enpu_operand* b,
                      const struct enpu_operand* y, struct enpu_error* error);
int enpu_build_softmax(struct enpu_builder* builder, const struct enpu_softmax_params* params,
                       const struct enpu_operand* x, const struct enpu_operand* y,
                       struct enpu_error* error);
int enpu_build_norm(struct enpu_builder* builder, const struct enpu_norm_params* params,
                    const struct enpu_operand* x, const struct enpu_operand* scale_opt,
                    const struct enpu_operand* bias_opt, const struct enpu_operand* mean_opt,
                    const struct enpu_operand* variance_opt, const struct enpu_operand* y,
                    struct enpu_error* error);
int enpu_build_reduce(struct enpu_builder* builder, const struct enpu_reduce_params* params,
                      const struct enpu_operand* x, const struct enpu_operand* y,
                      struct enpu_error* error);
int enpu_build_arg(struct enpu_builder* builder, const struct enpu_arg_params* params,
                   const struct enpu_operand* x, const struct enpu_operand* y,
                   struct enpu_error* error);
int enpu_build_move(struct enpu_builder* builder, const struct enpu_operand* x,
                    const struct enpu_operand* y, struct enpu_error* error);
int enpu_build_pad(struct enpu_builder* builder, const struct enpu_pad_params* params,
                   const struct enpu_operand* x, const struct enpu_operand* y,
                   struct enpu_error* error);
int enpu_build_gather(struct enpu_builder* builder, const struct enpu_gather_params* params,
                      const struct enpu_operand* x, const struct enpu_operand* indices,
                      const struct enpu_operand* y, struct enpu_error* error);
int enpu_build_resize(struct enpu_builder* builder, const struct enpu_resize_params* params,
                      const struct enpu_operand* x, const struct enpu_operand* y,
                      struct enpu_error* error);
int enpu_build_cast(struct enpu_builder* builder, const struct enpu_operand* x,
                    const struct enpu_operand* y, struct enpu_error* error);
int enpu_build_quantize(struct enpu_builder* builder, const struct enpu_operand* x,
                        const struct enpu_operand* scale, const struct enpu_operand* zero_point_opt,
                        const struct enpu_operand* y, struct enpu_error* error);
int enpu_build_dequantize(struct enpu_builder* builder, const struct enpu_operand* x,
                          const struct enpu_operand* scale,
                          const struct enpu_operand* zero_point_opt, const struct enpu_operand* y,
                          struct enpu_error* error);

/*
 * Turns the packets (at least one) into a command in a buffer of its own and empties the builder
 * for the next. The command holds references to all buffers that its packets name.
 */
int enpu_builder_finish(struct enpu_builder* builder, struct enpu_command** command,
                        struct enpu_error* error);
struct enpu_command* enpu_command_retain(struct enpu_command* command);
void enpu_command_release(struct enpu_command* command);
uint64_t enpu_command_va(const struct enpu_command* command);
uint32_t enpu_command_bytes(const struct enpu_command* command);
uint32_t enpu_command_packets(const struct enpu_command* command); /* how many */

/*
 * Lets one operand of a packet point elsewhere; shape and dtype stay. Checked like the packet was
 * when it was built. -EBUSY while a job runs the command. The buffer that was named before stays
 * referenced until the command is freed only if another operand names it.
 */
int enpu_command_patch(struct enpu_command* command, uint32_t packet, uint32_t operand,
                       struct enpu_buffer* buffer, uint64_t offset, struct enpu_error* error);

/* -------------------------------------------------------------------------------------------------------------------------
 * submission
 *
 * Queues a job: when all `waits` are reached, `engine` (an index; of the kind the command was built
 * for) runs the command, and then the `signals` are signalled, at most 256 of both together. Does
 * not block. A point to wait for must have been submitted or signalled before (-EINVAL). `job_id`
 * is the caller's, and comes back in the status. *seqno (may be NULL) gets the job's number in the
 * context, from 1. The command and its buffers stay alive until the job has ended.
 */
int enpu_submit(struct enpu_context* context, uint32_t engine, struct enpu_command* command,
                const struct enpu_point* waits, size_t wait_count, const struct enpu_point* signals,
                size_t signal_count, uint64_t job_id, uint64_t* seqno, struct enpu_error* error);

/*
 * For tests and tools: like enpu_submit, but for `bytes` at any VA, which nothing here has checked:
 * the device has the last word. The caller keeps the memory alive and unchanged until the job has
 * ended.
 */
int enpu_submit_raw(struct enpu_context* context, uint32_t engine, uint64_t va, uint32_t bytes,
                    const struct enpu_point* waits, size_t wait_count,
                    const struct enpu_point* signals, size_t signal_count, uint64_t job_id,
                    uint64_t* seqno, struct enpu_error* error);

/* -------------------------------------------------------------------------------------------------------------------------
 * user-mode queues
 *
 * A ring to one engine that this process fills itself: submitting costs no system call, and waiting
 * looks at memory before it sleeps. Entries run in order, beside the jobs of enpu_submit, and are
 * known by a fence: how many were submitted before and with them. A queue knows no timelines: order
 * it against others by WAIT and SIGNAL packets, or by waiting. While a queue exists the device does
 * not sleep. -EOPNOTSUPP where CAP_FEATURES lacks USER_QUEUES or IRQ_FENCE. */
struct enpu_queue;

/*
 * `entries`: of the ring, a power of two, 4 to 4096; so many commands may be unfinished. -ENOSPC
 * beyond 16 queues of an open device, or when the device has none left.
 */
int enpu_queue_create(struct enpu_context* context, uint32_t engine, uint32_t entries,
                      struct enpu_queue** queue, struct enpu_error* error);
struct enpu_queue* enpu_queue_retain(struct enpu_queue* queue);
/* The last release drops what has not run. Waits for the packet that runs, at most 1 s and the reset
 * of its engine. */
void enpu_queue_release(struct enpu_queue* queue);

/*
 * Submits 1 … `entries` commands, all or none, with one kick of the device at most. They must not
 * use SHARED or imported buffers (-EOPNOTSUPP). *fence (may be NULL) gets the fence of the last; the
 * first has *fence - count + 1. The commands and their buffers stay alive until they have ended and
 * the queue was asked about them. -EAGAIN when the ring has no room.
 */
int enpu_queue_submit(struct enpu_queue* queue, struct enpu_command* const* commands, size_t count,
                      uint64_t job_id, uint64_t* fence, struct enpu_error* error);
/*
 * Blocks until the command with this fence has ended: polls for up to 50 us, then sleeps. 0 when it
 * ended well, else why it failed, as for contexts; what failed for good ends the queue and its
 * context, a torn command (-ESTALE) is left out and the queue goes on. -ETIME at the deadline.
 */
int enpu_queue_wait(struct enpu_queue* queue, uint64_t fence, int64_t deadline_ns,
                    struct enpu_error* error);
/* Fence reached so far. Does not block and asks nobody. */
uint64_t enpu_queue_completed(struct enpu_queue* queue);

#ifdef __cplusplus
}
#endif
#endif
