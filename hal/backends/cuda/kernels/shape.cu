// SPDX-License-Identifier: MIT
#include "launch.cuh"
#include "shape.h"

ENPU_ELEMENT_KERNEL(enpu_select, SelectArgs, run_select)
ENPU_ELEMENT_KERNEL(enpu_move, MoveArgs, run_move)
ENPU_ELEMENT_KERNEL(enpu_pad, PadArgs, run_pad)
ENPU_ELEMENT_KERNEL(enpu_gather, GatherArgs, run_gather)
ENPU_ELEMENT_KERNEL(enpu_resize, ResizeArgs, run_resize)
ENPU_ELEMENT_KERNEL(enpu_pool, PoolArgs, run_pool)
