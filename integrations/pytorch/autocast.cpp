// SPDX-License-Identifier: MIT
// torch.autocast("enpu"): PyTorch's own lists of what runs in f16 or bf16 and what stays in f32.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {  // PyTorch's registration macros name things of this namespace
namespace {

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFallthrough());
}

#define ENPU_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define ENPU_F32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define ENPU_F32_OPTION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define ENPU_PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
    AT_FORALL_LOWER_PRECISION_FP(ENPU_LOWER)
    AT_FORALL_FP32(ENPU_F32)
    AT_FORALL_FP32_SET_OPT_DTYPE(ENPU_F32_OPTION)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
    AT_FORALL_PROMOTE(ENPU_PROMOTE)
    KERNEL_PRIVATEUSEONE(cat, promote)
    KERNEL_PRIVATEUSEONE(stack, promote)
}

}  // namespace
}  // namespace at::autocast
