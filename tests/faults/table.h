// SPDX-License-Identifier: MIT
// What is promised for each fault. docs/reliability.md explains the columns.
#pragma once

#include <cerrno>
#include <string>
#include <vector>

namespace enpu::faults {

enum class Heal { kNothing, kBusReset };

struct Fault {
    const char* name;    // of the row
    const char* kind;    // of the device's counter that must rise
    const char* inject;  // text for inject_fault
    // Clients whose jobs fail, at most and at least, with one of these errors.
    unsigned least_victims, most_victims;
    std::vector<int> errors;
    // Detected: this counter of the driver rises, or a job fails; nullptr and no victims: nothing
    // to detect, the fault is harmless. Within this time after it fired.
    const char* counter;
    int limit_ms;
    // Other traffic can make up for the fault before anyone needs to notice: that is as good.
    bool absorbed;
    bool dump;  // a device dump is written
    Heal heal;
    const char* log;  // expressions of error messages that are expected, one a line
};

inline const std::vector<Fault>& faults() {
    static const char kWedged[] = "does not answer a reset\nnot answer";
    // The slack on the limits is for a host that emulates the guest and is busy with other things.
    static const std::vector<Fault> table = {
        // A device that is lost ends every context; who is about to submit gets ENOTRECOVERABLE.
        // name, kind, inject / least and most victims, errors, counter, limit, absorbed, dump, heal, log
        // clang-format off
        {"engine-hang", "engine-hang", "engine-hang",
            1, 1, {-ETIMEDOUT}, "hangs", 3000, false, true, Heal::kNothing, ""},
        {"engine-slow", "engine-slow", "engine-slow:times=5:arg=20000000",
            0, 0, {}, nullptr, 0, true, false, Heal::kNothing, ""},
        {"irq-lost", "irq-lost", "irq-lost",
            0, 0, {}, "lost_interrupts", 2500, true, false, Heal::kNothing, ""},
        {"irq-repeated", "irq-repeated", "irq-repeated:times=20",
            0, 0, {}, nullptr, 0, true, false, Heal::kNothing, ""},
        {"irq-spurious", "irq-spurious", "irq-spurious:times=20",
            0, 0, {}, nullptr, 0, true, false, Heal::kNothing, ""},
        {"irq-storm", "irq-storm", "irq-storm:arg=20000",
            0, 0, {}, "irq_storms", 2500, true, false, Heal::kNothing, ""},
        {"completion-delayed", "completion-delayed", "completion-delayed:arg=300000000",
            0, 0, {}, nullptr, 0, true, false, Heal::kNothing, ""},
        {"completion-corrupted", "completion-corrupted", "completion-corrupted",
            1, 1, {-EREMOTEIO}, nullptr, 1500, false, false, Heal::kNothing, ""},
        {"fence-corrupted", "fence-corrupted", "fence-corrupted",
            0, 0, {}, "bad_fences", 3000, true, false, Heal::kNothing, ""},
        {"ecc-corrected", "ecc-corrected", "ecc-corrected",
            0, 0, {}, "ecc_corrected", 1500, false, false, Heal::kNothing, ""},
        {"ecc-uncorrected", "ecc-uncorrected", "ecc-uncorrected",
            1, 1, {-EREMOTEIO}, "faults", 1500, false, true, Heal::kNothing, ""},
        {"dma-read", "dma-read", "dma-read",
            1, 1, {-EREMOTEIO}, "faults", 1500, false, true, Heal::kNothing, ""},
        {"dma-write", "dma-write", "dma-write",
            1, 1, {-EREMOTEIO}, "faults", 1500, false, true, Heal::kNothing, ""},
        {"mmu-fault", "mmu-fault", "mmu-fault",
            1, 1, {-EFAULT}, "faults", 1500, false, true, Heal::kNothing, ""},
        {"illegal-packet", "illegal-packet", "illegal-packet",
            1, 1, {-EBADMSG}, "faults", 1500, false, true, Heal::kNothing, ""},
        {"doorbell-ignored", "doorbell-ignored", "doorbell-ignored",
            0, 0, {}, nullptr, 0, true, false, Heal::kNothing, ""},
        {"local-exhausted", "local-exhausted", "local-exhausted",
            1, 1, {-ENOMEM}, "faults", 1500, false, true, Heal::kNothing, ""},
        {"tlb-stuck", "tlb-stuck", "tlb-stuck",
            0, 8, {-ESTALE}, "device_resets", 9000, false, true, Heal::kNothing, "TLB invalidation of address space"},
        {"reset-fails-once", "reset-fails", "reset-fails;engine-hang",
            1, 8, {-ETIMEDOUT, -ESTALE}, "device_resets", 6000, false, true, Heal::kNothing, ""},
        {"reset-fails-always", "reset-fails", "reset-fails:times=always;engine-hang",
            1, 8, {-ETIMEDOUT, -EIO, -ENODEV, -ECANCELED, -ESTALE, -ENOTRECOVERABLE}, "failed_resets", 12000, false, true, Heal::kBusReset, kWedged},
        {"removed", "removed", "removed:after=20:arg=400000000",
            1, 8, {-EIO, -ENODEV, -ECANCELED, -ETIMEDOUT, -ENOTRECOVERABLE}, nullptr, 3000, false, false, Heal::kBusReset, "not answer\ngone\nremoved\nreads? as ones\ndoes not leave"},
        // clang-format on
    };
    return table;
}

// What happens to the device besides, once the fault was noticed.
enum class Upset { kNone, kBusReset, kSuspend };

struct Workload {
    const char* name;
    std::vector<std::string> clients;
    Upset upset;
};

inline const std::vector<Workload>& workloads() {
    static const std::vector<Workload> table = {
        {"copy", {"copy", "copy"}, Upset::kNone},
        {"model", {"model", "model"}, Upset::kNone},
        {"processes", {"copy", "model", "copy", "model"}, Upset::kNone},
        {"prime", {"share", "copy", "share"}, Upset::kNone},
        {"bus-reset", {"copy", "model"}, Upset::kBusReset},
        {"suspend", {"copy", "model", "share"}, Upset::kSuspend},
    };
    return table;
}

}  // namespace enpu::faults
