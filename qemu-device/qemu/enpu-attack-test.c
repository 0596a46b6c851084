/*
 * qtest of the enpu device: a guest that means harm, or that has gone mad
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/enpu/include/enpu_hw_tables.h"
#include "enpu-rig.h"

#define RANDOM_STEPS 20000

static void program_vector(Rig *r, int vector, uint64_t addr, uint32_t data)
{
    uint64_t at = r->dev->msix_table_off + vector * PCI_MSIX_ENTRY_SIZE;
    QPCIBar table = r->dev->msix_table_bar;

    qpci_io_writel(r->dev, table, at + PCI_MSIX_ENTRY_LOWER_ADDR, addr);
    qpci_io_writel(r->dev, table, at + PCI_MSIX_ENTRY_UPPER_ADDR, addr >> 32);
    qpci_io_writel(r->dev, table, at + PCI_MSIX_ENTRY_DATA, data);
    qpci_io_writel(r->dev, table, at + PCI_MSIX_ENTRY_VECTOR_CTRL, 0);
}

/* Messages that would trigger the next one, kick a queue or reset the NPU. */
static void test_messages_to_itself(const void *options)
{
    Rig r;

    rig_boot(&r, options, "");
    rig_map(&r);
    qpci_msix_enable(r.dev);
    program_vector(&r, 0, r.regs.addr + ENPU_REG_IRQ_TRIGGER, 1);
    program_vector(&r, 2, r.regs.addr + ENPU_REG_CTRL, ENPU_CTRL_RESET);
    program_vector(&r, 3, r.doorbell.addr, 1);
    wr32(&r, ENPU_REG_IRQ_TRIGGER, 0xd);
    for (int i = 0; i < 200; i++) {
        g_usleep(1000);
        rd32(&r, ENPU_REG_ID);
    }
    g_assert_cmpint(rd64(&r, ENPU_REG_IRQ_RAISED), ==, 3);
    g_assert_cmpint(rd32(&r, ENPU_REG_CTRL), ==, ENPU_CTRL_ENABLE);
    run_copy(&r);
    qpci_msix_disable(r.dev);
    rig_shutdown(&r);
}

/* Out over the bus and back into the local memory that is being written. */
static void test_local_by_the_bus(const void *options)
{
    const uint64_t bus_va = 0x800000, local_va = 0xa00000;
    struct enpu_error_record record;
    QPCIBar local;
    Rig r;

    rig_boot(&r, options, "");
    local = qpci_iomap(r.dev, ENPU_BAR_LOCAL, NULL);
    rig_map(&r);
    for (int i = 0; i < 4; i++) {
        map_page(&r, bus_va + i * 4096, local.addr + i * 4096, ENPU_PTE_READ);
    }
    map_large_page(&r, local_va, 0,
                   ENPU_PTE_READ | ENPU_PTE_WRITE | ENPU_PTE_LOCAL);
    put_copy_bytes(&r, 0, local_va + 64, bus_va, 2 * 4096);
    rig_queue(&r, 1, COPY_ENGINE);
    push(&r, 1, CMD_VA, sizeof(struct enpu_copy_packet), 1);
    wait32(&r, ENPU_REG_QUEUE_STATUS(1), ENPU_QUEUE_STATUS_STATE,
           ENPU_QUEUE_STATE_FAULTED);
    record = error_record(&r);
    g_assert_cmpint(record.kind, ==, ENPU_STATUS_DMA_ERROR);
    wr32(&r, ENPU_REG_ERR_POP, 1);
    run_copy(&r);
    rig_shutdown(&r);
}

static uint64_t random64(void)
{
    static const uint64_t odd[] = {
        0, 1, 2, 3, 0xff, 0xfff, 0x1000, 0xffff, 0x7fffffff, 0x80000000,
        0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
        0xfffffffffffff000, UINT64_MAX,
    };
    uint64_t high = (uint32_t)g_test_rand_int();

    if (g_test_rand_bit()) {
        return odd[g_test_rand_int_range(0, ARRAY_SIZE(odd))];
    }
    return g_test_rand_bit() ? high & 0xff : high << 32 | g_test_rand_int();
}

static void random_register(Rig *r)
{
    const struct enpu_reg_info *reg =
        &enpu_registers[g_test_rand_int_range(0, ENPU_NUM_REGISTERS)];
    /* Mostly the first few: those that the rig has set up. */
    uint32_t count = g_test_rand_bit() ? MIN(reg->count, 4) : reg->count;
    uint32_t at = reg->offset +
                  g_test_rand_int_range(0, count) * reg->stride;

    switch (g_test_rand_int_range(0, 8)) {
    case 0:
        rd64(r, g_test_rand_int_range(0, ENPU_BAR_REGS_SIZE / 8) * 8);
        break;
    case 1:
        rd32(r, at);
        break;
    case 2:
        wr32(r, g_test_rand_int_range(0, ENPU_BAR_REGS_SIZE / 4) * 4,
             random64());
        break;
    default:
        if (reg->bytes == 8) {
            wr64(r, at & ~7u, random64());
        } else {
            wr32(r, at, random64());
        }
        break;
    }
}

/* Structures in memory, under a device that uses them. */
static void random_memory(Rig *r)
{
    const uint64_t places[] = { r->root, r->cmd, r->queue[0], r->queue[1] };
    uint64_t at = places[g_test_rand_int_range(0, ARRAY_SIZE(places))];

    if (at) {
        qtest_writeq(r->qts, at + g_test_rand_int_range(0, 256) * 8,
                     random64());
    }
}

static void random_config(Rig *r)
{
    /* Behind the BARs: commands, capabilities, what is not there. */
    uint8_t at = g_test_rand_bit() ? PCI_COMMAND
                                   : g_test_rand_int_range(0x34, 0x100) & ~1;

    qpci_config_writew(r->dev, at, random64());
    if (!g_test_rand_int_range(0, 4)) {
        qpci_device_enable(r->dev);
    }
}

static void random_job(Rig *r)
{
    int queue = g_test_rand_int_range(0, 2);

    put_copy_bytes(r, 0, DST_VA + random64() % 8192, SRC_VA + random64() % 8192,
                   random64());
    if (!r->queue[queue]) {
        rig_queue(r, queue, queue);
    }
    push(r, queue, CMD_VA, sizeof(struct enpu_copy_packet), random64());
}

static void random_round(const char *options)
{
    Rig r;

    rig_boot(&r, options, "");
    rig_map(&r);
    qpci_msix_enable(r.dev);
    for (int i = 0; i < RANDOM_STEPS; i++) {
        int kind = g_test_rand_int_range(0, 64);

        if (kind < 40) {
            random_register(&r);
        } else if (kind < 50) {
            random_memory(&r);
        } else if (kind < 55) {
            qpci_io_writel(r.dev, r.doorbell,
                           g_test_rand_int_range(0, ENPU_BAR_DOORBELL_SIZE / 4)
                           * 4, random64());
        } else if (kind < 62) {
            random_job(&r);
        } else {
            random_config(&r);
        }
        if (i % 2000 == 0) {
            memset(r.queue, 0, sizeof(r.queue));
            qpci_device_enable(r.dev);
            rig_map(&r);
        }
    }
    /* A reset by the bus makes it a device like any other again. */
    qtest_system_reset(r.qts);
    rig_map_bars(&r);
    rig_map(&r);
    run_copy(&r);
    rig_shutdown(&r);
}

/*
 * The seed is printed by GLib; --seed gives the same run again. One round, or
 * as many as ENPU_FUZZ_SECONDS have room for.
 */
static void test_random(const void *options)
{
    const char *seconds = g_getenv("ENPU_FUZZ_SECONDS");
    int64_t end = g_get_monotonic_time() +
                  (seconds ? g_ascii_strtoll(seconds, NULL, 10) : 0) *
                  G_USEC_PER_SEC;
    unsigned long rounds = 0;

    do {
        random_round(options);
        rounds++;
    } while (g_get_monotonic_time() < end);
    g_test_message("%lu steps", rounds * RANDOM_STEPS);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_data_func("/enpu/attack/messages/sync", ",sync=on",
                        test_messages_to_itself);
    qtest_add_data_func("/enpu/attack/messages/threads", "",
                        test_messages_to_itself);
    qtest_add_data_func("/enpu/attack/local-by-the-bus/sync", ",sync=on",
                        test_local_by_the_bus);
    qtest_add_data_func("/enpu/attack/local-by-the-bus/threads", "",
                        test_local_by_the_bus);
    qtest_add_data_func("/enpu/attack/random/sync",
                        ",sync=on,fault-injection=on", test_random);
    qtest_add_data_func("/enpu/attack/random/threads",
                        ",cores=2,fault-injection=on", test_random);
    return g_test_run();
}
