// SPDX-License-Identifier: MIT
// One compiled set of shapes: memory and a runtime graph that is launched again and again.
#ifndef ENPU_LOWERING_PROGRAM_H
#define ENPU_LOWERING_PROGRAM_H

#include "session.h"

namespace enpu::lowering {

struct Program {
    // Allocates the arena, uploads what constants are new, encodes. Throws Error.
    Program(DeviceSession& session, Plan lowered);
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void* address(const View& view) const;

    Plan plan;
    std::vector<std::pair<size_t, void*>> inputs;  // number of the input, where it goes
    rt_graph_exec exec = nullptr;                  // NULL when there is no kernel

  private:
    rt_operand operand(DeviceSession& session, const View& view);
    void encode(DeviceSession& session);
    rt_stream stream_;
    void* arena_ = nullptr;
};

}  // namespace enpu::lowering
#endif
