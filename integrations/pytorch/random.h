// SPDX-License-Identifier: MIT
// The device draws no random numbers: its generator runs on the host, and the numbers are copied.
#ifndef ENPU_PYTORCH_RANDOM_H
#define ENPU_PYTORCH_RANDOM_H

#include <ATen/ATen.h>

namespace enpu::pytorch {

const at::Generator& default_generator();
at::Generator new_generator();

}  // namespace enpu::pytorch
#endif
