// SPDX-License-Identifier: MIT
// A primitive of oneDNN together with the objects that it is called with. Making those anew for each call costs as much
// as a small kernel.
#pragma once

#include <initializer_list>
#include <memory>
#include <utility>

#include "onednn.h"

namespace enpu::ops {

class PreparedCall {
  public:
    using Arguments = std::initializer_list<std::pair<int, dnnl::memory::desc>>;

    PreparedCall();
    // Arguments are DNNL_ARG_… with what lies there; those without bytes are left out.
    PreparedCall(const dnnl::primitive& primitive, Arguments arguments);
    ~PreparedCall();
    PreparedCall(PreparedCall&&) noexcept;
    PreparedCall& operator=(PreparedCall&&) noexcept;

    // Runs it to its end, with a pointer for each argument in the order they were given. In an arena; several threads at
    // once may. Throws dnnl::error.
    void run(std::initializer_list<const void*> pointers) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace enpu::ops
