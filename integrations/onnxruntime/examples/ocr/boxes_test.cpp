// SPDX-License-Identifier: MIT
#include "boxes.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>

using namespace enpu::ocr;
using Catch::Approx;

namespace {

struct Map {
    int width, height;
    std::vector<float> data;
    Map(int w, int h) : width(w), height(h), data(static_cast<size_t>(w * h), 0.01f) {}
    void fill(int x0, int y0, int x1, int y1, float value) {
        for (int y = y0; y < y1; ++y)
            for (int x = x0; x < x1; ++x) data[static_cast<size_t>(y * width + x)] = value;
    }
    std::vector<Box> find(float scale_x = 1, float scale_y = 1) const {
        return find_boxes(data.data(), width, height, scale_x, scale_y, {});
    }
};

}  // namespace

TEST_CASE("regions become boxes in reading order, grown on all sides") {
    Map map(100, 60);
    map.fill(60, 10, 90, 16, 0.9f);  // right on the first line, a little higher
    map.fill(10, 12, 40, 18, 0.9f);
    map.fill(10, 40, 50, 46, 0.9f);
    const auto boxes = map.find();
    REQUIRE(boxes.size() == 3);
    CHECK(boxes[0].corner[0].x < boxes[1].corner[0].x);
    CHECK(boxes[2].corner[0].y > boxes[1].corner[0].y);
    // 29 x 5 between pixel centres, grown by area * 1.6 / perimeter
    const float grow = 29 * 5 * 1.6f / (2 * (29 + 5));
    CHECK(boxes[0].corner[0].x == Approx(10 - grow));
    CHECK(boxes[0].corner[0].y == Approx(12 - grow));
    CHECK(boxes[0].width() == Approx(29 + 2 * grow));
    CHECK(boxes[0].height() == Approx(5 + 2 * grow));
}

TEST_CASE("weak, tiny and absent regions give no box; scales apply") {
    Map map(64, 64);
    map.fill(5, 5, 25, 12, 0.4f);    // over the pixel threshold, under that of a box
    map.fill(40, 40, 42, 42, 0.9f);  // too small
    CHECK(map.find().empty());
    map.fill(10, 30, 30, 36, 0.8f);
    const auto boxes = map.find(2, 3);
    REQUIRE(boxes.size() == 1);
    CHECK(boxes[0].score == Approx(0.8f));
    CHECK((boxes[0].corner[0].x + boxes[0].corner[2].x) / 2 == Approx(19.5f * 2));
    CHECK((boxes[0].corner[0].y + boxes[0].corner[2].y) / 2 == Approx(32.5f * 3));
}

TEST_CASE("the smallest rectangle follows the angle of the points") {
    const float angle = 0.3f;
    std::vector<Point> points;
    for (float u : {0.0f, 40.0f})
        for (float v : {0.0f, 8.0f})
            points.push_back({u * std::cos(angle) - v * std::sin(angle),
                              u * std::sin(angle) + v * std::cos(angle)});
    const Box box = smallest_rectangle(points);
    CHECK(box.width() == Approx(40).epsilon(1e-3));
    CHECK(box.height() == Approx(8).epsilon(1e-3));
    CHECK(std::atan2(box.corner[1].y - box.corner[0].y, box.corner[1].x - box.corner[0].x) ==
          Approx(angle).epsilon(1e-3));
}

TEST_CASE("points on one spot or one line make a flat rectangle, no crash") {
    CHECK(smallest_rectangle({{3, 4}}).width() == 0);
    CHECK(smallest_rectangle({{0, 0}, {10, 0}, {5, 0}}).height() == 0);
}

TEST_CASE("sampling repeats the edge and turns the picture") {
    Image image{2, 2, {0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 255}};
    std::vector<float> out(3 * 4);
    sample(image, {{0, 0}, {1, 0}, {0, 1}}, 2, 2, 2, out.data(), 4);
    CHECK(out[0] == -1.0f);
    CHECK(out[1] == 1.0f);
    CHECK(out[2] == 1.0f);   // blue plane, second row
    CHECK(out[11] == 1.0f);  // red plane, last pixel
    std::vector<float> far(3);
    sample(image, {{-50, -50}, {1, 0}, {0, 1}}, 1, 1, 1, far.data(), 1);
    CHECK(far == std::vector<float>{-1, -1, -1});
}
