// SPDX-License-Identifier: MIT
// Convolutions by cuDNN: descriptors and an algorithm for each shape, found once.
#include <dlfcn.h>

#include <cstdio>

#include "cudnn_api.h"
#include "problem.h"

namespace enpu::hal::cuda {
namespace {

constexpr const char* kName = "cuDNN";

int type_of(int64_t dtype) {
    return dtype == ENPU_DTYPE_F32   ? dnn::kFloat
           : dtype == ENPU_DTYPE_F16 ? dnn::kHalf
                                     : dnn::kBfloat16;
}

// A handle takes one stream at a time.
struct Session {
    dnn::Functions api;
    dnn::Handle handle = nullptr;
    std::mutex mutex;
};

class ConvPlan final : public LibraryPlan {
  public:
    ConvPlan(Session& session, const ConvProblem& problem) : s_(session), problem_(problem) {
        const char* what = "describing a convolution";
        int status = describe();
        if (!status) {
            what = "looking for an algorithm";
            status = search();
        }
        if (status) refuse(what, status);
    }
    ~ConvPlan() override {
        for (dnn::TensorDesc desc : {x_, y_, bias_})
            if (desc) s_.api.cudnnDestroyTensorDescriptor(desc);
        if (w_) s_.api.cudnnDestroyFilterDescriptor(w_);
        if (conv_) s_.api.cudnnDestroyConvolutionDescriptor(conv_);
        if (activation_) s_.api.cudnnDestroyActivationDescriptor(activation_);
    }

  protected:
    const char* library() const override { return kName; }
    const char* words(int status) const override { return s_.api.cudnnGetErrorString(status); }
    int run(const LibraryCall& call, Stream stream, uint64_t workspace) override {
        std::lock_guard lock(s_.mutex);
        if (int status = s_.api.cudnnSetStream(s_.handle, stream)) return status;
        const auto at = [](uint64_t address) { return reinterpret_cast<const void*>(address); };
        void* const room = reinterpret_cast<void*>(workspace);
        void* const y = reinterpret_cast<void*>(call.y);
        const float one = 1, none = 0;
        if (!problem_.bias)
            return s_.api.cudnnConvolutionForward(s_.handle, &one, x_, at(call.x), w_,
                                                  at(call.weights), conv_, algorithm_, room,
                                                  workspace_bytes, &none, y_, y);
        // Without a residual y stands in for it, times 0.
        return s_.api.cudnnConvolutionBiasActivationForward(
            s_.handle, &one, x_, at(call.x), w_, at(call.weights), conv_, algorithm_, room,
            workspace_bytes, problem_.residual ? &one : &none, y_,
            problem_.residual ? at(call.residual) : y, bias_, at(call.bias), activation_, y_, y);
    }

  private:
    int make_tensor(const int64_t* dims, const int64_t* strides, dnn::TensorDesc* desc) {
        if (int status = s_.api.cudnnCreateTensorDescriptor(desc)) return status;
        const auto d = [&](unsigned i) { return static_cast<int>(dims[i]); };
        const auto s = [&](unsigned i) { return static_cast<int>(strides[i]); };
        return s_.api.cudnnSetTensor4dDescriptorEx(*desc, type_of(problem_.dtype), d(0), d(1), d(2),
                                                   d(3), s(0), s(1), s(2), s(3));
    }

    int make_filter() {
        if (int status = s_.api.cudnnCreateFilterDescriptor(&w_)) return status;
        const auto d = [&](unsigned i) { return static_cast<int>(problem_.w[i]); };
        return s_.api.cudnnSetFilter4dDescriptor(
            w_, type_of(problem_.dtype), problem_.channels_last_weights ? dnn::kNhwc : dnn::kNchw,
            d(0), d(1), d(2), d(3));
    }

    int make_convolution() {
        if (int status = s_.api.cudnnCreateConvolutionDescriptor(&conv_)) return status;
        const auto pair = [](const int64_t* of, unsigned i) { return static_cast<int>(of[i]); };
        int status = s_.api.cudnnSetConvolution2dDescriptor(
            conv_, pair(problem_.pad, 0), pair(problem_.pad, 1), pair(problem_.stride, 0),
            pair(problem_.stride, 1), pair(problem_.dilation, 0), pair(problem_.dilation, 1),
            dnn::kCrossCorrelation, dnn::kFloat);
        if (!status)
            status = s_.api.cudnnSetConvolutionGroupCount(conv_, static_cast<int>(problem_.groups));
        if (!status) status = s_.api.cudnnSetConvolutionMathType(conv_, math());
        return status;
    }
    // Floats are not rounded to TF32; the others are exact in it.
    int math() const {
        return problem_.dtype == ENPU_DTYPE_F32 ? dnn::kFmaMath : dnn::kTensorOpMath;
    }

    int describe() {
        int status = make_tensor(problem_.x, problem_.x_strides, &x_);
        if (!status) status = make_tensor(problem_.y, problem_.y_strides, &y_);
        if (!status) status = make_filter();
        if (!status) status = make_convolution();
        if (status || !problem_.bias) return status;
        const int64_t channels = problem_.y[1];
        const int64_t dims[4] = {1, channels, 1, 1}, strides[4] = {channels, 1, 1, 1};
        status = make_tensor(dims, strides, &bias_);
        if (!status) status = s_.api.cudnnCreateActivationDescriptor(&activation_);
        if (!status)
            status = s_.api.cudnnSetActivationDescriptor(
                activation_, problem_.relu ? dnn::kRelu : dnn::kIdentity, dnn::kPropagateNan, 0);
        return status;
    }

    // The fastest that is expected to work, with the room and the numerics that we want.
    int search() {
        dnn::AlgorithmPerf found[dnn::kForwardAlgorithms] = {};
        int count = 0;
        std::lock_guard lock(s_.mutex);
        int status = s_.api.cudnnGetConvolutionForwardAlgorithm_v7(
            s_.handle, x_, w_, conv_, y_, dnn::kForwardAlgorithms, &count, found);
        if (status) return status;
        const bool only_gemm = problem_.bias && !problem_.relu;
        for (int i = 0; i < count; ++i) {
            const dnn::AlgorithmPerf& each = found[i];
            if (each.status != dnn::kOk || each.memory > kWorkspaceBytes) continue;
            if (only_gemm && each.algorithm != dnn::kImplicitPrecompGemm) continue;
            if (problem_.dtype == ENPU_DTYPE_F32 && each.math != dnn::kFmaMath) continue;
            if (s_.api.cudnnSetConvolutionMathType(conv_, each.math)) continue;
            size_t bytes = 0;
            if (s_.api.cudnnGetConvolutionForwardWorkspaceSize(s_.handle, x_, w_, conv_, y_,
                                                               each.algorithm, &bytes) ||
                bytes > kWorkspaceBytes)
                continue;
            algorithm_ = each.algorithm;
            workspace_bytes = bytes;
            return dnn::kOk;
        }
        return dnn::kUnsupported;
    }

    Session& s_;
    const ConvProblem problem_;
    dnn::TensorDesc x_ = nullptr, y_ = nullptr, bias_ = nullptr;
    dnn::FilterDesc w_ = nullptr;
    dnn::ConvDesc conv_ = nullptr;
    dnn::ActivationDesc activation_ = nullptr;
    int algorithm_ = 0;
};

class Cudnn final : public Library {
  public:
    ~Cudnn() override {
        forget_plans();
        if (session_.handle) session_.api.cudnnDestroy(session_.handle);
    }

    bool open(void* library, std::string& reason) {
        dnn::Functions& api = session_.api;
#define ENPU_FIND(result, name, parameters)                                 \
    api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name)); \
    if (!api.name) {                                                        \
        reason = "it has no " #name;                                        \
        return false;                                                       \
    }
        ENPU_CUDNN_FUNCTIONS(ENPU_FIND)
#undef ENPU_FIND
        if (int status = api.cudnnCreate(&session_.handle)) {
            session_.handle = nullptr;
            reason = std::string("cudnnCreate: ") + api.cudnnGetErrorString(status);
            return false;
        }
        // Versions 8 and older counted majors by the thousand.
        const size_t version = api.cudnnGetVersion();
        const size_t major = version >= 90000 ? 10000 : 1000;
        char name[40];
        std::snprintf(name, sizeof(name), "%s %zu.%zu.%zu", kName, version / major,
                      version % major / 100, version % 100);
        text = name;
        return true;
    }

    std::shared_ptr<LibraryPlan> plan(const enpu_operator_packet& packet, LibraryCall& call,
                                      const char** why_not) override {
        ConvProblem problem;
        *why_not = conv_problem(packet, problem, call);
        if (*why_not) return nullptr;
        return cached(problem.key(), [&] { return std::make_shared<ConvPlan>(session_, problem); });
    }

  private:
    Session session_;
};

}  // namespace

std::unique_ptr<Library> open_cudnn(int driver_version, std::string& reason) {
    void* library = load_library("ENPU_CUDNN_LIBRARY", "ENPU_CUDA_CUDNN", driver_version,
                                 {{"libcudnn.so.9", 12}, {"libcudnn.so.8", 11}}, reason);
    if (!library) return nullptr;
    auto made = std::make_unique<Cudnn>();
    if (!made->open(library, reason)) return nullptr;
    return made;
}

}  // namespace enpu::hal::cuda
