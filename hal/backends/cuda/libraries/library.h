// SPDX-License-Identifier: MIT
// The heavy operators by the vendor's libraries: cuBLASLt for products of matrices, cuDNN for
// convolutions. Both are looked for at run time; what they do not take, or refuse, runs on the
// backend's own kernels, and is counted.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "../driver_api.h"
#include "packet.h"

namespace enpu::hal::cuda {

// Addresses on the GPU in the roles of a convolution; those of a product are a, b, bias, residual
// and y. 0: there is none.
struct LibraryCall {
    uint64_t x = 0, weights = 0, bias = 0, residual = 0, y = 0;
    float scale = 1;
};

// Room that a library may ask for beside the operands, of a queue or a part of a graph.
constexpr uint64_t kWorkspaceBytes = 32u << 20;

// One operator with one shape, ready to run.
class LibraryPlan {
  public:
    virtual ~LibraryPlan() = default;
    // Gives the work to a stream of the current context, whose workspace has at least
    // workspace_bytes. False when the library does not take it: it is not asked again.
    bool give(const LibraryCall& call, Stream stream, uint64_t workspace);
    bool refused() const { return refused_.load(std::memory_order_acquire); }
    // The library's first refusal; valid when refused().
    const char* complaint() const { return complaint_; }

    uint64_t workspace_bytes = 0;

  protected:
    // The library's status; 0 is success.
    virtual int run(const LibraryCall& call, Stream stream, uint64_t workspace) = 0;
    // "cuBLASLt: CUBLAS_STATUS_…" in words.
    virtual const char* library() const = 0;
    virtual const char* words(int status) const = 0;
    void refuse(const char* what, int status);

  private:
    std::mutex mutex_;
    std::atomic<bool> refused_{false};
    char complaint_[160] = {};
};

// What decides about a plan: everything but the addresses, as numbers.
struct ShapeKey {
    std::array<int64_t, 32> of{};
    bool operator==(const ShapeKey&) const = default;
};
struct ShapeHash {
    size_t operator()(const ShapeKey& key) const;
};

// A library that serves one operator.
class Library {
  public:
    virtual ~Library() = default;
    // Null with the reason when the packet is nothing for this library. Else the plan, which may be
    // refused. In the context.
    virtual std::shared_ptr<LibraryPlan> plan(const enpu_operator_packet& packet, LibraryCall& call,
                                              const char** why_not) = 0;
    std::string text;  // "cuBLASLt 13.1.0"

  protected:
    // The plan of a shape, made once by `make`.
    template <typename Make>
    std::shared_ptr<LibraryPlan> cached(const ShapeKey& key, Make&& make) {
        constexpr size_t kMost = 4096;
        std::lock_guard lock(plans_mutex_);
        std::shared_ptr<LibraryPlan>& plan = plans_[key];
        if (!plan) plan = make();
        const auto found = plan;
        // Rather made again than kept without end; who runs one holds it.
        if (plans_.size() > kMost) plans_.clear();
        return found;
    }
    void forget_plans() { plans_.clear(); }

  private:
    std::mutex plans_mutex_;
    std::unordered_map<ShapeKey, std::shared_ptr<LibraryPlan>, ShapeHash> plans_;
};

// Each null, with the reason, when the library is switched off, absent or does not start. In the
// context; so is their end.
std::unique_ptr<Library> open_cublaslt(int driver_version, std::string& reason);
std::unique_ptr<Library> open_cudnn(int driver_version, std::string& reason);

// Both, in one context.
class Libraries {
  public:
    void open(int driver_version);
    void close();
    // Without a call into them: for a context that hangs.
    void abandon();
    // "cuBLASLt 13.1.0, no cuDNN".
    const std::string& text() const { return text_; }
    // Why each of them is not there, or "".
    const std::string& reasons() const { return reasons_; }
    // Null: none of them serves this operator. In the context.
    std::shared_ptr<LibraryPlan> plan(const PacketStorage& packet, LibraryCall& call) const;

  private:
    std::unique_ptr<Library> cublaslt_, cudnn_;
    std::string text_, reasons_;
};

// ---- for those who open one

// The library of the first of `names` that loads and is not newer than the driver, or of the file
// that `variable` names. Null with the reason; `off_switch`=0 in the environment turns it off.
struct Candidate {
    const char* name;
    int cuda;  // major version that it needs
};
void* load_library(const char* variable, const char* off_switch, int driver_version,
                   std::initializer_list<Candidate> names, std::string& reason);

}  // namespace enpu::hal::cuda
