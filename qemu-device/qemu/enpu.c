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
#include "qemu/cutils.h"
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

/* Registers */

static uint64_t enpu_reg_read(void *opaque, hwaddr addr, unsigned size)
{
    EnpuState *s = opaque;
    uint64_t value = UINT64_MAX;

    if (!qatomic_read(&s->removed)) {
        value = enpu_model_read(s->model, addr, size);
    }
    trace_enpu_reg_read(addr, size, value);
    return value;
}

static void enpu_reg_write(void *opaque, hwaddr addr, uint64_t value,
                           unsigned size)
{
    EnpuState *s = opaque;

    trace_enpu_reg_write(addr, size, value);
    if (!qatomic_read(&s->removed)) {
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

static void enpu_write_config(PCIDevice *pdev, uint32_t addr, uint32_t value,
                              int len)
{
    EnpuState *s = ENPU(pdev);

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
    qatomic_set(&s->removed, false);
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
                     PCI_BASE_ADDRESS_MEM_PREFETCH, &s->local);
    return true;
}

static bool enpu_caps_init(PCIDevice *pdev, Error **errp)
{
    if (pcie_endpoint_cap_init(pdev, ENPU_EXP_OFFSET) < 0) {
        error_setg(errp, "enpu: no PCIe capability");
        return false;
    }
    pcie_cap_flr_init(pdev);
    if (pci_pm_init(pdev, ENPU_PM_OFFSET, errp) < 0) {
        return false;
    }
    return msix_init_exclusive_bar(pdev, ENPU_MAX_VECTORS, ENPU_BAR_MSIX,
                                   errp) >= 0;
}

static void enpu_realize(PCIDevice *pdev, Error **errp)
{
    EnpuState *s = ENPU(pdev);

    if (!enpu_bars_init(s, errp) || !enpu_caps_init(pdev, errp)) {
        return;
    }
    if (!enpu_irq_init(s, errp)) {
        goto undo_msix;
    }
    if (!enpu_host_init(s, errp)) {
        goto undo_vectors;
    }
    if (!enpu_doorbell_init(s, errp)) {
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
}

static void enpu_exit(PCIDevice *pdev)
{
    EnpuState *s = ENPU(pdev);

    qemu_del_vm_change_state_handler(s->vmstate_handler);
    enpu_doorbell_cleanup(s);
    enpu_host_cleanup(s);
    enpu_irq_cleanup(s);
    msix_uninit_exclusive_bar(pdev);
    g_free(s->state);
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
    return 0;
}

static const VMStateDescription enpu_vmstate = {
    .name = "enpu",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = enpu_pre_save,
    .post_save = enpu_post_save,
    .post_load = enpu_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, EnpuState),
        VMSTATE_MSIX(parent_obj, EnpuState),
        VMSTATE_BOOL(removed, EnpuState),
        VMSTATE_UINT32(state_size, EnpuState),
        VMSTATE_VALIDATE("state size", enpu_state_size_valid),
        VMSTATE_VBUFFER_ALLOC_UINT32(state, EnpuState, 1, NULL, state_size),
        VMSTATE_END_OF_LIST()
    }
};

/*
 * Write-only property inject-fault: "kind=1,target=0,after=0,times=1,arg=0";
 * kind as in enum enpu_fault_kind, the rest may be left out.
 */
static void enpu_set_inject_fault(Object *obj, const char *text, Error **errp)
{
    EnpuState *s = ENPU(obj);
    uint64_t kind = 0, target = UINT32_MAX, after = 0, times = 1, arg = 0;
    const struct {
        const char *name;
        uint64_t *value;
        uint64_t max;
    } keys[] = {
        { "kind", &kind, UINT32_MAX }, { "target", &target, UINT32_MAX },
        { "after", &after, UINT32_MAX }, { "times", &times, UINT32_MAX },
        { "arg", &arg, UINT64_MAX },
    };
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);

    if (!s->model) {
        error_setg(errp, "enpu: the device is not realized yet");
        return;
    }
    for (char **part = parts; *part; part++) {
        char *equals = strchr(*part, '=');
        size_t i;

        for (i = 0; equals && i < ARRAY_SIZE(keys); i++) {
            size_t len = strlen(keys[i].name);

            if (len == equals - *part && !strncmp(*part, keys[i].name, len)) {
                break;
            }
        }
        if (!equals || i == ARRAY_SIZE(keys) ||
            qemu_strtou64(equals + 1, NULL, 0, keys[i].value) < 0 ||
            *keys[i].value > keys[i].max) {
            error_setg(errp, "enpu: cannot read '%s': expected kind=, "
                       "target=, after=, times= or arg= with a number", *part);
            return;
        }
    }
    if (enpu_model_inject(s->model, kind, target, after, times, arg) < 0) {
        error_setg(errp, "enpu: fault refused: fault-injection=on is needed, "
                   "and a known kind");
    }
}

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
    object_class_property_add_str(klass, "inject-fault", NULL,
                                  enpu_set_inject_fault);
    object_class_property_set_description(klass, "inject-fault",
        "kind=N[,target=N][,after=N][,times=N][,arg=N]");
}

static const TypeInfo enpu_types[] = {
    {
        .name = TYPE_ENPU,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(EnpuState),
        .class_init = enpu_class_init,
        .interfaces = (InterfaceInfo[]) {
            { INTERFACE_PCIE_DEVICE },
            { }
        },
    },
};

DEFINE_TYPES(enpu_types)
