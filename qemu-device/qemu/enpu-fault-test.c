/*
 * qtest of the enpu device: injected faults, one after the other, as a
 * driver would see them
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "enpu-rig.h"

#define VECTOR (1 + COPY_ENGINE)

/* Without fault-injection=on the fault block is not there. */
static void test_fault_block_off(void)
{
    QDict *response;
    Rig r;

    rig_boot(&r, "", "");
    wr32(&r, ENPU_REG_FAULT_KIND, ENPU_FAULT_KIND_ENGINE_HANG);
    g_assert_cmpint(rd32(&r, ENPU_REG_FAULT_KIND), ==, 0);
    response = qtest_qmp(r.qts, "{'execute': 'qom-set', 'arguments': {"
                         "'path': '/machine/peripheral/npu',"
                         "'property': 'inject-fault', 'value': 'engine-hang'}}");
    g_assert(qdict_haskey(response, "error"));
    qobject_unref(response);
    rig_shutdown(&r);
}

/* A hang is seen as standing progress, and an engine or device reset ends it. */
static void test_hang(void)
{
    uint64_t progress;
    Rig r;

    rig_boot(&r, ",fault-injection=on", "");
    rig_map(&r);
    put_copy(&r, 0, DST_VA, SRC_VA);
    inject(&r, "engine-hang");
    rig_queue(&r, 0, COPY_ENGINE);
    push(&r, 0, CMD_VA, sizeof(struct enpu_copy_packet), 1);
    wait32(&r, ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1);
    progress = rd64(&r, ENPU_REG_ENGINE_PROGRESS(COPY_ENGINE));
    g_usleep(50 * 1000);
    g_assert_cmpint(rd64(&r, ENPU_REG_ENGINE_PROGRESS(COPY_ENGINE)), ==,
                    progress);
    g_assert_cmpint(rd32(&r, ENPU_REG_ENGINE_QUEUE(COPY_ENGINE)), ==, 0);
    wr32(&r, ENPU_REG_ENGINE_CTRL(COPY_ENGINE), ENPU_ENGINE_CTRL_RESET);
    wait32(&r, ENPU_REG_ENGINE_CTRL(COPY_ENGINE), ENPU_ENGINE_CTRL_RESET, 0);
    wait32(&r, ENPU_REG_QUEUE_STATUS(0), ENPU_QUEUE_STATUS_STATE,
           ENPU_QUEUE_STATE_FAULTED);
    device_reset(&r);
    rig_map(&r);
    run_copy(&r);
    rig_shutdown(&r);
}

/* How often a kind has fired, by the property; and by the register. */
static unsigned fired(Rig *r, const char *kind)
{
    static const char *const names[] = ENPU_FAULT_KIND_NAMES;
    g_autofree char *start = g_strdup_printf("%s ", kind);
    QDict *response = qtest_qmp(r->qts, "{'execute': 'qom-get', 'arguments': {"
                                "'path': '/machine/peripheral/npu',"
                                "'property': 'faults-fired'}}");
    g_auto(GStrv) lines = g_strsplit(qdict_get_str(response, "return"), "\n",
                                     -1);
    unsigned count = 0;

    qobject_unref(response);
    for (char **line = lines; *line; line++) {
        if (g_str_has_prefix(*line, start)) {
            count = strtoul(*line + strlen(start), NULL, 10);
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (g_str_equal(names[i], kind)) {
            g_assert_cmpint(rd32(r, ENPU_REG_FAULT_FIRED(i)), ==, count);
            g_assert_cmpint(rd64(r, ENPU_REG_FAULT_FIRED_NS(i)) != 0, ==,
                            count != 0);
        }
    }
    return count;
}

static void queue_off(Rig *r, int queue)
{
    wr32(r, ENPU_REG_QUEUE_CTRL(queue), 0);
    wait32(r, ENPU_REG_QUEUE_STATUS(queue), ENPU_QUEUE_STATUS_STATE,
           ENPU_QUEUE_STATE_DISABLED);
}

/* Queue 0 rests, so that what follows is one job's doing. */
static void rested_queue(Rig *r)
{
    rig_queue(r, 0, COPY_ENGINE);
    wait32(r, ENPU_REG_QUEUE_STATUS(0), ENPU_QUEUE_STATUS_STATE,
           ENPU_QUEUE_STATE_IDLE);
}

typedef struct Failing {
    const char *fault, *kind;
    enum enpu_status status;
} Failing;

static void test_failing(void)
{
    static const Failing faults[] = {
        { "ecc-uncorrected", "ecc-uncorrected", ENPU_STATUS_ECC_UNCORRECTED },
        { "illegal-packet", "illegal-packet", ENPU_STATUS_ILLEGAL_PACKET },
        { "local-exhausted:engine=1", "local-exhausted",
          ENPU_STATUS_OUT_OF_MEMORY },
        { "mmu-fault", "mmu-fault", ENPU_STATUS_MMU_FAULT },
        /* Tail, entry and command buffer are read before the data. */
        { "dma-read:after=3", "dma-read", ENPU_STATUS_DMA_ERROR },
        { "dma-write:after=1", "dma-write", ENPU_STATUS_DMA_ERROR },
    };
    Rig r;

    rig_boot(&r, ",fault-injection=on", "");
    rig_map(&r);
    put_copy(&r, 0, DST_VA, SRC_VA);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        rested_queue(&r);
        inject(&r, faults[i].fault);
        push(&r, 0, CMD_VA, sizeof(struct enpu_copy_packet), 1);
        wait32(&r, ENPU_REG_QUEUE_STATUS(0), ENPU_QUEUE_STATUS_STATE,
               ENPU_QUEUE_STATE_FAULTED);
        g_assert_cmpint(error_record(&r).kind, ==, faults[i].status);
        g_assert_cmpint(fired(&r, faults[i].kind), ==, 1);
        wr32(&r, ENPU_REG_ERR_POP, 1);
        queue_off(&r, 0);
    }
    run_copy(&r);
    rig_shutdown(&r);
}

typedef struct Harmless {
    const char *fault, *kind;
    uint64_t messages;  /* sent for the job and its errors */
    uint64_t fence;     /* flipped bits of the fence word */
    uint64_t record;    /* and of the record's */
    uint64_t least_ns;  /* that the job takes */
    unsigned errors;    /* records */
} Harmless;

/* Faults that a job survives. */
static void test_harmless(void)
{
    static const Harmless faults[] = {
        { "engine-slow:arg=20000000", "engine-slow", 1, 0, 0, 20000000, 0 },
        { "irq-lost:vector=2", "irq-lost", 0, 0, 0, 0, 0 },
        { "irq-repeated:vector=2", "irq-repeated", 2, 0, 0, 0, 0 },
        { "irq-spurious:vector=2", "irq-spurious", 2, 0, 0, 0, 0 },
        { "irq-storm:vector=2:arg=50", "irq-storm", 50, 0, 0, 0, 0 },
        { "completion-delayed:queue=0:arg=20000000", "completion-delayed", 1,
          0, 0, 20000000, 0 },
        { "completion-corrupted:arg=0xff0", "completion-corrupted", 1, 0,
          0xff0, 0, 0 },
        { "fence-corrupted:arg=0xff0", "fence-corrupted", 1, 0xff0, 0, 0, 0 },
        { "ecc-corrected", "ecc-corrected", 2, 0, 0, 0, 1 },
    };
    const uint64_t record = ENPU_QUEUE_RING_OFFSET +
                            (1 << RING_LOG2) * sizeof(struct enpu_ring_entry) +
                            offsetof(struct enpu_completion, fence);
    Rig r;

    rig_boot(&r, ",fault-injection=on", "");
    rig_map(&r);
    put_copy(&r, 0, DST_VA, SRC_VA);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
        const Harmless *f = &faults[i];
        uint64_t raised = rd64(&r, ENPU_REG_IRQ_RAISED);
        uint64_t start;

        rested_queue(&r);
        inject(&r, f->fault);
        start = rd64(&r, ENPU_REG_TIMESTAMP);
        push(&r, 0, CMD_VA, sizeof(struct enpu_copy_packet), 1);
        /* qtest's clock stands still unless told, threads wait by it. */
        if (f->least_ns) {
            g_usleep(5000);
            g_assert_cmpint(rd64(&r, ENPU_REG_QUEUE_FENCE(0)), ==, 0);
            qtest_clock_step(r.qts, f->least_ns);
        }
        wait_mem64(&r, fence_addr(&r, 0), 1 ^ f->fence);
        wait32(&r, ENPU_REG_QUEUE_STATUS(0), ENPU_QUEUE_STATUS_STATE,
               ENPU_QUEUE_STATE_IDLE);
        g_assert_cmpint(rd64(&r, ENPU_REG_TIMESTAMP) - start, >=, f->least_ns);
        g_assert_cmphex(qtest_readq(r.qts, r.queue[0] + record), ==,
                        1 ^ f->record);
        g_assert_cmpint(rd64(&r, ENPU_REG_QUEUE_FENCE(0)), ==, 1);
        g_assert_cmpint(rd64(&r, ENPU_REG_IRQ_RAISED) - raised, ==,
                        f->messages);
        g_assert_cmpint(rd32(&r, ENPU_REG_ERR_COUNT), ==, f->errors);
        g_assert_cmpint(fired(&r, f->kind), ==, 1);
        for (unsigned n = 0; n < f->errors; n++) {
            wr32(&r, ENPU_REG_ERR_POP, 1);
        }
        queue_off(&r, 0);
    }
    rig_shutdown(&r);
}

static void test_doorbell_ignored(void)
{
    Rig r;

    rig_boot(&r, ",fault-injection=on", "");
    rig_map(&r);
    put_copy(&r, 0, DST_VA, SRC_VA);
    rested_queue(&r);
    inject(&r, "doorbell-ignored:queue=0");
    push(&r, 0, CMD_VA, sizeof(struct enpu_copy_packet), 1);
    g_assert_cmpint(fired(&r, "doorbell-ignored"), ==, 1);
    g_assert_cmpint(qtest_readq(r.qts, fence_addr(&r, 0)), ==, 0);
    qpci_io_writel(r.dev, r.doorbell, 0, 1);
    wait_mem64(&r, fence_addr(&r, 0), 1);
    rig_shutdown(&r);
}

static void test_tlb_stuck(void)
{
    Rig r;

    rig_boot(&r, ",fault-injection=on", "");
    rig_map(&r);
    inject(&r, "tlb-stuck:as=1");
    wr32(&r, ENPU_REG_TLB_INVALIDATE, 1);
    g_assert_cmpint(rd32(&r, ENPU_REG_TLB_SEQ), ==, 1);
    g_assert_cmpint(rd32(&r, ENPU_REG_TLB_DONE), ==, 0);
    g_assert_cmpint(fired(&r, "tlb-stuck"), ==, 1);
    device_reset(&r);
    g_assert_cmpint(rd32(&r, ENPU_REG_TLB_SEQ), ==,
                    rd32(&r, ENPU_REG_TLB_DONE));
    rig_shutdown(&r);
}

/* Once, and always until it is cleared. */
static void test_reset_fails(void)
{
    const uint32_t mask = ENPU_STATUS_READY | ENPU_STATUS_RESETTING;
    Rig r;

    rig_boot(&r, ",fault-injection=on", "");
    inject(&r, "reset-fails");
    wr32(&r, ENPU_REG_CTRL, ENPU_CTRL_RESET);
    g_assert_cmphex(rd32(&r, ENPU_REG_STATUS) & mask, ==,
                    ENPU_STATUS_RESETTING);
    device_reset(&r);
    inject(&r, "reset-fails:times=always");
    for (int i = 0; i < 3; i++) {
        wr32(&r, ENPU_REG_CTRL, ENPU_CTRL_RESET);
        g_usleep(2000);
        g_assert_cmphex(rd32(&r, ENPU_REG_STATUS) & mask, ==,
                        ENPU_STATUS_RESETTING);
    }
    inject(&r, "none");
    wait32(&r, ENPU_REG_STATUS, mask, ENPU_STATUS_READY);
    rig_map(&r);
    run_copy(&r);
    rig_shutdown(&r);
}

/* Everything of a device without a link reads as ones; then it is back. */
static void test_removed(void)
{
    QPCIBar local;
    Rig r;

    rig_boot(&r, ",fault-injection=on", "");
    rig_map(&r);
    local = qpci_iomap(r.dev, ENPU_BAR_LOCAL, NULL);
    qpci_io_writel(r.dev, local, 64, 0x12345678);
    inject(&r, "removed:arg=1000000000");
    g_assert_cmphex(rd32(&r, ENPU_REG_ID), ==, UINT32_MAX);
    g_assert_cmphex(qpci_config_readl(r.dev, PCI_VENDOR_ID), ==, UINT32_MAX);
    g_assert_cmphex(qpci_config_readb(r.dev, PCI_REVISION_ID), ==, UINT8_MAX);
    g_assert_cmphex(qpci_io_readl(r.dev, r.doorbell, 0), ==, UINT32_MAX);
    for (int us = 0; us < WAIT_US && qpci_io_readl(r.dev, local, 64) !=
         UINT32_MAX; us += 1000) {
        g_usleep(1000);
    }
    g_assert_cmphex(qpci_io_readl(r.dev, local, 64), ==, UINT32_MAX);
    qpci_io_writel(r.dev, local, 64, 0);
    qpci_config_writew(r.dev, PCI_COMMAND, 0);
    wr32(&r, ENPU_REG_CTRL, 0);

    qtest_clock_step(r.qts, 1000000000);
    wait32(&r, ENPU_REG_ID, ~0u, ENPU_MAGIC);
    g_assert_cmpint(qpci_config_readw(r.dev, PCI_COMMAND) &
                    PCI_COMMAND_MASTER, ==, PCI_COMMAND_MASTER);
    g_assert_cmphex(rd32(&r, ENPU_REG_CTRL), ==, ENPU_CTRL_ENABLE);
    for (int us = 0; us < WAIT_US && qpci_io_readl(r.dev, local, 64) !=
         0x12345678; us += 1000) {
        g_usleep(1000);
    }
    g_assert_cmphex(qpci_io_readl(r.dev, local, 64), ==, 0x12345678);
    run_copy(&r);
    rig_shutdown(&r);
}

/* From the command line: the seed decides which of the packets are hit. */
static void test_command_line(void)
{
    Rig r;

    rig_boot(&r, ",sync=on,fault-injection=on,"
             "inject-fault=ecc-corrected:every=3:seed=5:times=always", "");
    rig_map(&r);
    for (int i = 0; i < 30; i++) {
        put_copy(&r, i * sizeof(struct enpu_copy_packet), DST_VA, SRC_VA);
    }
    rig_queue(&r, 0, COPY_ENGINE);
    push(&r, 0, CMD_VA, 30 * sizeof(struct enpu_copy_packet), 1);
    g_assert_cmpint(qtest_readq(r.qts, fence_addr(&r, 0)), ==, 1);
    g_assert_cmpint(fired(&r, "ecc-corrected"), ==, 9);
    rig_shutdown(&r);
}

static void test_refused(void)
{
    static const char *const bad[] = {
        "", "hang", "engine-hang:queue=1", "engine-hang:engine=9",
        "engine-hang;bad", "engine-hang:times=0",
    };
    Rig r;

    rig_boot(&r, ",fault-injection=on", "");
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        QDict *response = qtest_qmp(r.qts, "{'execute': 'qom-set',"
            "'arguments': {'path': '/machine/peripheral/npu', 'property':"
            "'inject-fault', 'value': %s}}", bad[i]);

        g_assert(qdict_haskey(response, "error"));
        qobject_unref(response);
    }
    rig_map(&r);
    run_copy(&r);
    rig_shutdown(&r);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/enpu/fault/block-off", test_fault_block_off);
    qtest_add_func("/enpu/fault/hang", test_hang);
    qtest_add_func("/enpu/fault/failing", test_failing);
    qtest_add_func("/enpu/fault/harmless", test_harmless);
    qtest_add_func("/enpu/fault/doorbell-ignored", test_doorbell_ignored);
    qtest_add_func("/enpu/fault/tlb-stuck", test_tlb_stuck);
    qtest_add_func("/enpu/fault/reset-fails", test_reset_fails);
    qtest_add_func("/enpu/fault/removed", test_removed);
    qtest_add_func("/enpu/fault/command-line", test_command_line);
    qtest_add_func("/enpu/fault/refused", test_refused);
    return g_test_run();
}
