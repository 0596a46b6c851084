/* SPDX-License-Identifier: MIT */
/*
 * The functional model of the NPU behind a C interface: everything the device does, without a bus.
 * QEMU's PCI glue and the in-process simulator (enpu-sim) are its two hosts.
 *
 * Threads: every function may be called from any thread unless it says otherwise; the host
 * callbacks are made from the model's own threads, and from the caller's in sync mode. No C++
 * exception crosses this interface. No function waits for a job: only reset, stop and
 * destroy wait, reset and destroy for one tile at most.
 */
#ifndef ENPU_MODEL_H
#define ENPU_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "enpu_fault.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when something here changes its meaning; enpu_model_create refuses another number. New
 * members are only appended. */
#define ENPU_MODEL_ABI 2

struct enpu_model; /* opaque */

/* What the host gives to the device. Every callback gets `opaque` first and may be called from
 * several threads at once. */
struct enpu_model_host {
    uint32_t struct_size; /* sizeof(struct enpu_model_host) */
    uint32_t reserved;
    void* opaque;
    /* Copies between guest memory at a bus address and `buffer`. 0, or -1 when any byte is not RAM
     * or bus mastering is off; partial effects of a failed call are allowed. Never re-enters the
     * model. */
    int (*dma_read)(void* opaque, uint64_t address, void* buffer, uint64_t bytes);
    int (*dma_write)(void* opaque, uint64_t address, const void* buffer, uint64_t bytes);
    /* Sends the MSI-X message of a vector. Must not block and must not call the model. */
    void (*raise_irq)(void* opaque, uint32_t vector);
    /* Device clock in ns, monotonic. */
    uint64_t (*clock_ns)(void* opaque);
    /* Called first and last on each thread the model makes (QEMU registers it with RCU). May be
     * NULL. */
    void (*thread_enter)(void* opaque);
    void (*thread_leave)(void* opaque);
    /* One line a guest error or model event, for the host's log. May be NULL. */
    void (*log)(void* opaque, const char* message);
    /* Trace hook: an event of the device (enum enpu_model_event) with two values. May be NULL; must
     * be quick. */
    void (*trace)(void* opaque, uint32_t event, uint32_t engine, uint32_t queue, uint64_t value0,
                  uint64_t value1);
    /* Fault injection REMOVED / restored: the host makes the BARs read all-ones, or answers again.
     * May be NULL. */
    void (*set_removed)(void* opaque, bool removed);
};

enum enpu_model_event {
    ENPU_MODEL_EVENT_JOB_START = 1,  /* value0 = fence, value1 = job id */
    ENPU_MODEL_EVENT_JOB_END = 2,    /* value0 = fence, value1 = status */
    ENPU_MODEL_EVENT_PACKET = 3,     /* value0 = opcode, value1 = byte offset */
    ENPU_MODEL_EVENT_ERROR = 4,      /* value0 = status, value1 = va */
    ENPU_MODEL_EVENT_IRQ = 5,        /* value0 = vector */
    ENPU_MODEL_EVENT_RESET = 6,      /* value0 = engine, or 0xffffffff for the device */
    ENPU_MODEL_EVENT_FAULT_FIRED = 7 /* value0 = enum enpu_fault_kind */
};

struct enpu_model_config {
    uint32_t struct_size;  /* sizeof(struct enpu_model_config) */
    uint32_t abi;          /* ENPU_MODEL_ABI */
    uint32_t cores;        /* compute cores, 1 … 16 */
    uint32_t threads;      /* host threads a core, 1 … 64 */
    uint32_t copy_engines; /* 1 … 4 */
    bool fault_injection;  /* the fault block works */
    bool sync;             /* no threads: jobs run inside the doorbell, for qtest and fuzzing */
    bool reserved[2];
    uint64_t local_bytes; /* device-local memory, a multiple of 2 MiB, at least 2 MiB */
    void* local_memory;   /* its storage, owned by the host, 4 KiB aligned, outlives the model */
    /* CAP_MAX_WORK: larger packets are refused with LIMIT; for COPY and FILL, bytes count. At most
     * MAX_PACKET_WORK, which 0 stands for. */
    uint64_t max_packet_work;
};

/* Makes a device in its power-on state. NULL on a bad configuration, with a sentence in error
 * (always terminated). */
struct enpu_model* enpu_model_create(const struct enpu_model_config* config,
                                     const struct enpu_model_host* host, char* error,
                                     size_t error_bytes);
/* Stops all threads (waits one tile at most) and frees. NULL is allowed. No other call may be under
 * way. */
void enpu_model_destroy(struct enpu_model* model);

/* Register BAR. `bytes` is 4 or 8; an access that the data sheet does not allow reads as 0, writes
 * nothing and is logged. */
uint64_t enpu_model_read(struct enpu_model* model, uint64_t offset, uint32_t bytes);
void enpu_model_write(struct enpu_model* model, uint64_t offset, uint64_t value, uint32_t bytes);
/* A write to the doorbell page of a queue; an unknown or disabled queue ignores it. Never blocks
 * (except in sync mode, which runs the jobs). */
void enpu_model_doorbell(struct enpu_model* model, uint32_t queue);

/* Function-level, bus or power-on reset: on return no thread of the model touches guest memory, and
 * all state but the power-on counters is that of a new device. Local memory keeps its contents.
 * Waits one tile at most. */
void enpu_model_reset(struct enpu_model* model);

/* The machine stops (VM stop, before a save) and goes on. stop returns when every engine rests at a
 * packet or tile boundary (an operator that writes over its own input is let to its end); a hung
 * engine counts as resting. Registers can be read and written while
 * stopped; jobs do not advance. Calls do not nest. */
void enpu_model_stop(struct enpu_model* model);
void enpu_model_start(struct enpu_model* model);

/* Complete state, jobs in flight included, local memory not (the host saves it as RAM). Only while
 * stopped. save returns the bytes needed and writes them when `capacity` suffices. load takes
 * untrusted bytes into a stopped model of the same configuration: 0, or -1 with a sentence in error
 * and the model reset. */
size_t enpu_model_save(struct enpu_model* model, void* buffer, size_t capacity);
int enpu_model_load(struct enpu_model* model, const void* buffer, size_t bytes, char* error,
                    size_t error_bytes);

/* Arms a fault as the fault block would, also on a device that is removed; kind NONE clears all. 0,
 * or -1 when fault injection is off, a value is out of range or too many are armed. */
int enpu_model_inject(struct enpu_model* model, const struct enpu_fault* fault);
/* How often faults of a kind have fired since power-on, and when the last one did (device clock; 0:
 * none). */
uint32_t enpu_model_fault_fired(struct enpu_model* model, uint32_t kind, uint64_t* last_ns);

#ifdef __cplusplus
}
#endif
#endif
