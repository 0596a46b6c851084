/* SPDX-License-Identifier: MIT */
/*
 * The oneDNN library of the Python wheel was linked against its compiler's run-time libraries, of which it uses two functions; the rest is
 * the C library's own mathematics. These two make it load without them.
 */
#include <stddef.h>
#include <string.h>

void *_intel_fast_memcpy(void *to, const void *from, size_t bytes);
void *_intel_fast_memset(void *to, int value, size_t bytes);

void *_intel_fast_memcpy(void *to, const void *from, size_t bytes)
{
	return memcpy(to, from, bytes);
}

void *_intel_fast_memset(void *to, int value, size_t bytes)
{
	return memset(to, value, bytes);
}
