// SPDX-License-Identifier: MIT
// Products of matrices by cuBLASLt: descriptors and an algorithm for each shape, found once.
#include <dlfcn.h>

#include <cstdio>

#include "cublaslt_api.h"
#include "problem.h"

namespace enpu::hal::cuda {
namespace {

constexpr const char* kName = "cuBLASLt";

int32_t type_of(int64_t dtype) {
    return dtype == ENPU_DTYPE_F32 ? lt::kF32 : dtype == ENPU_DTYPE_F16 ? lt::kF16 : lt::kBf16;
}

class MatmulPlan final : public LibraryPlan {
  public:
    MatmulPlan(const lt::Functions& api, lt::Handle handle, const MatmulProblem& problem)
        : api_(api), handle_(handle), problem_(problem) {
        const char* what = "";
        const int status = prepare(&what);
        if (status != lt::kOk) refuse(what, status);
    }
    ~MatmulPlan() override {
        for (lt::Layout layout : {a_, b_, c_, d_})
            if (layout) api_.cublasLtMatrixLayoutDestroy(layout);
        if (desc_) api_.cublasLtMatmulDescDestroy(desc_);
    }

  protected:
    const char* library() const override { return kName; }
    const char* words(int status) const override { return api_.cublasLtGetStatusName(status); }
    int run(const LibraryCall& call, Stream stream, uint64_t workspace) override {
        const auto at = [](uint64_t address) { return reinterpret_cast<const void*>(address); };
        const float beta = problem_.residual ? 1.0f : 0.0f;
        // The bias is a part of the descriptor, which is read before the call returns.
        std::lock_guard lock(mutex_);
        if (problem_.bias) {
            const void* bias = at(call.bias);
            if (int status = api_.cublasLtMatmulDescSetAttribute(desc_, lt::kBiasPointer, &bias,
                                                                 sizeof(bias)))
                return status;
        }
        return api_.cublasLtMatmul(handle_, desc_, &call.scale, at(call.x), a_, at(call.weights),
                                   b_, &beta, at(problem_.residual ? call.residual : call.y), c_,
                                   reinterpret_cast<void*>(call.y), d_, &algorithm_,
                                   reinterpret_cast<void*>(workspace), workspace_bytes, stream);
    }

  private:
    template <typename T>
    int set(int attribute, T value) {
        return api_.cublasLtMatmulDescSetAttribute(desc_, attribute, &value, sizeof(value));
    }
    template <typename T>
    int prefer(lt::Preference preference, int attribute, T value) {
        return api_.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value,
                                                         sizeof(value));
    }

    int make_layout(const MatmulProblem::Matrix& matrix, int64_t dtype, lt::Layout* layout) {
        int status = api_.cublasLtMatrixLayoutCreate(
            layout, type_of(dtype), static_cast<uint64_t>(matrix.rows),
            static_cast<uint64_t>(matrix.columns), matrix.leading);
        if (status != lt::kOk || problem_.batch == 1) return status;
        const auto count = static_cast<int32_t>(problem_.batch);
        status =
            api_.cublasLtMatrixLayoutSetAttribute(*layout, lt::kBatchCount, &count, sizeof(count));
        if (status != lt::kOk) return status;
        return api_.cublasLtMatrixLayoutSetAttribute(
            *layout, lt::kBatchStride, &matrix.batch_stride, sizeof(matrix.batch_stride));
    }

    int describe() {
        const uint32_t epilogue = problem_.bias
                                      ? lt::kEpilogueBias | (problem_.relu ? lt::kEpilogueRelu : 0)
                                      : (problem_.relu ? lt::kEpilogueRelu : lt::kEpilogueDefault);
        int status = api_.cublasLtMatmulDescCreate(&desc_, lt::kCompute32F, lt::kF32);
        if (!status) status = set(lt::kTransA, static_cast<int32_t>(problem_.a.transposed));
        if (!status) status = set(lt::kTransB, static_cast<int32_t>(problem_.b.transposed));
        if (!status) status = set(lt::kEpilogue, epilogue);
        // The search looks at its alignment only: every bias that comes here has this one.
        if (!status && problem_.bias) status = set(lt::kBiasPointer, reinterpret_cast<void*>(16));
        if (!status) status = make_layout(problem_.a, problem_.dtype, &a_);
        if (!status) status = make_layout(problem_.b, problem_.dtype, &b_);
        if (!status) status = make_layout(problem_.c, problem_.out_dtype, &c_);
        if (!status) status = make_layout(problem_.d, problem_.out_dtype, &d_);
        return status;
    }

    int search(lt::Preference preference) {
        const auto bytes = [](const MatmulProblem::Matrix& m) {
            return static_cast<uint32_t>(m.alignment);
        };
        int status = prefer(preference, lt::kMaxWorkspace, kWorkspaceBytes);
        if (!status) status = prefer(preference, lt::kReductions, lt::kReduceInComputeType);
        if (!status) status = prefer(preference, lt::kAlignmentA, bytes(problem_.a));
        if (!status) status = prefer(preference, lt::kAlignmentB, bytes(problem_.b));
        if (!status) status = prefer(preference, lt::kAlignmentC, bytes(problem_.c));
        if (!status) status = prefer(preference, lt::kAlignmentD, bytes(problem_.d));
        if (status) return status;
        lt::HeuristicResult best{};
        int count = 0;
        status = api_.cublasLtMatmulAlgoGetHeuristic(handle_, desc_, a_, b_, c_, d_, preference, 1,
                                                     &best, &count);
        if (!status && count == 0) status = lt::kUnsupported;
        if (!status) status = best.state;
        if (!status && best.workspace_bytes > kWorkspaceBytes) status = lt::kUnsupported;
        algorithm_ = best.algorithm;
        workspace_bytes = best.workspace_bytes;
        return status;
    }

    int prepare(const char** what) {
        *what = "describing a product";
        if (int status = describe()) return status;
        *what = "looking for an algorithm";
        lt::Preference preference = nullptr;
        int status = api_.cublasLtMatmulPreferenceCreate(&preference);
        if (status) return status;
        status = search(preference);
        api_.cublasLtMatmulPreferenceDestroy(preference);
        return status;
    }

    const lt::Functions& api_;
    const lt::Handle handle_;
    const MatmulProblem problem_;
    std::mutex mutex_;
    lt::MatmulDesc desc_ = nullptr;
    lt::Layout a_ = nullptr, b_ = nullptr, c_ = nullptr, d_ = nullptr;
    lt::Algorithm algorithm_{};
};

class CublasLt final : public Library {
  public:
    ~CublasLt() override {
        forget_plans();
        if (handle_) api_.cublasLtDestroy(handle_);
    }

    bool open(void* library, std::string& reason) {
#define ENPU_FIND(result, name, parameters)                                   \
    api_.name = reinterpret_cast<decltype(api_.name)>(dlsym(library, #name)); \
    if (!api_.name) {                                                         \
        reason = "it has no " #name;                                          \
        return false;                                                         \
    }
        ENPU_CUBLASLT_FUNCTIONS(ENPU_FIND)
#undef ENPU_FIND
        if (int status = api_.cublasLtCreate(&handle_)) {
            handle_ = nullptr;
            reason = std::string("cublasLtCreate: ") + api_.cublasLtGetStatusName(status);
            return false;
        }
        const size_t version = api_.cublasLtGetVersion();
        char name[40];
        std::snprintf(name, sizeof(name), "%s %zu.%zu.%zu", kName, version / 10000,
                      version / 100 % 100, version % 100);
        text = name;
        return true;
    }

    std::shared_ptr<LibraryPlan> plan(const enpu_operator_packet& packet, LibraryCall& call,
                                      const char** why_not) override {
        MatmulProblem problem;
        *why_not = matmul_problem(packet, problem, call);
        if (*why_not) return nullptr;
        return cached(problem.key(),
                      [&] { return std::make_shared<MatmulPlan>(api_, handle_, problem); });
    }

  private:
    lt::Functions api_;
    lt::Handle handle_ = nullptr;
};

}  // namespace

std::unique_ptr<Library> open_cublaslt(int driver_version, std::string& reason) {
    void* library = load_library("ENPU_CUBLASLT_LIBRARY", "ENPU_CUDA_CUBLASLT", driver_version,
                                 {{"libcublasLt.so.13", 13}, {"libcublasLt.so.12", 12}}, reason);
    if (!library) return nullptr;
    auto made = std::make_unique<CublasLt>();
    if (!made->open(library, reason)) return nullptr;
    return made;
}

}  // namespace enpu::hal::cuda
