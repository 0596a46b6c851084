// SPDX-License-Identifier: GPL-2.0-only
/* copy_struct_to_user(): v6.13 */
#include <linux/uaccess.h>

int probe(void __user *dst, size_t size, const void *src);
int probe(void __user *dst, size_t size, const void *src)
{
	return copy_struct_to_user(dst, size, src, 8, NULL);
}
