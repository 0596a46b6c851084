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
    // From now on the buffer is this memory; NULL: its place in the arena. Blocks for launches in
    // flight when that is a change.
    void bind(int buffer, void* memory);
    // The buffer's place in the arena gets what is in host memory.
    void copy_in(rt_stream stream, int buffer, const void* from, uint64_t bytes);
    // Whether the view is a whole buffer that kernels write: it can be bound to an output.
    bool is_whole_temporary(const View& view) const;

    Plan plan;
    std::vector<std::pair<size_t, int>> inputs;  // number of the input, its buffer
    rt_graph_exec exec = nullptr;                // NULL when there is no kernel
    rt_event finished = nullptr;  // of the last run on device memory, which reads the arena

  private:
    struct Use {  // an operand inside a buffer
        rt_node node;
        uint32_t operand;
        int64_t offset;  // bytes
    };
    rt_operand operand(DeviceSession& session, const View& view);
    void encode(DeviceSession& session);
    void release();
    rt_stream stream_;
    void* arena_ = nullptr;
    std::vector<void*> bound_;            // by buffer; NULL: in the arena
    std::vector<std::vector<Use>> uses_;  // by buffer
};

}  // namespace enpu::lowering
#endif
