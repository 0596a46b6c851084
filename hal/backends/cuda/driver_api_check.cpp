// SPDX-License-Identifier: MIT
// Our declarations of the driver API against those of the CUDA toolkit. Compiled where there is
// one; nothing of it is linked.
#include <cuda.h>
#include <cudaTypedefs.h>

#include "driver_api.h"

namespace enpu::hal::cuda {
namespace {

#define SAME(ours, theirs) static_assert(int(ours) == int(theirs), #ours " and " #theirs)
SAME(kSuccess, CUDA_SUCCESS);
SAME(kInvalidValue, CUDA_ERROR_INVALID_VALUE);
SAME(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME(kNotInitialized, CUDA_ERROR_NOT_INITIALIZED);
SAME(kDeinitialized, CUDA_ERROR_DEINITIALIZED);
SAME(kStubLibrary, CUDA_ERROR_STUB_LIBRARY);
SAME(kDeviceUnavailable, CUDA_ERROR_DEVICE_UNAVAILABLE);
SAME(kNoDevice, CUDA_ERROR_NO_DEVICE);
SAME(kInvalidDevice, CUDA_ERROR_INVALID_DEVICE);
SAME(kInvalidImage, CUDA_ERROR_INVALID_IMAGE);
SAME(kInvalidContext, CUDA_ERROR_INVALID_CONTEXT);
SAME(kNoBinaryForGpu, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(kEccUncorrectable, CUDA_ERROR_ECC_UNCORRECTABLE);
SAME(kNotFound, CUDA_ERROR_NOT_FOUND);
SAME(kNotReady, CUDA_ERROR_NOT_READY);
SAME(kIllegalAddress, CUDA_ERROR_ILLEGAL_ADDRESS);
SAME(kLaunchOutOfResources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME(kHostMemoryAlreadyRegistered, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
SAME(kLaunchFailed, CUDA_ERROR_LAUNCH_FAILED);
SAME(kNotSupported, CUDA_ERROR_NOT_SUPPORTED);
SAME(kStreamCaptureInvalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
SAME(kGraphExecUpdateFailure, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
SAME(kUnknown, CUDA_ERROR_UNKNOWN);
SAME(kContextBlockingSync, CU_CTX_SCHED_BLOCKING_SYNC);
SAME(kStreamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(kEventDefault, CU_EVENT_DEFAULT);
SAME(kHostPortable, CU_MEMHOSTALLOC_PORTABLE);
SAME(kHostPortable, CU_MEMHOSTREGISTER_PORTABLE);
SAME(kHostDeviceMap, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(kHostDeviceMap, CU_MEMHOSTREGISTER_DEVICEMAP);
SAME(kMemoryTypeUnified, CU_MEMORYTYPE_UNIFIED);
SAME(kCaptureRelaxed, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(kMaxPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH);
SAME(kMultiprocessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(kAsyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT);
SAME(kUnifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME(kComputeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(kComputeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(kHostRegisterSupported, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED);
SAME(kMemoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME(kReleaseThreshold, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME(kReservedNow, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
SAME(kUsedNow, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
SAME(1, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(1, CU_MEM_LOCATION_TYPE_DEVICE);

#define SAME_FIELD(ours, our_field, theirs, their_field) \
    static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field), #our_field)
static_assert(sizeof(Copy2D) == sizeof(CUDA_MEMCPY2D));
SAME_FIELD(Copy2D, src_type, CUDA_MEMCPY2D, srcMemoryType);
SAME_FIELD(Copy2D, src_device, CUDA_MEMCPY2D, srcDevice);
SAME_FIELD(Copy2D, src_pitch, CUDA_MEMCPY2D, srcPitch);
SAME_FIELD(Copy2D, dst_x, CUDA_MEMCPY2D, dstXInBytes);
SAME_FIELD(Copy2D, dst_type, CUDA_MEMCPY2D, dstMemoryType);
SAME_FIELD(Copy2D, dst_device, CUDA_MEMCPY2D, dstDevice);
SAME_FIELD(Copy2D, dst_pitch, CUDA_MEMCPY2D, dstPitch);
SAME_FIELD(Copy2D, width, CUDA_MEMCPY2D, WidthInBytes);
SAME_FIELD(Copy2D, height, CUDA_MEMCPY2D, Height);
static_assert(sizeof(PoolProps) == sizeof(CUmemPoolProps));
SAME_FIELD(PoolProps, alloc_type, CUmemPoolProps, allocType);
SAME_FIELD(PoolProps, handle_types, CUmemPoolProps, handleTypes);
SAME_FIELD(PoolProps, location_type, CUmemPoolProps, location);
SAME_FIELD(PoolProps, max_size, CUmemPoolProps, maxSize);
static_assert(sizeof(GraphUpdateInfo) == sizeof(CUgraphExecUpdateResultInfo));

// Parameters: as many, and of the same size each, as the signature of the version that is asked for.
template <typename>
struct Shape;
template <typename R, typename... P>
struct Shape<R (*)(P...)> {
    static constexpr size_t count = sizeof...(P);
    static constexpr size_t sizes[] = {sizeof(R), sizeof(P)...};
};
template <typename Ours, typename Theirs>
constexpr bool same_shape() {
    if (Shape<Ours>::count != Shape<Theirs>::count) return false;
    for (size_t i = 0; i <= Shape<Ours>::count; ++i)
        if (Shape<Ours>::sizes[i] != Shape<Theirs>::sizes[i]) return false;
    return true;
}
#define SAME_FUNCTION(name, version, parameters) \
    static_assert(same_shape<decltype(Driver::name), PFN_##name##_v##version>(), #name);
ENPU_CUDA_FUNCTIONS(SAME_FUNCTION)
static_assert(same_shape<GetProcAddress, PFN_cuGetProcAddress_v12000>());

}  // namespace
}  // namespace enpu::hal::cuda
