/*
 * enpu: injected faults
 *
 * The model makes the faults; here they are armed from the monitor (qom-set)
 * and the command line, counted for qom-get, and a removed device is hidden.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "block/aio.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "enpu.h"
#include "enpu_fault.h"

static bool enpu_fault_arm(EnpuState *s, const char *text, Error **errp)
{
    struct enpu_fault fault;
    const char *at = text;
    const char *wrong;

    /* First all of it is read: what cannot be read arms nothing. */
    do {
        wrong = enpu_fault_parse(&at, &fault);
        if (wrong) {
            error_setg(errp, "enpu: %s, at '%s' of '%s'", wrong, at, text);
            return false;
        }
    } while (*at);

    for (at = text; *at;) {
        enpu_fault_parse(&at, &fault);
        if (enpu_model_inject(s->model, &fault) < 0) {
            error_setg(errp, "enpu: fault refused: fault-injection=on is "
                       "needed, a target that exists, and not too many");
            return false;
        }
    }
    return true;
}

/* -device enpu,inject-fault=… comes before there is a model. */
bool enpu_fault_arm_early(EnpuState *s, Error **errp)
{
    return !s->early_faults || enpu_fault_arm(s, s->early_faults, errp);
}

/* The reset that follows realize clears faults; later ones leave it so. */
void enpu_fault_rearm(EnpuState *s)
{
    enpu_fault_arm_early(s, &error_warn);
    g_free(s->early_faults);
    s->early_faults = NULL;
}

static void enpu_set_inject_fault(Object *obj, const char *text, Error **errp)
{
    EnpuState *s = ENPU(obj);

    if (s->model) {
        enpu_fault_arm(s, text, errp);
    } else {
        g_free(s->early_faults);
        s->early_faults = g_strdup(text);
    }
}

/* One line a kind that has fired: name, count, device time of the last. */
static char *enpu_get_faults_fired(Object *obj, Error **errp)
{
    static const char *const names[] = ENPU_FAULT_KIND_NAMES;
    EnpuState *s = ENPU(obj);
    GString *text = g_string_new("");

    for (uint32_t kind = 1; s->model && kind < ENPU_FAULT_KINDS; kind++) {
        uint64_t last_ns;
        uint32_t fired = enpu_model_fault_fired(s->model, kind, &last_ns);

        if (fired) {
            g_string_append_printf(text, "%s %u %" PRIu64 "\n", names[kind],
                                   fired, last_ns);
        }
    }
    return g_string_free(text, FALSE);
}

void enpu_fault_class_init(ObjectClass *klass)
{
    object_class_property_add_str(klass, "inject-fault", NULL,
                                  enpu_set_inject_fault);
    object_class_property_set_description(klass, "inject-fault",
        "KIND[:KEY=VALUE]...[;KIND...]");
    object_class_property_add_str(klass, "faults-fired", enpu_get_faults_fired,
                                  NULL);
    object_class_property_set_description(klass, "faults-fired",
        "kind, count and time of the last, by line");
}

/* Surprise removal */

static uint64_t enpu_gone_read(void *opaque, hwaddr addr, unsigned size)
{
    return UINT64_MAX;
}

static void enpu_gone_write(void *opaque, hwaddr addr, uint64_t value,
                            unsigned size)
{
}

static const MemoryRegionOps enpu_gone_ops = {
    .read = enpu_gone_read,
    .write = enpu_gone_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 1, .max_access_size = 8 },
    .impl = { .min_access_size = 1, .max_access_size = 8 },
};

void enpu_fault_init_mr(EnpuState *s)
{
    memory_region_init(&s->local_bar, OBJECT(s), "enpu-local-bar",
                       s->local_size);
    memory_region_init_io(&s->gone, OBJECT(s), &enpu_gone_ops, s, "enpu-gone",
                          s->local_size);
    memory_region_set_enabled(&s->gone, false);
    memory_region_add_subregion(&s->local_bar, 0, &s->local);
    memory_region_add_subregion_overlap(&s->local_bar, 0, &s->gone, 1);
}

void enpu_fault_cleanup(EnpuState *s)
{
    memory_region_del_subregion(&s->local_bar, &s->gone);
    memory_region_del_subregion(&s->local_bar, &s->local);
}

void enpu_fault_update(EnpuState *s)
{
    memory_region_set_enabled(&s->gone, qatomic_read(&s->removed));
}

static void enpu_fault_update_bh(void *opaque)
{
    EnpuState *s = opaque;

    enpu_fault_update(s);
    object_unref(OBJECT(s));
}

/* The memory map is the main loop's to change. */
void enpu_fault_set_removed(void *opaque, bool removed)
{
    EnpuState *s = opaque;

    qatomic_set(&s->removed, removed);
    object_ref(OBJECT(s));
    aio_bh_schedule_oneshot(qemu_get_aio_context(), enpu_fault_update_bh, s);
}
