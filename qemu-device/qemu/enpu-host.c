/*
 * enpu: the functional model and its way to guest memory
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "enpu.h"
#include "trace.h"

/* Never re-enters a device: MMIO answers MEMTX_ACCESS_ERROR. */
static const MemTxAttrs enpu_dma_attrs = { .memory = true };

/* Does a bus range lead to our own local memory? */
static bool enpu_dma_meets_local(EnpuState *s, AddressSpace *as, uint64_t addr,
                                 uint64_t len)
{
    RCU_READ_LOCK_GUARD();

    while (len > 0) {
        hwaddr xlat, l = len;
        MemoryRegion *mr = address_space_translate(as, addr, &xlat, &l, false,
                                                   enpu_dma_attrs);

        if (mr == &s->local || l == 0) {
            return mr == &s->local;
        }
        addr += l;
        len -= l;
    }
    return false;
}

static int enpu_dma_read(void *opaque, uint64_t addr, void *buf, uint64_t len)
{
    EnpuState *s = opaque;
    AddressSpace *as = pci_get_address_space(PCI_DEVICE(s));
    uintptr_t local = (uintptr_t)memory_region_get_ram_ptr(&s->local);

    /*
     * The engine reads straight into local memory. Around the bus into itself
     * it does not: the two might overlap.
     */
    if ((uintptr_t)buf - local < s->local_size &&
        enpu_dma_meets_local(s, as, addr, len)) {
        return -1;
    }
    return address_space_read(as, addr, enpu_dma_attrs, buf, len) == MEMTX_OK
           ? 0 : -1;
}

static int enpu_dma_write(void *opaque, uint64_t addr, const void *buf,
                          uint64_t len)
{
    EnpuState *s = opaque;
    AddressSpace *as = pci_get_address_space(PCI_DEVICE(s));

    return address_space_write(as, addr, enpu_dma_attrs, buf, len) == MEMTX_OK
           ? 0 : -1;
}

static uint64_t enpu_clock_ns(void *opaque)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void enpu_thread_enter(void *opaque)
{
    rcu_register_thread();
}

static void enpu_thread_leave(void *opaque)
{
    rcu_unregister_thread();
}

static void enpu_log(void *opaque, const char *message)
{
    qemu_log_mask(LOG_GUEST_ERROR, "enpu: %s\n", message);
}

static void enpu_trace(void *opaque, uint32_t event, uint32_t engine,
                       uint32_t queue, uint64_t value0, uint64_t value1)
{
    switch (event) {
    case ENPU_MODEL_EVENT_JOB_START:
        trace_enpu_job_start(engine, queue, value0, value1);
        break;
    case ENPU_MODEL_EVENT_JOB_END:
        trace_enpu_job_end(engine, queue, value0, value1);
        break;
    case ENPU_MODEL_EVENT_PACKET:
        trace_enpu_packet(engine, queue, value0, value1);
        break;
    case ENPU_MODEL_EVENT_ERROR:
        trace_enpu_error(engine, queue, value0, value1);
        break;
    case ENPU_MODEL_EVENT_IRQ:
        trace_enpu_irq(value0);
        break;
    case ENPU_MODEL_EVENT_RESET:
        trace_enpu_engine_reset(value0);
        break;
    case ENPU_MODEL_EVENT_FAULT_FIRED:
        trace_enpu_fault(engine, queue, value0);
        break;
    }
}

bool enpu_host_init(EnpuState *s, Error **errp)
{
    const struct enpu_model_host host = {
        .struct_size = sizeof(host),
        .opaque = s,
        .dma_read = enpu_dma_read,
        .dma_write = enpu_dma_write,
        .raise_irq = enpu_irq_raise,
        .clock_ns = enpu_clock_ns,
        .thread_enter = enpu_thread_enter,
        .thread_leave = enpu_thread_leave,
        .log = enpu_log,
        .trace = enpu_trace,
        .set_removed = enpu_fault_set_removed,
    };
    const struct enpu_model_config config = {
        .struct_size = sizeof(config),
        .abi = ENPU_MODEL_ABI,
        .cores = s->cores,
        .threads = s->threads,
        .copy_engines = s->copy_engines,
        .fault_injection = s->fault_injection,
        .sync = s->sync,
        .local_bytes = s->local_size,
        .local_memory = memory_region_get_ram_ptr(&s->local),
    };
    char error[256];

    s->model = enpu_model_create(&config, &host, error, sizeof(error));
    if (!s->model) {
        error_setg(errp, "enpu: %s", error);
        return false;
    }
    if (!runstate_is_running()) {
        enpu_model_stop(s->model);
        s->stopped = true;
    }
    return true;
}

void enpu_host_cleanup(EnpuState *s)
{
    enpu_model_destroy(s->model);
    s->model = NULL;
}
