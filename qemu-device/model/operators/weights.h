// SPDX-License-Identifier: MIT
// Brings the weights of a convolution, plain or packed, into the layout that its kernel wants.
#pragma once

#include "conv_kernel.h"
#include "packed.h"
#include "scratch.h"
#include "strided.h"

namespace enpu::ops {

// Copies weights between oneDNN layouts in tiles. In no arena.
Outcome reorder_weights(Progress& progress, const dnnl::memory::desc& from, const void* source,
                        const dnnl::memory::desc& to, void* target);

class ConvWeights {
  public:
    // Looks at the operand: gathers plain weights that are strided or not f32. kBadOperand when a
    // packed buffer is not for this convolution.
    Outcome open(Progress& progress, const Operand& weights, uint32_t operand, uint32_t groups);
    // The weights in `layout`; reorders when they have another one. The pointer lives as long as
    // this object, until the next call.
    Outcome as(Progress& progress, const dnnl::memory::desc& layout, const float*& weights);

    // Plain weights: gathered and less their zero point when they are not dense f32 as they are.
    Outcome gather(Progress& progress, const View& from, uint32_t groups, int32_t zero_point = 0);

    // They are row-major f32.
    bool is_row_major() const;
    // The weights of one group as a row-major matrix [o, c * kh * kw].
    Outcome as_matrix(Progress& progress, const float*& weights);
    // Writes them to `target` in `layout`.
    Outcome write(Progress& progress, const dnnl::memory::desc& layout, void* target) const {
        return reorder_weights(progress, desc_, data_, layout, target);
    }

  private:
    dnnl::memory::desc desc_;
    const float* data_ = nullptr;
    dnnl::memory::desc reordered_desc_;
    Scratch gathered_, reordered_;
};

}  // namespace enpu::ops
