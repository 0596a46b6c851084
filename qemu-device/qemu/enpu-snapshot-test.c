/*
 * qtest of the enpu device: a machine is saved with a job on every engine and
 * goes on in a new process as if nothing had happened
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/units.h"
#include "enpu-rig.h"

#define CORES 3
#define ENGINES (CORES + 2)
#define HUNG 0             /* engine, and the queue of its job */
#define WAITER ENGINES     /* queue: parked in a WAIT on the last engine */
#define STEPS 12           /* packets of a core's job */
#define BIG_BYTES (12 * MiB)
#define BIG_VA 0x40000000ull
#define BIG_DST_VA(engine) (0x50000000ull + (engine) * 0x10000000ull)
#define PAGE_VA(i) (0x600000ull + (i) * 4096ull)
#define WORD_VA PAGE_VA(ENGINES)
#define SLOW_NS 20000000
#define STEP_NS 1000000    /* of the clock, each ms */
/* What goes through the socket as text goes in pieces. */
#define PIECE (64 * KiB)
#define TRIGGERED 9        /* a vector that nothing else asserts */

typedef struct Scene {
    Rig r;
    uint64_t big_src, big_dst[2], page[ENGINES + 1];
} Scene;

static uint64_t big_buffer(Rig *r, uint64_t va, uint64_t bits)
{
    uint64_t base = guest_alloc(&r->qs->alloc,
                                BIG_BYTES + ENPU_LARGE_PAGE_SIZE);

    base = QEMU_ALIGN_UP(base, ENPU_LARGE_PAGE_SIZE);
    for (uint64_t at = 0; at < BIG_BYTES; at += ENPU_LARGE_PAGE_SIZE) {
        map_large_page(r, va + at, base + at, bits);
    }
    return base;
}

/* y += x on a page of floats: a step that is done twice or lost shows. */
static uint32_t put_add(Rig *r, uint64_t at, uint64_t y, uint64_t x)
{
    const uint64_t vas[] = { y, x, y };
    const uint32_t bytes = ENPU_OPERATOR_PACKET_BYTES(ENPU_BINARY_OPERANDS);
    g_autofree struct enpu_operator_packet *add = g_malloc0(bytes);

    add->header.opcode = ENPU_OPCODE_BINARY;
    add->header.size = bytes;
    add->params.binary.function = ENPU_BINARY_ADD;
    for (int i = 0; i < ENPU_BINARY_OPERANDS; i++) {
        add->operands[i].addr = vas[i];
        add->operands[i].dtype = ENPU_DTYPE_F32;
        add->operands[i].rank = 1;
        add->operands[i].dims[0] = 1024;
        add->operands[i].strides[0] = 1;
    }
    qtest_memwrite(r->qts, r->cmd + at, add, bytes);
    return bytes;
}

static void fill_floats(Rig *r, uint64_t at)
{
    float values[1024];

    for (int i = 0; i < 1024; i++) {
        values[i] = i;
    }
    qtest_memwrite(r->qts, at, values, sizeof(values));
}

/* No two neighbouring tiles have the same pieces. */
static uint8_t pattern_at(uint32_t at)
{
    return at / PIECE * 7 + 1;
}

static void scene_memory(Scene *s)
{
    Rig *r = &s->r;

    rig_map(r);
    s->big_src = big_buffer(r, BIG_VA, ENPU_PTE_READ);
    for (uint32_t at = 0; at < BIG_BYTES; at += PIECE) {
        qtest_memset(r->qts, s->big_src + at, pattern_at(at), PIECE);
    }
    for (int i = 0; i < 2; i++) {
        s->big_dst[i] = big_buffer(r, BIG_DST_VA(i),
                                   ENPU_PTE_READ | ENPU_PTE_WRITE);
    }
    for (int i = 0; i <= ENGINES; i++) {
        s->page[i] = zeroed(r, 4096);
        map_page(r, PAGE_VA(i), s->page[i], ENPU_PTE_READ | ENPU_PTE_WRITE);
    }
    fill_floats(r, r->src);
}

/* Commands one after the other: where each job's lie, and their bytes. */
typedef struct Job {
    uint32_t at, bytes;
} Job;

static void scene_commands(Scene *s, Job *jobs)
{
    Rig *r = &s->r;
    uint32_t at = 0;

    for (int i = 0; i <= ENGINES; i++) {
        jobs[i].at = at;
        if (i == WAITER) {
            put_wait(r, at, WORD_VA, 77);
            at += sizeof(struct enpu_wait_packet);
            put_copy(r, at, DST_VA, SRC_VA);
            at += sizeof(struct enpu_copy_packet);
        } else if (i < CORES) {
            for (int step = 0; step < STEPS; step++) {
                at += put_add(r, at, PAGE_VA(i), SRC_VA);
            }
        } else {
            put_copy_bytes(r, at, BIG_DST_VA(i - CORES), BIG_VA, BIG_BYTES);
            at += sizeof(struct enpu_copy_packet);
        }
        jobs[i].bytes = at - jobs[i].at;
    }
    g_assert_cmpint(at, <=, CMD_BYTES);
}

/* A job on every engine, slow enough to be caught; one of them hangs. */
static void scene_start(Scene *s)
{
    uint64_t before[ENGINES];
    Job jobs[ENGINES + 1];
    Rig *r = &s->r;

    scene_memory(s);
    scene_commands(s, jobs);
    for (int i = 0; i < ENGINES; i++) {
        g_autofree char *slow = g_strdup_printf(
            "engine-slow:engine=%d:times=always:arg=%d", i, SLOW_NS);

        inject(r, i == HUNG ? "engine-hang:engine=0:after=3" : slow);
    }
    /* Held back by coalescing, and pending with its vector masked. */
    wr32(r, ENPU_REG_IRQ_COALESCE,
         ENPU_FIELD_PREP(ENPU_IRQ_COALESCE_COUNT, 1000));
    wr32(r, ENPU_REG_IRQ_ENABLE, ~(1u << TRIGGERED));
    wr32(r, ENPU_REG_IRQ_TRIGGER, 1u << TRIGGERED);

    rig_queue(r, WAITER, ENGINES - 1);
    push(r, WAITER, CMD_VA + jobs[WAITER].at, jobs[WAITER].bytes, 1);
    for (int us = 0; us < WAIT_US; us += 1000) {
        qtest_clock_step(r->qts, STEP_NS);
        if (ENPU_FIELD_GET(ENPU_QUEUE_STATUS_STATE,
                           rd32(r, ENPU_REG_QUEUE_STATUS(WAITER))) ==
            ENPU_QUEUE_STATE_WAITING) {
            break;
        }
        g_usleep(1000);
    }
    for (int i = 0; i < ENGINES; i++) {
        before[i] = rd64(r, ENPU_REG_ENGINE_PROGRESS(i));
        rig_queue(r, i, i);
        push(r, i, CMD_VA + jobs[i].at, jobs[i].bytes, 1);
    }
    wait32(r, ENPU_REG_FAULT_FIRED(ENPU_FAULT_KIND_ENGINE_HANG), ~0u, 1);
    /* Each of the others gets into its job: the device's time is ours. */
    for (int i = 1; i < ENGINES; i++) {
        wait32(r, ENPU_REG_ENGINE_QUEUE(i), ~0u, i);
    }
    for (int us = 0; us < WAIT_US; us += 1000) {
        int begun = 0;

        for (int i = 1; i < ENGINES; i++) {
            begun += rd64(r, ENPU_REG_ENGINE_PROGRESS(i)) > before[i];
        }
        if (begun == ENGINES - 1) {
            return;
        }
        qtest_clock_step(r->qts, STEP_NS);
        g_usleep(1000);
    }
    g_error("not every engine got into its job");
}

static void check_in_flight(Rig *r)
{
    for (int i = 0; i < ENGINES; i++) {
        g_assert_cmpint(rd32(r, ENPU_REG_ENGINE_QUEUE(i)), ==, i);
        g_assert_cmpint(qtest_readq(r->qts, fence_addr(r, i)), ==, 0);
        g_assert_cmpint(rd64(r, ENPU_REG_ENGINE_PROGRESS(i)), >, 0);
    }
    g_assert_cmpint(ENPU_FIELD_GET(ENPU_QUEUE_STATUS_STATE,
                                   rd32(r, ENPU_REG_QUEUE_STATUS(WAITER))), ==,
                    ENPU_QUEUE_STATE_WAITING);
    g_assert_cmphex(rd32(r, ENPU_REG_IRQ_PENDING), ==, 1u << TRIGGERED);
}

static void wait_running_in(QTestState *qts)
{
    for (int us = 0; us < WAIT_US; us += 10000) {
        QDict *response = qtest_qmp(qts, "{'execute': 'query-status'}");
        QDict *result = qdict_get_qdict(response, "return");
        bool done = !g_str_equal(qdict_get_str(result, "status"), "inmigrate");

        qobject_unref(response);
        if (done) {
            return;
        }
        g_usleep(10000);
    }
    g_error("the saved machine did not come up");
}

static const char machine[] =
    ",cores=" stringify(CORES) ",copy-engines=2,fault-injection=on";

/* Saves the machine, ends its process, and restores it in a new one. */
static void move(Scene *s)
{
    g_autofree char *file = g_strdup_printf("%s/enpu-state-%d", g_get_tmp_dir(),
                                            getpid());
    g_autofree char *uri = g_strdup_printf("file:%s", file);
    g_autofree char *incoming = g_strdup_printf("-incoming %s", uri);
    uint64_t progress[ENGINES];
    Rig next = s->r;

    qtest_qmp_assert_success(s->r.qts, "{'execute': 'stop'}");
    check_in_flight(&s->r);
    for (int i = 0; i < ENGINES; i++) {
        progress[i] = rd64(&s->r, ENPU_REG_ENGINE_PROGRESS(i));
    }
    qtest_qmp_assert_success(s->r.qts, "{'execute': 'migrate', 'arguments': "
                             "{'uri': %s}}", uri);
    wait_migration(s->r.qts);
    rig_shutdown(&s->r);

    next.qs = qtest_pc_boot("-M q35 -device enpu,id=npu,addr=%d.0,local-mem=4M"
                            "%s %s", SLOT, machine, incoming);
    next.qts = next.qs->qts;
    wait_running_in(next.qts);
    next.dev = qpci_device_find(next.qs->pcibus, QPCI_DEVFN(SLOT, 0));
    g_assert_nonnull(next.dev);
    check_in_flight(&next);
    for (int i = 0; i < ENGINES; i++) {
        g_assert_cmpint(rd64(&next, ENPU_REG_ENGINE_PROGRESS(i)), ==,
                        progress[i]);
    }
    qtest_qmp_assert_success(next.qts, "{'execute': 'cont'}");
    unlink(file);
    s->r = next;
}

typedef struct Outcome {
    uint8_t pages[ENGINES + 2][4096];
    uint8_t *big[2];
    uint64_t counters[ENPU_COUNTER_COPY_BYTES + 1];
    uint64_t progress[ENGINES];
    struct enpu_error_record error;
} Outcome;

static void wait_done(Rig *r, int queue)
{
    for (int us = 0; us < WAIT_US; us += 1000) {
        if (qtest_readq(r->qts, fence_addr(r, queue)) == 1) {
            return;
        }
        qtest_clock_step(r->qts, STEP_NS);
        g_usleep(1000);
    }
    g_error("queue %d: its job did not end", queue);
}

/* Everything ends, the hang is found by its standing progress. */
static void scene_end(Scene *s, Outcome *o)
{
    Rig *r = &s->r;
    uint64_t standing = rd64(r, ENPU_REG_ENGINE_PROGRESS(HUNG));

    for (int i = 0; i < ENGINES; i++) {
        if (i != HUNG) {
            wait_done(r, i);
        }
    }
    qtest_writeq(r->qts, s->page[ENGINES], 77);
    qpci_io_writel(r->dev, r->doorbell, WAITER * ENPU_DOORBELL_STRIDE, 1);
    wait_done(r, WAITER);
    g_assert_cmpint(rd64(r, ENPU_REG_ENGINE_PROGRESS(HUNG)), ==, standing);
    g_assert_cmpint(rd32(r, ENPU_REG_ENGINE_QUEUE(HUNG)), ==, HUNG);

    /* What coalescing held back comes when it may. */
    g_assert_cmphex(rd32(r, ENPU_REG_IRQ_PENDING), ==, 1u << TRIGGERED);
    wr32(r, ENPU_REG_IRQ_COALESCE, 0);
    g_assert_cmphex(rd32(r, ENPU_REG_IRQ_PENDING), ==,
                    1u << TRIGGERED | (~(1u << HUNG) & ((1 << ENGINES) - 1))
                    << 1);

    wr32(r, ENPU_REG_ENGINE_CTRL(HUNG), ENPU_ENGINE_CTRL_RESET);
    wait32(r, ENPU_REG_ENGINE_CTRL(HUNG), ENPU_ENGINE_CTRL_RESET, 0);
    wait32(r, ENPU_REG_QUEUE_STATUS(HUNG), ENPU_QUEUE_STATUS_STATE,
           ENPU_QUEUE_STATE_FAULTED);
    o->error = error_record(r);
    o->error.time_ns = 0;
    for (int i = 0; i <= ENGINES; i++) {
        qtest_memread(r->qts, s->page[i], o->pages[i], 4096);
    }
    qtest_memread(r->qts, r->dst, o->pages[ENGINES + 1], 4096);
    for (int i = 0; i < 2; i++) {
        o->big[i] = g_malloc(BIG_BYTES);
        for (uint32_t at = 0; at < BIG_BYTES; at += PIECE) {
            qtest_memread(r->qts, s->big_dst[i] + at, o->big[i] + at, PIECE);
        }
    }
    for (int i = 0; i < ARRAY_SIZE(o->counters); i++) {
        o->counters[i] = rd64(r, ENPU_REG_COUNTER(1, i));
    }
    for (int i = 0; i < ENGINES; i++) {
        o->progress[i] = rd64(r, ENPU_REG_ENGINE_PROGRESS(i));
    }
}

static void run_scene(bool moved, Outcome *o)
{
    Scene s;

    memset(o, 0, sizeof(*o));
    rig_boot(&s.r, machine, "");
    scene_start(&s);
    if (moved) {
        move(&s);
    }
    scene_end(&s, o);
    rig_shutdown(&s.r);
}

/* Times differ from run to run, and so does the state of a TLB. */
static bool same_each_run(int counter)
{
    return counter != ENPU_COUNTER_BUSY_COMPUTE_NS &&
           counter != ENPU_COUNTER_BUSY_COPY_NS &&
           counter != ENPU_COUNTER_STALL_NS &&
           counter != ENPU_COUNTER_TLB_HITS &&
           counter != ENPU_COUNTER_TLB_MISSES;
}

static void test_every_engine(void)
{
    g_autofree Outcome *still = g_new(Outcome, 1);
    g_autofree Outcome *moved = g_new(Outcome, 1);
    float sum;

    run_scene(false, still);
    run_scene(true, moved);
    for (int i = 1; i < CORES; i++) {
        memcpy(&sum, &still->pages[i][7 * sizeof(sum)], sizeof(sum));
        g_assert_cmpfloat(sum, ==, 7.0f * STEPS);
    }
    g_assert_cmpmem(moved->pages, sizeof(moved->pages), still->pages,
                    sizeof(still->pages));
    for (int i = 0; i < 2; i++) {
        g_assert_cmpmem(moved->big[i], BIG_BYTES, still->big[i], BIG_BYTES);
        for (uint32_t at = 0; at < BIG_BYTES; at += 4096) {
            g_assert_cmphex(still->big[i][at], ==, pattern_at(at));
        }
        g_free(moved->big[i]);
        g_free(still->big[i]);
    }
    for (int i = 0; i < ARRAY_SIZE(still->counters); i++) {
        if (same_each_run(i)) {
            g_assert_cmpint(moved->counters[i], ==, still->counters[i]);
        }
    }
    g_assert_cmpmem(moved->progress, sizeof(moved->progress), still->progress,
                    sizeof(still->progress));
    g_assert_cmpint(moved->error.kind, ==, ENPU_STATUS_ABORTED);
    g_assert_cmpmem(&moved->error, sizeof(moved->error), &still->error,
                    sizeof(still->error));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/enpu/snapshot/every-engine", test_every_engine);
    return g_test_run();
}
