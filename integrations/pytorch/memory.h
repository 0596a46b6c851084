// SPDX-License-Identifier: MIT
// Storages of device memory, and pinned host memory.
#ifndef ENPU_PYTORCH_MEMORY_H
#define ENPU_PYTORCH_MEMORY_H

#include "device.h"

namespace enpu::pytorch {

// Gives a storage another size; what fits of the contents is kept.
void resize_storage(c10::StorageImpl* storage, size_t bytes);

// Host memory that the engines reach; freeing it waits for all work in flight.
c10::Allocator* pinned_allocator();
bool is_pinned(const void* data);

}  // namespace enpu::pytorch
#endif
