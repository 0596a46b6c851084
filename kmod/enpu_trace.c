// SPDX-License-Identifier: GPL-2.0-only
#include "enpu_ctx.h"
#include "enpu_device.h"
#include "enpu_job.h"
#include "enpu_queue.h"

#define CREATE_TRACE_POINTS
#include "enpu_trace.h"
