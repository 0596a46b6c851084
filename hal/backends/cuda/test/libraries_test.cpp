// SPDX-License-Identifier: MIT
// cuBLASLt and cuDNN by the cuda backend, against doubles that check what they are given and compute
// on the host. hal-cts-cuda-double-libraries runs the conformance suite on the same.
#include <algorithm>

#include "../../../cts/reference.h"
#include "../driver_api.h"
#include "../libraries/cublaslt_api.h"
#include "../libraries/cudnn_api.h"
#include "double_driver.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;
using namespace enpu::hal::cuda;

namespace {

bool contains(const char* text, const char* part) {
    return std::strstr(text, part) != nullptr;
}

Kernel product(const enpu_hal_operand& a, const enpu_hal_operand& b, const enpu_hal_operand& y,
               uint32_t act = ENPU_OP_UNARY_IDENTITY) {
    return Kernel(ENPU_OP_MATMUL_FWD, enpu_op_matmul_params{act, 0, 0, 0}, {a, b, {}, {}, {}, y});
}

// A product of fresh matrices, m x 3 by 3 x 4.
struct Product {
    Array a, b;
    enpu_hal_operand y;
    Kernel kernel;

    Product(Fixture& f, int64_t m, uint32_t seed = 1)
        : a(numbers({m, 3}, ENPU_OP_F32, -1, 1, seed)),
          b(numbers({3, 4}, ENPU_OP_F32, -1, 1, seed + 1)),
          y(room(f, {m, 4}, ENPU_OP_F32)),
          kernel(product(put(f, a, ENPU_OP_F32), put(f, b, ENPU_OP_F32), y)) {}

    Array expected() const {
        Array sum({a.dims[0], 4});
        for (int64_t i = 0; i < a.dims[0]; ++i)
            for (int64_t j = 0; j < 4; ++j)
                for (int64_t k = 0; k < 3; ++k)
                    sum.values[size_t(i * 4 + j)] +=
                        a.values[size_t(i * 3 + k)] * b.values[size_t(k * 4 + j)];
        return sum;
    }
    void check(Fixture& f) const { check_equal(get(f, y), expected(), ENPU_OP_F32, 2e-5); }
};

}  // namespace

TEST_CASE("cuda libraries: who runs what is told by the device and its counters") {
    Double driver;
    Fixture f;
    INFO(f.info.driver);
    CHECK(contains(f.info.driver, "cuBLASLt 13.1.0, cuDNN 9.19.0"));
    const Product p(f, 5);
    const auto before = f.counters();
    f.run({p.kernel.command()});
    p.check(f);
    const auto after = f.counters();
    CHECK(after.ops[ENPU_OP_MATMUL_FWD] == before.ops[ENPU_OP_MATMUL_FWD] + 1);
    CHECK(after.library_ops[ENPU_OP_MATMUL_FWD] == before.library_ops[ENPU_OP_MATMUL_FWD] + 1);
    CHECK(after.library_refusals == before.library_refusals);
}

TEST_CASE("cuda libraries: convolutions that cuDNN has, and those it has not") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    const auto x = put(f, numbers({1, 2, 4, 4}, ENPU_OP_F32, -1, 1, 1), ENPU_OP_F32);
    const auto w = put(f, numbers({3, 2, 3, 3}, ENPU_OP_F32, -1, 1, 2), ENPU_OP_F32);
    const auto bias = put(f, numbers({3}, ENPU_OP_F32, -1, 1, 3), ENPU_OP_F32);
    const auto y = room(f, {1, 3, 4, 4}, ENPU_OP_F32);
    enpu_op_conv_params p{{1, 1}, {1, 1, 1, 1}, {1, 1}, 1, ENPU_OP_UNARY_RELU, 0, 0};
    f.run({Kernel(ENPU_OP_CONV2D_FWD, p, {x, w, bias, {}, {}, y}).command()});
    CHECK(driver.calls("cudnnConvolutionBiasActivationForward") == 1);
    p.act = ENPU_OP_UNARY_IDENTITY;
    f.run({Kernel(ENPU_OP_CONV2D_FWD, p, {x, w, {}, {}, {}, y}).command()});
    CHECK(driver.calls("cudnnConvolutionForward") == 1);
    CHECK(f.counters().library_ops[ENPU_OP_CONV2D_FWD] == 2);
    p.act = ENPU_OP_UNARY_SILU;
    const Kernel silu(ENPU_OP_CONV2D_FWD, p, {x, w, bias, {}, {}, y});
    HAL_FAILS(f.submit({silu.command()}), ENPU_HAL_UNSUPPORTED);
    // A padding that one number for both sides does not give.
    p.act = ENPU_OP_UNARY_IDENTITY;
    p.pad[0] = 2, p.pad[2] = 0;
    const Kernel uneven(ENPU_OP_CONV2D_FWD, p, {x, w, bias, {}, {}, y});
    HAL_FAILS(f.submit({uneven.command()}), ENPU_HAL_UNSUPPORTED);
    CHECK(f.counters().library_refusals == 0);  // they were not asked for
}

TEST_CASE("cuda libraries: a shape is planned once") {
    Double driver;
    Fixture f;
    const Product p(f, 11);
    const uint64_t planned = driver.calls("cublasLtMatmulAlgoGetHeuristic");
    for (int i = 0; i < 3; ++i) f.run({p.kernel.command(), p.kernel.command()});
    CHECK(driver.calls("cublasLtMatmulAlgoGetHeuristic") == planned + 1);
    p.check(f);
}

TEST_CASE("cuda libraries: outputs by rows and by columns, batches, and what has gaps") {
    Double driver;
    Fixture f;
    const uint64_t before = f.counters().library_ops[ENPU_OP_MATMUL_FWD];
    uint64_t runs = 0;
    for (const Layout layout : {Layout::kDense, Layout::kTransposed})
        for (const Layout out : {Layout::kDense, Layout::kTransposed})
            for (const uint32_t act : {ENPU_OP_UNARY_IDENTITY, ENPU_OP_UNARY_RELU})
                for (const int64_t batch : {1, 3}) {
                    const Array a = numbers({batch, 4, 5}, ENPU_OP_F32, -1, 1, 1);
                    const Array b = numbers({batch, 5, 3}, ENPU_OP_F32, -1, 1, 2);
                    Array expected({batch, 4, 3});
                    for (int64_t t = 0; t < batch; ++t)
                        for (int64_t i = 0; i < 4; ++i)
                            for (int64_t j = 0; j < 3; ++j) {
                                double& sum = expected.values[size_t((t * 4 + i) * 3 + j)];
                                for (int64_t k = 0; k < 5; ++k)
                                    sum += a.values[size_t((t * 4 + i) * 5 + k)] *
                                           b.values[size_t((t * 5 + k) * 3 + j)];
                                if (act == ENPU_OP_UNARY_RELU) sum = std::max(sum, 0.0);
                            }
                    // Layouts of the last two axes; a whole batch turned around has no one stride.
                    const bool turned = batch == 1;
                    const auto y =
                        room(f, expected.dims, ENPU_OP_F32, turned ? out : Layout::kDense);
                    const Kernel kernel =
                        product(put(f, a, ENPU_OP_F32, turned ? layout : Layout::kDense),
                                put(f, b, ENPU_OP_F32, turned ? layout : Layout::kDense), y, act);
                    f.run({kernel.command()});
                    check_equal(get(f, y), expected, ENPU_OP_F32, 2e-5);
                    ++runs;
                }
    CHECK(f.counters().library_ops[ENPU_OP_MATMUL_FWD] == before + runs);
}

TEST_CASE("cuda libraries: a refusal fails the work with the library's words, once") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    const Product p(f, 21), other(f, 22);
    driver.fail("cublasLtMatmul", 0, 1, lt::kExecutionFailed);
    const uint64_t before = f.counters().library_refusals;
    auto* queue = f.make_queue();
    auto* done = f.make_fence(0);
    HAL_OK(f.submit_to(queue, {{done, 1}}, {p.kernel.command()}, {}, 31));
    HAL_FAILS(f.wait(done, 1), ENPU_HAL_WORK_FAILED);
    CHECK(contains(status.message, "CUBLAS_STATUS_EXECUTION_FAILED"));
    CHECK(status.op_id == 31);
    CHECK(f.counters().library_refusals == before + 1);
    // No kernel stands by here: this shape is refused from now on, others are not.
    HAL_FAILS(f.submit({p.kernel.command()}), ENPU_HAL_UNSUPPORTED);
    CHECK(contains(status.message, "cuBLASLt"));
    f.run({other.kernel.command()});
    other.check(f);
}

TEST_CASE("cuda libraries: no algorithm is an answer, and is remembered") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    const Product p(f, 31);
    driver.fail("cublasLtMatmulAlgoGetHeuristic", 0, 1, lt::kUnsupported);
    HAL_FAILS(f.hal->kernel->supported(f.device, &p.kernel.dispatch, &status),
              ENPU_HAL_UNSUPPORTED);
    CHECK(contains(status.message, "CUBLAS_STATUS_NOT_SUPPORTED"));
    HAL_FAILS(f.submit({p.kernel.command()}), ENPU_HAL_UNSUPPORTED);
}

TEST_CASE(
    "cuda libraries: without memory for its workspace a library is passed over, and counted") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    const Product p(f, 41);
    auto* queue = f.make_queue();
    auto* done = f.make_fence(0);
    const uint64_t before = f.counters().library_refusals;
    driver.fail("cuMemAllocFromPoolAsync", 0, 2, kOutOfMemory);
    HAL_OK(f.submit_to(queue, {{done, 1}}, {p.kernel.command()}, {}));
    HAL_FAILS(f.wait(done, 1), ENPU_HAL_WORK_FAILED);
    CHECK(contains(status.message, "workspace"));
    CHECK(f.counters().library_refusals == before + 1);
    f.run({p.kernel.command()});  // the next time there is memory
    p.check(f);
}

TEST_CASE("cuda libraries: queues that work side by side have workspaces of their own") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    std::vector<std::unique_ptr<Product>> products;
    std::vector<enpu_hal_fence*> fences;
    for (uint32_t i = 0; i < 4; ++i) {
        products.push_back(std::make_unique<Product>(f, 64, 2 * i + 1));
        fences.push_back(f.make_fence(0));
        auto* queue = f.make_queue();
        for (uint64_t step = 1; step <= 20; ++step)
            HAL_OK(f.submit_to(queue, {{fences.back(), step}}, {products.back()->kernel.command()},
                               {}));
    }
    for (auto* fence : fences) HAL_OK(f.wait(fence, 20));
    for (const auto& each : products) each->check(f);
}

TEST_CASE("cuda libraries: graphs hold their calls, take updates and overlap themselves") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    const Product first(f, 51, 1), second(f, 51, 9);
    const enpu_hal_command command = first.kernel.command();
    enpu_hal_graph* graph = nullptr;
    HAL_OK(f.hal->graph->create(f.device, &command, 1, &graph, &status));
    const auto launch = [&] {
        auto submission = with_header<enpu_hal_submission>(ENPU_HAL_TYPE_SUBMISSION);
        const enpu_hal_point signal{f.fence, ++f.value};
        submission.signals = &signal;
        submission.signal_count = 1;
        HAL_OK(f.hal->graph->launch(f.queue, graph, &submission, soon(), &status));
    };
    const uint64_t counted = f.counters().library_ops[ENPU_OP_MATMUL_FWD];
    for (int i = 0; i < 5; ++i) launch();
    HAL_OK(f.wait(f.fence, f.value));
    first.check(f);
    CHECK(f.counters().library_ops[ENPU_OP_MATMUL_FWD] == counted + 5);
    const enpu_hal_command changed = second.kernel.command();
    HAL_OK(f.hal->graph->update(graph, 0, &changed, &status));
    launch();
    HAL_OK(f.wait(f.fence, f.value));
    second.check(f);
    f.hal->graph->destroy(graph);
}

TEST_CASE("cuda libraries: nothing of them is left when a context ends") {
    Double driver;
    { Fixture warm; }
    const auto before = driver.objects();
    {
        Fixture f;
        auto& status = f.status;
        const Product p(f, 61);
        f.run({p.kernel.command()});
        CHECK(driver.objects().library_objects > before.library_objects);
        auto* a = f.make_buffer(64);
        driver.break_next(kIllegalAddress);
        HAL_OK(f.submit({f.fill(a, 0, 64, 1, 1)}));
        HAL_FAILS(f.wait(f.fence, f.value), ENPU_HAL_DEVICE_LOST);
    }
    CHECK(driver.objects().library_objects == 0);
    CHECK(driver.objects().contexts == before.contexts - 1);
    Fixture again;  // a new context finds them again
    const Product p(again, 61);
    again.run({p.kernel.command()});
    p.check(again);
}

// Run with kernels that are only counted.
TEST_CASE("cuda libraries: what a library refuses runs on the own kernel, and is counted",
          "[.kernels]") {
    Double driver;
    Fixture f;
    if (!(f.info.caps & ENPU_HAL_CAP_TIMESTAMP)) SKIP("unsupported: built without nvcc");
    const Product p(f, 5);
    const auto own = [&] { return driver.calls("enpu_matmul_float"); };
    f.run({p.kernel.command()});
    p.check(f);
    CHECK(own() == 0);
    driver.fail("cublasLtMatmul", 0, 1, lt::kExecutionFailed);
    const auto before = f.counters();
    f.run({p.kernel.command()});
    CHECK(own() == 1);
    f.run({p.kernel.command()});  // not asked again
    CHECK(own() == 2);
    CHECK(driver.calls("cublasLtMatmul") == 2);
    const auto after = f.counters();
    CHECK(after.library_refusals == before.library_refusals + 2);
    CHECK(after.ops[ENPU_OP_MATMUL_FWD] == before.ops[ENPU_OP_MATMUL_FWD] + 2);
    CHECK(after.library_ops[ENPU_OP_MATMUL_FWD] == before.library_ops[ENPU_OP_MATMUL_FWD]);
    // What it is never asked for is no refusal.
    const Kernel sigmoid =
        product(p.kernel.operands[0], p.kernel.operands[1], p.y, ENPU_OP_UNARY_SIGMOID);
    f.run({sigmoid.command()});
    CHECK(own() == 3);
    CHECK(f.counters().library_refusals == after.library_refusals);
}

// Run with both switched off.
TEST_CASE("cuda libraries: each can be switched off, and the device says so", "[.off]") {
    Double driver;
    Fixture f;
    auto& status = f.status;
    INFO(f.info.driver);
    CHECK(contains(f.info.driver, "no cuBLASLt, no cuDNN"));
    const Product p(f, 5);
    HAL_FAILS(f.submit({p.kernel.command()}), ENPU_HAL_UNSUPPORTED);
    CHECK(driver.calls("cublasLtCreate") == 0);
    CHECK(driver.calls("cudnnCreate") == 0);
}

// The installed libraries, which know descriptors without a GPU: names, attributes and their sizes.
TEST_CASE("cuda libraries: the installed cuBLASLt takes our descriptors", "[.installed]") {
    void* library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen("libcublasLt.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library) SKIP("unsupported: " << dlerror());
    lt::Functions api;
#define FIND(result, name, parameters)                                      \
    api.name = reinterpret_cast<decltype(api.name)>(dlsym(library, #name)); \
    REQUIRE(api.name);
    ENPU_CUBLASLT_FUNCTIONS(FIND)
    CHECK(std::string(api.cublasLtGetStatusName(lt::kUnsupported)) ==
          "CUBLAS_STATUS_NOT_SUPPORTED");
    lt::MatmulDesc desc = nullptr;
    REQUIRE(api.cublasLtMatmulDescCreate(&desc, lt::kCompute32F, lt::kF32) == lt::kOk);
    const int32_t turned = 1;
    const uint32_t epilogue = lt::kEpilogueRelu | lt::kEpilogueBias;
    const void* bias = &turned;
    CHECK(api.cublasLtMatmulDescSetAttribute(desc, lt::kTransA, &turned, 4) == lt::kOk);
    CHECK(api.cublasLtMatmulDescSetAttribute(desc, lt::kTransB, &turned, 4) == lt::kOk);
    CHECK(api.cublasLtMatmulDescSetAttribute(desc, lt::kEpilogue, &epilogue, 4) == lt::kOk);
    CHECK(api.cublasLtMatmulDescSetAttribute(desc, lt::kBiasPointer, &bias, 8) == lt::kOk);
    CHECK(api.cublasLtMatmulDescSetAttribute(desc, lt::kBiasPointer, &bias, 4) != lt::kOk);
    CHECK(api.cublasLtMatmulDescDestroy(desc) == lt::kOk);
    lt::Layout layout = nullptr;
    REQUIRE(api.cublasLtMatrixLayoutCreate(&layout, lt::kBf16, 4, 5, 8) == lt::kOk);
    const int32_t count = 3;
    const int64_t stride = 40;
    CHECK(api.cublasLtMatrixLayoutSetAttribute(layout, lt::kBatchCount, &count, 4) == lt::kOk);
    CHECK(api.cublasLtMatrixLayoutSetAttribute(layout, lt::kBatchStride, &stride, 8) == lt::kOk);
    CHECK(api.cublasLtMatrixLayoutDestroy(layout) == lt::kOk);
    lt::Preference preference = nullptr;
    REQUIRE(api.cublasLtMatmulPreferenceCreate(&preference) == lt::kOk);
    const uint64_t room = 1 << 20;
    const uint32_t alignment = 16, mask = lt::kReduceInComputeType;
    const auto prefer = api.cublasLtMatmulPreferenceSetAttribute;
    CHECK(prefer(preference, lt::kMaxWorkspace, &room, 8) == lt::kOk);
    CHECK(prefer(preference, lt::kReductions, &mask, 4) == lt::kOk);
    for (int each = lt::kAlignmentA; each <= lt::kAlignmentD; ++each)
        CHECK(prefer(preference, each, &alignment, 4) == lt::kOk);
    CHECK(api.cublasLtMatmulPreferenceDestroy(preference) == lt::kOk);
}

TEST_CASE("cuda libraries: the installed cuDNN takes our descriptors", "[.installed]") {
    void* library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!library) library = dlopen("libcudnn.so.8", RTLD_NOW | RTLD_LOCAL);
    if (!library) SKIP("unsupported: " << dlerror());
    dnn::Functions api;
    ENPU_CUDNN_FUNCTIONS(FIND)
    dnn::TensorDesc x = nullptr;
    dnn::FilterDesc w = nullptr;
    dnn::ConvDesc conv = nullptr;
    dnn::ActivationDesc activation = nullptr;
    REQUIRE(api.cudnnCreateTensorDescriptor(&x) == dnn::kOk);
    REQUIRE(api.cudnnCreateFilterDescriptor(&w) == dnn::kOk);
    REQUIRE(api.cudnnCreateConvolutionDescriptor(&conv) == dnn::kOk);
    REQUIRE(api.cudnnCreateActivationDescriptor(&activation) == dnn::kOk);
    for (const int type : {dnn::kFloat, dnn::kHalf, dnn::kBfloat16})
        CHECK(api.cudnnSetTensor4dDescriptorEx(x, type, 2, 6, 7, 5, 210, 1, 30, 6) == dnn::kOk);
    for (const int format : {dnn::kNchw, dnn::kNhwc})
        CHECK(api.cudnnSetFilter4dDescriptor(w, dnn::kFloat, format, 4, 3, 3, 3) == dnn::kOk);
    CHECK(api.cudnnSetConvolution2dDescriptor(conv, 1, 1, 2, 1, 1, 2, dnn::kCrossCorrelation,
                                              dnn::kFloat) == dnn::kOk);
    CHECK(api.cudnnSetConvolutionGroupCount(conv, 2) == dnn::kOk);
    for (const int math : {dnn::kFmaMath, dnn::kTensorOpMath})
        CHECK(api.cudnnSetConvolutionMathType(conv, math) == dnn::kOk);
    for (const int mode : {dnn::kRelu, dnn::kIdentity})
        CHECK(api.cudnnSetActivationDescriptor(activation, mode, dnn::kPropagateNan, 0) ==
              dnn::kOk);
    CHECK(api.cudnnDestroyActivationDescriptor(activation) == dnn::kOk);
    CHECK(api.cudnnDestroyConvolutionDescriptor(conv) == dnn::kOk);
    CHECK(api.cudnnDestroyFilterDescriptor(w) == dnn::kOk);
    CHECK(api.cudnnDestroyTensorDescriptor(x) == dnn::kOk);
}

// Cases run in the order of this file.
TEST_CASE("cuda libraries: no case left an object alive", "[leaks]") {
    CHECK(take_leaks().empty());
}
