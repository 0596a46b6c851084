// SPDX-License-Identifier: MIT
#include "library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "../driver.h"
#include "op_table.h"

namespace enpu::hal::cuda {

bool LibraryPlan::give(const LibraryCall& call, Stream stream, uint64_t workspace) {
    if (refused()) return false;
    const int status = run(call, stream, workspace);
    if (status != 0) refuse("running", status);
    return status == 0;
}

void LibraryPlan::refuse(const char* what, int status) {
    {
        std::lock_guard lock(mutex_);
        if (refused_.load(std::memory_order_relaxed)) return;
        const char* name = words(status);
        std::snprintf(complaint_, sizeof(complaint_), "%s: %s: status %d (%.60s)", library(), what,
                      status, name ? name : "unknown");
        refused_.store(true, std::memory_order_release);
    }
    log_line(ENPU_HAL_LOG_WARNING, "cuda: %s; the own kernel takes this shape from now on",
             complaint_);
}

size_t ShapeHash::operator()(const ShapeKey& key) const {
    uint64_t hash = 0xcbf29ce484222325;
    for (int64_t number : key.of) {
        hash = (hash ^ static_cast<uint64_t>(number)) * 0x100000001b3;
        hash ^= hash >> 29;
    }
    return hash;
}

void* load_library(const char* variable, const char* off_switch, int driver_version,
                   std::initializer_list<Candidate> names, std::string& reason) {
    const char* off = std::getenv(off_switch);
    if (off && std::string_view(off) == "0") {
        reason = std::string("switched off by ") + off_switch + "=0";
        return nullptr;
    }
    // They start threads and keep state of the process: they stay for its life.
    const auto load = [&](const char* name) {
        void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (const char* error = library ? nullptr : dlerror()) reason = error;
        return library;
    };
    const char* named = std::getenv(variable);
    if (named && named[0]) return load(named);
    // Who names another driver means that driver alone.
    if (const char* driver = std::getenv("ENPU_CUDA_LIBRARY"); driver && driver[0]) {
        reason = std::string("not looked for, because ENPU_CUDA_LIBRARY is set and ") + variable +
                 " is not";
        return nullptr;
    }
    reason = "the driver is too old for it";
    for (const Candidate& candidate : names) {
        if (candidate.cuda > driver_version / 1000) continue;
        if (void* library = load(candidate.name)) return library;
    }
    return nullptr;
}

void Libraries::open(int driver_version) {
    std::string why_cublaslt, why_cudnn;
    cublaslt_ = open_cublaslt(driver_version, why_cublaslt);
    cudnn_ = open_cudnn(driver_version, why_cudnn);
    text_ =
        (cublaslt_ ? cublaslt_->text : "no cuBLASLt") + ", " + (cudnn_ ? cudnn_->text : "no cuDNN");
    reasons_.clear();
    if (!cublaslt_) reasons_ += "cuBLASLt: " + why_cublaslt + ". ";
    if (!cudnn_) reasons_ += "cuDNN: " + why_cudnn + ".";
}

void Libraries::close() {
    cublaslt_.reset();
    cudnn_.reset();
}

void Libraries::abandon() {
    (void)cublaslt_.release();
    (void)cudnn_.release();
}

std::shared_ptr<LibraryPlan> Libraries::plan(const PacketStorage& storage,
                                             LibraryCall& call) const {
    const enpu_operator_packet& packet = storage.packet();
    const uint32_t op = op_of(packet.header.opcode);
    Library* library = op == ENPU_OP_MATMUL_FWD   ? cublaslt_.get()
                       : op == ENPU_OP_CONV2D_FWD ? cudnn_.get()
                                                  : nullptr;
    if (!library) return nullptr;
    for (uint32_t i = 0; i < find_op(op)->operands; ++i)
        if (packet.operands[i].format != ENPU_FORMAT_PLAIN) return nullptr;
    const char* why_not = nullptr;
    return library->plan(packet, call, &why_not);
}

}  // namespace enpu::hal::cuda
