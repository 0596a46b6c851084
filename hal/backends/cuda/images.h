// SPDX-License-Identifier: MIT
// The fat binaries that nvcc made of kernels/*.cu; none when it was not there.
#pragma once

#include <span>

namespace enpu::hal::cuda {

std::span<const void* const> kernel_images();

}  // namespace enpu::hal::cuda
