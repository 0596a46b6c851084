// SPDX-License-Identifier: MIT
// Sends a text through device-local memory and back: the smallest program that uses a device.
//     enpu-copy [DEVICE]      DEVICE as enpu_device_open takes it: /dev/accel/accel0, sim, …
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <enpu/enpu.hpp>

namespace {

constexpr char kText[] = "from host memory to the device and back";
constexpr uint64_t kSecond = 1'000'000'000;

void run(const char* spec) {
    const auto device = enpu::Device::open(spec);
    const auto in = enpu::Buffer::create(device, sizeof(kText), ENPU_BUFFER_HOST);
    const auto local = enpu::Buffer::create(device, sizeof(kText), ENPU_BUFFER_LOCAL);
    const auto out = enpu::Buffer::create(device, sizeof(kText), ENPU_BUFFER_HOST);
    std::memcpy(in.map().data(), kText, sizeof(kText));

    enpu::Builder builder(device, ENPU_ENGINE_KIND_COPY);
    enpu::check([&](enpu_error* e) {
        return enpu_build_copy(builder.get(), local.get(), 0, in.get(), 0, sizeof(kText), e);
    });
    enpu::check([&](enpu_error* e) {
        return enpu_build_copy(builder.get(), out.get(), 0, local.get(), 0, sizeof(kText), e);
    });
    const auto command = builder.finish();

    const auto context = enpu::Context::create(device);
    const auto timeline = enpu::Timeline::create(device);
    context.submit(device.info().compute_engines, command, {}, {timeline.at(1)});
    context.wait(timeline, 1, enpu_deadline_after(10 * kSecond));
    std::printf("%s: \"%s\"\n", device.info().spec,
                reinterpret_cast<const char*>(out.map().data()));
}

}  // namespace

int main(int argc, char** argv) {
    try {
        run(argc > 1 ? argv[1] : nullptr);
        return 0;
    } catch (const enpu::Error& error) {
        std::fprintf(stderr, "enpu-copy: %s\n", error.what());
        return 1;
    }
}
