// SPDX-License-Identifier: MIT
// The kernels on the host: the same functions as on a GPU, thread by thread.
#pragma once

#include "kernels.h"

namespace enpu::hal::cuda {

// Runs all threads of a launch; addresses in its arguments are host pointers.
void run_on_host(const KernelCall& call);

}  // namespace enpu::hal::cuda
