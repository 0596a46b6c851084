/*
 * qtest rig: a machine with one enpu, its page tables, queues and packets
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef ENPU_RIG_H
#define ENPU_RIG_H

#include "libqos/libqos-pc.h"
#include "libqos/pci-pc.h"
#include "libqtest.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "hw/enpu/include/enpu_hw.h"

#define SLOT 4
#define ACPI_PCIHP_ADDR_ICH9 0x0cc0
#define LOCAL_SIZE (4 * 1024 * 1024)
#define WAIT_US (20 * 1000 * 1000)
#define COPY_ENGINE 1
#define CMD_VA 0x400000ull
#define SRC_VA 0x410000ull
#define DST_VA 0x420000ull
#define RING_LOG2 2
#define CMD_BYTES (4 * 4096)

typedef struct Rig {
    QOSState *qs;
    QTestState *qts;
    QPCIDevice *dev;
    QPCIBar regs, doorbell;
    uint64_t root, cmd, src, dst, queue[8];
} Rig;

static inline uint32_t rd32(Rig *r, uint64_t reg)
{
    return qpci_io_readl(r->dev, r->regs, reg);
}

static inline uint64_t rd64(Rig *r, uint64_t reg)
{
    return qpci_io_readq(r->dev, r->regs, reg);
}

static inline void wr32(Rig *r, uint64_t reg, uint32_t value)
{
    qpci_io_writel(r->dev, r->regs, reg, value);
}

static inline void wr64(Rig *r, uint64_t reg, uint64_t value)
{
    qpci_io_writeq(r->dev, r->regs, reg, value);
}

/* Every wait of a test ends: with what it waits for, or with a failure. */
static inline void wait32(Rig *r, uint64_t reg, uint32_t mask, uint32_t value)
{
    for (int us = 0; us < WAIT_US; us += 1000) {
        if ((rd32(r, reg) & mask) == value) {
            return;
        }
        g_usleep(1000);
    }
    g_error("register 0x%" PRIx64 " is 0x%x, waited for 0x%x", reg,
            rd32(r, reg), value);
}

static inline void wait_mem64(Rig *r, uint64_t addr, uint64_t value)
{
    for (int us = 0; us < WAIT_US; us += 1000) {
        if (qtest_readq(r->qts, addr) == value) {
            return;
        }
        g_usleep(1000);
    }
    g_error("word at 0x%" PRIx64 " is %" PRIu64 ", waited for %" PRIu64, addr,
            qtest_readq(r->qts, addr), value);
}

static inline void rig_map_bars(Rig *r)
{
    r->dev = qpci_device_find(r->qs->pcibus, QPCI_DEVFN(SLOT, 0));
    g_assert_nonnull(r->dev);
    qpci_device_enable(r->dev);
    r->regs = qpci_iomap(r->dev, ENPU_BAR_REGS, NULL);
    r->doorbell = qpci_iomap(r->dev, ENPU_BAR_DOORBELL, NULL);
}

static inline void rig_boot(Rig *r, const char *options, const char *machine_args)
{
    memset(r, 0, sizeof(*r));
    r->qs = qtest_pc_boot("-M q35 -device enpu,id=npu,addr=%d.0,local-mem=4M%s"
                          " %s", SLOT, options, machine_args);
    r->qts = r->qs->qts;
    /* The clock begins at 0, which reads as "never". */
    qtest_clock_step(r->qts, 1000);
    rig_map_bars(r);
}

static inline void rig_shutdown(Rig *r)
{
    g_free(r->dev);
    qtest_shutdown(r->qs);
}

static inline uint64_t zeroed(Rig *r, size_t bytes)
{
    uint64_t addr = guest_alloc(&r->qs->alloc, bytes);

    qtest_memset(r->qts, addr, 0, bytes);
    return addr;
}

/* One mapping in the tables of address space 1, with its leaf at a level. */
static inline void map_leaf(Rig *r, uint64_t va, int leaf, uint64_t pte)
{
    uint64_t table = r->root;

    for (int level = 3; level > leaf; level--) {
        uint64_t slot = table + ((va >> (12 + 9 * level)) & 511) * 8;
        uint64_t next = qtest_readq(r->qts, slot);

        if (!(next & ENPU_PTE_VALID)) {
            next = zeroed(r, 4096) | ENPU_PTE_VALID;
            qtest_writeq(r->qts, slot, next);
        }
        table = next & ENPU_PTE_ADDR;
    }
    qtest_writeq(r->qts, table + ((va >> (12 + 9 * leaf)) & 511) * 8,
                 pte | ENPU_PTE_VALID);
}

static inline void map_page(Rig *r, uint64_t va, uint64_t bus, uint64_t bits)
{
    map_leaf(r, va, 0, bus | bits);
}

static inline void map_large_page(Rig *r, uint64_t va, uint64_t bus,
                                  uint64_t bits)
{
    map_leaf(r, va, 1, bus | bits | ENPU_PTE_LARGE);
}

/* Address space 1 with a command page, a source and a destination. */
static inline void rig_map(Rig *r)
{
    r->root = zeroed(r, 4096);
    r->cmd = zeroed(r, CMD_BYTES);
    r->src = zeroed(r, 4096);
    r->dst = zeroed(r, 4096);
    for (uint64_t at = 0; at < CMD_BYTES; at += 4096) {
        map_page(r, CMD_VA + at, r->cmd + at, ENPU_PTE_READ);
    }
    map_page(r, SRC_VA, r->src, ENPU_PTE_READ);
    map_page(r, DST_VA, r->dst, ENPU_PTE_READ | ENPU_PTE_WRITE);
    wr64(r, ENPU_REG_AS_ROOT(1), r->root | ENPU_AS_ROOT_VALID);
    wr32(r, ENPU_REG_CTRL, ENPU_CTRL_ENABLE);
    wr32(r, ENPU_REG_IRQ_ENABLE, ~0u);
}

static inline void rig_queue(Rig *r, int queue, int engine)
{
    r->queue[queue] = zeroed(r, 2 * 4096);
    wr64(r, ENPU_REG_QUEUE_ADDR(queue), r->queue[queue]);
    wr64(r, ENPU_REG_QUEUE_HEAD(queue), 0);
    wr32(r, ENPU_REG_QUEUE_CTRL(queue),
         ENPU_QUEUE_CTRL_ENABLE |
         ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, RING_LOG2) |
         ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_ENGINE, engine) |
         ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, 1));
}

static inline uint64_t fence_addr(Rig *r, int queue)
{
    return r->queue[queue] + offsetof(struct enpu_queue_header, fence);
}

static inline void push(Rig *r, int queue, uint64_t cmd_va, uint32_t bytes,
                 uint64_t fence)
{
    struct enpu_ring_entry entry = {
        .cmd_va = cmd_va, .cmd_bytes = bytes, .flags = ENPU_RING_FLAG_IRQ,
        .fence = fence, .job_id = fence,
    };
    uint64_t tail = qtest_readq(r->qts, r->queue[queue]);

    qtest_memwrite(r->qts, r->queue[queue] + ENPU_QUEUE_RING_OFFSET +
                   (tail & ((1 << RING_LOG2) - 1)) * sizeof(entry), &entry,
                   sizeof(entry));
    qtest_writeq(r->qts, r->queue[queue], tail + 1);
    qpci_io_writel(r->dev, r->doorbell, queue * ENPU_DOORBELL_STRIDE, 1);
}

static inline void put_copy_bytes(Rig *r, uint64_t at, uint64_t dst,
                                  uint64_t src, uint64_t bytes)
{
    struct enpu_copy_packet copy = {
        .header = { .opcode = ENPU_OPCODE_COPY, .size = sizeof(copy) },
        .dst = dst, .src = src, .width = bytes, .height = 1,
    };

    qtest_memwrite(r->qts, r->cmd + at, &copy, sizeof(copy));
}

static inline void put_copy(Rig *r, uint64_t at, uint64_t dst, uint64_t src)
{
    put_copy_bytes(r, at, dst, src, 4096);
}

static inline void put_wait(Rig *r, uint64_t at, uint64_t va, uint64_t value)
{
    struct enpu_wait_packet packet = {
        .header = { .opcode = ENPU_OPCODE_WAIT, .size = sizeof(packet) },
        .addr = va, .value = value, .timeout_us = 50 * 1000 * 1000,
    };

    qtest_memwrite(r->qts, r->cmd + at, &packet, sizeof(packet));
}

static inline struct enpu_error_record error_record(Rig *r)
{
    struct enpu_error_record record;
    uint64_t words[8];

    for (int i = 0; i < 8; i++) {
        words[i] = rd64(r, ENPU_REG_ERR_RECORD(i));
    }
    memcpy(&record, words, sizeof(record));
    return record;
}

static inline void run_copy(Rig *r)
{
    uint8_t out[4096], in[4096];

    for (int i = 0; i < 4096; i++) {
        in[i] = i * 7 + 1;
    }
    qtest_memwrite(r->qts, r->src, in, sizeof(in));
    qtest_memset(r->qts, r->dst, 0, 4096);
    put_copy(r, 0, DST_VA, SRC_VA);
    rig_queue(r, 0, COPY_ENGINE);
    push(r, 0, CMD_VA, sizeof(struct enpu_copy_packet), 5);
    wait_mem64(r, fence_addr(r, 0), 5);
    qtest_memread(r->qts, r->dst, out, sizeof(out));
    g_assert_cmpmem(out, sizeof(out), in, sizeof(in));
    g_assert_cmpint(rd32(r, ENPU_REG_ERR_COUNT), ==, 0);
}

static inline void inject(Rig *r, const char *fault)
{
    qtest_qmp_assert_success(r->qts, "{'execute': 'qom-set', 'arguments': {"
                             "'path': '/machine/peripheral/npu',"
                             "'property': 'inject-fault', 'value': %s}}",
                             fault);
}

static inline void device_reset(Rig *r)
{
    wr32(r, ENPU_REG_CTRL, ENPU_CTRL_RESET);
    wait32(r, ENPU_REG_STATUS, ENPU_STATUS_READY | ENPU_STATUS_RESETTING,
           ENPU_STATUS_READY);
}

static inline void wait_migration(QTestState *qts)
{
    for (int us = 0; us < WAIT_US; us += 10000) {
        QDict *response = qtest_qmp(qts, "{'execute': 'query-migrate'}");
        QDict *result = qdict_get_qdict(response, "return");
        const char *status = qdict_get_try_str(result, "status");
        bool completed = status && g_str_equal(status, "completed");

        g_assert(!status || !g_str_equal(status, "failed"));
        qobject_unref(response);
        if (completed) {
            return;
        }
        g_usleep(10000);
    }
    g_error("migration did not end");
}

#endif
