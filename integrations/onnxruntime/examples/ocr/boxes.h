// SPDX-License-Identifier: MIT
// From the detection model's probability map to boxes around lines of text (differentiable
// binarisation).
#ifndef ENPU_OCR_BOXES_H
#define ENPU_OCR_BOXES_H

#include "image.h"

namespace enpu::ocr {

// A rectangle, turned by any angle: top left, top right, bottom right, bottom left in reading
// direction.
struct Box {
    Point corner[4];
    float score = 0;
    float width() const;
    float height() const;
};

struct BoxOptions {
    float threshold = 0.3f;      // of a pixel
    float box_threshold = 0.5f;  // of the mean over a component
    float unclip = 1.6f;         // how far the shrunk regions of the model grow
    float min_side = 3;          // in pixels of the map
    size_t max_boxes = 1000;
};

// `map` is [height, width], values 0 … 1. Boxes are scaled by scale_x, scale_y and come in reading
// order.
std::vector<Box> find_boxes(const float* map, int width, int height, float scale_x, float scale_y,
                            const BoxOptions& options);

// Smallest rectangle of any angle around points (at least one).
Box smallest_rectangle(std::vector<Point> points);

}  // namespace enpu::ocr
#endif
