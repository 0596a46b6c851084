// SPDX-License-Identifier: MIT
#include <cstring>

#include "enpu_hw_tables.h"
#include "lib/output.h"
#include "lib/registers.h"
#include "list.h"
#include "machine.h"

namespace enpu::bringup {
namespace {

using tools::format;

void check_order(Machine& machine) {
    const Memory m = machine.allocate(4096, false);
    auto* words = m.as<uint64_t>();
    // Each packet needs what the one before it wrote.
    Stream stream;
    stream.signal(m.va, 1).copy(m.va + 8, m.va, 8).fill(m.va + 16, 8, 3, 8).barrier();
    stream.copy(m.va + 24, m.va + 8, 16).wait(m.va + 32, 3, 1'000'000).signal(m.va + 40, 4);
    machine.must_run("SIGNAL, COPY, FILL, BARRIER, COPY, WAIT, SIGNAL", machine.copy_engine(),
                     stream);
    for (const auto& [index, want] : {std::pair{0, 1}, {1, 1}, {2, 3}, {3, 1}, {4, 3}, {5, 4}})
        require_equal(format("word %d after a chain of packets", index), words[index],
                      static_cast<uint64_t>(want));
}

void check_timestamps(Machine& machine) {
    const Memory m = machine.allocate(4096, false);
    machine.must_run("TIMESTAMPs", machine.copy_engine(),
                     Stream().timestamp(m.va).nop().timestamp(m.va + 8).timestamp(m.va + 16));
    const auto* t = m.as<uint64_t>();
    require(t[0] != 0 && t[0] <= t[1] && t[1] <= t[2],
            format("timestamps in order are %llu, %llu, %llu", (unsigned long long)t[0],
                   (unsigned long long)t[1], (unsigned long long)t[2]));
}

// One engine waits for what another one signals later.
void check_semaphore(Machine& machine) {
    const Memory m = machine.allocate(4096, false);
    const uint64_t waiter =
        machine.submit(0, Stream().wait(m.va, 5, 20'000'000).signal(m.va + 8, 1));
    machine.must_run("SIGNAL that is too small", machine.copy_engine(), Stream().signal(m.va, 4));
    require_equal("word of a waiter before its time", m.as<volatile uint64_t>()[1], 0);
    machine.must_run("SIGNAL that is awaited", machine.copy_engine(), Stream().signal(m.va, 5));
    const Outcome outcome = machine.wait(waiter);
    require(outcome.status == ENPU_STATUS_OK, "WAIT across engines: " + outcome.sentence);
    require_equal("word behind the WAIT", m.as<uint64_t>()[1], 1);
}

void expect(Machine& machine, const std::string& step, const Stream& stream, uint32_t status,
            uint32_t packet) {
    const Outcome outcome = machine.run(machine.copy_engine(), stream);
    require(outcome.status == status,
            format("%s: status is %s, must be %s", step.c_str(),
                   tools::name_of(enpu_status_names, outcome.status).c_str(),
                   tools::name_of(enpu_status_names, status).c_str()));
    require_equal(step + ": packet that is blamed", outcome.packet, packet);
}

void check_refusals(Machine& machine) {
    const Memory m = machine.allocate(4096, false);
    enpu_packet unknown{63, 0, 16, 0}, flagged{ENPU_OPCODE_NOP, 1, 16, 0};
    enpu_packet odd{ENPU_OPCODE_NOP, 0, 24, 0};
    expect(machine, "unknown opcode", Stream().nop().raw(&unknown, 16), ENPU_STATUS_ILLEGAL_PACKET,
           16);
    expect(machine, "flags that are not 0", Stream().nop().nop().raw(&flagged, 16),
           ENPU_STATUS_ILLEGAL_PACKET, 32);
    expect(machine, "size that is no multiple of 16", Stream().raw(&odd, 16).nop(),
           ENPU_STATUS_ILLEGAL_PACKET, 0);
    expect(machine, "FILL of a crooked size", Stream().fill(m.va, 9, 0, 8),
           ENPU_STATUS_ILLEGAL_PACKET, 0);
    expect(machine, "operator on a copy engine",
           Stream().operation(ENPU_OPCODE_MOVE, nullptr, 0, {enpu_tensor{}, enpu_tensor{}}),
           ENPU_STATUS_UNSUPPORTED, 0);
    expect(machine, "WAIT that nobody satisfies", Stream().nop().wait(m.va, 1, 1000),
           ENPU_STATUS_WAIT_TIMEOUT, 16);
    // What is in front of a bad packet has run, what is behind it has not.
    const Outcome outcome = machine.run(
        machine.copy_engine(), Stream().signal(m.va + 8, 1).raw(&unknown, 16).signal(m.va + 16, 1));
    require_equal("status of a bad packet between good ones", outcome.status,
                  ENPU_STATUS_ILLEGAL_PACKET);
    require_equal("word in front of a bad packet", m.as<uint64_t>()[1], 1);
    require_equal("word behind a bad packet", m.as<uint64_t>()[2], 0);
    machine.must_run("a job after failed ones", machine.copy_engine(), Stream().nop());
}

void jobs(Machine& machine) {
    machine.release();
    check_order(machine);
    check_timestamps(machine);
    check_semaphore(machine);
    check_refusals(machine);
    machine.release();
}

}  // namespace

const Stage kPackets = {
    "packets", "control packets in their order, semaphores across engines, refusal of bad packets",
    "packets that overtake each other, WAIT that compares wrongly or is never looked at again, "
    "checks left out, the wrong packet blamed",
    nullptr, jobs};

}  // namespace enpu::bringup
