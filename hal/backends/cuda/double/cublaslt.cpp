// SPDX-License-Identifier: MIT
// A stand-in for cuBLASLt on the double of the driver.
#include "../libraries/cublaslt_api.h"

#include "library.h"

namespace enpu::hal::cuda::lt {

struct HandleObject {
    ContextObject* context;
};
struct MatmulDescObject {
    int32_t transposed[2] = {0, 0};
    uint32_t epilogue = kEpilogueDefault;
    const void* bias = nullptr;
};
struct LayoutObject {
    int type;
    uint64_t rows, columns;
    int64_t leading;
    int32_t batch = 1;
    int64_t batch_stride = 0;
};
struct PreferenceObject {
    uint64_t workspace = 0;
    uint32_t reductions = 7;
    uint32_t alignment[4] = {256, 256, 256, 256};
};

namespace {

using fake::Element;
using fake::Objects;

bool element_of(int type, Element* element) {
    *element = type == kF32 ? Element::kFloat : type == kF16 ? Element::kHalf : Element::kBfloat;
    return type == kF32 || type == kF16 || type == kBf16;
}

struct Matrix {
    Element type;
    int64_t rows, columns, leading, batch_stride;
    uint64_t address;

    // Elements from the first to the last of one matrix.
    int64_t span() const { return (columns - 1) * leading + rows; }
};

// A call, complete and checked: what an operation of a stream needs.
struct Product {
    Matrix a, b, c, d;
    bool transposed[2];
    uint32_t epilogue;
    uint64_t bias, workspace, workspace_bytes;
    float alpha, beta;
    int32_t batch;

    float at(const Matrix& m, bool transposed_, int64_t item, int64_t row, int64_t column) const {
        if (transposed_) std::swap(row, column);
        return fake::load(m.type, m.address, item * m.batch_stride + column * m.leading + row);
    }
    void one(int64_t item, int64_t depth) const {
        for (int64_t column = 0; column < d.columns; ++column)
            for (int64_t row = 0; row < d.rows; ++row) {
                double sum = 0;
                for (int64_t k = 0; k < depth; ++k)
                    sum += double(at(a, transposed[0], item, row, k)) *
                           double(at(b, transposed[1], item, k, column));
                float value = static_cast<float>(double(alpha) * sum);
                if (beta != 0) value += beta * at(c, false, item, row, column);
                if (epilogue & kEpilogueBias) value += fake::load(d.type, bias, row);
                if (epilogue & kEpilogueRelu) value = value < 0 ? 0 : value;
                fake::store(d.type, d.address, item * d.batch_stride + column * d.leading + row,
                            value);
            }
    }
    bool reachable(const Matrix& m) const {
        const auto elements = static_cast<uint64_t>((batch - 1) * m.batch_stride + m.span());
        return m.batch_stride >= 0 && fake::is_memory(m.address, elements * fake::bytes_of(m.type));
    }
    Result run() const {
        const int64_t depth = transposed[0] ? a.rows : a.columns;
        if (!reachable(a) || !reachable(b) || !reachable(d) || (beta != 0 && !reachable(c)) ||
            !fake::is_memory(workspace, workspace_bytes))
            return kIllegalAddress;
        if ((epilogue & kEpilogueBias) &&
            !fake::is_memory(bias, static_cast<uint64_t>(d.rows) * fake::bytes_of(d.type)))
            return kIllegalAddress;
        const fake::Room room(workspace, workspace_bytes);
        for (int64_t item = 0; item < batch; ++item) one(item, depth);
        return room.untouched() ? kSuccess : kLaunchFailed;
    }
};

// The shape as it is checked for an algorithm and again for a call.
int check_shape(MatmulDesc desc, Layout a, Layout b, Layout c, Layout d) {
    Objects& all = Objects::all();
    if (!all.has(desc) || !all.has(a) || !all.has(b) || !all.has(c) || !all.has(d))
        return kInvalidValue;
    const auto op = [&](Layout l, int i) {
        return desc->transposed[i] ? std::pair(l->columns, l->rows)
                                   : std::pair(l->rows, l->columns);
    };
    const auto [m, k] = op(a, 0);
    const auto [k_too, n] = op(b, 1);
    if (k != k_too || d->rows != m || d->columns != n || c->rows != m || c->columns != n)
        return kInvalidValue;
    Element element;
    for (Layout each : {a, b, c, d})
        if (each->batch != d->batch || !element_of(each->type, &element)) return kInvalidValue;
    if (a->type != b->type || c->type != d->type) return kInvalidValue;
    if (d->type != a->type && d->type != kF32) return kUnsupported;
    if ((desc->epilogue & kEpilogueBias) && !desc->bias) return kInvalidValue;
    return kOk;
}

Matrix matrix_of(Layout layout, const void* address) {
    Matrix matrix{};
    element_of(layout->type, &matrix.type);
    matrix.rows = static_cast<int64_t>(layout->rows);
    matrix.columns = static_cast<int64_t>(layout->columns);
    matrix.leading = layout->leading;
    matrix.batch_stride = layout->batch_stride;
    matrix.address = reinterpret_cast<uint64_t>(address);
    return matrix;
}

// Copies an attribute of exactly this size.
template <typename T>
int take(T& into, const void* value, size_t bytes) {
    if (!value || bytes != sizeof(T)) return kInvalidValue;
    std::memcpy(&into, value, bytes);
    return kOk;
}

constexpr uint64_t kMagic = 0x656e70756c740001;

}  // namespace

#define ENPU_DOUBLE_LT extern "C" __attribute__((visibility("default")))

#define ENPU_DOUBLE_LT_ENTER(name) \
    if (const int injected = fake::enter(#name)) return injected

ENPU_DOUBLE_LT size_t cublasLtGetVersion() {
    return 130100;
}
ENPU_DOUBLE_LT const char* cublasLtGetStatusName(int status) {
    return status == kUnsupported       ? "CUBLAS_STATUS_NOT_SUPPORTED"
           : status == kExecutionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                        : "CUBLAS_STATUS";
}
ENPU_DOUBLE_LT int cublasLtCreate(Handle* handle) {
    ENPU_DOUBLE_LT_ENTER(cublasLtCreate);
    *handle = Objects::all().add(new HandleObject{fake::current()});
    return kOk;
}
ENPU_DOUBLE_LT int cublasLtDestroy(Handle handle) {
    return Objects::all().drop(handle) ? kOk : kInvalidValue;
}
ENPU_DOUBLE_LT int cublasLtMatmulDescCreate(MatmulDesc* desc, int compute, int scale) {
    ENPU_DOUBLE_LT_ENTER(cublasLtMatmulDescCreate);
    if (compute != kCompute32F || scale != kF32) return kUnsupported;
    *desc = Objects::all().add(new MatmulDescObject);
    return kOk;
}
ENPU_DOUBLE_LT int cublasLtMatmulDescDestroy(MatmulDesc desc) {
    return Objects::all().drop(desc) ? kOk : kInvalidValue;
}
ENPU_DOUBLE_LT int cublasLtMatmulDescSetAttribute(MatmulDesc desc, int attribute, const void* value,
                                                  size_t bytes) {
    if (!Objects::all().has(desc)) return kInvalidValue;
    if (attribute == kTransA) return take(desc->transposed[0], value, bytes);
    if (attribute == kTransB) return take(desc->transposed[1], value, bytes);
    if (attribute == kEpilogue) return take(desc->epilogue, value, bytes);
    if (attribute == kBiasPointer) return take(desc->bias, value, bytes);
    return kInvalidValue;
}
ENPU_DOUBLE_LT int cublasLtMatrixLayoutCreate(Layout* layout, int type, uint64_t rows,
                                              uint64_t columns, int64_t leading) {
    if (rows == 0 || columns == 0 || leading < static_cast<int64_t>(rows)) return kInvalidValue;
    *layout = Objects::all().add(new LayoutObject{type, rows, columns, leading});
    return kOk;
}
ENPU_DOUBLE_LT int cublasLtMatrixLayoutDestroy(Layout layout) {
    return Objects::all().drop(layout) ? kOk : kInvalidValue;
}
ENPU_DOUBLE_LT int cublasLtMatrixLayoutSetAttribute(Layout layout, int attribute, const void* value,
                                                    size_t bytes) {
    if (!Objects::all().has(layout)) return kInvalidValue;
    if (attribute == kBatchCount) return take(layout->batch, value, bytes);
    if (attribute == kBatchStride) return take(layout->batch_stride, value, bytes);
    return kInvalidValue;
}
ENPU_DOUBLE_LT int cublasLtMatmulPreferenceCreate(Preference* preference) {
    *preference = Objects::all().add(new PreferenceObject);
    return kOk;
}
ENPU_DOUBLE_LT int cublasLtMatmulPreferenceDestroy(Preference preference) {
    return Objects::all().drop(preference) ? kOk : kInvalidValue;
}
ENPU_DOUBLE_LT int cublasLtMatmulPreferenceSetAttribute(Preference preference, int attribute,
                                                        const void* value, size_t bytes) {
    if (!Objects::all().has(preference)) return kInvalidValue;
    if (attribute == kMaxWorkspace) return take(preference->workspace, value, bytes);
    if (attribute == kReductions) return take(preference->reductions, value, bytes);
    if (attribute >= kAlignmentA && attribute <= kAlignmentD)
        return take(preference->alignment[attribute - kAlignmentA], value, bytes);
    return kInvalidValue;
}

// The algorithm keeps what it was made for: a call with less room or alignment is found out.
ENPU_DOUBLE_LT int cublasLtMatmulAlgoGetHeuristic(Handle handle, MatmulDesc desc, Layout a,
                                                  Layout b, Layout c, Layout d,
                                                  Preference preference, int wanted,
                                                  HeuristicResult* results, int* count) {
    ENPU_DOUBLE_LT_ENTER(cublasLtMatmulAlgoGetHeuristic);
    *count = 0;
    if (!Objects::all().has(handle) || !Objects::all().has(preference) || wanted < 1)
        return kInvalidValue;
    if (handle->context != fake::current()) return kNotInitialized;
    if (const int status = check_shape(desc, a, b, c, d)) return status;
    if (preference->reductions & ~kReduceInComputeType) return kUnsupported;
    HeuristicResult& best = results[0];
    best = {};
    best.workspace_bytes = std::min(preference->workspace, fake::kRoomBytes);
    best.algorithm.data[0] = kMagic;
    best.algorithm.data[1] = best.workspace_bytes;
    for (int i = 0; i < 4; ++i) best.algorithm.data[2 + i] = preference->alignment[i];
    best.algorithm.data[6] = d->rows << 32 ^ d->columns;
    best.algorithm.data[7] = desc->epilogue;
    *count = 1;
    return kOk;
}

ENPU_DOUBLE_LT int cublasLtMatmul(Handle handle, MatmulDesc desc, const void* alpha, const void* a,
                                  Layout a_layout, const void* b, Layout b_layout, const void* beta,
                                  const void* c, Layout c_layout, void* d, Layout d_layout,
                                  const Algorithm* algorithm, void* workspace,
                                  size_t workspace_bytes, Stream stream) {
    ENPU_DOUBLE_LT_ENTER(cublasLtMatmul);
    if (!Objects::all().has(handle)) return kInvalidValue;
    if (handle->context != fake::current() || stream->context != handle->context)
        return kNotInitialized;
    if (const int status = check_shape(desc, a_layout, b_layout, c_layout, d_layout)) return status;
    if (algorithm->data[0] != kMagic || workspace_bytes < algorithm->data[1] ||
        algorithm->data[6] != (d_layout->rows << 32 ^ d_layout->columns) ||
        algorithm->data[7] != desc->epilogue)
        return kInvalidValue;
    const void* pointers[4] = {a, b, c, d};
    for (int i = 0; i < 4; ++i)
        if (reinterpret_cast<uint64_t>(pointers[i]) % algorithm->data[2 + i] != 0)
            return kInvalidValue;
    if (reinterpret_cast<uint64_t>(desc->bias) % 16 != 0) return kInvalidValue;
    Product product{};
    product.a = matrix_of(a_layout, a);
    product.b = matrix_of(b_layout, b);
    product.c = matrix_of(c_layout, c);
    product.d = matrix_of(d_layout, d);
    product.transposed[0] = desc->transposed[0] != 0;
    product.transposed[1] = desc->transposed[1] != 0;
    product.epilogue = desc->epilogue;
    product.bias = reinterpret_cast<uint64_t>(desc->bias);
    product.workspace = reinterpret_cast<uint64_t>(workspace);
    product.workspace_bytes = algorithm->data[1];
    std::memcpy(&product.alpha, alpha, sizeof(float));
    std::memcpy(&product.beta, beta, sizeof(float));
    product.batch = d_layout->batch;
    fake::enqueue(stream, [product] { return product.run(); });
    return kOk;
}

}  // namespace enpu::hal::cuda::lt
