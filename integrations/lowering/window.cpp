// SPDX-License-Identifier: MIT
// Windows of convolutions and pools.
#include <algorithm>

#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

constexpr int64_t kMaxWindow = 1 << 20;

void copy_pair(const std::vector<int64_t>& from, size_t spatial, int64_t (&to)[2],
               const char* what) {
    if (from.empty()) return;
    if (from.size() != spatial) fail(std::string(what) + " has the wrong length");
    for (size_t i = 0; i < spatial; ++i) {
        if (from[i] < 1 || from[i] > kMaxWindow) fail(std::string(what) + " is out of range");
        to[2 - spatial + i] = from[i];
    }
}

}  // namespace

Window read_window(const Node& node, size_t spatial, const std::vector<int64_t>& kernel) {
    Window w;
    copy_pair(kernel, spatial, w.kernel, "kernel_shape");
    copy_pair(node.integers("strides"), spatial, w.stride, "strides");
    copy_pair(node.integers("dilations"), spatial, w.dilation, "dilations");
    const auto pads = node.integers("pads");
    if (pads.empty()) return w;
    if (pads.size() != 2 * spatial) fail("pads has the wrong length");
    for (size_t i = 0; i < spatial; ++i) {
        w.pad[2 - spatial + i] = pads[i];
        w.pad[4 - spatial + i] = pads[spatial + i];
    }
    for (int64_t pad : w.pad) {
        if (pad < 0 || pad > kMaxWindow) fail("pads is out of range");
    }
    return w;
}

void resolve_auto_pad(const Node& node, const Dims& input, Window& w) {
    const std::string mode = node.text("auto_pad", "NOTSET");
    if (mode == "NOTSET" || mode.empty()) return;
    std::fill(std::begin(w.pad), std::end(w.pad), int64_t{0});
    if (mode == "VALID") return;
    if (mode != "SAME_UPPER" && mode != "SAME_LOWER") fail("auto_pad '" + mode + "' is unknown");
    for (size_t i = 0; i < 2; ++i) {
        const int64_t in = input[2 + i];
        const int64_t out = (in + w.stride[i] - 1) / w.stride[i];
        const int64_t window = w.dilation[i] * (w.kernel[i] - 1) + 1;
        const int64_t total = std::max<int64_t>((out - 1) * w.stride[i] + window - in, 0);
        const int64_t small = total / 2;
        w.pad[i] = mode == "SAME_UPPER" ? small : total - small;
        w.pad[2 + i] = total - w.pad[i];
    }
}

View as_image(const Emitter&, const View& view, const char* what) {
    if (view.dims.size() == 4) return view;
    if (view.dims.size() != 3) {
        fail(std::string(what) + " of rank " + std::to_string(view.dims.size()) +
             ": one or two spatial dims are supported");
    }
    View image = view;
    image.dims.insert(image.dims.begin() + 2, 1);
    image.strides.insert(image.strides.begin() + 2,
                         view.dims[2] * std::max<int64_t>(view.strides[2], 1));
    return image;
}

View from_image(const View& view, size_t rank) {
    if (rank == 4) return view;
    View result = view;
    result.dims.erase(result.dims.begin() + 2);
    result.strides.erase(result.strides.begin() + 2);
    return result;
}

}  // namespace enpu::lowering
