// SPDX-License-Identifier: GPL-2.0-only
/* drm_fdinfo_print_size(): v6.14 */
#include <drm/drm_file.h>

void probe(struct drm_printer *p);
void probe(struct drm_printer *p)
{
	drm_fdinfo_print_size(p, "drm", "total", "host", 0);
}
