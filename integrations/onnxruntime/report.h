// SPDX-License-Identifier: MIT
// What ran where: for people and for tests.
#ifndef ENPU_ORT_REPORT_H
#define ENPU_ORT_REPORT_H

#include <string>
#include <vector>

#include "session.h"

namespace enpu::ort {

struct LeftOut {
    std::string name, op, reason;
};

struct Report {
    size_t nodes_total = 0;
    size_t nodes_npu = 0;
    size_t subgraphs = 0;
    std::vector<LeftOut> left_out;
    rt_counters before{},
        after{};  // around the last Run; of the device itself where it has counters
};

std::string to_json(const Report& report, rt_device device,
                    const std::vector<lowering::ExecutableStats>& programs, uint64_t weight_bytes);
// Replaces the file whole. Throws lowering::Error.
void write_file(const std::string& path, const std::string& text);

}  // namespace enpu::ort
#endif
