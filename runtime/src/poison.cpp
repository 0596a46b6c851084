// SPDX-License-Identifier: MIT
#include "poison.h"

#include <algorithm>

#include "profile.h"

namespace enpu::rt {
namespace {

rt_status fill(rt_stream_impl& stream, void* pointer, uint64_t bytes, uint64_t pattern,
               const char* origin) {
    enpu_hal_command command{};
    command.kind = ENPU_HAL_COMMAND_FILL;
    RT_TRY(stream.device->resolve(pointer, bytes, origin, "block", command.u.fill.dst));
    command.u.fill.bytes = bytes;
    command.u.fill.pattern = pattern;
    command.u.fill.pattern_bytes = 8;
    return stream.enqueue({&command, 1, nullptr, "poison", origin, nullptr}, nullptr);
}

rt_status check_untouched(rt_stream_impl& stream, void* pointer, const Pool::BlockState& block,
                          const char* origin) {
    std::vector<uint64_t> words(block.bytes / 8);
    RT_TRY(rt_memcpy_d2h(&stream, words.data(), pointer, block.bytes));
    const auto wrong = std::find_if(words.begin(), words.end(),
                                    [](uint64_t word) { return word != kFreedPattern; });
    if (wrong == words.end()) return RT_OK;
    return make_status(
        RT_FAILED_PRECONDITION, origin,
        "use after free: a block of %llu bytes at %p, freed by %s, was written afterwards: the "
        "8 bytes at offset %llu are 0x%016llx, poison is 0x%016llx",
        static_cast<unsigned long long>(block.bytes), pointer, block.freed_by,
        static_cast<unsigned long long>(8 * (wrong - words.begin())),
        static_cast<unsigned long long>(*wrong), static_cast<unsigned long long>(kFreedPattern));
}

rt_status prepare(rt_stream_impl& stream, void* pointer, const char* origin) {
    Pool& pool = *stream.device->pool;
    const Pool::BlockState block = pool.state(pointer);
    pool.mark_poisoned(pointer, false, "");
    if (block.poisoned) RT_TRY(check_untouched(stream, pointer, block, origin));
    return fill(stream, pointer, block.bytes, kFreshPattern, origin);
}

}  // namespace

rt_status allocate_block(rt_stream_impl& stream, uint64_t bytes, const char* origin,
                         void** pointer) {
    rt_device_impl& device = *stream.device;
    RT_TRY(device.pool->allocate(stream.cache, bytes, stream.timeout_ns, pointer));
    if (profile::on(RT_PROFILE_MEMORY)) [[unlikely]]
        profile::note_memory(device);
    if (!device.poison.load(std::memory_order_relaxed)) [[likely]]
        return RT_OK;
    rt_status status = prepare(stream, *pointer, origin);
    if (status) {
        static const std::vector<Point> kNone;
        rt_status_free(stream.free_block(*pointer, kNone, origin));
        *pointer = nullptr;
    }
    return status;
}

void poison_freed(rt_stream_impl& stream, void* pointer, const char* origin) {
    Pool& pool = *stream.device->pool;
    const Pool::BlockState block = pool.state(pointer);
    if (block.bytes == 0) return;  // a wrong free: the pool says why
    rt_status status = fill(stream, pointer, block.bytes, kFreedPattern, origin);
    // On a stream that takes no work the block just stays unmarked.
    if (!status) pool.mark_poisoned(pointer, true, origin);
    rt_status_free(status);
}

}  // namespace enpu::rt

using namespace enpu::rt;

rt_status rt_pool_set_poison(rt_device device, uint32_t on) {
    RT_NOT_NULL(device);
    if (on > 1) return make_status(RT_INVALID_ARGUMENT, __func__, "on is %u, must be 0 or 1", on);
    device->poison.store(on != 0);
    return RT_OK;
}
