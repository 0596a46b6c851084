/* SPDX-License-Identifier: MIT */
/*
 * The call chain of the runtime: one convolution on any device, checked on the host.
 *
 *     rt-conv2d [DEVICE]      DEVICE: npu, sim, cpu …; default: the environment variable
 * ENPU_DEVICE, else npu
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rt.h"

enum { C = 3, H = 32, W = 32, O = 8, K = 3 };

static void check(rt_status status, const char* call) {
    if (status == RT_OK) return;
    fprintf(stderr, "%s: %s: %s (%s)\n", call, rt_code_name(rt_status_code(status)),
            rt_status_message(status), rt_status_origin(status));
    rt_status_free(status);
    exit(1);
}
#define CHECK(call) check((call), #call)

/* The same convolution, one sum after the other. */
static float expected(const float* x, const float* w, const float* b, int o, int i, int j) {
    double sum = b[o];
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < K; ++r)
            for (int q = 0; q < K; ++q) {
                const int h = i + r - 1, v = j + q - 1;
                if (h < 0 || v < 0 || h >= H || v >= W) continue;
                sum += (double)x[(c * H + h) * W + v] * w[((o * C + c) * K + r) * K + q];
            }
    return sum > 0 ? (float)sum : 0.0f;
}

static rt_operand operand(rt_tensor tensor) {
    rt_operand result = {NULL, tensor, *rt_tensor_desc(tensor)};
    return result;
}

/* The block below is the one in docs/runtime.md, word for word; a test compares them. */
/* [chain] */
static void convolve(rt_device device, const float* x, const float* w, const float* b, float* y) {
    const int64_t shapes[4][4] = {{1, C, H, W}, {O, C, K, K}, {O}, {1, O, H, W}};
    const uint32_t ranks[4] = {4, 4, 1, 4};
    rt_stream stream;
    rt_tensor t[4]; /* x, w, b, y: memory from the pool of the device */
    CHECK(rt_stream_create(device, NULL, &stream));
    for (int i = 0; i < 4; ++i) {
        struct enpu_op_tensor desc;
        CHECK(rt_tensor_desc_init(&desc, ENPU_OP_F32, ranks[i], shapes[i]));
        CHECK(rt_tensor_alloc(stream, &desc, &t[i]));
    }
    CHECK(rt_memcpy_h2d(stream, rt_tensor_data(t[0]), x, rt_tensor_bytes(t[0])));
    CHECK(rt_memcpy_h2d(stream, rt_tensor_data(t[1]), w, rt_tensor_bytes(t[1])));
    CHECK(rt_memcpy_h2d(stream, rt_tensor_data(t[2]), b, rt_tensor_bytes(t[2])));

    rt_kernel kernel;
    CHECK(rt_kernel_lookup(device, "conv2d_fwd", &kernel));
    const struct enpu_op_conv_params params = {
        {1, 1}, {1, 1, 1, 1}, {1, 1}, 1, ENPU_OP_UNARY_RELU, 0, 0};
    const rt_launch_hints hints = {sizeof hints, {H, W, O}, {1, 1, 1}}; /* grid and block */
    const rt_operand operands[ENPU_OP_CONV2D_OPERANDS] = {
        operand(t[0]), operand(t[1]), operand(t[2]), {0}, {0}, operand(t[3])};
    CHECK(rt_kernel_launch(stream, kernel, &hints, &params, sizeof params, operands,
                           ENPU_OP_CONV2D_OPERANDS));
    CHECK(rt_stream_sync(stream, rt_deadline_ms(10000)));
    CHECK(rt_memcpy_d2h(stream, y, rt_tensor_data(t[3]), rt_tensor_bytes(t[3])));

    for (int i = 0; i < 4; ++i) rt_tensor_release(t[i]); /* back to the pool */
    rt_stream_destroy(stream);
}
/* [end of the chain] */

int main(int argc, char** argv) {
    const char* spec = argc > 1 ? argv[1] : getenv("ENPU_DEVICE");
    static float x[C * H * W], w[O * C * K * K], b[O], y[O * H * W];
    for (int i = 0; i < C * H * W; ++i) x[i] = (float)(i * 7 % 23 - 11) / 8;
    for (int i = 0; i < O * C * K * K; ++i) w[i] = (float)(i * 5 % 17 - 8) / 16;
    for (int i = 0; i < O; ++i) b[i] = (float)i / 4;

    rt_device device;
    CHECK(rt_device_open(spec ? spec : "npu", &device));
    convolve(device, x, w, b, y);

    double worst = 0;
    for (int o = 0; o < O; ++o)
        for (int i = 0; i < H; ++i)
            for (int j = 0; j < W; ++j)
                worst = fmax(worst, fabs(y[(o * H + i) * W + j] - expected(x, w, b, o, i, j)));

    rt_device_info info = {.struct_size = sizeof info};
    rt_counters counters = {.struct_size = sizeof counters};
    CHECK(rt_device_get_info(device, &info));
    CHECK(rt_device_get_counters(device, &counters));
    printf("%s: conv2d_fwd ran %llu times, largest error %.2g: %s\n", info.name,
           (unsigned long long)counters.ops[ENPU_OP_CONV2D_FWD], worst,
           worst < 1e-4 ? "right" : "WRONG");

    rt_device_close(device);
    return worst < 1e-4 ? 0 : 1;
}
