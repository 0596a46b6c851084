// SPDX-License-Identifier: MIT
#include "bench.h"
#include "lib/output.h"
#include "list.h"

namespace enpu::bringup {
namespace {

using tools::format;

void run(Bench& bench) {
    const uint32_t id = bench.read32(ENPU_REG_ID);
    require(id != ~0u, "ID reads as all ones: nothing answers behind BAR 0");
    require(id != 0,
            "ID reads as zero: the access does not reach the device, or has the wrong width");
    require_equal("ID", id, ENPU_MAGIC);
    const uint32_t version = bench.read32(ENPU_REG_VERSION);
    require_equal("VERSION.MAJOR", ENPU_FIELD_GET(ENPU_VERSION_MAJOR, version),
                  ENPU_HW_VERSION_MAJOR);
    const uint32_t cores = bench.compute_engines(), engines = bench.engines();
    require(cores >= 1 && engines > cores && engines <= ENPU_MAX_ENGINES,
            format("CAP_ENGINES says %u compute and %u copy engines", cores, engines - cores));
    const uint32_t limits = bench.read32(ENPU_REG_CAP_LIMITS);
    const uint32_t queues = ENPU_FIELD_GET(ENPU_CAP_LIMITS_QUEUES, limits);
    const uint32_t spaces = ENPU_FIELD_GET(ENPU_CAP_LIMITS_AS, limits);
    require(queues >= engines && queues <= ENPU_MAX_QUEUES,
            format("CAP_LIMITS.QUEUES is %u for %u engines", queues, engines));
    require(spaces >= 2 && spaces <= ENPU_MAX_AS, format("CAP_LIMITS.AS is %u", spaces));
    require(bench.vectors() > engines && bench.vectors() <= ENPU_MAX_VECTORS,
            format("CAP_MISC.VECTORS is %u for %u engines", bench.vectors(), engines));
    require_equal("CAP_MISC.VA_BITS",
                  ENPU_FIELD_GET(ENPU_CAP_MISC_VA_BITS, bench.read32(ENPU_REG_CAP_MISC)),
                  ENPU_VA_BITS);
    require_equal("LOCAL_MEM_SIZE", bench.read64(ENPU_REG_LOCAL_MEM_SIZE),
                  bench.device().local().size());
    const uint64_t first = bench.read64(ENPU_REG_TIMESTAMP);
    bench.await("TIMESTAMP moving on", [&] { return bench.read64(ENPU_REG_TIMESTAMP) > first; });
}

}  // namespace

const Stage kIdentity = {
    "identity", "the register BAR answers, and says what the device is and has",
    "BAR 0 not mapped or not enabled; wrong device; registers in the wrong byte order or width",
    run, nullptr};

}  // namespace enpu::bringup
