// SPDX-License-Identifier: MIT
#include "bench.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::format;

// Three times around, one job at a time, each with its own mark in memory.
void check_wrap(Bench& bench, uint32_t ring_log2) {
    bench.set_up();
    Bench::Queue queue = bench.queue(0, bench.compute_engines(), ring_log2);
    const Memory mark = bench.buffer(8);
    for (uint32_t i = 1; i <= 3 * queue.entries(); ++i) {
        const uint64_t fence = bench.push(queue, Stream().signal(mark.va, i));
        bench.await_fence(queue, fence, format("entry %u of a ring of %u", i, queue.entries()));
        require_equal(format("mark of entry %u", i), *mark.as<uint64_t>(), i);
        require_equal(format("fence in the completion record of entry %u", i),
                      bench.completion(queue, i - 1).fence, fence);
        require_equal(format("head after entry %u", i), bench.header(queue).head, i);
    }
}

// A full ring, one kick for all; they run in order.
void check_depth(Bench& bench, uint32_t ring_log2) {
    bench.set_up();
    Bench::Queue queue = bench.queue(1, bench.compute_engines(), ring_log2);
    const Memory marks = bench.buffer(8 * queue.entries());
    for (uint32_t round = 0; round < 2; ++round) {
        uint64_t last = 0;
        for (uint32_t i = 0; i < queue.entries(); ++i)
            last = bench.push(queue, Stream().timestamp(marks.va + 8 * i), false);
        bench.kick(queue);
        bench.await_fence(queue, last, format("%u entries behind one kick", queue.entries()));
        for (uint32_t i = 1; i < queue.entries(); ++i)
            require(marks.as<uint64_t>()[i] >= marks.as<uint64_t>()[i - 1],
                    format("entry %u of a full ring ran before entry %u", i, i - 1));
    }
}

void expect_ring_error(Bench& bench, Bench::Queue& queue, const std::string& step) {
    bench.await_faulted(queue, step);
    require_equal("status of the queue: " + step, bench.status(queue), ENPU_STATUS_RING_ERROR);
    enpu_error_record record;
    require(bench.pop_error(&record), "no error record: " + step);
    require_equal("queue of the error record: " + step, record.queue, queue.id);
}

void check_refusals(Bench& bench) {
    bench.set_up();
    Bench::Queue same = bench.queue(2, 0);
    bench.await_fence(same, bench.push(same, Stream().nop()), "NOP");
    same.fence = 0;  // the next entry repeats fence 1
    bench.push(same, Stream().nop());
    expect_ring_error(bench, same, "a fence that does not grow");
    Bench::Queue ahead = bench.queue(3, 0);
    ahead.tail += ahead.entries();
    bench.push(ahead, Stream().nop());
    expect_ring_error(bench, ahead, "a tail more than a ring ahead");
    Bench::Queue crooked = bench.queue(4, 0);
    enpu_ring_entry entry{bench.buffer(16).va, 24, 0, 1, 0};
    bench.push_entry(crooked, entry, true);
    expect_ring_error(bench, crooked, "cmd_bytes of 24");
    // A faulted queue takes nothing more, others go on.
    Bench::Queue fine = bench.queue(5, 0);
    bench.await_fence(fine, bench.push(fine, Stream().nop()), "NOP beside faulted queues");
}

// A queue that is disabled and enabled again goes on where it stood.
void check_stop(Bench& bench) {
    bench.set_up();
    Bench::Queue queue = bench.queue(6, 0);
    bench.await_fence(queue, bench.push(queue, Stream().nop()), "NOP");
    bench.disable(queue);
    require_equal("QUEUE_HEAD of a disabled queue", bench.read64(ENPU_REG_QUEUE_HEAD(6)), 1);
    const uint64_t fence = bench.push(queue, Stream().nop());
    require(!bench.soon([&] { return bench.fence(queue) >= fence; }, 20),
            "a disabled queue ran a job");
    bench.write32(ENPU_REG_QUEUE_CTRL(6), ENPU_QUEUE_CTRL_ENABLE |
                                              ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_RING_LOG2, 4u) |
                                              ENPU_FIELD_PREP(ENPU_QUEUE_CTRL_AS, Bench::kAs));
    bench.kick(queue);
    bench.await_fence(queue, fence, "entry written while the queue was disabled");
}

void run(Bench& bench) {
    check_wrap(bench, 2);
    check_wrap(bench, 5);
    check_depth(bench, 2);
    check_depth(bench, 8);
    check_refusals(bench);
    check_stop(bench);
}

}  // namespace

const Stage kRing = {"ring", "rings of every size wrap, fill up, keep their order, refuse nonsense",
                     "index not reduced modulo the ring, off by one at the wrap or when full, "
                     "completion record in the wrong place, tail read before the entry",
                     run, nullptr};

}  // namespace enpu::bringup
