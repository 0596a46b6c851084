// SPDX-License-Identifier: GPL-2.0-only
/* drm_sched_job_init() takes the client id: v6.17, 6.12.103 */
#include <drm/gpu_scheduler.h>

int probe(struct drm_sched_job *job, struct drm_sched_entity *entity);
int probe(struct drm_sched_job *job, struct drm_sched_entity *entity)
{
	return drm_sched_job_init(job, entity, 1, NULL, 1ull);
}
