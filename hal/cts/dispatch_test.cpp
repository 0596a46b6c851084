// SPDX-License-Identifier: MIT
// Dispatches: what is refused, what is counted, and what happens when a kernel fails in flight.
#include <algorithm>

#include "fixture.h"

using namespace enpu::hal;
using namespace enpu::hal::cts;

namespace {

std::vector<float> floats(size_t count, int seed) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i)
        values[i] = static_cast<float>((static_cast<int>(i) * 29 + seed * 17) % 97 - 48) / 16;
    return values;
}

}  // namespace

TEST_CASE("kernel: the device counts what it ran", "[kernel][profile]") {
    Fixture f;
    NEEDS(f, ENPU_HAL_CAP_PROFILE);
    auto* x = f.upload(floats(64, 1));
    const auto before = f.counters();
    const auto tx = tensor(x, ENPU_OP_F32, {64});
    const Kernel square(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_SQUARE, 0, 0}, {tx, tx});
    NEEDS_KERNEL(f, square);
    NEEDS(f, ENPU_HAL_CAP_FILL);
    f.run({square.command(), square.command(), f.fill(x, 0, 8, 0, 1)});
    const auto after = f.counters();
    CHECK(after.ops[ENPU_OP_UNARY] == before.ops[ENPU_OP_UNARY] + 2);
    CHECK(after.ops[ENPU_OP_BINARY] == before.ops[ENPU_OP_BINARY]);
    CHECK(after.jobs == before.jobs + 1);
    CHECK(after.copies == before.copies + 1);
    CHECK(after.work >= before.work + 128);
    CHECK(after.busy_compute_ns > before.busy_compute_ns);
}

TEST_CASE("kernel: supported agrees with submit and gives the reason", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(4096);
    const enpu_op_matmul_params params{};
    const auto check = [&](std::vector<enpu_hal_operand> operands, const char* names) {
        operands.resize(6);
        std::swap(operands[2], operands[5]);  // given as a, b, y
        const Kernel kernel(ENPU_OP_MATMUL_FWD, params, operands);
        const uint32_t code = f.hal->kernel->supported(f.device, &kernel.dispatch, &status);
        INFO(names << ": " << status.message);
        CHECK((code == ENPU_HAL_INVALID_ARGUMENT || code == ENPU_HAL_UNSUPPORTED));
        CHECK(std::string(status.message).find(names) != std::string::npos);
        CHECK(f.submit({kernel.command()}) != ENPU_HAL_OK);
        --f.value;
    };
    const auto a = tensor(buffer, ENPU_OP_F32, {4, 5}),
               b = tensor(buffer, ENPU_OP_F32, {5, 6}, 1024),
               y = tensor(buffer, ENPU_OP_F32, {4, 6}, 2048);
    const Kernel right(ENPU_OP_MATMUL_FWD, params, {a, b, {}, {}, {}, y});
    NEEDS_KERNEL(f, right);
    auto wrong = b;
    wrong.tensor.dims[0] = 6;
    check({a, wrong, y}, "'b'");
    wrong = b;
    wrong.tensor.dtype = ENPU_OP_I64;
    check({a, wrong, y}, "'b'");
    wrong = y;
    wrong.tensor.dims[1] = 7;
    check({a, b, wrong}, "'y'");
    wrong = a;
    wrong.tensor.rank = 9;
    check({wrong, b, y}, "'a'");
    wrong = a;
    wrong.tensor.dims[0] = int64_t{1} << 40;
    check({wrong, b, y}, "'a'");
    check({a, {}, y}, "'b'");
}

TEST_CASE("kernel: operands must lie in their buffers", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* small = f.make_buffer(64);
    auto* y = f.make_buffer(4096);
    const Kernel right(ENPU_OP_MOVE,
                       {tensor(small, ENPU_OP_F32, {16}), tensor(y, ENPU_OP_F32, {16})});
    NEEDS_KERNEL(f, right);
    // Buffers may be larger than asked for, but never by this much.
    const Kernel past(ENPU_OP_MOVE,
                      {tensor(small, ENPU_OP_F32, {1 << 20}), tensor(y, ENPU_OP_F32, {1 << 20})});
    HAL_FAILS(f.submit({past.command()}), ENPU_HAL_INVALID_ARGUMENT);
    auto before = tensor(y, ENPU_OP_F32, {16});
    before.tensor.strides[0] = -1;  // begins at offset 0 and runs backwards
    const Kernel under(ENPU_OP_MOVE, {before, tensor(small, ENPU_OP_F32, {16})});
    HAL_FAILS(f.submit({under.command()}), ENPU_HAL_INVALID_ARGUMENT);
    const Kernel wrap(ENPU_OP_MOVE, {tensor(small, ENPU_OP_F32, {16}, UINT64_MAX - 15),
                                     tensor(y, ENPU_OP_F32, {16})});
    HAL_FAILS(f.submit({wrap.command()}), ENPU_HAL_INVALID_ARGUMENT);
    const Kernel none(ENPU_OP_MOVE,
                      {tensor(nullptr, ENPU_OP_F32, {16}), tensor(y, ENPU_OP_F32, {16})});
    HAL_FAILS(f.submit({none.command()}), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("kernel: a failure in flight names the operation and stays with its queue",
          "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* fence = f.make_fence(0);
    auto* y = f.make_buffer(64);
    const Kernel gather(ENPU_OP_GATHER, enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, 0},
                        {tensor(f.upload(floats(4, 1)), ENPU_OP_F32, {4}),
                         tensor(f.upload(std::vector<int32_t>{0, 77}), ENPU_OP_I32, {2}),
                         tensor(y, ENPU_OP_F32, {2})});
    NEEDS_KERNEL(f, gather);
    NEEDS(f, ENPU_HAL_CAP_FILL);
    HAL_OK(f.submit_to(other, {{fence, 1}}, {f.fill(y, 0, 64, 1, 1)}, {}, 101));
    HAL_SUPPORTED(f.submit_to(other, {{fence, 2}}, {gather.command()}, {}, 102));
    HAL_FAILS(f.wait(fence, 2), ENPU_HAL_WORK_FAILED);
    CHECK(status.op_id == 102);
    HAL_OK(f.wait(fence, 1, 0));  // what came before has succeeded
    uint64_t value = 0;
    HAL_FAILS(f.hal->fence->query(fence, &value, &status), ENPU_HAL_WORK_FAILED);
    CHECK(value == 1);
    // Work that follows on this queue fails; who waits for it is aborted; the others go on.
    const uint32_t code = f.submit_to(other, {{fence, 3}}, {f.fill(y, 0, 64, 9, 1)}, {}, 103);
    if (code == ENPU_HAL_OK) CHECK(f.wait(fence, 3) != ENPU_HAL_OK);
    f.run({f.fill(y, 0, 64, 4, 1)});
    CHECK(f.host<uint8_t>(y)[63] == 4);
}

TEST_CASE("dispatch: a structure of another type or size is refused", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(64);
    const auto t = tensor(buffer, ENPU_OP_F32, {16});
    Kernel kernel(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_NEG, 0, 0}, {t, t});
    NEEDS_KERNEL(f, kernel);
    kernel.dispatch.header.type = ENPU_HAL_TYPE_SUBMISSION;
    HAL_FAILS(f.submit({kernel.command()}), ENPU_HAL_INVALID_ARGUMENT);
    HAL_FAILS(f.hal->kernel->supported(f.device, &kernel.dispatch, &status),
              ENPU_HAL_INVALID_ARGUMENT);
    kernel.dispatch.header = {8, ENPU_HAL_TYPE_DISPATCH, nullptr};
    HAL_FAILS(f.submit({kernel.command()}), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("dispatch: no dispatch, no operands, no parameters", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(64);
    const auto t = tensor(buffer, ENPU_OP_F32, {16});
    Kernel kernel(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_NEG, 0, 0}, {t, t});
    NEEDS_KERNEL(f, kernel);
    enpu_hal_command command{};
    command.kind = ENPU_HAL_COMMAND_DISPATCH;
    HAL_FAILS(f.submit({command}), ENPU_HAL_INVALID_ARGUMENT);
    const enpu_hal_dispatch whole = kernel.dispatch;
    kernel.dispatch.operands = nullptr;
    HAL_FAILS(f.submit({kernel.command()}), ENPU_HAL_INVALID_ARGUMENT);
    kernel.dispatch = whole;
    kernel.dispatch.params = nullptr;
    HAL_FAILS(f.submit({kernel.command()}), ENPU_HAL_INVALID_ARGUMENT);
    kernel.dispatch = whole;
    kernel.dispatch.params_bytes -= 4;
    HAL_FAILS(f.submit({kernel.command()}), ENPU_HAL_INVALID_ARGUMENT);
    kernel.dispatch = whole;
    kernel.dispatch.operand_count = 1;
    HAL_FAILS(f.submit({kernel.command()}), ENPU_HAL_INVALID_ARGUMENT);
    f.value -= 5;
    kernel.dispatch = whole;
    f.run({kernel.command()});
}

TEST_CASE("dispatch: an unknown kernel is unsupported", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    Kernel kernel(ENPU_OP_MOVE, {{}, {}});
    kernel.dispatch.op = 4000;
    HAL_FAILS(f.hal->kernel->supported(f.device, &kernel.dispatch, &status), ENPU_HAL_UNSUPPORTED);
    HAL_FAILS(f.submit({kernel.command()}), ENPU_HAL_UNSUPPORTED);
}

TEST_CASE("dispatch: an unknown dtype, function or axis is refused", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(256);
    const auto t = tensor(buffer, ENPU_OP_F32, {16});
    const Kernel right(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_NEG, 0, 0}, {t, t});
    NEEDS_KERNEL(f, right);
    const auto refused = [&](const Kernel& kernel) {
        const uint32_t code = f.hal->kernel->supported(f.device, &kernel.dispatch, &status);
        CHECK((code == ENPU_HAL_INVALID_ARGUMENT || code == ENPU_HAL_UNSUPPORTED));
        CHECK(f.submit({kernel.command()}) == code);
    };
    auto odd = t;
    odd.tensor.dtype = 77;
    refused(Kernel(ENPU_OP_UNARY, enpu_op_unary_params{ENPU_OP_UNARY_NEG, 0, 0}, {odd, t}));
    refused(Kernel(ENPU_OP_UNARY, enpu_op_unary_params{9999, 0, 0}, {t, t}));
    refused(Kernel(ENPU_OP_BINARY, enpu_op_binary_params{12, 0, 0, 0}, {t, t, t}));
    refused(Kernel(ENPU_OP_SOFTMAX_FWD, enpu_op_softmax_params{3, 0},
                   {t, tensor(buffer, ENPU_OP_F32, {16}, 128)}));
}

TEST_CASE("dispatch: a dim of 0 is refused", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(256);
    auto t = tensor(buffer, ENPU_OP_F32, {4, 4});
    const Kernel right(ENPU_OP_MOVE, {t, tensor(buffer, ENPU_OP_F32, {4, 4}, 128)});
    NEEDS_KERNEL(f, right);
    t.tensor.dims[1] = 0;
    const Kernel none(ENPU_OP_MOVE, {t, t});
    HAL_FAILS(f.submit({none.command()}), ENPU_HAL_INVALID_ARGUMENT);
    t.tensor.dims[1] = -4;
    const Kernel negative(ENPU_OP_MOVE, {t, t});
    HAL_FAILS(f.submit({negative.command()}), ENPU_HAL_INVALID_ARGUMENT);
}

TEST_CASE("dispatch: sizes whose product overflows are refused", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(256);
    auto t = tensor(buffer, ENPU_OP_F32, {16});
    const Kernel right(ENPU_OP_MOVE, {t, tensor(buffer, ENPU_OP_F32, {16}, 128)});
    NEEDS_KERNEL(f, right);
    auto huge = tensor(buffer, ENPU_OP_F32, {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX});
    for (int i = 0; i < 4; ++i) huge.tensor.strides[i] = INT32_MAX;
    const Kernel kernel(ENPU_OP_MOVE, {huge, huge});
    const uint32_t code = f.submit({kernel.command()});
    INFO(status.message);
    CHECK((code == ENPU_HAL_INVALID_ARGUMENT || code == ENPU_HAL_UNSUPPORTED));
}

TEST_CASE("dispatch: an output that repeats elements is refused", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(256);
    const auto x = tensor(buffer, ENPU_OP_F32, {4, 4});
    auto y = tensor(buffer, ENPU_OP_F32, {4, 4}, 128);
    const Kernel right(ENPU_OP_MOVE, {x, y});
    NEEDS_KERNEL(f, right);
    y.tensor.strides[0] = 0;
    const Kernel kernel(ENPU_OP_MOVE, {x, y});
    const uint32_t code = f.submit({kernel.command()});
    INFO(status.message);
    CHECK((code == ENPU_HAL_INVALID_ARGUMENT || code == ENPU_HAL_UNSUPPORTED));
}

TEST_CASE("dispatch: a failure counts, and the queue's later work is aborted", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    NEEDS(f, ENPU_HAL_CAP_PROFILE);
    enpu_hal_queue* other = f.make_queue();
    enpu_hal_fence* fence = f.make_fence(0);
    const Kernel gather(ENPU_OP_GATHER, enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, 0},
                        {tensor(f.upload(floats(4, 1)), ENPU_OP_F32, {4}),
                         tensor(f.upload(std::vector<int32_t>{-5}), ENPU_OP_I32, {1}),
                         tensor(f.make_buffer(64), ENPU_OP_F32, {1})});
    NEEDS_KERNEL(f, gather);
    const auto before = f.counters();
    HAL_SUPPORTED(f.submit_to(other, {{fence, 1}}, {gather.command()}, {}, 7));
    HAL_FAILS(f.wait(fence, 1), ENPU_HAL_WORK_FAILED);
    CHECK(f.counters().jobs_failed > before.jobs_failed);
    auto* a = f.make_buffer(64);
    auto* b = f.make_buffer(64);
    uint32_t code = f.submit_to(other, {{fence, 2}}, {f.copy(b, 0, a, 0, 64)}, {}, 8);
    if (code == ENPU_HAL_OK) code = f.wait(fence, 2);
    CHECK((code == ENPU_HAL_ABORTED || code == ENPU_HAL_WORK_FAILED));
    HAL_OK(f.hal->device->check(f.device, &status));
}

TEST_CASE("dispatch: who waits for failed work is aborted, on another queue too",
          "[kernel][errors][fence]") {
    Fixture f;
    auto& status = f.status;
    enpu_hal_queue* first = f.make_queue();
    enpu_hal_queue* second = f.make_queue();
    enpu_hal_fence* a = f.make_fence(0);
    enpu_hal_fence* b = f.make_fence(0);
    const Kernel gather(ENPU_OP_GATHER, enpu_op_gather_params{ENPU_OP_GATHER_MODE_TAKE, 0},
                        {tensor(f.upload(floats(4, 1)), ENPU_OP_F32, {4}),
                         tensor(f.upload(std::vector<int32_t>{99}), ENPU_OP_I32, {1}),
                         tensor(f.make_buffer(64), ENPU_OP_F32, {1})});
    NEEDS_KERNEL(f, gather);
    HAL_SUPPORTED(f.submit_to(first, {{a, 1}}, {gather.command()}, {}, 11));
    HAL_FAILS(f.wait(a, 1), ENPU_HAL_WORK_FAILED);
    auto* x = f.make_buffer(64);
    auto* y = f.make_buffer(64);
    std::memset(f.host<char>(y), 5, 64);
    uint32_t code = f.submit_to(second, {{b, 1}}, {f.copy(y, 0, x, 0, 64)}, {{a, 1}}, 12);
    if (code == ENPU_HAL_OK) code = f.wait(b, 1);
    CHECK(code == ENPU_HAL_ABORTED);
    CHECK(f.host<char>(y)[0] == 5);
}

TEST_CASE("dispatch: packed_size refuses what is no weight tensor", "[kernel][errors]") {
    Fixture f;
    auto& status = f.status;
    auto t = tensor(nullptr, ENPU_OP_F32, {4, 4, 3, 3}).tensor;
    const enpu_op_pack_params pack{77, 1};
    uint64_t bytes = 0;
    HAL_FAILS(f.hal->kernel->packed_size(f.device, &t, &pack, &bytes, &status),
              ENPU_HAL_UNSUPPORTED);
}

TEST_CASE("dispatch: a device says which dtypes it knows", "[kernel][device]") {
    Fixture f;
    auto& status = f.status;
    auto* buffer = f.make_buffer(256);
    uint32_t taken = 0;
    for (uint32_t dtype = 1; dtype < ENPU_OP_DTYPES; ++dtype) {
        const auto x = tensor(buffer, dtype, {4}), y = tensor(buffer, dtype, {4}, 128);
        const Kernel move(ENPU_OP_MOVE, {x, y});
        if (f.hal->kernel->supported(f.device, &move.dispatch, &status) == ENPU_HAL_OK)
            taken |= 1u << dtype;
    }
    CHECK((taken & ~f.info.dtypes) == 0);
}
