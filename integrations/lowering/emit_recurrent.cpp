// SPDX-License-Identifier: MIT
// LSTM, GRU, RNN: the products with the input for all steps at once, then the steps one by one.
#include <functional>

#include "blocks.h"
#include "emit_common.h"
#include "shapes.h"

namespace enpu::lowering {
namespace {

constexpr int64_t kMaxSteps = 512;  // each step is a handful of kernels

uint32_t activation_function(const std::string& name) {
    if (name == "Sigmoid") return ENPU_OP_UNARY_SIGMOID;
    if (name == "Tanh") return ENPU_OP_UNARY_TANH;
    if (name == "Relu") return ENPU_OP_UNARY_RELU;
    fail("activation '" + name + "' is unsupported");
}

// One direction of a layer. States are [B, H], views of one step [B, …].
struct Direction {
    Emitter& e;
    const Node& node;
    View r;         // [G*H, H] of this direction
    View bias_r;    // [G*H] or absent
    View peephole;  // [3*H] or absent
    View h, c;      // the state
    std::vector<uint32_t> functions;
    int64_t hidden = 0;

    View gate(const View& all, int64_t index) const {
        return part(all, all.dims.size() - 1, index * hidden, hidden);
    }
    View rows(const View& weights, int64_t index, int64_t count = 1) const {
        return part(weights, 0, index * hidden, count * hidden);
    }
    View product(const View& x, const View& weights, const View& bias) const {
        return matmul(e, x, swapped(weights, 0, 1), 1, bias);
    }
    View add(const View& a, const View& b) const { return binary(e, ENPU_OP_BINARY_ADD, a, b); }
    View mul(const View& a, const View& b) const { return binary(e, ENPU_OP_BINARY_MUL, a, b); }
    View apply(size_t function, const View& x) const { return unary(e, functions[function], x); }
    View peeped(const View& x, int64_t index, const View& state) const {
        return peephole.absent() ? x : add(x, mul(gate(peephole, index), state));
    }
};

// gates are i, o, f, c
void lstm_step(Direction& d, const View& x) {
    const View gates = d.add(x, d.product(d.h, d.r, d.bias_r));
    const View i = d.apply(0, d.peeped(d.gate(gates, 0), 0, d.c));
    const View f = d.apply(0, d.peeped(d.gate(gates, 2), 2, d.c));
    const View candidate = d.apply(1, d.gate(gates, 3));
    d.c = d.add(d.mul(f, d.c), d.mul(i, candidate));
    const View o = d.apply(0, d.peeped(d.gate(gates, 1), 1, d.c));
    d.h = d.mul(o, d.apply(2, d.c));
}

// gates are z, r, h
void gru_step(Direction& d, const View& x) {
    const auto bias = [&](int64_t index, int64_t count) {
        return d.bias_r.absent() ? View{} : d.rows(d.bias_r, index, count);
    };
    const View zr = binary(d.e, ENPU_OP_BINARY_ADD, part(x, 1, 0, 2 * d.hidden),
                           d.product(d.h, d.rows(d.r, 0, 2), bias(0, 2)));
    const View both = d.apply(0, zr), z = d.gate(both, 0), r = d.gate(both, 1);
    View candidate;
    if (d.node.integer("linear_before_reset", 0)) {
        candidate = d.mul(r, d.product(d.h, d.rows(d.r, 2), bias(2, 1)));
    } else {
        candidate = d.product(d.mul(r, d.h), d.rows(d.r, 2), bias(2, 1));
    }
    candidate = d.apply(1, d.add(d.gate(x, 2), candidate));
    // (1 - z) candidate + z h
    const View change = d.mul(z, binary(d.e, ENPU_OP_BINARY_SUB, d.h, candidate));
    d.h = d.add(candidate, change);
}

void rnn_step(Direction& d, const View& x) {
    d.h = d.apply(0, d.add(x, d.product(d.h, d.r, d.bias_r)));
}

struct Kind {
    int64_t gates;
    std::vector<std::string> functions;
    void (*step)(Direction&, const View&);
};

const std::map<std::string, Kind>& kinds() {
    static const std::map<std::string, Kind> kTable = {
        {"LSTM", {4, {"Sigmoid", "Tanh", "Tanh"}, lstm_step}},
        {"GRU", {3, {"Sigmoid", "Tanh"}, gru_step}},
        {"RNN", {1, {"Tanh"}, rnn_step}},
    };
    return kTable;
}

std::vector<std::string> names_of(const Node& node, const Kind& kind, size_t direction) {
    const auto it = node.attributes.find("activations");
    if (it == node.attributes.end()) return kind.functions;
    const auto* given = std::get_if<std::vector<std::string>>(&it->second);
    const size_t count = kind.functions.size();
    if (!given || given->size() < (direction + 1) * count) fail("activations are incomplete");
    const auto first = given->begin() + static_cast<std::ptrdiff_t>(direction * count);
    return {first, first + static_cast<std::ptrdiff_t>(count)};
}

View direction_of(const View& view, size_t index) {
    return without_axis(part(view, 0, static_cast<int64_t>(index), 1), 0);
}

// The steps that count for each sequence of the batch; empty when that is all.
std::vector<int64_t> lengths_of(Emitter& e, const Node& node, const View& x) {
    if (node.input(4) < 0) return {};
    auto lengths = e.integers(node.inputs[4], "the lengths of the sequences");
    if (lengths.size() != static_cast<size_t>(x.dims[1])) fail("one length a sequence is needed");
    bool whole = true;
    for (int64_t length : lengths) {
        if (length < 0 || length > x.dims[0]) fail("a length is out of range");
        whole = whole && length == x.dims[0];
    }
    return whole ? std::vector<int64_t>{} : lengths;
}

// BOOL [B, 1]: whether step t is inside each sequence.
View inside(Emitter& e, const std::vector<int64_t>& lengths, int64_t t) {
    const auto batch = static_cast<int64_t>(lengths.size());
    HostTensor flags = make_table(ENPU_OP_BOOL, {batch, 1});
    for (int64_t b = 0; b < batch; ++b) {
        store(flags, b, int64_t{t < lengths[static_cast<size_t>(b)]});
    }
    return e.upload(std::make_shared<const HostTensor>(std::move(flags)));
}

struct Layer {
    View x;  // [T, B, I]
    std::vector<int64_t> lengths;
    View y;  // [T, D, B, H]
};

Direction make_direction(Emitter& e, const Node& node, const Layer& layer, size_t index) {
    const Kind& kind = kinds().at(node.op);
    Direction d{e, node, direction_of(e.device(node.input(2)), index), {}, {}, {}, {}, {}, 0};
    d.hidden = d.r.dims.back();
    if (d.r.dims[0] != kind.gates * d.hidden) fail("R has other dims than hidden_size asks");
    for (const std::string& name : names_of(node, kind, index)) {
        d.functions.push_back(activation_function(name));
    }
    if (node.input(3) >= 0) {
        d.bias_r = d.rows(direction_of(e.device(node.inputs[3]), index), kind.gates, kind.gates);
    }
    const Dims state = {layer.x.dims[1], d.hidden};
    const auto initial = [&](int value) {
        if (value < 0) return e.broadcast(scalar(e, layer.x.dtype, 0), state);
        const View given = e.device(value);
        return direction_of(node.integer("layout", 0) ? swapped(given, 0, 1) : given, index);
    };
    d.h = initial(node.input(5));
    if (node.op == "LSTM") {
        d.c = initial(node.input(6));
        if (node.input(7) >= 0) d.peephole = direction_of(e.device(node.inputs[7]), index);
    }
    return d;
}

void run_direction(Direction& d, const Layer& layer, size_t index, bool backwards) {
    const Kind& kind = kinds().at(d.node.op);
    const View w = direction_of(d.e.device(d.node.input(1)), index);
    View bias;
    if (d.node.input(3) >= 0) {
        bias = d.rows(direction_of(d.e.device(d.node.inputs[3]), index), 0, kind.gates);
    }
    const int64_t steps = layer.x.dims[0], batch = layer.x.dims[1];
    const View flat = d.e.reshape(layer.x, {steps * batch, layer.x.dims[2]});
    const View projected =
        d.e.reshape(d.product(flat, w, bias), {steps, batch, kind.gates * d.hidden});
    for (int64_t i = 0; i < steps; ++i) {
        const int64_t t = backwards ? steps - 1 - i : i;
        const View h = d.h, c = d.c;
        kind.step(d, without_axis(part(projected, 0, t, 1), 0));
        const View slot =
            without_axis(part(direction_of(swapped(layer.y, 0, 1), index), 0, t, 1), 0);
        if (layer.lengths.empty()) {
            d.e.move(d.h, slot);
            continue;
        }
        const View valid = inside(d.e, layer.lengths, t);
        d.e.move(select(d.e, valid, d.h, scalar(d.e, d.h.dtype, 0)), slot);
        d.h = select(d.e, valid, d.h, h);
        if (!c.absent()) d.c = select(d.e, valid, d.c, c);
    }
}

void emit_recurrent(Emitter& e, const Node& node) {
    if (node.outputs.size() > (node.op == "LSTM" ? 3 : 2)) fail("it has no such output");
    if (node.has("clip")) fail("clip is unsupported");
    if (node.integer("input_forget", 0)) fail("input_forget is unsupported");
    if (node.has("activation_alpha") || node.has("activation_beta")) {
        fail("parameters of activations are unsupported");
    }
    const bool batch_first = node.integer("layout", 0) != 0;
    Layer layer;
    layer.x = e.device(node.input(0));
    if (layer.x.dims.size() != 3) fail("the input must have rank 3");
    if (batch_first) layer.x = swapped(layer.x, 0, 1);
    if (layer.x.dims[0] > kMaxSteps) fail("more than 512 steps are unsupported");
    layer.lengths = lengths_of(e, node, layer.x);
    for (size_t i : {1, 2})
        if (e.dims(node.input(i)).size() != 3) fail("W and R must have rank 3");
    for (size_t i : {5, 6})
        if (node.input(i) >= 0 && e.dims(node.input(i)).size() != 3)
            fail("initial states must have rank 3");
    for (size_t i : {3, 7})
        if (node.input(i) >= 0 && e.dims(node.input(i)).size() != 2)
            fail("B and P must have rank 2");
    const std::string way = node.text("direction", "forward");
    const size_t directions = way == "bidirectional" ? 2 : 1;
    const int64_t hidden = e.dims(node.input(2)).back();
    layer.y = e.temporary(layer.x.dtype, {layer.x.dims[0], static_cast<int64_t>(directions),
                                          layer.x.dims[1], hidden});
    std::vector<View> last_h, last_c;
    for (size_t i = 0; i < directions; ++i) {
        Direction d = make_direction(e, node, layer, i);
        run_direction(d, layer, i, way == "reverse" || i == 1);
        last_h.push_back(with_axis(d.h, 0));
        if (!d.c.absent()) last_c.push_back(with_axis(d.c, 0));
    }
    const auto output = [&](size_t i, const View& view) {
        if (i < node.outputs.size()) e.define(node.outputs[i], view);
    };
    const auto state = [&](const std::vector<View>& parts) {
        const View joined = join(e, parts, 0);
        return batch_first ? swapped(joined, 0, 1) : joined;
    };
    output(0, batch_first ? transpose_view(layer.y, {2, 0, 1, 3}) : layer.y);
    if (node.outputs.size() > 1) output(1, state(last_h));
    if (node.outputs.size() > 2) output(2, state(last_c));
}

}  // namespace

const EmitTable& recurrent_emitters() {
    static const EmitTable kTable = {
        {"LSTM", emit_recurrent}, {"GRU", emit_recurrent}, {"RNN", emit_recurrent}};
    return kTable;
}

}  // namespace enpu::lowering
