/*
 * enpu: state shared by the parts of the PCI glue
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_ENPU_ENPU_H
#define HW_ENPU_ENPU_H

#include "qemu/event_notifier.h"
#include "hw/pci/pci_device.h"
#include "system/iothread.h"
#include "system/runstate.h"
#include "enpu_hw.h"
#include "enpu_model.h"

#define TYPE_ENPU "enpu"
OBJECT_DECLARE_SIMPLE_TYPE(EnpuState, ENPU)

typedef struct EnpuVector {
    EnpuState *s;
    EventNotifier notifier;
    int virq;
    bool unmasked;
} EnpuVector;

typedef struct EnpuDoorbell {
    EnpuState *s;
    EventNotifier notifier;
} EnpuDoorbell;

struct EnpuState {
    PCIDevice parent_obj;

    /* properties */
    uint32_t cores;
    uint32_t threads;
    uint32_t copy_engines;
    uint64_t local_size;
    bool fault_injection;
    bool sync;
    OnOffAuto ioeventfd;

    MemoryRegion regs;
    MemoryRegion doorbells_mr;
    MemoryRegion local_bar; /* local, or `gone` above it */
    MemoryRegion local;
    MemoryRegion gone;

    struct enpu_model *model;
    VMChangeStateEntry *vmstate_handler;
    bool stopped;
    bool removed; /* the injected surprise removal; read without a lock */
    char *early_faults; /* from the command line */

    EnpuVector vectors[ENPU_MAX_VECTORS];
    bool irqfd;

    EnpuDoorbell doorbells[ENPU_MAX_QUEUES];
    IOThread *iothread; /* serves the doorbell notifiers; NULL without */

    /* the model's state while it is saved or loaded */
    uint32_t state_size;
    uint8_t *state;
};

/* enpu-host.c: the model and its way to guest memory */
bool enpu_host_init(EnpuState *s, Error **errp);
void enpu_host_cleanup(EnpuState *s);

/* enpu-irq.c: MSI-X from the model's threads */
bool enpu_irq_init(EnpuState *s, Error **errp);
void enpu_irq_cleanup(EnpuState *s);
void enpu_irq_reset(EnpuState *s);
/* Any thread. */
void enpu_irq_raise(void *opaque, uint32_t vector);
/* MSI-X has been switched on or off: with KVM the notifiers change hands. */
void enpu_irq_update(EnpuState *s);

/* enpu-doorbell.c: one page a queue */
void enpu_doorbell_init_mr(EnpuState *s);
bool enpu_doorbell_init(EnpuState *s, Error **errp);
void enpu_doorbell_cleanup(EnpuState *s);

/* enpu-fault.c: injected faults from the monitor and the command line */
void enpu_fault_class_init(ObjectClass *klass);
void enpu_fault_init_mr(EnpuState *s);
void enpu_fault_cleanup(EnpuState *s);
bool enpu_fault_arm_early(EnpuState *s, Error **errp);
void enpu_fault_rearm(EnpuState *s);
/* The model's callback, any thread. */
void enpu_fault_set_removed(void *opaque, bool removed);
/* Shows or hides local memory as `removed` says. */
void enpu_fault_update(EnpuState *s);

#endif
