// SPDX-License-Identifier: GPL-2.0-only
/* drm_sched_fini() cancels what is left: v6.17 */
#include <drm/gpu_scheduler.h>

void probe(struct drm_sched_backend_ops *ops);
void probe(struct drm_sched_backend_ops *ops)
{
	ops->cancel_job = NULL;
}
