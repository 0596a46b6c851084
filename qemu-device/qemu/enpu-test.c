/*
 * qtest of the enpu device: what PCI, QEMU and the model make together
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/enpu/include/enpu_hw_tables.h"
#include "enpu-rig.h"

static void test_identity(void)
{
    Rig r;

    rig_boot(&r, ",cores=2", "");
    g_assert_cmphex(rd32(&r, ENPU_REG_ID), ==, ENPU_MAGIC);
    g_assert_cmpint(ENPU_FIELD_GET(ENPU_VERSION_MAJOR,
                                   rd32(&r, ENPU_REG_VERSION)), ==,
                    ENPU_HW_VERSION_MAJOR);
    g_assert_cmpint(ENPU_FIELD_GET(ENPU_CAP_ENGINES_CORES,
                                   rd32(&r, ENPU_REG_CAP_ENGINES)), ==, 2);
    g_assert_cmpint(rd64(&r, ENPU_REG_LOCAL_MEM_SIZE), ==, LOCAL_SIZE);
    g_assert_cmphex(qpci_config_readw(r.dev, PCI_CLASS_DEVICE), ==,
                    ENPU_PCI_CLASS);
    rig_shutdown(&r);
}

/* Every register of the sheet: its reset value, and what a write leaves. */
static void test_registers(void)
{
    Rig r;

    rig_boot(&r, "", "");
    for (size_t i = 0; i < ENPU_NUM_REGISTERS; i++) {
        const struct enpu_reg_info *reg = &enpu_registers[i];
        bool wide = reg->bytes == 8;

        for (uint32_t n = 0; n < reg->count; n++) {
            uint32_t at = reg->offset + n * reg->stride;
            uint64_t value = wide ? rd64(&r, at) : rd32(&r, at);

            if (reg->has_reset && !(reg->is_volatile && !reg->reset)) {
                g_assert_cmphex(value, ==, reg->reset);
            }
            /* The other width is not allowed: it reads as zero. */
            g_assert_cmphex(wide ? rd32(&r, at) : rd64(&r, at & ~7u), ==, 0);
            if (reg->access == ENPU_RO && !reg->is_volatile) {
                if (wide) {
                    wr64(&r, at, ~value);
                } else {
                    wr32(&r, at, ~value);
                }
                g_assert_cmphex(wide ? rd64(&r, at) : rd32(&r, at), ==, value);
            }
        }
    }
    rig_shutdown(&r);
}

static void test_copy(const void *options)
{
    Rig r;

    rig_boot(&r, options, "");
    rig_map(&r);
    qpci_msix_enable(r.dev);
    run_copy(&r);
    wait32(&r, ENPU_REG_IRQ_PENDING, 1 << (1 + COPY_ENGINE),
           1 << (1 + COPY_ENGINE));
    qpci_msix_disable(r.dev);
    rig_shutdown(&r);
}

/* A job that reaches where it may not: which status, and nothing else. */
static void expect_fault(Rig *r, uint64_t src, enum enpu_status status)
{
    struct enpu_error_record record;

    put_copy(r, 0, DST_VA, src);
    rig_queue(r, 1, COPY_ENGINE);
    push(r, 1, CMD_VA, sizeof(struct enpu_copy_packet), 1);
    wait32(r, ENPU_REG_QUEUE_STATUS(1), ENPU_QUEUE_STATUS_STATE,
           ENPU_QUEUE_STATE_FAULTED);
    record = error_record(r);
    g_assert_cmpint(record.kind, ==, status);
    g_assert_cmpint(record.queue, ==, 1);
    g_assert_cmpint(record.as_id, ==, 1);
    g_assert_cmpint(qtest_readq(r->qts, fence_addr(r, 1)), ==, 0);
    wr32(r, ENPU_REG_ERR_POP, 1);
    g_assert_cmpint(rd32(r, ENPU_REG_ERR_COUNT), ==, 0);
    wr32(r, ENPU_REG_QUEUE_CTRL(1), 0);
    wait32(r, ENPU_REG_QUEUE_STATUS(1), ENPU_QUEUE_STATUS_STATE,
           ENPU_QUEUE_STATE_DISABLED);
}

static void test_faults(const void *options)
{
    static const struct {
        uint64_t bus;
        enum enpu_status status;
    } targets[] = {
        { 0xfee00000, ENPU_STATUS_DMA_ERROR },    /* APIC */
        { 0xfec00000, ENPU_STATUS_DMA_ERROR },    /* IOAPIC */
        { 0xffff0000000, ENPU_STATUS_DMA_ERROR }, /* nothing there */
    };
    Rig r;

    rig_boot(&r, options, "");
    rig_map(&r);
    expect_fault(&r, SRC_VA + 0x100000, ENPU_STATUS_MMU_FAULT);
    for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
        map_page(&r, SRC_VA + 0x200000 + i * 4096, targets[i].bus,
                 ENPU_PTE_READ);
        expect_fault(&r, SRC_VA + 0x200000 + i * 4096, targets[i].status);
    }
    /* The device's own registers and doorbells. */
    map_page(&r, SRC_VA + 0x300000, r.regs.addr, ENPU_PTE_READ);
    expect_fault(&r, SRC_VA + 0x300000, ENPU_STATUS_DMA_ERROR);
    map_page(&r, SRC_VA + 0x301000, r.doorbell.addr, ENPU_PTE_READ);
    expect_fault(&r, SRC_VA + 0x301000, ENPU_STATUS_DMA_ERROR);
    /* Others go on. */
    run_copy(&r);
    rig_shutdown(&r);
}

/* Without bus mastering nothing is read or written, and nothing hangs. */
static void test_bus_master_off(void)
{
    uint16_t command;
    Rig r;

    rig_boot(&r, "", "");
    rig_map(&r);
    put_copy(&r, 0, DST_VA, SRC_VA);
    rig_queue(&r, 0, COPY_ENGINE);
    command = qpci_config_readw(r.dev, PCI_COMMAND);
    qpci_config_writew(r.dev, PCI_COMMAND, command & ~PCI_COMMAND_MASTER);
    push(&r, 0, CMD_VA, sizeof(struct enpu_copy_packet), 1);
    wait32(&r, ENPU_REG_QUEUE_STATUS(0), ENPU_QUEUE_STATUS_STATE,
           ENPU_QUEUE_STATE_FAULTED);
    qpci_config_writew(r.dev, PCI_COMMAND, command);
    wr32(&r, ENPU_REG_ERR_POP, 1);
    wr32(&r, ENPU_REG_QUEUE_CTRL(0), 0);
    wait32(&r, ENPU_REG_QUEUE_STATUS(0), ENPU_QUEUE_STATUS_STATE,
           ENPU_QUEUE_STATE_DISABLED);
    run_copy(&r);
    rig_shutdown(&r);
}

static void test_stray_writes(void)
{
    Rig r;

    rig_boot(&r, ",sync=on", "");
    rig_map(&r);
    for (int i = 0; i < ENPU_MAX_QUEUES; i++) {
        qpci_io_writel(r.dev, r.doorbell, i * ENPU_DOORBELL_STRIDE, i);
        wr32(&r, ENPU_REG_QUEUE_CTRL(i), 0xfffffffe);
        wr32(&r, ENPU_REG_QUEUE_KICK(i), 1);
    }
    /* Enabled, with an engine that does not exist and no memory behind it. */
    wr64(&r, ENPU_REG_QUEUE_ADDR(3), ~0ull);
    wr32(&r, ENPU_REG_QUEUE_CTRL(3), ~0u);
    wr32(&r, ENPU_REG_QUEUE_KICK(3), 1);
    wr32(&r, ENPU_REG_QUEUE_CTRL(3), 0);
    wr32(&r, ENPU_REG_TLB_INVALIDATE, 0xffff);
    wr32(&r, ENPU_REG_IRQ_TRIGGER, ~0u);
    for (int i = 0; i < 2 * ENPU_ERROR_FIFO_DEPTH; i++) {
        wr32(&r, ENPU_REG_ERR_POP, 1);
    }
    run_copy(&r);
    rig_shutdown(&r);
}

static void test_flr(void)
{
    uint8_t cap;
    Rig r;

    rig_boot(&r, "", "");
    rig_map(&r);
    run_copy(&r);
    wr64(&r, ENPU_REG_SCRATCH, 0x123456789abcdefull);
    cap = qpci_find_capability(r.dev, PCI_CAP_ID_EXP, 0);
    g_assert_cmpint(cap, !=, 0);
    qpci_config_writew(r.dev, cap + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR);
    rig_map_bars(&r);
    g_assert_cmpint(rd64(&r, ENPU_REG_SCRATCH), ==, 0);
    g_assert_cmpint(rd32(&r, ENPU_REG_QUEUE_CTRL(0)), ==, 0);
    rig_map(&r);
    run_copy(&r);
    rig_shutdown(&r);
}

/* A reset in the middle of endless work, again and again. */
static void test_reset_busy(void)
{
    Rig r;

    rig_boot(&r, "", "");
    for (int round = 0; round < 50; round++) {
        rig_map(&r);
        for (int i = 0; i < 32; i++) {
            put_copy(&r, i * sizeof(struct enpu_copy_packet), DST_VA, SRC_VA);
        }
        rig_queue(&r, 0, COPY_ENGINE);
        push(&r, 0, CMD_VA, 32 * sizeof(struct enpu_copy_packet), 1);
        device_reset(&r);
        g_assert_cmpint(rd32(&r, ENPU_REG_QUEUE_CTRL(0)), ==, 0);
    }
    rig_map(&r);
    run_copy(&r);
    rig_shutdown(&r);
}

/* What a guest's ACPI code does with an unplug request, for slot 0. */
static void eject(QTestState *qts)
{
    for (int bus = 0; bus < 4; bus++) {
        qtest_outl(qts, ACPI_PCIHP_ADDR_ICH9 + 0x10, bus);
        qtest_outl(qts, ACPI_PCIHP_ADDR_ICH9 + 0x08, 1);
    }
}

static void test_hotplug(void)
{
    QTestState *qts = qtest_init("-M q35 -device pcie-root-port,id=rp0");

    for (int i = 0; i < 5; i++) {
        qtest_qmp_device_add(qts, "enpu", "hot", "{'bus': 'rp0',"
                             "'local-mem': 4194304}");
        qtest_qmp_device_del_send(qts, "hot");
        eject(qts);
        qtest_qmp_eventwait(qts, "DEVICE_DELETED");
    }
    qtest_quit(qts);
}

static void test_bad_properties(void)
{
    static const char *const bad[] = {
        "'cores': 0", "'cores': 17", "'threads': 0", "'copy-engines': 9",
        "'local-mem': 3000000", "'local-mem': 4096",
    };
    QTestState *qts = qtest_init("-M q35 -device pcie-root-port,id=rp0");

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        g_autofree char *args = g_strdup_printf(
            "{'execute': 'device_add', 'arguments': {'driver': 'enpu',"
            "'id': 'bad', 'bus': 'rp0', %s}}", bad[i]);
        QDict *response = qtest_qmp(qts, args, NULL);

        g_assert(qdict_haskey(response, "error"));
        qobject_unref(response);
    }
    qtest_quit(qts);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/enpu/identity", test_identity);
    qtest_add_func("/enpu/registers", test_registers);
    qtest_add_data_func("/enpu/copy/sync", ",sync=on", test_copy);
    qtest_add_data_func("/enpu/copy/threads", "", test_copy);
    qtest_add_data_func("/enpu/copy/ioeventfd", ",ioeventfd=on", test_copy);
    qtest_add_data_func("/enpu/faults/sync", ",sync=on", test_faults);
    qtest_add_data_func("/enpu/faults/threads", "", test_faults);
    qtest_add_func("/enpu/bus-master-off", test_bus_master_off);
    qtest_add_func("/enpu/stray-writes", test_stray_writes);
    qtest_add_func("/enpu/flr", test_flr);
    qtest_add_func("/enpu/reset-busy", test_reset_busy);
    qtest_add_func("/enpu/hotplug", test_hotplug);
    qtest_add_func("/enpu/bad-properties", test_bad_properties);
    return g_test_run();
}
