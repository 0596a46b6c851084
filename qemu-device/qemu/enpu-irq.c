/*
 * enpu: MSI-X
 *
 * The model's threads may not take the BQL, which msix_notify needs: they set
 * an event notifier a vector, that KVM delivers (irqfd) or the main loop.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "hw/pci/msi.h"
#include "hw/pci/msix.h"
#include "system/kvm.h"
#include "enpu.h"

/*
 * The guest chooses where a message goes. To our own registers and doorbells
 * none does: a device must not call itself. With the BQL.
 */
static void enpu_notify(EnpuState *s, unsigned vector)
{
    MemReentrancyGuard *guard = &DEVICE(s)->mem_reentrancy_guard;
    bool engaged = guard->engaged_in_io;

    guard->engaged_in_io = true;
    msix_notify(PCI_DEVICE(s), vector);
    guard->engaged_in_io = engaged;
}

/* Sync mode runs in a register write, with the BQL. */
void enpu_irq_raise(void *opaque, uint32_t vector)
{
    EnpuState *s = opaque;

    if (vector >= ENPU_MAX_VECTORS) {
        return;
    }
    if (s->sync) {
        enpu_notify(s, vector);
    } else {
        event_notifier_set(&s->vectors[vector].notifier);
    }
}

static void enpu_vector_read(EventNotifier *e)
{
    EnpuVector *v = container_of(e, EnpuVector, notifier);

    if (event_notifier_test_and_clear(e)) {
        enpu_notify(v->s, v - v->s->vectors);
    }
}

static int enpu_vector_unmask(PCIDevice *pdev, unsigned vector, MSIMessage msg)
{
    EnpuState *s = ENPU(pdev);
    EnpuVector *v = &s->vectors[vector];
    int ret;

    ret = kvm_irqchip_update_msi_route(kvm_state, v->virq, msg, pdev);
    if (ret < 0) {
        return ret;
    }
    kvm_irqchip_commit_routes(kvm_state);
    ret = kvm_irqchip_add_irqfd_notifier_gsi(kvm_state, &v->notifier, NULL,
                                             v->virq);
    if (ret < 0) {
        return ret;
    }
    v->unmasked = true;
    return 0;
}

static void enpu_vector_mask(PCIDevice *pdev, unsigned vector)
{
    EnpuState *s = ENPU(pdev);
    EnpuVector *v = &s->vectors[vector];

    if (v->unmasked) {
        kvm_irqchip_remove_irqfd_notifier_gsi(kvm_state, &v->notifier, v->virq);
        v->unmasked = false;
    }
}

static void enpu_vector_poll(PCIDevice *pdev, unsigned start, unsigned end)
{
    EnpuState *s = ENPU(pdev);

    for (unsigned vector = start; vector < end; vector++) {
        if (msix_is_masked(pdev, vector) &&
            event_notifier_test_and_clear(&s->vectors[vector].notifier)) {
            msix_set_pending(pdev, vector);
        }
    }
}

static void enpu_watch_vectors(EnpuState *s, bool watch)
{
    for (int i = 0; i < ENPU_MAX_VECTORS; i++) {
        event_notifier_set_handler(&s->vectors[i].notifier,
                                   watch ? enpu_vector_read : NULL);
    }
}

static void enpu_release_routes(EnpuState *s, int count)
{
    for (int i = 0; i < count; i++) {
        kvm_irqchip_release_virq(kvm_state, s->vectors[i].virq);
    }
}

/* KVM delivers the notifiers itself; on a failure they stay with us. */
static void enpu_enable_irqfd(EnpuState *s)
{
    PCIDevice *pdev = PCI_DEVICE(s);
    KVMRouteChange change;
    int i, ret = 0;

    change = kvm_irqchip_begin_route_changes(kvm_state);
    for (i = 0; i < ENPU_MAX_VECTORS; i++) {
        ret = kvm_irqchip_add_msi_route(&change, i, pdev);
        if (ret < 0) {
            break;
        }
        s->vectors[i].virq = ret;
    }
    kvm_irqchip_commit_route_changes(&change);
    if (ret < 0) {
        warn_report("enpu: no irqfd: %s", strerror(-ret));
        enpu_release_routes(s, i);
        return;
    }

    enpu_watch_vectors(s, false);
    ret = msix_set_vector_notifiers(pdev, enpu_vector_unmask, enpu_vector_mask,
                                    enpu_vector_poll);
    if (ret < 0) {
        warn_report("enpu: no irqfd: %s", strerror(-ret));
        enpu_release_routes(s, ENPU_MAX_VECTORS);
        enpu_watch_vectors(s, true);
        return;
    }
    s->irqfd = true;
}

static void enpu_disable_irqfd(EnpuState *s)
{
    PCIDevice *pdev = PCI_DEVICE(s);

    if (!s->irqfd) {
        return;
    }
    msix_unset_vector_notifiers(pdev);
    for (int i = 0; i < ENPU_MAX_VECTORS; i++) {
        enpu_vector_mask(pdev, i);
    }
    enpu_release_routes(s, ENPU_MAX_VECTORS);
    enpu_watch_vectors(s, true);
    s->irqfd = false;
}

bool enpu_irq_init(EnpuState *s, Error **errp)
{
    PCIDevice *pdev = PCI_DEVICE(s);

    for (int i = 0; i < ENPU_MAX_VECTORS; i++) {
        EnpuVector *v = &s->vectors[i];

        v->s = s;
        if (event_notifier_init(&v->notifier, 0) < 0) {
            error_setg(errp, "enpu: no event notifier for vector %d", i);
            while (i-- > 0) {
                event_notifier_cleanup(&s->vectors[i].notifier);
            }
            return false;
        }
        msix_vector_use(pdev, i);
    }
    enpu_watch_vectors(s, true);
    return true;
}

void enpu_irq_cleanup(EnpuState *s)
{
    enpu_disable_irqfd(s);
    enpu_watch_vectors(s, false);
    for (int i = 0; i < ENPU_MAX_VECTORS; i++) {
        event_notifier_cleanup(&s->vectors[i].notifier);
    }
}

void enpu_irq_update(EnpuState *s)
{
    bool want = kvm_msi_via_irqfd_enabled() && !s->sync &&
                msix_enabled(PCI_DEVICE(s));

    if (want && !s->irqfd) {
        enpu_enable_irqfd(s);
    } else if (!want) {
        enpu_disable_irqfd(s);
    }
}

void enpu_irq_reset(EnpuState *s)
{
    /* PCI has switched MSI-X off without a write to its capability. */
    enpu_disable_irqfd(s);
    for (int i = 0; i < ENPU_MAX_VECTORS; i++) {
        event_notifier_test_and_clear(&s->vectors[i].notifier);
    }
}
