// SPDX-License-Identifier: MIT
#include "registers.h"

#include <catch2/catch_test_macros.hpp>

#include "enpu_hw_tables.h"
#include "failure.h"
#include "register_sources.h"

namespace enpu::tools {
namespace {

std::string failure_of(const std::string& name) {
    try {
        find_register(name);
    } catch (const Failure& failure) {
        return failure.what();
    }
    return "";
}

}  // namespace

TEST_CASE("registers are found by name, index, field and offset") {
    REQUIRE(find_register("CTRL").reg.offset() == ENPU_REG_CTRL);
    REQUIRE(find_register("queue_ctrl[255]").reg.offset() == ENPU_REG_QUEUE_CTRL(255));
    REQUIRE(find_register("0x1108").reg.name() == "ENGINE_QUEUE[1]");
    REQUIRE(find_register("QUEUE_CTRL[3].AS").field->mask == ENPU_QUEUE_CTRL_AS);
}

TEST_CASE("a name that does not exist is refused with what is near it") {
    REQUIRE(failure_of("ENGINE_STAT").find("ENGINE_STATUS") != std::string::npos);
    REQUIRE(failure_of("CTRL.FOO").find("ENABLE") != std::string::npos);
    REQUIRE(failure_of("AS_ROOT[64]").find("0 to 63") != std::string::npos);
    REQUIRE(failure_of("AS_ROOT[x]") != "");
    REQUIRE(failure_of("0x2") != "");
}

TEST_CASE("every register of the data sheet has a name that leads back to it") {
    for (const Register& reg : all_registers()) {
        INFO(reg.name());
        REQUIRE(find_register(reg.name()).reg.offset() == reg.offset());
    }
}

TEST_CASE("fields are decoded, enumerations by name") {
    const Register status = find_register("QUEUE_STATUS[0]").reg;
    REQUIRE(decode(status, 0x304) == "STATE=FAULTED ERROR=MMU_FAULT");
    REQUIRE(decode(find_register("AS_ROOT").reg, 0x12345001) == "VALID=1 ADDR=0x12345000");
    REQUIRE(decode(find_register("FAULT_KIND").reg, 1) == "ENGINE_HANG");
    REQUIRE(decode(find_register("SCRATCH").reg, 1).empty());
    REQUIRE(parse_value("wait_timeout", find_register("QUEUE_STATUS[0].ERROR")) ==
            ENPU_STATUS_WAIT_TIMEOUT);
    REQUIRE_FALSE(parse_value("-1", find_register("SCRATCH")));
}

TEST_CASE("the simulator's registers are those of its options") {
    const auto file = open_registers("sim:cores=3,copy-engines=1,local-mem=4M");
    REQUIRE(file->read(find_register("ID").reg) == ENPU_MAGIC);
    REQUIRE(decode(find_register("CAP_ENGINES").reg, file->read(ENPU_REG_CAP_ENGINES, 4)) ==
            "CORES=3 COPY=1 THREADS=1");
    REQUIRE(file->read(ENPU_REG_LOCAL_MEM_SIZE, 8) == 4 << 20);
    unsigned engines = 0;
    for (const Register& reg : registers_of(*file, true))
        engines += reg.info->name == std::string("ENGINE_CTRL");
    REQUIRE(engines == 4);
    file->write(find_register("SCRATCH").reg, 0x1234);
    REQUIRE(file->read(find_register("SCRATCH").reg) == 0x1234);
    REQUIRE_THROWS_AS(open_registers("sim:cores=99"), Failure);
    REQUIRE_THROWS_AS(open_registers("/nonexistent/file"), Failure);
}

}  // namespace enpu::tools
