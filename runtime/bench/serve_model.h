// SPDX-License-Identifier: MIT
// A small picture classifier for the serving benchmark: two convolutions, a mean, a matrix product
// and a softmax. A request brings three colour planes and what they are normalised with.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "rt.hpp"

namespace enpu::bench {

class Model {
  public:
    static constexpr uint32_t kKernels = 7;
    static constexpr int64_t kPlanes = 3, kChannels = 8, kClasses = 10;
    static constexpr int kRequests = 4;  // different ones, used in turn

    Model(const rt::Device& device, uint32_t side) : device_(device), side_(side), stream_(device) {
        weights_ = {load(kChannels * kPlanes * 9), load(kChannels), load(kChannels * kChannels * 9),
                    load(kChannels), load(kChannels * kClasses)};
        rt::check(rt_host_alloc(device.get(), kRequests * input_bytes(), &pinned_));
        for (int i = 0; i < kRequests; ++i) {
            requests_.push_back(noise(input_bytes() / sizeof(float), 100 + i));
            // Apart, as the pieces of real requests are: in an own place each.
            std::memcpy(static_cast<char*>(pinned_) + size_t(i) * input_bytes(),
                        requests_.back().data(), input_bytes());
        }
        for (Memory& memory : own_) {
            memory = allocate(stream_.get());
            memory.graph = record(memory);
        }
        stream_.sync(rt_deadline_ms(20'000));
    }
    ~Model() {
        for (Memory& memory : own_) {
            rt_graph_exec_destroy(memory.graph);
            release(stream_.get(), memory);
        }
        for (rt_graph_exec graph : slot_graphs_) rt_graph_exec_destroy(graph);
        for (void* scratch : slot_scratch_) rt_status_free(rt_free(stream_.get(), scratch));
        for (void* weight : weights_) rt_status_free(rt_free(stream_.get(), weight));
        rt_status_free(rt_host_free(device_.get(), pinned_));
    }
    Model(const Model&) = delete;

    const rt::Device& device() const { return device_; }
    const rt::Stream& stream() const { return stream_; }
    size_t plane_bytes() const { return size_t(side_) * side_ * sizeof(float); }
    // Planes, then scale and shift of each.
    size_t input_bytes() const { return kPlanes * plane_bytes() + 2 * kPlanes * kPart; }
    static constexpr size_t output_bytes() { return kClasses * sizeof(float); }

    // The naive way, on the model's own stream: all memory anew, each copy and kernel waited for.
    void naive(int request, float* answer) const {
        Memory memory = allocate(stream_.get());
        const char* from =
            reinterpret_cast<const char*>(requests_[size_t(request) % kRequests].data());
        for (const auto& [offset, bytes] : parts()) {
            rt::check(rt_memcpy_h2d(stream_.get(), memory.input + offset, from + offset, bytes));
            wait();
        }
        each_kernel(memory, [&](rt_kernel kernel, const void* params, size_t params_bytes,
                                const std::vector<rt_operand>& operands) {
            rt::check(rt_kernel_launch(stream_.get(), kernel, nullptr, params, params_bytes,
                                       operands.data(), uint32_t(operands.size())));
            wait();
        });
        rt::check(rt_memcpy_d2h(stream_.get(), answer, memory.output, output_bytes()));
        wait();
        release(stream_.get(), memory);
    }

    // The pieces of a request in pinned memory.
    std::vector<rt_pipeline_piece> pieces(int request) const {
        const char* from =
            static_cast<const char*>(pinned_) + size_t(request % kRequests) * input_bytes();
        std::vector<rt_pipeline_piece> result;
        for (const auto& [offset, bytes] : parts())
            result.push_back({offset, from + offset, bytes});
        return result;
    }
    // Double buffering: a graph over each slot.
    rt_pipeline make_pipeline(uint32_t slots) const {
        rt_pipeline_desc desc{};
        desc.struct_size = sizeof(desc);
        desc.slots = slots;
        desc.input_bytes = input_bytes();
        desc.output_bytes = output_bytes();
        desc.output_in_place = 1;
        desc.context = const_cast<Model*>(this);
        desc.compute = [](void* context, rt_stream stream, const rt_pipeline_slot* slot) {
            return rt_graph_launch(static_cast<Model*>(context)->slot_graphs_[slot->index], stream);
        };
        rt_pipeline pipeline = nullptr;
        rt::check(rt_pipeline_create(device_.get(), &desc, &pipeline));
        for (uint32_t i = 0; i < slots; ++i) {
            rt_pipeline_slot slot;
            rt::check(rt_pipeline_get_slot(pipeline, i, &slot));
            Memory memory;
            memory.input = static_cast<char*>(slot.input);
            memory.output = static_cast<char*>(slot.output);
            void* scratch = nullptr;
            rt::check(rt_malloc(stream_.get(), 2 * scratch_bytes(), &scratch));
            memory.a = static_cast<char*>(scratch);
            memory.b = memory.a + scratch_bytes();
            slot_scratch_.push_back(scratch);
            slot_graphs_.push_back(record(memory));
        }
        return pipeline;
    }
    // The kernels alone, over one of two sets of memory.
    void run(uint32_t which) const { rt::check(rt_graph_launch(own_[which].graph, stream_.get())); }

  private:
    static constexpr size_t kPart = 64;  // of scale or shift of a plane

    struct Memory {
        char *input = nullptr, *output = nullptr, *a = nullptr, *b = nullptr;
        rt_graph_exec graph = nullptr;
    };
    struct Part {
        size_t offset, bytes;
    };

    std::vector<Part> parts() const {
        std::vector<Part> result;
        for (size_t i = 0; i < kPlanes; ++i) result.push_back({i * plane_bytes(), plane_bytes()});
        for (size_t i = 0; i < 2 * kPlanes; ++i)
            result.push_back({kPlanes * plane_bytes() + i * kPart, sizeof(float)});
        return result;
    }
    size_t scratch_bytes() const { return size_t(kChannels) * plane_bytes(); }
    void wait() const { stream_.sync(rt_deadline_ms(20'000)); }

    static std::vector<float> noise(size_t count, unsigned seed) {
        std::vector<float> values(count);
        for (float& value : values) {
            seed = seed * 1664525 + 1013904223;
            value = float(int(seed >> 16) % 1000 - 500) / 2000;
        }
        return values;
    }
    void* load(int64_t count) const {
        const auto values = noise(size_t(count), unsigned(count));
        void* memory = nullptr;
        rt::check(rt_malloc(stream_.get(), values.size() * sizeof(float), &memory));
        rt::check(
            rt_memcpy_h2d(stream_.get(), memory, values.data(), values.size() * sizeof(float)));
        return memory;
    }
    Memory allocate(rt_stream stream) const {
        Memory memory;
        const auto take = [&](char*& pointer, size_t bytes) {
            void* block = nullptr;
            rt::check(rt_malloc(stream, bytes, &block));
            pointer = static_cast<char*>(block);
        };
        take(memory.input, input_bytes());
        take(memory.output, output_bytes());
        take(memory.a, scratch_bytes());
        take(memory.b, scratch_bytes());
        return memory;
    }
    static void release(rt_stream stream, const Memory& memory) {
        for (char* block : {memory.input, memory.output, memory.a, memory.b})
            rt_status_free(rt_free(stream, block));
    }

    static rt_operand tensor(void* data, std::initializer_list<int64_t> dims) {
        return {data, nullptr, rt::dense(ENPU_OP_F32, dims)};
    }
    // A value for each plane, spread over it.
    rt_operand per_plane(char* data) const {
        rt_operand operand = tensor(data, {1, kPlanes, side_, side_});
        operand.desc.strides[0] = operand.desc.strides[2] = operand.desc.strides[3] = 0;
        operand.desc.strides[1] = kPart / sizeof(float);
        return operand;
    }

    // Calls `go(kernel, params, bytes, operands)` for the kernels in order.
    template <typename Go>
    void each_kernel(const Memory& m, Go go) const {
        const int64_t n = side_;
        const rt_operand picture = tensor(m.input, {1, kPlanes, n, n});
        char* scales = m.input + kPlanes * plane_bytes();
        const rt_operand normal = tensor(m.b, {1, kPlanes, n, n});
        enpu_op_binary_params multiply{ENPU_OP_BINARY_MUL, ENPU_OP_UNARY_IDENTITY, 0, 0};
        go(device_.kernel("binary"), &multiply, sizeof(multiply),
           {picture, per_plane(scales), normal});
        const rt_operand x = tensor(m.a, {1, kPlanes, n, n});
        enpu_op_binary_params add{ENPU_OP_BINARY_ADD, ENPU_OP_UNARY_IDENTITY, 0, 0};
        go(device_.kernel("binary"), &add, sizeof(add),
           {normal, per_plane(scales + kPlanes * kPart), x});
        const enpu_op_conv_params conv{{1, 1}, {1, 1, 1, 1}, {1, 1}, 1, ENPU_OP_UNARY_RELU, 0, 0};
        const rt_operand none{};
        const rt_operand in_a = tensor(m.a, {1, kChannels, n, n});
        const rt_operand in_b = tensor(m.b, {1, kChannels, n, n});
        const auto layer = [&](const rt_operand& from, int64_t channels, size_t weight,
                               const rt_operand& to) {
            go(device_.kernel("conv2d_fwd"), &conv, sizeof(conv),
               {from, tensor(weights_[weight], {kChannels, channels, 3, 3}),
                tensor(weights_[weight + 1], {kChannels}), none, none, to});
        };
        layer(x, kPlanes, 0, in_b);
        layer(in_b, kChannels, 2, in_a);
        const enpu_op_reduce_params mean{ENPU_OP_REDUCE_MEAN, 0b1100};
        go(device_.kernel("reduce"), &mean, sizeof(mean),
           {in_a, tensor(m.b, {1, kChannels, 1, 1})});
        const enpu_op_matmul_params product{ENPU_OP_UNARY_IDENTITY, 0, 0, 1};
        go(device_.kernel("matmul_fwd"), &product, sizeof(product),
           {tensor(m.b, {1, kChannels}), tensor(weights_[4], {kChannels, kClasses}), none, none,
            none, tensor(m.a, {1, kClasses})});
        const enpu_op_softmax_params softmax{1, 0};
        go(device_.kernel("softmax_fwd"), &softmax, sizeof(softmax),
           {tensor(m.a, {1, kClasses}), tensor(m.output, {1, kClasses})});
    }
    rt_graph_exec record(const Memory& memory) const {
        rt_graph graph = nullptr;
        rt::check(rt_graph_create(device_.get(), &graph));
        rt_node node = 0;
        bool first = true;
        each_kernel(memory, [&](rt_kernel kernel, const void* params, size_t bytes,
                                const std::vector<rt_operand>& operands) {
            rt::check(rt_graph_add_kernel(graph, kernel, params, bytes, operands.data(),
                                          uint32_t(operands.size()), &node, first ? 0 : 1, &node));
            first = false;
        });
        rt_graph_exec exec = nullptr;
        rt::check(rt_graph_instantiate(graph, &exec));
        rt_graph_destroy(graph);
        return exec;
    }

    const rt::Device& device_;
    const int64_t side_;
    rt::Stream stream_;
    std::vector<void*> weights_;
    void* pinned_ = nullptr;
    std::vector<std::vector<float>> requests_;
    Memory own_[2];
    // Of the pipeline, which is the last to use them.
    mutable std::vector<rt_graph_exec> slot_graphs_;
    mutable std::vector<void*> slot_scratch_;
};

}  // namespace enpu::bench
