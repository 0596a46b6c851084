// SPDX-License-Identifier: MIT
#include "image.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>

#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_NO_SIMD
#define STBI_MAX_DIMENSIONS 16384
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#pragma GCC diagnostic pop

namespace enpu::ocr {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw std::runtime_error("the picture '" + path + "' " + why);
}

std::vector<uint8_t> read_file(const std::string& path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               std::fclose);
    if (!file) refuse(path, "cannot be opened");
    std::vector<uint8_t> bytes;
    std::array<uint8_t, 65536> part;
    while (const size_t n = std::fread(part.data(), 1, part.size(), file.get())) {
        bytes.insert(bytes.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(n));
        if (bytes.size() > kMaxFileBytes) refuse(path, "is larger than 256 MiB");
    }
    if (std::ferror(file.get())) refuse(path, "cannot be read");
    return bytes;
}

// (v / 255 - 0.5) / 0.5 for each byte.
const std::array<float, 256>& normalised() {
    static const std::array<float, 256> kTable = [] {
        std::array<float, 256> table{};
        for (size_t i = 0; i < 256; ++i) table[i] = static_cast<float>(i) / 127.5f - 1.0f;
        return table;
    }();
    return kTable;
}

constexpr int kBits = 16;  // fixed point of coordinates
int64_t fixed(double value) {
    return std::llround(value * (1 << kBits));
}

// Position on one axis: the two pixels and the weight (0 … 256) of the second.
struct Tap {
    int low, high, weight;
};
Tap tap(int64_t position, int size) {
    const int64_t clamped = std::clamp<int64_t>(position, 0, int64_t{size - 1} << kBits);
    const int low = static_cast<int>(clamped >> kBits);
    return {low, std::min(low + 1, size - 1), static_cast<int>(clamped >> (kBits - 8) & 255)};
}

}  // namespace

Image load_image(const std::string& path) {
    const std::vector<uint8_t> bytes = read_file(path);
    if (bytes.empty()) refuse(path, "is empty");
    Image image;
    int channels = 0;
    const std::unique_ptr<stbi_uc, void (*)(void*)> rgb(
        stbi_load_from_memory(bytes.data(), static_cast<int>(bytes.size()), &image.width,
                              &image.height, &channels, 3),
        stbi_image_free);
    if (!rgb)
        refuse(path,
               std::string("is no PNG or JPEG that can be read (") + stbi_failure_reason() + ")");
    const size_t count = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
    image.pixels.resize(count * 3);
    for (size_t i = 0; i < count; ++i) {
        for (size_t c = 0; c < 3; ++c) image.pixels[i * 3 + c] = rgb.get()[i * 3 + 2 - c];
    }
    return image;
}

void sample(const Image& image, const Sampling& where, int used, int width, int height, float* out,
            size_t plane) {
    const auto& table = normalised();
    const int64_t step_x = fixed(where.across.x), step_y = fixed(where.across.y);
    for (int r = 0; r < height; ++r) {
        const double row = r + 0.5;
        int64_t x = fixed(where.origin.x + row * where.down.x + 0.5 * where.across.x - 0.5);
        int64_t y = fixed(where.origin.y + row * where.down.y + 0.5 * where.across.y - 0.5);
        float* to = out + static_cast<size_t>(r) * static_cast<size_t>(width);
        for (int c = 0; c < used; ++c, x += step_x, y += step_y) {
            const Tap h = tap(x, image.width), v = tap(y, image.height);
            const uint8_t *a = image.at(h.low, v.low), *b = image.at(h.high, v.low);
            const uint8_t *d = image.at(h.low, v.high), *e = image.at(h.high, v.high);
            for (size_t channel = 0; channel < 3; ++channel) {
                const int top = a[channel] * (256 - h.weight) + b[channel] * h.weight;
                const int bottom = d[channel] * (256 - h.weight) + e[channel] * h.weight;
                const int value = (top * (256 - v.weight) + bottom * v.weight + (1 << 15)) >> 16;
                to[channel * plane + static_cast<size_t>(c)] = table[static_cast<size_t>(value)];
            }
        }
    }
}

}  // namespace enpu::ocr
