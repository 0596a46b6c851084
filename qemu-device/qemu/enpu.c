/*
 * enpu: PCI neural processing unit
 *
 * The thin half of the device: PCI, MSI-X, memory regions, reset and VMState.
 * What the NPU does is in the functional model (enpu_model.h), a library of
 * its own whose threads reach QEMU through the callbacks in enpu-host.c only.
 *
 * Locks: register and doorbell accesses come with the BQL held and never wait
 * for the model's threads. Those threads never take the BQL: they read and
 * write guest RAM under RCU and assert interrupts through event notifiers.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "enpu.h"
#include "trace.h"

#define ENPU_PM_OFFSET 0x60
#define ENPU_EXP_OFFSET 0x80
/* Far above what the model's state needs; a larger one is not ours. */
#define ENPU_STATE_MAX (16 * MiB)

/*
 * Registers. A CPU that has found a region waits for the BQL, and may get it
 * after an unplug: then there is no model any more.
 */

static uint64_t enpu_reg_read(void *opaque, hwaddr addr, unsigned size)
{
    EnpuState *s = opaque;
    uint64_t value = s->model ? enpu_model_read(s->model, addr, size)
                              : UINT64_MAX;

    trace_enpu_reg_read(addr, size, value);
    return value;
}

static void enpu_reg_write(void *opaque, hwaddr addr, uint64_t value,
                           unsigned size)
{
    EnpuState *s = opaque;

    trace_enpu_reg_write(addr, size, value);
    if (s->model) {
        enpu_model_write(s->model, addr, value, size);
    }
}

static const MemoryRegionOps enpu_reg_ops = {
    .read = enpu_reg_read,
    .write = enpu_reg_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 8 },
};

/* PCI */

/* Without a link (fault REMOVED) config space reads as ones as well. */
static uint32_t enpu_read_config(PCIDevice *pdev, uint32_t addr, int len)
{
    if (qatomic_read(&ENPU(pdev)->removed)) {
        return UINT32_MAX >> (32 - 8 * len);
    }
    return pci_default_read_config(pdev, addr, len);
}

static void enpu_write_config(PCIDevice *pdev, uint32_t addr, uint32_t value,
                              int len)
{
    EnpuState *s = ENPU(pdev);

    if (qatomic_read(&s->removed)) {
        return;
    }
    pci_default_write_config(pdev, addr, value, len);
    pcie_cap_flr_write_config(pdev, addr, value, len);
    enpu_irq_update(s);
}

/* System reset, bus reset, FLR: after this no thread touches guest memory. */
static void enpu_reset_hold(Object *obj, ResetType type)
{
    EnpuState *s = ENPU(obj);

    trace_enpu_reset();
    enpu_model_reset(s->model);
    enpu_fault_rearm(s);
    enpu_irq_reset(s);
}

/* Guest memory must not change once the machine has stopped. */
static void enpu_vm_state_change(void *opaque, bool running, RunState state)
{
    EnpuState *s = opaque;

    if (running && s->stopped) {
        enpu_model_start(s->model);
    } else if (!running && !s->stopped) {
        enpu_model_stop(s->model);
    }
    s->stopped = !running;
}

static bool enpu_bars_init(EnpuState *s, Error **errp)
{
    PCIDevice *pdev = PCI_DEVICE(s);

    if (!is_power_of_2(s->local_size) || s->local_size < 2 * MiB) {
        error_setg(errp, "enpu: local-mem must be a power of two of at least "
                   "2 MiB");
        return false;
    }
    if (!memory_region_init_ram(&s->local, OBJECT(s), "enpu-local",
                                s->local_size, errp)) {
        return false;
    }
    enpu_fault_init_mr(s);
    memory_region_init_io(&s->regs, OBJECT(s), &enpu_reg_ops, s, "enpu-regs",
                          ENPU_BAR_REGS_SIZE);
    enpu_doorbell_init_mr(s);
    pci_register_bar(pdev, ENPU_BAR_REGS, PCI_BASE_ADDRESS_SPACE_MEMORY,
                     &s->regs);
    pci_register_bar(pdev, ENPU_BAR_DOORBELL,
                     PCI_BASE_ADDRESS_SPACE_MEMORY |
                     PCI_BASE_ADDRESS_MEM_TYPE_64, &s->doorbells_mr);
    pci_register_bar(pdev, ENPU_BAR_LOCAL,
                     PCI_BASE_ADDRESS_SPACE_MEMORY |
                     PCI_BASE_ADDRESS_MEM_TYPE_64 |
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->local_bar);
    return true;
}

/*
 * The region itself goes with the last reference to the device, which may be
 * a moment after the next device has come to the same slot: its name must be
 * free by then.
 */
static void enpu_bars_cleanup(EnpuState *s)
{
    vmstate_unregister_ram(&s->local, DEVICE(s));
}

/* D0 and D3hot, which keeps registers, rings and local memory. */
static bool enpu_pm_init(PCIDevice *pdev, Error **errp)
{
    int pos = pci_pm_init(pdev, ENPU_PM_OFFSET, errp);

    if (pos < 0) {
        return false;
    }
    pci_set_word(pdev->config + pos + PCI_PM_PMC, PCI_PM_CAP_VER_1_2);
    pci_set_word(pdev->config + pos + PCI_PM_CTRL, PCI_PM_CTRL_NO_SOFT_RESET);
    pci_set_word(pdev->wmask + pos + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
    return true;
}

static bool enpu_caps_init(PCIDevice *pdev, Error **errp)
{
    if (pcie_endpoint_cap_init(pdev, ENPU_EXP_OFFSET) < 0) {
        error_setg(errp, "enpu: no PCIe capability");
        return false;
    }
    pcie_cap_flr_init(pdev);
    if (!enpu_pm_init(pdev, errp)) {
        return false;
    }
    return msix_init_exclusive_bar(pdev, ENPU_MAX_VECTORS, ENPU_BAR_MSIX,
                                   errp) >= 0;
}

static void enpu_realize(PCIDevice *pdev, Error **errp)
{
    EnpuState *s = ENPU(pdev);

    if (!enpu_bars_init(s, errp)) {
        return;
    }
    if (!enpu_caps_init(pdev, errp)) {
        goto undo_bars;
    }
    if (!enpu_irq_init(s, errp)) {
        goto undo_msix;
    }
    if (!enpu_host_init(s, errp)) {
        goto undo_vectors;
    }
    if (!enpu_fault_arm_early(s, errp) || !enpu_doorbell_init(s, errp)) {
        goto undo_model;
    }
    s->vmstate_handler = qdev_add_vm_change_state_handler(
        DEVICE(s), enpu_vm_state_change, s);
    return;

undo_model:
    enpu_host_cleanup(s);
undo_vectors:
    enpu_irq_cleanup(s);
undo_msix:
    msix_uninit_exclusive_bar(pdev);
undo_bars:
    enpu_fault_cleanup(s);
    enpu_bars_cleanup(s);
}

static void enpu_exit(PCIDevice *pdev)
{
    EnpuState *s = ENPU(pdev);

    qemu_del_vm_change_state_handler(s->vmstate_handler);
    enpu_doorbell_cleanup(s);
    enpu_host_cleanup(s);
    enpu_irq_cleanup(s);
    enpu_fault_cleanup(s);
    msix_uninit_exclusive_bar(pdev);
    enpu_bars_cleanup(s);
    g_free(s->state);
}

static void enpu_finalize(Object *obj)
{
    g_free(ENPU(obj)->early_faults);
}

/* Saved state: the model's own, with jobs in flight; local memory is RAM. */

static int enpu_pre_save(void *opaque)
{
    EnpuState *s = opaque;

    s->state_size = enpu_model_save(s->model, NULL, 0);
    g_free(s->state);
    s->state = g_malloc(s->state_size);
    enpu_model_save(s->model, s->state, s->state_size);
    return 0;
}

static int enpu_post_save(void *opaque)
{
    EnpuState *s = opaque;

    g_free(s->state);
    s->state = NULL;
    return 0;
}

static bool enpu_state_size_valid(void *opaque, int version_id)
{
    EnpuState *s = opaque;

    return s->state_size <= ENPU_STATE_MAX;
}

static int enpu_post_load(void *opaque, int version_id)
{
    EnpuState *s = opaque;
    char error[256];
    int ret;

    ret = enpu_model_load(s->model, s->state, s->state_size, error,
                          sizeof(error));
    g_free(s->state);
    s->state = NULL;
    if (ret < 0) {
        error_report("enpu: saved state refused: %s", error);
        return -EINVAL;
    }
    enpu_irq_update(s);
    enpu_fault_update(s);
    return 0;
}

static const VMStateDescription enpu_vmstate = {
    .name = "enpu",
    .version_id = 2,
    .minimum_version_id = 2,
    .pre_save = enpu_pre_save,
    .post_save = enpu_post_save,
    .post_load = enpu_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, EnpuState),
        VMSTATE_MSIX(parent_obj, EnpuState),
        VMSTATE_UINT32(state_size, EnpuState),
        VMSTATE_VALIDATE("state size", enpu_state_size_valid),
        VMSTATE_VBUFFER_ALLOC_UINT32(state, EnpuState, 1, NULL, state_size),
        VMSTATE_END_OF_LIST()
    }
};

static const Property enpu_properties[] = {
    DEFINE_PROP_UINT32("cores", EnpuState, cores, 1),
    DEFINE_PROP_UINT32("threads", EnpuState, threads, 1),
    DEFINE_PROP_UINT32("copy-engines", EnpuState, copy_engines, 2),
    DEFINE_PROP_SIZE("local-mem", EnpuState, local_size, 256 * MiB),
    DEFINE_PROP_BOOL("fault-injection", EnpuState, fault_injection, false),
    DEFINE_PROP_BOOL("sync", EnpuState, sync, false),
    DEFINE_PROP_ON_OFF_AUTO("ioeventfd", EnpuState, ioeventfd,
                            ON_OFF_AUTO_AUTO),
};

static void enpu_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *k = PCI_DEVICE_CLASS(klass);
    ResettableClass *rc = RESETTABLE_CLASS(klass);

    k->realize = enpu_realize;
    k->exit = enpu_exit;
    k->config_read = enpu_read_config;
    k->config_write = enpu_write_config;
    k->vendor_id = ENPU_PCI_VENDOR;
    k->device_id = ENPU_PCI_DEVICE;
    k->revision = ENPU_PCI_REVISION;
    k->class_id = ENPU_PCI_CLASS;
    rc->phases.hold = enpu_reset_hold;
    dc->desc = "enpu neural processing unit";
    dc->vmsd = &enpu_vmstate;
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
    device_class_set_props(dc, enpu_properties);
    enpu_fault_class_init(klass);
}

static const TypeInfo enpu_types[] = {
    {
        .name = TYPE_ENPU,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(EnpuState),
        .instance_finalize = enpu_finalize,
        .class_init = enpu_class_init,
        .interfaces = (InterfaceInfo[]) {
            { INTERFACE_PCIE_DEVICE },
            { }
        },
    },
};

DEFINE_TYPES(enpu_types)
