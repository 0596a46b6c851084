/*
 * enpu: doorbells
 *
 * A doorbell is a pure kick; the tail of the ring is in guest memory.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "system/kvm.h"
#include "enpu.h"
#include "trace.h"

static void enpu_kick(EnpuState *s, unsigned queue)
{
    trace_enpu_doorbell(queue);
    if (s->model) { /* as for registers */
        enpu_model_doorbell(s->model, queue);
    }
}

static void enpu_doorbell_read(EventNotifier *e)
{
    EnpuDoorbell *d = container_of(e, EnpuDoorbell, notifier);

    if (event_notifier_test_and_clear(e)) {
        enpu_kick(d->s, d - d->s->doorbells);
    }
}

static void enpu_doorbells_remove(EnpuState *s, int count)
{
    AioContext *ctx = iothread_get_aio_context(s->iothread);

    memory_region_transaction_begin();
    for (int i = 0; i < count; i++) {
        memory_region_del_eventfd(&s->doorbells_mr, i * ENPU_DOORBELL_STRIDE,
                                  4, false, 0, &s->doorbells[i].notifier);
    }
    memory_region_transaction_commit();
    for (int i = 0; i < count; i++) {
        aio_set_event_notifier(ctx, &s->doorbells[i].notifier, NULL, NULL,
                               NULL);
    }
    /* Joins the thread, so that no handler is running any more. */
    iothread_destroy(s->iothread);
    s->iothread = NULL;
    for (int i = 0; i < count; i++) {
        event_notifier_cleanup(&s->doorbells[i].notifier);
    }
}

/*
 * With KVM a kick reaches the IOThread without an exit to us. TCG only
 * emulates that, at a price, so there the plain handler is the default.
 */
bool enpu_doorbell_init(EnpuState *s, Error **errp)
{
    g_autofree char *name = NULL;
    AioContext *ctx;
    int i;

    if (s->sync || s->ioeventfd == ON_OFF_AUTO_OFF ||
        (s->ioeventfd == ON_OFF_AUTO_AUTO && !kvm_enabled())) {
        return true;
    }
    name = g_strdup_printf("enpu-%p", s);
    s->iothread = iothread_create(name, errp);
    if (!s->iothread) {
        return false;
    }
    ctx = iothread_get_aio_context(s->iothread);

    memory_region_transaction_begin();
    for (i = 0; i < ENPU_MAX_QUEUES; i++) {
        EnpuDoorbell *d = &s->doorbells[i];

        d->s = s;
        if (event_notifier_init(&d->notifier, 0) < 0) {
            break;
        }
        aio_set_event_notifier(ctx, &d->notifier, enpu_doorbell_read, NULL,
                               NULL);
        memory_region_add_eventfd(&s->doorbells_mr, i * ENPU_DOORBELL_STRIDE,
                                  4, false, 0, &d->notifier);
    }
    memory_region_transaction_commit();
    if (i < ENPU_MAX_QUEUES) {
        error_setg(errp, "enpu: no event notifier for doorbell %d", i);
        enpu_doorbells_remove(s, i);
        return false;
    }
    return true;
}

static uint64_t enpu_doorbell_mmio_read(void *opaque, hwaddr addr,
                                        unsigned size)
{
    EnpuState *s = opaque;

    return qatomic_read(&s->removed) || !s->model ? UINT64_MAX : 0;
}

static void enpu_doorbell_mmio_write(void *opaque, hwaddr addr, uint64_t value,
                                     unsigned size)
{
    enpu_kick(opaque, addr / ENPU_DOORBELL_STRIDE);
}

static const MemoryRegionOps enpu_doorbell_ops = {
    .read = enpu_doorbell_mmio_read,
    .write = enpu_doorbell_mmio_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 8 },
};

void enpu_doorbell_init_mr(EnpuState *s)
{
    memory_region_init_io(&s->doorbells_mr, OBJECT(s), &enpu_doorbell_ops, s,
                          "enpu-doorbells", ENPU_BAR_DOORBELL_SIZE);
}

void enpu_doorbell_cleanup(EnpuState *s)
{
    if (s->iothread) {
        enpu_doorbells_remove(s, ENPU_MAX_QUEUES);
    }
}
