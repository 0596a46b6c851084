// SPDX-License-Identifier: MIT
// The peer of the micro-benchmarks: the same work on OpenCL, which PoCL runs on the host's CPU.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <stdexcept>
#include <string>

namespace enpu::bench {

inline void check_cl(cl_int code, const char* what) {
    if (code != CL_SUCCESS)
        throw std::runtime_error(std::string(what) + ": OpenCL error " + std::to_string(code));
}

// One device of PoCL, two in-order queues and y[i] = a[i] + b[i].
class OpenCl {
  public:
    OpenCl() {
        cl_platform_id platforms[8];
        cl_uint count = 0;
        if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS || count == 0)
            throw std::runtime_error("no OpenCL platform (package pocl-opencl-icd)");
        for (cl_uint i = 0; i < count && !device; ++i) {
            char name[128] = "";
            clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, nullptr);
            if (std::string(name).find("Portable") == std::string::npos) continue;
            char text[128] = "";
            clGetPlatformInfo(platforms[i], CL_PLATFORM_VERSION, sizeof(text), text, nullptr);
            version = text;
            check_cl(clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, nullptr),
                     "clGetDeviceIDs");
        }
        if (!device) throw std::runtime_error("no PoCL among the OpenCL platforms");
        cl_int code = 0;
        context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
        check_cl(code, "clCreateContext");
        for (cl_command_queue* queue : {&first, &second}) {
            *queue = clCreateCommandQueue(context, device, 0, &code);
            check_cl(code, "clCreateCommandQueue");
        }
        build();
    }
    ~OpenCl() {
        clReleaseKernel(add);
        clReleaseProgram(program);
        for (cl_mem memory : {a, b, y}) clReleaseMemObject(memory);
        clReleaseCommandQueue(first);
        clReleaseCommandQueue(second);
        clReleaseContext(context);
    }
    OpenCl(const OpenCl&) = delete;

    void launch(cl_command_queue queue, cl_uint waits = 0, const cl_event* events = nullptr) const {
        const size_t one = 1;
        check_cl(clEnqueueNDRangeKernel(queue, add, 1, nullptr, &one, &one, waits, events, nullptr),
                 "clEnqueueNDRangeKernel");
    }
    void finish() const {
        check_cl(clFinish(first), "clFinish");
        check_cl(clFinish(second), "clFinish");
    }

    cl_device_id device = nullptr;
    cl_context context = nullptr;
    cl_command_queue first = nullptr, second = nullptr;
    cl_program program = nullptr;
    cl_kernel add = nullptr;
    cl_mem a = nullptr, b = nullptr, y = nullptr;
    std::string version;

  private:
    void build() {
        const char* source =
            "kernel void add(global const float* a, global const float* b, global float* y) {"
            "  y[get_global_id(0)] = a[get_global_id(0)] + b[get_global_id(0)];"
            "}";
        cl_int code = 0;
        program = clCreateProgramWithSource(context, 1, &source, nullptr, &code);
        check_cl(code, "clCreateProgramWithSource");
        check_cl(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
        add = clCreateKernel(program, "add", &code);
        check_cl(code, "clCreateKernel");
        cl_uint index = 0;
        for (cl_mem* memory : {&a, &b, &y}) {
            *memory = clCreateBuffer(context, CL_MEM_READ_WRITE, 256, nullptr, &code);
            check_cl(code, "clCreateBuffer");
            check_cl(clSetKernelArg(add, index++, sizeof(cl_mem), memory), "clSetKernelArg");
        }
    }
};

}  // namespace enpu::bench
