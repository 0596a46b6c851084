// SPDX-License-Identifier: MIT
// A stand-in for cuDNN on the double of the driver.
#include "../libraries/cudnn_api.h"

#include "library.h"

namespace enpu::hal::cuda::dnn {

struct HandleObject {
    ContextObject* context;
    Stream stream = nullptr;
};
struct TensorDescObject {
    int type = -1;
    int dims[4] = {}, strides[4] = {};
};
struct FilterDescObject {
    int type = -1, format = 0;
    int dims[4] = {};

    int64_t index(int k, int c, int h, int w) const {
        const int64_t outer = int64_t{k} * dims[1] * dims[2] * dims[3];
        return outer + (format == kNchw ? (int64_t{c} * dims[2] + h) * dims[3] + w
                                        : (int64_t{h} * dims[3] + w) * dims[1] + c);
    }
};
struct ActivationDescObject {
    int mode = -1;
};
struct ConvDescObject {
    int pad[2] = {}, stride[2] = {}, dilation[2] = {};
    int groups = 1, math = 0;
    bool set = false;
};

namespace {

using fake::Element;
using fake::Objects;

Element element_of(int type) {
    return type == kFloat ? Element::kFloat : type == kHalf ? Element::kHalf : Element::kBfloat;
}

int64_t index(const TensorDescObject& t, int n, int c, int h, int w) {
    return int64_t{n} * t.strides[0] + int64_t{c} * t.strides[1] + int64_t{h} * t.strides[2] +
           int64_t{w} * t.strides[3];
}

// A call, complete and checked. Descriptors are copied: they may go once the call has returned.
struct Convolution {
    TensorDescObject x, y, bias;
    FilterDescObject w;
    ConvDescObject conv;
    uint64_t x_at, w_at, y_at, bias_at, z_at, room, room_bytes;
    float alpha, beta;
    int activation;

    bool reachable(const TensorDescObject& t, uint64_t address) const {
        const int64_t last = index(t, t.dims[0] - 1, t.dims[1] - 1, t.dims[2] - 1, t.dims[3] - 1);
        return fake::is_memory(address, uint64_t(last + 1) * fake::bytes_of(element_of(t.type)));
    }
    double sum(int n, int k, int oh, int ow) const {
        const Element type = element_of(x.type);
        const int outputs = w.dims[0] / conv.groups;
        double total = 0;
        for (int c = 0; c < w.dims[1]; ++c)
            for (int r = 0; r < w.dims[2]; ++r)
                for (int s = 0; s < w.dims[3]; ++s) {
                    const int h = oh * conv.stride[0] - conv.pad[0] + r * conv.dilation[0];
                    const int v = ow * conv.stride[1] - conv.pad[1] + s * conv.dilation[1];
                    if (h < 0 || v < 0 || h >= x.dims[2] || v >= x.dims[3]) continue;
                    total += double(fake::load(type, x_at,
                                               index(x, n, k / outputs * w.dims[1] + c, h, v))) *
                             double(fake::load(type, w_at, w.index(k, c, r, s)));
                }
        return total;
    }
    void one(int n, int k, int h, int v) const {
        const Element type = element_of(y.type);
        const int64_t at = index(y, n, k, h, v);
        float value = alpha * static_cast<float>(sum(n, k, h, v));
        if (beta != 0) value += beta * fake::load(type, z_at, at);
        if (bias_at) value += fake::load(type, bias_at, index(bias, 0, k, 0, 0));
        if (activation == kRelu && value < 0) value = 0;
        fake::store(type, y_at, at, value);
    }
    Result run() const {
        const uint64_t weights = uint64_t(w.dims[0]) * w.dims[1] * w.dims[2] * w.dims[3];
        if (!reachable(x, x_at) || !reachable(y, y_at) || !fake::is_memory(room, room_bytes) ||
            !fake::is_memory(w_at, weights * fake::bytes_of(element_of(w.type))) ||
            (bias_at && !reachable(bias, bias_at)) || (beta != 0 && !reachable(y, z_at)))
            return kIllegalAddress;
        const fake::Room marked(room, room_bytes);
        for (int n = 0; n < y.dims[0]; ++n)
            for (int k = 0; k < y.dims[1]; ++k)
                for (int h = 0; h < y.dims[2]; ++h)
                    for (int v = 0; v < y.dims[3]; ++v) one(n, k, h, v);
        return marked.untouched() ? kSuccess : kLaunchFailed;
    }
};

int check_shape(Handle handle, TensorDesc x, FilterDesc w, ConvDesc conv, TensorDesc y) {
    Objects& all = Objects::all();
    if (!all.has(handle) || !all.has(x) || !all.has(w) || !all.has(conv) || !all.has(y))
        return kBadParam;
    if (handle->context != fake::current()) return kNotInitialized;
    if (!conv->set || x->type < 0 || x->type != w->type || x->type != y->type) return kBadParam;
    if (conv->groups < 1 || w->dims[0] % conv->groups != 0 ||
        x->dims[1] != w->dims[1] * conv->groups || y->dims[0] != x->dims[0] ||
        y->dims[1] != w->dims[0])
        return kBadParam;
    for (int i = 0; i < 2; ++i) {
        const int window = conv->dilation[i] * (w->dims[2 + i] - 1) + 1;
        const int room = x->dims[2 + i] + 2 * conv->pad[i] - window;
        if (room < 0 || y->dims[2 + i] != room / conv->stride[i] + 1) return kBadParam;
    }
    return kOk;
}

uint64_t address_of(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}

}  // namespace

#define ENPU_DOUBLE_DNN extern "C" __attribute__((visibility("default")))
#define ENPU_DOUBLE_DNN_ENTER(name) \
    if (const int injected = fake::enter(#name)) return injected
#define ENPU_DOUBLE_DNN_OBJECT(create, destroy, type, object)         \
    ENPU_DOUBLE_DNN int create(type* made) {                          \
        ENPU_DOUBLE_DNN_ENTER(create);                                \
        *made = Objects::all().add(new object);                       \
        return kOk;                                                   \
    }                                                                 \
    ENPU_DOUBLE_DNN int destroy(type gone) {                          \
        return Objects::all().drop(gone) ? int(kOk) : int(kBadParam); \
    }

ENPU_DOUBLE_DNN_OBJECT(cudnnCreate, cudnnDestroy, Handle, HandleObject{fake::current()})
ENPU_DOUBLE_DNN_OBJECT(cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor, TensorDesc,
                       TensorDescObject)
ENPU_DOUBLE_DNN_OBJECT(cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor, FilterDesc,
                       FilterDescObject)
ENPU_DOUBLE_DNN_OBJECT(cudnnCreateActivationDescriptor, cudnnDestroyActivationDescriptor,
                       ActivationDesc, ActivationDescObject)
ENPU_DOUBLE_DNN_OBJECT(cudnnCreateConvolutionDescriptor, cudnnDestroyConvolutionDescriptor,
                       ConvDesc, ConvDescObject)

ENPU_DOUBLE_DNN size_t cudnnGetVersion() {
    return 91900;
}
ENPU_DOUBLE_DNN const char* cudnnGetErrorString(int status) {
    return status == kUnsupported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS";
}
ENPU_DOUBLE_DNN int cudnnSetStream(Handle handle, Stream stream) {
    ENPU_DOUBLE_DNN_ENTER(cudnnSetStream);
    if (!Objects::all().has(handle) || stream->context != handle->context) return kBadParam;
    handle->stream = stream;
    return kOk;
}
ENPU_DOUBLE_DNN int cudnnSetTensor4dDescriptorEx(TensorDesc desc, int type, int n, int c, int h,
                                                 int w, int n_stride, int c_stride, int h_stride,
                                                 int w_stride) {
    if (!Objects::all().has(desc)) return kBadParam;
    if (type != kFloat && type != kHalf && type != kBfloat16) return kUnsupported;
    *desc = {type, {n, c, h, w}, {n_stride, c_stride, h_stride, w_stride}};
    for (int i = 0; i < 4; ++i)
        if (desc->dims[i] < 1 || desc->strides[i] < 1) return kBadParam;
    return kOk;
}
ENPU_DOUBLE_DNN int cudnnSetFilter4dDescriptor(FilterDesc desc, int type, int format, int k, int c,
                                               int h, int w) {
    if (!Objects::all().has(desc) || (format != kNchw && format != kNhwc)) return kBadParam;
    *desc = {type, format, {k, c, h, w}};
    return kOk;
}
ENPU_DOUBLE_DNN int cudnnSetActivationDescriptor(ActivationDesc desc, int mode, int nan, double) {
    if (!Objects::all().has(desc) || (nan != 0 && nan != 1)) return kBadParam;
    desc->mode = mode;
    return kOk;
}
ENPU_DOUBLE_DNN int cudnnSetConvolution2dDescriptor(ConvDesc desc, int pad_h, int pad_w,
                                                    int stride_h, int stride_w, int dilation_h,
                                                    int dilation_w, int mode, int compute) {
    if (!Objects::all().has(desc) || mode != kCrossCorrelation || compute != kFloat || pad_h < 0 ||
        pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1)
        return kBadParam;
    *desc = {{pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, 1, 0, true};
    return kOk;
}
ENPU_DOUBLE_DNN int cudnnSetConvolutionGroupCount(ConvDesc desc, int groups) {
    if (!Objects::all().has(desc) || !desc->set) return kBadParam;
    desc->groups = groups;
    return kOk;
}
ENPU_DOUBLE_DNN int cudnnSetConvolutionMathType(ConvDesc desc, int math) {
    if (!Objects::all().has(desc) || !desc->set || math < 0 || math > kFmaMath) return kBadParam;
    desc->math = math;
    return kOk;
}

// In the order of the real one: the fastest first, those that do not work last, with their status.
ENPU_DOUBLE_DNN int cudnnGetConvolutionForwardAlgorithm_v7(Handle handle, TensorDesc x,
                                                           FilterDesc w, ConvDesc conv,
                                                           TensorDesc y, int wanted, int* count,
                                                           AlgorithmPerf* results) {
    ENPU_DOUBLE_DNN_ENTER(cudnnGetConvolutionForwardAlgorithm_v7);
    if (const int status = check_shape(handle, x, w, conv, y)) return status;
    constexpr uint64_t kTooMuch = uint64_t{1} << 33;
    const AlgorithmPerf all[] = {
        {7, kOk, -1, kTooMuch, 1, conv->math, {}},  // fast, with more room than anybody has
        {0, kOk, -1, fake::kRoomBytes, 1, conv->math, {}},
        {kImplicitPrecompGemm, kOk, -1, fake::kRoomBytes, 1, conv->math, {}},
        {4, kUnsupported, -1, 0, 1, conv->math, {}},
    };
    *count = 0;
    for (const AlgorithmPerf& each : all)
        if (*count < wanted) results[(*count)++] = each;
    return kOk;
}
ENPU_DOUBLE_DNN int cudnnGetConvolutionForwardWorkspaceSize(Handle handle, TensorDesc x,
                                                            FilterDesc w, ConvDesc conv,
                                                            TensorDesc y, int algorithm,
                                                            size_t* bytes) {
    if (const int status = check_shape(handle, x, w, conv, y)) return status;
    if (algorithm != 0 && algorithm != kImplicitPrecompGemm) return kUnsupported;
    *bytes = fake::kRoomBytes;
    return kOk;
}

ENPU_DOUBLE_DNN int cudnnConvolutionForward(Handle handle, const void* alpha, TensorDesc x_desc,
                                            const void* x, FilterDesc w_desc, const void* w,
                                            ConvDesc conv, int algorithm, void* workspace,
                                            size_t workspace_bytes, const void* beta,
                                            TensorDesc y_desc, void* y) {
    ENPU_DOUBLE_DNN_ENTER(cudnnConvolutionForward);
    if (const int status = check_shape(handle, x_desc, w_desc, conv, y_desc)) return status;
    if (workspace_bytes < fake::kRoomBytes || !handle->stream ||
        (algorithm != 0 && algorithm != kImplicitPrecompGemm))
        return kBadParam;
    Convolution c{*x_desc,
                  *y_desc,
                  {},
                  *w_desc,
                  *conv,
                  address_of(x),
                  address_of(w),
                  address_of(y),
                  0,
                  address_of(y),
                  address_of(workspace),
                  fake::kRoomBytes,
                  0,
                  0,
                  kIdentity};
    std::memcpy(&c.alpha, alpha, sizeof(float));
    std::memcpy(&c.beta, beta, sizeof(float));
    fake::enqueue(handle->stream, [c] { return c.run(); });
    return kOk;
}

ENPU_DOUBLE_DNN int cudnnConvolutionBiasActivationForward(
    Handle handle, const void* alpha1, TensorDesc x_desc, const void* x, FilterDesc w_desc,
    const void* w, ConvDesc conv, int algorithm, void* workspace, size_t workspace_bytes,
    const void* alpha2, TensorDesc z_desc, const void* z, TensorDesc bias_desc, const void* bias,
    ActivationDesc activation, TensorDesc y_desc, void* y) {
    ENPU_DOUBLE_DNN_ENTER(cudnnConvolutionBiasActivationForward);
    if (const int status = check_shape(handle, x_desc, w_desc, conv, y_desc)) return status;
    Objects& all = Objects::all();
    if (!all.has(z_desc) || !all.has(bias_desc) || !all.has(activation) || !z || !bias)
        return kBadParam;
    if (workspace_bytes < fake::kRoomBytes || !handle->stream ||
        std::memcmp(z_desc, y_desc, sizeof(*y_desc)) != 0 || bias_desc->dims[1] != y_desc->dims[1])
        return kBadParam;
    // The identity goes with one algorithm only.
    if (activation->mode == kIdentity ? algorithm != kImplicitPrecompGemm
                                      : activation->mode != kRelu)
        return kUnsupported;
    Convolution c{*x_desc,
                  *y_desc,
                  *bias_desc,
                  *w_desc,
                  *conv,
                  address_of(x),
                  address_of(w),
                  address_of(y),
                  address_of(bias),
                  address_of(z),
                  address_of(workspace),
                  fake::kRoomBytes,
                  0,
                  0,
                  activation->mode};
    std::memcpy(&c.alpha, alpha1, sizeof(float));
    std::memcpy(&c.beta, alpha2, sizeof(float));
    fake::enqueue(handle->stream, [c] { return c.run(); });
    return kOk;
}

}  // namespace enpu::hal::cuda::dnn
