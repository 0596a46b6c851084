// SPDX-License-Identifier: MIT
#include "boxes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace enpu::ocr {
namespace {

float distance(const Point& a, const Point& b) {
    return std::hypot(a.x - b.x, a.y - b.y);
}

float cross(const Point& o, const Point& a, const Point& b) {
    return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

// Convex hull (monotone chain), counter-clockwise in a y-down plane.
std::vector<Point> convex_hull(std::vector<Point> points) {
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
        return a.x < b.x || (a.x == b.x && a.y < b.y);
    });
    if (points.size() < 3) return points;
    std::vector<Point> hull(2 * points.size());
    size_t k = 0;
    for (const Point& p : points) {
        while (k >= 2 && cross(hull[k - 2], hull[k - 1], p) <= 0) --k;
        hull[k++] = p;
    }
    const size_t lower = k + 1;
    for (size_t i = points.size() - 1; i-- > 0;) {
        while (k >= lower && cross(hull[k - 2], hull[k - 1], points[i]) <= 0) --k;
        hull[k++] = points[i];
    }
    hull.resize(k > 1 ? k - 1 : k);
    return hull;
}

// Corners so that the text reads from corner 0 to corner 1: the two leftmost ones are the left
// side.
void order_corners(Box& box) {
    std::sort(std::begin(box.corner), std::end(box.corner),
              [](const Point& a, const Point& b) { return a.x < b.x; });
    Point* c = box.corner;
    if (c[0].y > c[1].y) std::swap(c[0], c[1]);
    if (c[2].y > c[3].y) std::swap(c[2], c[3]);
    const Point top_left = c[0], bottom_left = c[1], top_right = c[2], bottom_right = c[3];
    c[0] = top_left;
    c[1] = top_right;
    c[2] = bottom_right;
    c[3] = bottom_left;
}

// The rectangle grown on all sides by area * ratio / perimeter.
Box unclipped(const Box& box, float ratio) {
    const float w = box.width(), h = box.height();
    const float grow = w * h * ratio / (2 * (w + h));
    const Point* c = box.corner;
    const Point right = {(c[1].x - c[0].x) / w * grow, (c[1].y - c[0].y) / w * grow};
    const Point down = {(c[3].x - c[0].x) / h * grow, (c[3].y - c[0].y) / h * grow};
    Box result = box;
    const float sign_x[4] = {-1, 1, 1, -1}, sign_y[4] = {-1, -1, 1, 1};
    for (size_t i = 0; i < 4; ++i) {
        result.corner[i].x += sign_x[i] * right.x + sign_y[i] * down.x;
        result.corner[i].y += sign_x[i] * right.y + sign_y[i] * down.y;
    }
    return result;
}

// Connected pixels over the threshold, one component at a time.
class Components {
  public:
    Components(const float* map, int width, int height, float threshold)
        : map_(map),
          width_(width),
          height_(height),
          marks_(static_cast<size_t>(width) * static_cast<size_t>(height)) {
        // Values are not negative, so their bits compare like integers.
        const auto limit = std::bit_cast<int32_t>(threshold);
        const auto* bits = reinterpret_cast<const int32_t*>(map);
        for (size_t i = 0; i < marks_.size(); ++i) marks_[i] = bits[i] > limit;
    }

    // The next component's outline (two points a row) and mean value; false when there is none.
    bool next(std::vector<Point>& outline, float& mean) {
        while (cursor_ < marks_.size() && !marks_[cursor_]) ++cursor_;
        if (cursor_ == marks_.size()) return false;
        fill(static_cast<int>(cursor_));
        outline.clear();
        double sum = 0;
        for (int pixel : pixels_) sum += map_[pixel];
        mean = static_cast<float>(sum / static_cast<double>(pixels_.size()));
        for (const auto& [row, span] : spans_) {
            outline.push_back({static_cast<float>(span.first), static_cast<float>(row)});
            outline.push_back({static_cast<float>(span.second), static_cast<float>(row)});
        }
        return true;
    }

  private:
    void fill(int start) {
        pixels_.assign(1, start);
        spans_.clear();
        marks_[static_cast<size_t>(start)] = 0;
        int first = height_, last = -1;
        left_.resize(static_cast<size_t>(height_), width_);
        right_.resize(static_cast<size_t>(height_), -1);
        for (size_t i = 0; i < pixels_.size(); ++i) {
            const int x = pixels_[i] % width_, y = pixels_[i] / width_;
            first = std::min(first, y);
            last = std::max(last, y);
            left_[static_cast<size_t>(y)] = std::min(left_[static_cast<size_t>(y)], x);
            right_[static_cast<size_t>(y)] = std::max(right_[static_cast<size_t>(y)], x);
            for (int v = std::max(y - 1, 0); v <= std::min(y + 1, height_ - 1); ++v) {
                for (int u = std::max(x - 1, 0); u <= std::min(x + 1, width_ - 1); ++u) {
                    uint8_t& mark = marks_[static_cast<size_t>(v * width_ + u)];
                    if (mark) pixels_.push_back(v * width_ + u);
                    mark = 0;
                }
            }
        }
        for (int y = first; y <= last; ++y) {
            const auto row = static_cast<size_t>(y);
            spans_.push_back({y, {left_[row], right_[row]}});
            left_[row] = width_;
            right_[row] = -1;
        }
    }

    const float* map_;
    int width_, height_;
    std::vector<uint8_t> marks_;
    size_t cursor_ = 0;
    std::vector<int> pixels_, left_, right_;
    std::vector<std::pair<int, std::pair<int, int>>> spans_;
};

// Lines from top to bottom; boxes of one line from left to right.
void reading_order(std::vector<Box>& boxes) {
    auto middle = [](const Box& box) { return (box.corner[0].y + box.corner[3].y) / 2; };
    std::sort(boxes.begin(), boxes.end(),
              [&](const Box& a, const Box& b) { return middle(a) < middle(b); });
    for (size_t begin = 0; begin < boxes.size();) {
        size_t end = begin + 1;
        while (end < boxes.size() &&
               middle(boxes[end]) - middle(boxes[end - 1]) < boxes[end - 1].height() / 2)
            ++end;
        std::sort(boxes.begin() + static_cast<std::ptrdiff_t>(begin),
                  boxes.begin() + static_cast<std::ptrdiff_t>(end),
                  [](const Box& a, const Box& b) { return a.corner[0].x < b.corner[0].x; });
        begin = end;
    }
}

}  // namespace

float Box::width() const {
    return distance(corner[0], corner[1]);
}
float Box::height() const {
    return distance(corner[0], corner[3]);
}

Box smallest_rectangle(std::vector<Point> points) {
    const std::vector<Point> hull = convex_hull(std::move(points));
    Box best;
    float best_area = INFINITY;
    for (size_t i = 0; i < hull.size(); ++i) {
        const Point a = hull[i], b = hull[(i + 1) % hull.size()];
        const float length = distance(a, b);
        const Point u =
            length > 0 ? Point{(b.x - a.x) / length, (b.y - a.y) / length} : Point{1, 0};
        float low_u = INFINITY, high_u = -INFINITY, low_v = INFINITY, high_v = -INFINITY;
        for (const Point& p : hull) {
            const float along = p.x * u.x + p.y * u.y, across = p.y * u.x - p.x * u.y;
            low_u = std::min(low_u, along);
            high_u = std::max(high_u, along);
            low_v = std::min(low_v, across);
            high_v = std::max(high_v, across);
        }
        const float area = (high_u - low_u) * (high_v - low_v);
        if (area >= best_area) continue;
        best_area = area;
        const float along[4] = {low_u, high_u, high_u, low_u},
                    across[4] = {low_v, low_v, high_v, high_v};
        for (size_t k = 0; k < 4; ++k) {
            best.corner[k] = {along[k] * u.x - across[k] * u.y, along[k] * u.y + across[k] * u.x};
        }
    }
    order_corners(best);
    return best;
}

std::vector<Box> find_boxes(const float* map, int width, int height, float scale_x, float scale_y,
                            const BoxOptions& options) {
    std::vector<Box> boxes;
    Components components(map, width, height, options.threshold);
    std::vector<Point> outline;
    float mean = 0;
    while (boxes.size() < options.max_boxes && components.next(outline, mean)) {
        if (mean < options.box_threshold) continue;
        Box box = smallest_rectangle(outline);
        if (std::min(box.width(), box.height()) < options.min_side) continue;
        box = unclipped(box, options.unclip);
        box.score = mean;
        for (Point& c : box.corner) c = {c.x * scale_x, c.y * scale_y};
        boxes.push_back(box);
    }
    reading_order(boxes);
    return boxes;
}

}  // namespace enpu::ocr
