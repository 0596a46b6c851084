// SPDX-License-Identifier: MIT
// A stage of the bring-up: what it proves, what is likely wrong when it fails, and the steps. Stages
// build on those before them, so the first that fails is the one to look at.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace enpu::bringup {

class Bench;
class Machine;

// The step at which a stage failed: what was expected and what was found.
class StageFailure : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};
// This device or this way down cannot run the stage; the sentence says why.
class StageSkipped : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

void require(bool holds, const std::string& otherwise);
// Fails with "WHAT is 0x…, must be 0x…".
void require_equal(const std::string& what, uint64_t found, uint64_t expected);

struct Stage {
    const char* name;
    const char* proves;
    const char* causes;  // likely ones of a failure
    // Below any driver, on registers, rings and page tables of the harness's own; NULL: needs none.
    void (*bare)(Bench& bench);
    // On jobs, whatever runs them: the harness's own rings, or a driver. NULL: does not apply.
    void (*jobs)(Machine& machine);
};

// All stages in their order.
const std::vector<Stage>& stages();

}  // namespace enpu::bringup
