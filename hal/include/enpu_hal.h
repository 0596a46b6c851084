/* SPDX-License-Identifier: MIT */
/*
 * The hardware abstraction layer: a C ABI between the runtime and a backend. A backend is a shared
 * object that exports one function, enpu_hal_query, and links nothing of ours: what it needs from
 * the process it gets in the host table.
 *
 * Versions. Every table and every structure that is passed by pointer starts with struct
 * enpu_hal_header. Another ENPU_HAL_ABI_MAJOR is refused; within one, structures only grow at the
 * end and `size` says how much the other side knows: a reader takes what lies past it as 0, a
 * writer leaves it alone. A structure of another `type`, or smaller than ABI 1.0 made it, is
 * INVALID_ARGUMENT. `next` chains optional extension structures; one of unknown type is ignored.
 * The small values inside them that have no header (points, places, commands, operands, the
 * status) never change. hal/abi/layout.txt lists every offset; the lint lane holds it.
 *
 * Capabilities. enpu_hal_caps tell which optional parts exist; the loader refuses a backend whose
 * bits and slots disagree and names the slot. What a backend lacks is emulated once, above this
 * table (hal/emulation): COPY_2D, FILL, HOST_CALL, WAIT_EARLY and GRAPH; the rest stays away. All
 * slots without a comment "optional" are required.
 *
 * Threads. Any function may be called from any thread, for the same object too, unless its comment
 * says otherwise. Destroying an object while another call uses it is the caller's fault. Functions
 * do not block, unless they say so; those that do take an absolute deadline in ns of
 * CLOCK_MONOTONIC (0: do not wait at all). No lock is held across a wait.
 *
 * Errors. Every function returns enum enpu_hal_code and, when that is not OK and `status` is not
 * NULL, fills *status. A call that fails has no effect. What goes wrong after a submission was
 * accepted is the failure of its fences.
 */
#ifndef ENPU_HAL_H
#define ENPU_HAL_H

#include <stddef.h>
#include <stdint.h>

#include "enpu_hal_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ENPU_HAL_ABI_MAJOR 1u
#define ENPU_HAL_ABI_MINOR 2u
#define ENPU_HAL_QUERY_NAME "enpu_hal_query"

/* Values of enpu_hal_header.type. */
enum enpu_hal_type {
    ENPU_HAL_TYPE_HOST = 1,
    ENPU_HAL_TYPE_PLUGIN = 2,
    ENPU_HAL_TYPE_DRIVER_TABLE = 3,
    ENPU_HAL_TYPE_DEVICE_TABLE = 4,
    ENPU_HAL_TYPE_MEMORY_TABLE = 5,
    ENPU_HAL_TYPE_QUEUE_TABLE = 6,
    ENPU_HAL_TYPE_FENCE_TABLE = 7,
    ENPU_HAL_TYPE_KERNEL_TABLE = 8,
    ENPU_HAL_TYPE_GRAPH_TABLE = 9,
    ENPU_HAL_TYPE_PROFILE_TABLE = 10,
    ENPU_HAL_TYPE_DEVICE_INFO = 11,
    ENPU_HAL_TYPE_BUFFER_DESC = 12,
    ENPU_HAL_TYPE_BUFFER_INFO = 13,
    ENPU_HAL_TYPE_QUEUE_DESC = 14,
    ENPU_HAL_TYPE_SUBMISSION = 15,
    ENPU_HAL_TYPE_DISPATCH = 16,
    ENPU_HAL_TYPE_COUNTERS = 17,
};

struct enpu_hal_header {
    uint32_t size; /* sizeof the structure as its writer knows it */
    uint32_t type; /* enum enpu_hal_type */
    const void* next;
};

/*
 * Codes. OK … UNSUPPORTED concern one call; RESOURCE_EXHAUSTED and UNAVAILABLE may go away; ABORTED
 * … DEVICE_LOST are failures of work: they fail every later submission of the same queue,
 * DEVICE_LOST every one of the device.
 */
enum enpu_hal_code {
    ENPU_HAL_OK = 0,
    ENPU_HAL_INVALID_ARGUMENT = 1,
    ENPU_HAL_NOT_FOUND = 2,
    ENPU_HAL_PERMISSION_DENIED = 3,
    ENPU_HAL_RESOURCE_EXHAUSTED = 4, /* memory, queue space, handles */
    ENPU_HAL_UNAVAILABLE = 5,        /* no such device here, or busy */
    ENPU_HAL_UNSUPPORTED = 6,        /* this backend never does it; message gives the reason */
    ENPU_HAL_DEADLINE_EXCEEDED = 7,  /* the deadline of the call passed; the work goes on */
    ENPU_HAL_FAILED_PRECONDITION = 8,
    ENPU_HAL_INTERNAL = 9,
    ENPU_HAL_ABORTED = 10,      /* dropped before it ran: its inputs are intact */
    ENPU_HAL_WORK_FAILED = 11,  /* refused or faulted by the device */
    ENPU_HAL_WORK_TIMEOUT = 12, /* hung, and was ended by the driver */
    ENPU_HAL_DATA_LOSS = 13,    /* torn inside an operation: outputs are half written */
    ENPU_HAL_DEVICE_LOST = 14,
};

#define ENPU_HAL_MESSAGE_BYTES 256

/* What went wrong. Filled by the callee, owned by the caller; always terminated. */
struct enpu_hal_status {
    uint32_t code;       /* enum enpu_hal_code */
    int32_t device_code; /* of the backend's own driver (an errno, a CUresult …), 0 if none */
    uint64_t op_id; /* enpu_hal_submission.op_id of the work that failed, 0 if none is to blame */
    char message[ENPU_HAL_MESSAGE_BYTES]; /* operand, rule and value; no newline */
};

/* Opaque objects of a backend. */
struct enpu_hal_device;
struct enpu_hal_buffer;
struct enpu_hal_queue;
struct enpu_hal_fence;
struct enpu_hal_graph;

enum enpu_hal_log_level {
    ENPU_HAL_LOG_ERROR = 0,
    ENPU_HAL_LOG_WARNING = 1,
    ENPU_HAL_LOG_INFO = 2,
    ENPU_HAL_LOG_DEBUG = 3,
};

/* What the process gives to a backend. Outlives it; every function may be called from any thread.
 */
struct enpu_hal_host {
    struct enpu_hal_header header;
    uint32_t abi_major;
    uint32_t abi_minor;
    void* context; /* first argument of the functions below */
    void (*log)(void* context, uint32_t level, const char* message);
};

/* ---- capabilities ---------------------------------------------------------------------------- */

enum enpu_hal_caps {
    ENPU_HAL_CAP_GRAPH = 1u << 0,       /* plugin.graph */
    ENPU_HAL_CAP_PROFILE = 1u << 1,     /* plugin.profile */
    ENPU_HAL_CAP_COPY_2D = 1u << 2,     /* ENPU_HAL_COMMAND_COPY with height > 1 */
    ENPU_HAL_CAP_HOST_CALL = 1u << 3,   /* ENPU_HAL_COMMAND_HOST_CALL */
    ENPU_HAL_CAP_TIMESTAMP = 1u << 4,   /* ENPU_HAL_COMMAND_TIMESTAMP */
    ENPU_HAL_CAP_MAP_LOCAL = 1u << 5,   /* local buffers have a host pointer */
    ENPU_HAL_CAP_USERPTR = 1u << 6,     /* memory.wrap */
    ENPU_HAL_CAP_SHARE = 1u << 7,       /* memory.export_fd and memory.import_fd */
    ENPU_HAL_CAP_FENCE_SHARE = 1u << 8, /* fence.export_fd and fence.import_fd */
    ENPU_HAL_CAP_WAIT_EARLY = 1u << 9,  /* a submission may wait for a point that nobody has
                                           submitted or signalled yet; others refuse it */
    /* since 1.1 */
    ENPU_HAL_CAP_FILL = 1u << 10,     /* ENPU_HAL_COMMAND_FILL */
    ENPU_HAL_CAP_PRIORITY = 1u << 11, /* enpu_hal_queue_desc.priority makes a difference */
};

enum enpu_hal_device_class {
    ENPU_HAL_CLASS_NPU = 0,
    ENPU_HAL_CLASS_GPU = 1,
    ENPU_HAL_CLASS_CPU = 2,
    ENPU_HAL_CLASS_SIMULATOR = 3,
    ENPU_HAL_CLASS_NULL = 4,
};

struct enpu_hal_device_info {
    struct enpu_hal_header header;
    char spec[64];     /* opens this device again */
    char name[64];     /* for people */
    char driver[64];   /* driver and its version */
    uint32_t class_id; /* enum enpu_hal_device_class */
    uint32_t caps;     /* enum enpu_hal_caps of this device, a subset of the plug-in's */
    uint32_t compute_engines;
    uint32_t copy_engines;
    uint64_t local_bytes;      /* device-local memory; 0 where it is the host's */
    uint64_t max_tensor_bytes; /* largest tensor of a kernel */
    uint64_t buffer_alignment; /* offsets of tensors and copies must be multiples of it, at most 64;
                                  1 for any */
    uint64_t clock_hz;         /* of timestamps */
    uint32_t max_commands;     /* in one submission, at least 16; graphs take more */
    uint32_t threads;          /* host threads that compute, 0 on real hardware */
    /* since 1.1 */
    uint32_t
        max_points;  /* waits, and signals, of one submission; points of one wait. At least 16 */
    uint32_t dtypes; /* bit n: some kernel takes enum enpu_op_dtype n */
    uint64_t max_alignment; /* largest enpu_hal_buffer_desc.alignment, at least 4096 */
};

/* What ABI 1.0 knew of a structure that has grown since. */
#define ENPU_HAL_DEVICE_INFO_BYTES_1_0 offsetof(struct enpu_hal_device_info, max_points)
#define ENPU_HAL_COUNTERS_BYTES_1_0 offsetof(struct enpu_hal_counters, live_buffers)
#define ENPU_HAL_QUEUE_DESC_BYTES_1_0 offsetof(struct enpu_hal_queue_desc, engine_number)

/* ---- memory ---------------------------------------------------------------------------------- */

enum enpu_hal_memory {
    ENPU_HAL_MEMORY_LOCAL = 0, /* next to the engines; where operands belong */
    ENPU_HAL_MEMORY_HOST =
        1, /* pinned host memory the engines reach; always has a host pointer, coherent */
};

/* Values of enpu_hal_buffer_desc.flags; others are INVALID_ARGUMENT. */
enum enpu_hal_buffer_flags {
    ENPU_HAL_BUFFER_SHARED = 1u << 0, /* can be exported (CAP_SHARE, else UNSUPPORTED) */
};

struct enpu_hal_buffer_desc {
    struct enpu_hal_header header;
    uint64_t bytes;     /* at least 1 */
    uint64_t alignment; /* of address, a power of two; 0: the backend's choice, at least 64 */
    uint32_t memory;    /* enum enpu_hal_memory */
    uint32_t flags;     /* enum enpu_hal_buffer_flags */
};

struct enpu_hal_buffer_info {
    struct enpu_hal_header header;
    uint64_t bytes;   /* at least what was asked for */
    uint64_t address; /* names the buffer on its device: ranges of live buffers do not overlap.
                         Where host is not NULL and the memory is HOST or shared it may be the
                         host pointer */
    void* host;       /* host pointer, or NULL. Stays valid until free */
    uint32_t memory;  /* enum enpu_hal_memory */
    uint32_t reserved;
};

/* ---- work ------------------------------------------------------------------------------------ */

/* A place in a buffer. */
struct enpu_hal_place {
    struct enpu_hal_buffer* buffer;
    uint64_t offset;
};

/* An operand: the element with all indices 0 lies at `place`. buffer NULL (and tensor.dtype NONE):
 * left out. */
struct enpu_hal_operand {
    struct enpu_hal_place place;
    struct enpu_op_tensor tensor;
};

/* A kernel with its parameters and operands, in the order of enum enpu_op. Every byte an operand
 * can touch lies in its buffer: the backend checks. */
struct enpu_hal_dispatch {
    struct enpu_hal_header header;
    uint32_t op; /* enum enpu_op */
    uint32_t operand_count;
    const void* params;    /* the op's parameter structure, NULL when it has none */
    uint64_t params_bytes; /* its size, as the caller knows it */
    const struct enpu_hal_operand* operands;
};

enum enpu_hal_command_kind {
    ENPU_HAL_COMMAND_COPY = 0,
    ENPU_HAL_COMMAND_FILL = 1,
    ENPU_HAL_COMMAND_DISPATCH = 2,
    ENPU_HAL_COMMAND_TIMESTAMP = 3,
    ENPU_HAL_COMMAND_HOST_CALL = 4,
};

/* Rows of bytes between buffers of one device; height 1 is a plain copy. Source and destination do
 * not overlap. */
struct enpu_hal_copy {
    struct enpu_hal_place dst;
    struct enpu_hal_place src;
    uint64_t width;     /* bytes a row, at least 1 */
    uint64_t height;    /* rows, at least 1 */
    uint64_t dst_pitch; /* bytes; at least width when height > 1 */
    uint64_t src_pitch;
};

struct enpu_hal_fill {
    struct enpu_hal_place dst;
    uint64_t bytes; /* a multiple of pattern_bytes */
    uint64_t pattern;
    uint32_t pattern_bytes; /* 1, 2, 4 or 8 */
    uint32_t reserved;
};

/* Writes the device clock (8 bytes, 8-byte aligned). */
struct enpu_hal_timestamp {
    struct enpu_hal_place dst;
};

/* Calls back from a thread of the backend. Must not block and must not call the HAL. */
struct enpu_hal_host_call {
    void (*function)(void* context);
    void* context;
};

struct enpu_hal_command {
    uint32_t kind; /* enum enpu_hal_command_kind */
    uint32_t reserved;
    union {
        struct enpu_hal_copy copy;
        struct enpu_hal_fill fill;
        const struct enpu_hal_dispatch* dispatch;
        struct enpu_hal_timestamp timestamp;
        struct enpu_hal_host_call host_call;
    } u;
};

/* A point on a timeline. */
struct enpu_hal_point {
    struct enpu_hal_fence* fence;
    uint64_t value;
};

/*
 * Commands run one after the other when all `waits` have been reached; then all `signals` are. A
 * wait that fails fails the submission with ABORTED. Everything pointed to is read before the call
 * returns. Buffers and fences must live until the signals are reached.
 */
struct enpu_hal_submission {
    struct enpu_hal_header header;
    uint64_t op_id; /* free for the caller; comes back in the status of a failure */
    const struct enpu_hal_point* waits;
    const struct enpu_hal_point* signals;
    const struct enpu_hal_command* commands;
    uint32_t wait_count;
    uint32_t signal_count;
    uint32_t command_count; /* 0: only waits and signals */
    uint32_t reserved;
};

enum enpu_hal_engine {
    ENPU_HAL_ENGINE_COMPUTE = 0, /* takes every command */
    ENPU_HAL_ENGINE_COPY =
        1, /* takes COPY, FILL and TIMESTAMP; a device without copy engines refuses it */
};

struct enpu_hal_queue_desc {
    struct enpu_hal_header header;
    uint32_t engine;     /* enum enpu_hal_engine */
    int32_t priority;    /* -1 low, 0 normal, 1 high, others INVALID_ARGUMENT; a hint: see
                            CAP_PRIORITY */
    uint64_t timeout_ns; /* work without progress for so long has hung; 0: the backend's choice */
    /* since 1.1 */
    uint32_t engine_number; /* 0: any; n: the n-th engine of its kind, where there are several; a
                               hint */
    uint32_t reserved;
};

/* ---- tables ---------------------------------------------------------------------------------- */

struct enpu_hal_driver_table {
    struct enpu_hal_header header;
    /* Device number `index` without opening it; NOT_FOUND past the last one. */
    uint32_t (*enumerate)(uint32_t index, struct enpu_hal_device_info* info,
                          struct enpu_hal_status* status);
    /* 1 when the plug-in understands the spec ("npu:/dev/accel/accel0", "sim:cores=2",
     * "cpu:threads=4"), 0 when it is for another. */
    uint32_t (*accepts)(const char* spec);
    /* Opens a device; UNAVAILABLE with the reason when it is not there. May take long the first
     * time. */
    uint32_t (*open)(const char* spec, struct enpu_hal_device** device,
                     struct enpu_hal_status* status);
};

struct enpu_hal_device_table {
    struct enpu_hal_header header;
    /* All objects of the device must be gone. Joins the threads of the device; waits for nothing
     * else. */
    void (*close)(struct enpu_hal_device* device);
    uint32_t (*info)(struct enpu_hal_device* device, struct enpu_hal_device_info* info,
                     struct enpu_hal_status* status);
    /* OK, or DEVICE_LOST with the reason. */
    uint32_t (*check)(struct enpu_hal_device* device, struct enpu_hal_status* status);
};

struct enpu_hal_memory_table {
    struct enpu_hal_header header;
    /* Memory with unspecified contents; a backend never hands out another process's. */
    uint32_t (*alloc)(struct enpu_hal_device* device, const struct enpu_hal_buffer_desc* desc,
                      struct enpu_hal_buffer** buffer, struct enpu_hal_status* status);
    /* No unfinished submission or live graph uses the buffer. */
    void (*free)(struct enpu_hal_buffer* buffer);
    uint32_t (*info)(struct enpu_hal_buffer* buffer, struct enpu_hal_buffer_info* info,
                     struct enpu_hal_status* status);
    /* Free and total bytes of device-local memory. */
    uint32_t (*usage)(struct enpu_hal_device* device, uint64_t* free_bytes, uint64_t* total_bytes,
                      struct enpu_hal_status* status);
    /* Optional (CAP_USERPTR): memory of the process as a HOST buffer; it must outlive the buffer.
     */
    uint32_t (*wrap)(struct enpu_hal_device* device, void* host, uint64_t bytes,
                     struct enpu_hal_buffer** buffer, struct enpu_hal_status* status);
    /* Optional (CAP_SHARE): a descriptor of the memory (a dma-buf; on host memory a memfd),
     * close-on-exec, that the caller closes. INVALID_ARGUMENT for a buffer without SHARED. import
     * takes its own reference and gives a buffer over the same bytes; it cannot be exported again.
     */
    uint32_t (*export_fd)(struct enpu_hal_buffer* buffer, int* fd, struct enpu_hal_status* status);
    uint32_t (*import_fd)(struct enpu_hal_device* device, int fd, struct enpu_hal_buffer** buffer,
                          struct enpu_hal_status* status);
};

struct enpu_hal_queue_table {
    struct enpu_hal_header header;
    uint32_t (*create)(struct enpu_hal_device* device, const struct enpu_hal_queue_desc* desc,
                       struct enpu_hal_queue** queue, struct enpu_hal_status* status);
    /* Ends the queue: work not yet started is dropped (its signals fail with ABORTED), work that
     * runs is stopped as soon as the device can (they fail with DATA_LOSS). Blocks for that, a few
     * tiles of an operator at most, 10 s at the very most. */
    void (*destroy)(struct enpu_hal_queue* queue);
    /* Never waits for work, unless the queue is full: then until `deadline_ns` for room.
     * Submissions of one queue run in order. */
    uint32_t (*submit)(struct enpu_hal_queue* queue, const struct enpu_hal_submission* submission,
                       uint64_t deadline_ns, struct enpu_hal_status* status);
};

/* A timeline: a 64-bit value that only grows, until it fails. A failed fence keeps the value it
 * had; waits for larger ones give the failure. */
struct enpu_hal_fence_table {
    struct enpu_hal_header header;
    uint32_t (*create)(struct enpu_hal_device* device, uint64_t initial,
                       struct enpu_hal_fence** fence, struct enpu_hal_status* status);
    /* Nothing waits for it, and no submission that has not ended names it: whoever sees its last
     * point reached may destroy it at once. */
    void (*destroy)(struct enpu_hal_fence* fence);
    /* The value now. On a failed fence returns the code of the failure, and *value is what was
     * reached before. */
    uint32_t (*query)(struct enpu_hal_fence* fence, uint64_t* value,
                      struct enpu_hal_status* status);
    /* Blocks until all (any: one) of the points are reached: OK; one failed: its failure; the
     * deadline passed: DEADLINE_EXCEEDED. */
    uint32_t (*wait)(struct enpu_hal_device* device, const struct enpu_hal_point* points,
                     uint32_t count, uint32_t any, uint64_t deadline_ns,
                     struct enpu_hal_status* status);
    /* From the host; value must be larger than the one now. */
    uint32_t (*signal)(struct enpu_hal_fence* fence, uint64_t value,
                       struct enpu_hal_status* status);
    /* Optional (CAP_FENCE_SHARE): as those of memory. */
    uint32_t (*export_fd)(struct enpu_hal_fence* fence, int* fd, struct enpu_hal_status* status);
    uint32_t (*import_fd)(struct enpu_hal_device* device, int fd, struct enpu_hal_fence** fence,
                          struct enpu_hal_status* status);
};

struct enpu_hal_kernel_table {
    struct enpu_hal_header header;
    /* OK when submit would take the dispatch, UNSUPPORTED or INVALID_ARGUMENT with a sentence when
     * not. Operands need no buffer here: one with a dtype counts as present. Quick, allocates
     * nothing. */
    uint32_t (*supported)(struct enpu_hal_device* device, const struct enpu_hal_dispatch* dispatch,
                          struct enpu_hal_status* status);
    /* Bytes that pack_weights needs for its output; UNSUPPORTED when these weights are best left
     * PLAIN. */
    uint32_t (*packed_size)(struct enpu_hal_device* device, const struct enpu_op_tensor* weights,
                            const struct enpu_op_pack_params* params, uint64_t* bytes,
                            struct enpu_hal_status* status);
};

/* Optional (CAP_GRAPH): a list of commands checked and encoded once, launched many times with one
 * submission each. */
struct enpu_hal_graph_table {
    struct enpu_hal_header header;
    /* Checks and encodes. Buffers named by the commands must outlive the graph, or be replaced by
     * update. HOST_CALL is not allowed. On an error status->op_id is the index of the command that
     * is to blame, plus 1. */
    uint32_t (*create)(struct enpu_hal_device* device, const struct enpu_hal_command* commands,
                       uint32_t count, struct enpu_hal_graph** graph,
                       struct enpu_hal_status* status);
    /* No launch is unfinished. */
    void (*destroy)(struct enpu_hal_graph* graph);
    /* Replaces one command by one of the same kind and op. No launch is unfinished. On an error the
     * graph is as before. */
    uint32_t (*update)(struct enpu_hal_graph* graph, uint32_t index,
                       const struct enpu_hal_command* command, struct enpu_hal_status* status);
    /* As submit; submission->command_count is 0. */
    uint32_t (*launch)(struct enpu_hal_queue* queue, struct enpu_hal_graph* graph,
                       const struct enpu_hal_submission* submission, uint64_t deadline_ns,
                       struct enpu_hal_status* status);
};

/* Counted by the device itself for this opening of it, since open; live ones by the backend. */
struct enpu_hal_counters {
    struct enpu_hal_header header;
    uint64_t ops[64]; /* kernels run, by enum enpu_op */
    uint64_t jobs;    /* submissions that ran */
    uint64_t jobs_failed;
    uint64_t copies; /* COPY and FILL commands */
    uint64_t copy_bytes;
    uint64_t busy_compute_ns;
    uint64_t busy_copy_ns;
    uint64_t work; /* multiply-accumulates, or elements written */
    uint64_t faults;
    /* since 1.1: objects of this opening that exist now; all 0 before close, or they have leaked */
    uint64_t live_buffers;
    uint64_t live_queues;
    uint64_t live_fences;
    uint64_t live_graphs;
    /* since 1.2: who ran them, where a backend has more than its own kernels */
    uint64_t library_ops[64];  /* of ops: by a library of the vendor */
    uint64_t library_refusals; /* kernels that such a library was asked for and gave back: the
                                  backend's own ran, or the work failed */
};

/* Optional (CAP_PROFILE). */
struct enpu_hal_profile_table {
    struct enpu_hal_header header;
    uint32_t (*counters)(struct enpu_hal_device* device, struct enpu_hal_counters* counters,
                         struct enpu_hal_status* status);
    /* Device clock and CLOCK_MONOTONIC, read as near to each other as can be. */
    uint32_t (*clock)(struct enpu_hal_device* device, uint64_t* device_ticks, uint64_t* host_ns,
                      struct enpu_hal_status* status);
};

struct enpu_hal_plugin {
    struct enpu_hal_header header;
    uint32_t abi_major;
    uint32_t abi_minor;
    const char* name; /* "npu", "cpu", … */
    const char* version;
    uint32_t caps; /* enum enpu_hal_caps that any of its devices may have */
    uint32_t reserved;
    const struct enpu_hal_driver_table* driver;
    const struct enpu_hal_device_table* device;
    const struct enpu_hal_memory_table* memory;
    const struct enpu_hal_queue_table* queue;
    const struct enpu_hal_fence_table* fence;
    const struct enpu_hal_kernel_table* kernel;
    const struct enpu_hal_graph_table* graph;     /* optional */
    const struct enpu_hal_profile_table* profile; /* optional */
};

/* The one export of a backend. NULL with *status filled when it cannot work with this host. The
 * result is static. A backend is never unloaded. */
typedef const struct enpu_hal_plugin* (*enpu_hal_query_fn)(const struct enpu_hal_host* host,
                                                           struct enpu_hal_status* status);

#ifdef __cplusplus
}
#endif
#endif
