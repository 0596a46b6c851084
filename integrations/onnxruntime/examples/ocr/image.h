// SPDX-License-Identifier: MIT
// Pictures, and resampling with integers only: an emulated CPU is slow at everything else.
#ifndef ENPU_OCR_IMAGE_H
#define ENPU_OCR_IMAGE_H

#include <cstdint>
#include <string>
#include <vector>

namespace enpu::ocr {

// 8-bit BGR (the order that the models were trained with), row-major.
struct Image {
    int width = 0;
    int height = 0;
    std::vector<uint8_t> pixels;
    const uint8_t* at(int x, int y) const {
        return pixels.data() +
               (static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x)) * 3;
    }
};

// PNG or JPEG, at most 16384 pixels a side. Throws std::runtime_error that names the file and the
// reason.
Image load_image(const std::string& path);

struct Point {
    float x = 0;
    float y = 0;
};

// Fills a planar float tensor [3, height, width] at `out` (planes `plane` floats apart, rows
// `width` wide of which `used` columns are written) with (pixel / 255 - 0.5) / 0.5, sampled
// bilinearly. Column c, row r is taken from origin + (c + 0.5) * across + (r + 0.5) * down - (0.5,
// 0.5) of the image; outside, the edge repeats.
struct Sampling {
    Point origin, across, down;
};
void sample(const Image& image, const Sampling& where, int used, int width, int height, float* out,
            size_t plane);

}  // namespace enpu::ocr
#endif
