/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Looking into an address space for a dump: without waiting, without allocating.
 */
#ifndef ENPU_PEEK_H
#define ENPU_PEEK_H

#include <linux/types.h>
#include <drm/enpu_dump.h>

struct enpu_vm;

bool enpu_vm_try_lock(struct enpu_vm *vm);
size_t enpu_vm_read(struct enpu_vm *vm, u64 va, void *to, size_t bytes);
void enpu_vm_walk(struct enpu_vm *vm, u64 va, struct enpu_dump_walk *walk);

#endif
