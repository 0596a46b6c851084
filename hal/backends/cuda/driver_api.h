// SPDX-License-Identifier: MIT
// The part of the CUDA driver API that the backend uses, declared here so that it builds without a
// CUDA toolkit. driver_api_check.cpp compares it with cuda.h where there is one. The test double of
// the driver library implements exactly this list.
#pragma once

#include <cstddef>
#include <cstdint>

namespace enpu::hal::cuda {

enum Result : int {
    kSuccess = 0,
    kInvalidValue = 1,
    kOutOfMemory = 2,
    kNotInitialized = 3,
    kDeinitialized = 4,
    kStubLibrary = 34,
    kDeviceUnavailable = 46,
    kNoDevice = 100,
    kInvalidDevice = 101,
    kInvalidImage = 200,
    kInvalidContext = 201,
    kNoBinaryForGpu = 209,
    kEccUncorrectable = 214,
    kNotFound = 500,
    kNotReady = 600,
    kIllegalAddress = 700,
    kLaunchOutOfResources = 701,
    kHostMemoryAlreadyRegistered = 712,
    kLaunchFailed = 719,
    kNotSupported = 801,
    kStreamCaptureInvalidated = 901,
    kGraphExecUpdateFailure = 910,
    kUnknown = 999,
};

using DevicePtr = unsigned long long;
using DeviceId = int;
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Module = struct ModuleObject*;
using Function = struct FunctionObject*;
using MemoryPool = struct MemoryPoolObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;
using HostFunction = void (*)(void* context);

constexpr unsigned kContextBlockingSync = 4;
constexpr unsigned kStreamNonBlocking = 1;
constexpr unsigned kEventDefault = 0;
constexpr unsigned kHostPortable = 1;
constexpr unsigned kHostDeviceMap = 2;
constexpr int kMemoryTypeUnified = 4;
constexpr int kCaptureRelaxed = 2;

enum Attribute : int {
    kMaxPitch = 11,
    kMultiprocessorCount = 16,
    kAsyncEngineCount = 40,
    kUnifiedAddressing = 41,
    kComputeMajor = 75,
    kComputeMinor = 76,
    kHostRegisterSupported = 99,
    kMemoryPoolsSupported = 115,
};

enum PoolAttribute : int {
    kReleaseThreshold = 4,
    kReservedNow = 5,
    kUsedNow = 7,
};

struct Copy2D {
    size_t src_x, src_y;
    int src_type;
    const void* src_host;
    DevicePtr src_device;
    void* src_array;
    size_t src_pitch;
    size_t dst_x, dst_y;
    int dst_type;
    void* dst_host;
    DevicePtr dst_device;
    void* dst_array;
    size_t dst_pitch;
    size_t width, height;
};

struct PoolProps {
    int alloc_type;     // 1: pinned, the only one
    int handle_types;   // 0: not shared with other processes
    int location_type;  // 1: a device
    int location_id;
    void* security;
    size_t max_size;
    unsigned short usage;
    unsigned char reserved[54];
};

struct GraphUpdateInfo {
    int result;
    void* error_node;
    void* error_from_node;
};

// X(name, CUDA version whose signature this is, parameters): all give a Result.
#define ENPU_CUDA_FUNCTIONS(X)                                                                    \
    X(cuInit, 2000, (unsigned flags))                                                             \
    X(cuDriverGetVersion, 2020, (int* version))                                                   \
    X(cuGetErrorName, 6000, (Result error, const char** text))                                    \
    X(cuGetErrorString, 6000, (Result error, const char** text))                                  \
    X(cuDeviceGetCount, 2000, (int* count))                                                       \
    X(cuDeviceGet, 2000, (DeviceId * device, int ordinal))                                        \
    X(cuDeviceGetName, 2000, (char* name, int bytes, DeviceId device))                            \
    X(cuDeviceGetAttribute, 2000, (int* value, Attribute attribute, DeviceId device))             \
    X(cuDeviceTotalMem, 3020, (size_t * bytes, DeviceId device))                                  \
    X(cuCtxCreate, 3020, (Context * context, unsigned flags, DeviceId device))                    \
    X(cuCtxDestroy, 4000, (Context context))                                                      \
    X(cuCtxPushCurrent, 4000, (Context context))                                                  \
    X(cuCtxPopCurrent, 4000, (Context * context))                                                 \
    X(cuCtxGetStreamPriorityRange, 5050, (int* least, int* greatest))                             \
    X(cuStreamCreateWithPriority, 5050, (Stream * stream, unsigned flags, int priority))          \
    X(cuStreamDestroy, 4000, (Stream stream))                                                     \
    X(cuStreamQuery, 2000, (Stream stream))                                                       \
    X(cuStreamWaitEvent, 3020, (Stream stream, Event event, unsigned flags))                      \
    X(cuStreamBeginCapture, 10010, (Stream stream, int mode))                                     \
    X(cuStreamEndCapture, 10000, (Stream stream, Graph * graph))                                  \
    X(cuEventCreate, 2000, (Event * event, unsigned flags))                                       \
    X(cuEventDestroy, 4000, (Event event))                                                        \
    X(cuEventRecord, 2000, (Event event, Stream stream))                                          \
    X(cuEventQuery, 2000, (Event event))                                                          \
    X(cuEventElapsedTime, 2000, (float* milliseconds, Event start, Event end))                    \
    X(cuMemGetInfo, 3020, (size_t * free_bytes, size_t * total_bytes))                            \
    X(cuMemAlloc, 3020, (DevicePtr * address, size_t bytes))                                      \
    X(cuMemFree, 3020, (DevicePtr address))                                                       \
    X(cuMemPoolCreate, 11020, (MemoryPool * pool, const PoolProps* props))                        \
    X(cuMemPoolDestroy, 11020, (MemoryPool pool))                                                 \
    X(cuMemPoolSetAttribute, 11020, (MemoryPool pool, PoolAttribute attribute, void* value))      \
    X(cuMemPoolGetAttribute, 11020, (MemoryPool pool, PoolAttribute attribute, void* value))      \
    X(cuMemPoolTrimTo, 11020, (MemoryPool pool, size_t keep_bytes))                               \
    X(cuMemAllocFromPoolAsync, 11020,                                                             \
      (DevicePtr * address, size_t bytes, MemoryPool pool, Stream stream))                        \
    X(cuMemFreeAsync, 11020, (DevicePtr address, Stream stream))                                  \
    X(cuMemHostAlloc, 2020, (void** host, size_t bytes, unsigned flags))                          \
    X(cuMemFreeHost, 2000, (void* host))                                                          \
    X(cuMemHostRegister, 6050, (void* host, size_t bytes, unsigned flags))                        \
    X(cuMemHostUnregister, 4000, (void* host))                                                    \
    X(cuMemHostGetDevicePointer, 3020, (DevicePtr * address, void* host, unsigned flags))         \
    X(cuMemcpyAsync, 4000, (DevicePtr dst, DevicePtr src, size_t bytes, Stream stream))           \
    X(cuMemcpy2DAsync, 3020, (const Copy2D* copy, Stream stream))                                 \
    X(cuMemsetD8Async, 3020, (DevicePtr dst, unsigned char value, size_t count, Stream stream))   \
    X(cuMemsetD16Async, 3020, (DevicePtr dst, unsigned short value, size_t count, Stream stream)) \
    X(cuMemsetD32Async, 3020, (DevicePtr dst, unsigned value, size_t count, Stream stream))       \
    X(cuMemsetD2D8Async, 3020,                                                                    \
      (DevicePtr dst, size_t pitch, unsigned char value, size_t width, size_t height,             \
       Stream stream))                                                                            \
    X(cuMemsetD2D32Async, 3020,                                                                   \
      (DevicePtr dst, size_t pitch, unsigned value, size_t width, size_t height, Stream stream))  \
    X(cuModuleLoadData, 2000, (Module * module, const void* image))                               \
    X(cuModuleUnload, 2000, (Module module))                                                      \
    X(cuModuleGetFunction, 2000, (Function * function, Module module, const char* name))          \
    X(cuLaunchKernel, 4000,                                                                       \
      (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,    \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** params,   \
       void** extra))                                                                             \
    X(cuLaunchHostFunc, 10000, (Stream stream, HostFunction function, void* context))             \
    X(cuGraphInstantiateWithFlags, 11040,                                                         \
      (GraphExec * exec, Graph graph, unsigned long long flags))                                  \
    X(cuGraphExecUpdate, 12000, (GraphExec exec, Graph graph, GraphUpdateInfo * info))            \
    X(cuGraphLaunch, 10000, (GraphExec exec, Stream stream))                                      \
    X(cuGraphDestroy, 10000, (Graph graph))                                                       \
    X(cuGraphExecDestroy, 10000, (GraphExec exec))

// cuGetProcAddress as of 12.0 (exported as cuGetProcAddress_v2).
using GetProcAddress = Result (*)(const char* symbol, void** function, int version, uint64_t flags,
                                  int* found);

struct Driver {
#define ENPU_CUDA_MEMBER(name, version, parameters) Result(*name) parameters = nullptr;
    ENPU_CUDA_FUNCTIONS(ENPU_CUDA_MEMBER)
#undef ENPU_CUDA_MEMBER
};

}  // namespace enpu::hal::cuda
