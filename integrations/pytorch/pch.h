// SPDX-License-Identifier: MIT
// Precompiled: PyTorch's headers take longer than our code.
#include <ATen/ATen.h>
#include <torch/library.h>
