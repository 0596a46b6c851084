// SPDX-License-Identifier: MIT
#include "work.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <enpu/enpu.hpp>
#include <stdexcept>

namespace enpu::faults {
namespace {

// What every client has: an address space, a context, a timeline.
struct Line {
    Device device = Device::open(nullptr);
    Context context;
    Timeline timeline = Timeline::create(device);
    uint64_t point = 0, settled = 0;

    Line() {
        const enpu_context_config config{ENPU_PRIORITY_NORMAL, kTimeoutMs, 0, 0};
        context = Context::create(device, &config);
    }
    // Jobs that nobody has waited for, as another failed first.
    ~Line() {
        try {
            settle();
        } catch (const Error&) {
        }
    }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    void submit(uint32_t engine, const Command& command) {
        context.submit(engine, command, {}, {timeline.at(point + 1)}, point + 1);
        point++;
        tally()->submitted++;
    }
    void wait() {
        try {
            context.wait(timeline, point, enpu_deadline_after(kRoundLimitNs));
        } catch (const Error& error) {
            if (error.code() != -ETIME) tell_settled();
            throw;
        }
        tell_settled();
    }
    // Waits for the end of all, whatever it is.
    void settle() {
        try {
            if (settled < point) wait();
        } catch (const Error& error) {
            if (error.code() == -ETIME) throw;
        }
    }
    void tell_settled() {
        tally()->settled += point - settled;
        settled = point;
    }
    uint32_t copy_engine(uint64_t number) const {
        const auto& info = device.info();
        return info.compute_engines + static_cast<uint32_t>(number % info.copy_engines);
    }
};

void add_copy(Builder& builder, const Buffer& to, const Buffer& from, uint64_t bytes) {
    check([&](enpu_error* e) {
        return enpu_build_copy(builder.get(), to.get(), 0, from.get(), 0, bytes, e);
    });
}

uint32_t word_of(unsigned client, uint64_t number, size_t index) {
    return static_cast<uint32_t>(number * 2654435761u + client * 40503u + index * 2246822519u);
}

void fill(std::span<uint32_t> words, unsigned client, uint64_t number) {
    for (size_t i = 0; i < words.size(); i++) words[i] = word_of(client, number, i);
}

bool right(std::span<const uint32_t> words, unsigned client, uint64_t number) {
    for (size_t i = 0; i < words.size(); i++)
        if (words[i] != word_of(client, number, i)) return false;
    return true;
}

// Host memory to local memory and back, in two jobs on both copy engines; now and then a buffer is
// freed and made again, which unmaps it.
class CopyWork : public Work {
  public:
    explicit CopyWork(unsigned client) : client_(client) { make_commands(); }

    bool round(uint64_t number) override {
        if (number % 4 == 3) make_commands();
        fill(in_.map<uint32_t>(), client_, number);
        std::memset(out_.map().data(), 0, kBytes);
        line_.submit(line_.copy_engine(number), there_);
        line_.wait();
        line_.submit(line_.copy_engine(number + 1), back_);
        line_.wait();
        return right(out_.map<uint32_t>(), client_, number);
    }

  private:
    static constexpr uint64_t kBytes = 32768;

    void make_commands() {
        in_ = Buffer::create(line_.device, kBytes, ENPU_BUFFER_HOST);
        local_ = Buffer::create(line_.device, kBytes, ENPU_BUFFER_LOCAL);
        out_ = Buffer::create(line_.device, kBytes, ENPU_BUFFER_HOST);
        Builder builder(line_.device, ENPU_ENGINE_KIND_COPY);
        add_copy(builder, local_, in_, kBytes);
        there_ = builder.finish();
        add_copy(builder, out_, local_, kBytes);
        back_ = builder.finish();
    }

    unsigned client_;
    Line line_;
    Buffer in_, local_, out_;
    Command there_, back_;
};

enpu_operand operand(const Buffer& buffer, uint64_t offset, std::initializer_list<uint32_t> dims) {
    enpu_operand o{buffer.get(), offset, {}};
    check([&](enpu_error* e) {
        return enpu_tensor_init(&o.tensor, ENPU_DTYPE_F32, static_cast<uint32_t>(dims.size()),
                                dims.begin(), e);
    });
    return o;
}

// A small classifier: two convolutions, pooling, a matrix product and a softmax, one command.
class ModelWork : public Work {
  public:
    explicit ModelWork(unsigned client) : client_(client) {
        auto weights = weights_.map<float>();
        for (size_t i = 0; i < weights.size(); i++)
            weights[i] = 0.25f - static_cast<float>(i * 7919 % 101) / 200.0f;
        build();
    }

    std::vector<float> run(uint64_t number) {
        auto x = x_.map<float>();
        for (size_t i = 0; i < x.size(); i++)
            x[i] = static_cast<float>((i * 31 + number % kModelInputs * 17) % 64) / 64.0f;
        auto y = y_.map<float>();
        std::memset(y.data(), 0xff, y.size_bytes());
        line_.submit(static_cast<uint32_t>(client_ % line_.device.info().compute_engines),
                     command_);
        line_.wait();
        return {y.begin(), y.begin() + kModelOutputs};
    }

    bool round(uint64_t number) override {
        // Something is unmapped now and then, as in programs that prepare their next input.
        if (number % 4 == 3) Buffer::create(line_.device, 4096, ENPU_BUFFER_HOST);
        const auto result = run(number), &want = golden().at(number % kModelInputs);
        return std::memcmp(result.data(), want.data(), want.size() * sizeof(float)) == 0;
    }

  private:
    void build() {
        Builder builder(line_.device, ENPU_ENGINE_KIND_COMPUTE);
        const auto x = operand(x_, 0, {1, 3, 18, 18}), w1 = operand(weights_, 0, {8, 3, 3, 3}),
                   h1 = operand(hidden_, 0, {1, 8, 16, 16}),
                   w2 = operand(weights_, 4096, {8, 8, 3, 3}),
                   h2 = operand(hidden_, 16384, {1, 8, 14, 14}),
                   h3 = operand(hidden_, 32768, {1, 8, 7, 7}),
                   row = operand(hidden_, 32768, {1, 392}),
                   w3 = operand(weights_, 16384, {392, kModelOutputs}),
                   scores = operand(hidden_, 40960, {1, kModelOutputs}),
                   y = operand(y_, 0, {1, kModelOutputs});
        const enpu_conv2d_params conv = {{1, 1}, {0, 0, 0, 0}, {1, 1}, 1, ENPU_UNARY_RELU, 0, 0};
        enpu_pool_params pool{};
        pool.function = ENPU_POOL_MAX;
        pool.kernel[0] = pool.kernel[1] = pool.stride[0] = pool.stride[1] = 2;
        pool.dilation[0] = pool.dilation[1] = 1;
        const enpu_matmul_params product = {ENPU_UNARY_IDENTITY, 0, 0, 0};
        const enpu_softmax_params softmax = {1, 0};
        auto* b = builder.get();
        check([&](enpu_error* e) {
            return enpu_build_conv2d(b, &conv, &x, &w1, nullptr, nullptr, nullptr, &h1, e);
        });
        check([&](enpu_error* e) {
            return enpu_build_conv2d(b, &conv, &h1, &w2, nullptr, nullptr, nullptr, &h2, e);
        });
        check([&](enpu_error* e) { return enpu_build_pool(b, &pool, &h2, &h3, e); });
        check([&](enpu_error* e) {
            return enpu_build_matmul(b, &product, &row, &w3, nullptr, nullptr, nullptr, &scores, e);
        });
        check([&](enpu_error* e) { return enpu_build_softmax(b, &softmax, &scores, &y, e); });
        command_ = builder.finish();
    }

    unsigned client_;
    Line line_;
    Buffer x_ = Buffer::create(line_.device, 3 * 18 * 18 * 4, ENPU_BUFFER_HOST),
           weights_ = Buffer::create(line_.device, 65536, ENPU_BUFFER_HOST),
           hidden_ = Buffer::create(line_.device, 65536, ENPU_BUFFER_LOCAL),
           y_ = Buffer::create(line_.device, 4096, ENPU_BUFFER_HOST);
    Command command_;
};

// Two open devices share a buffer by PRIME: one writes it, the other, in an address space and a
// context of its own, reads it. Only the buffer's own fences order the two.
class ShareWork : public Work {
  public:
    explicit ShareWork(unsigned client) : client_(client) {
        int fd = -1;
        check([&](enpu_error* e) { return enpu_buffer_export(shared_.get(), &fd, e); });
        enpu_buffer* imported = nullptr;
        const int ret = enpu_buffer_import(reader_.device.get(), fd, 0, &imported, nullptr);
        close(fd);
        if (ret < 0) throw Error(enpu_error{ret, "import of a shared buffer"});
        imported_ = Buffer(imported);
        Builder writer(writer_.device, ENPU_ENGINE_KIND_COPY);
        add_copy(writer, shared_, in_, kBytes);
        write_ = writer.finish();
        Builder reader(reader_.device, ENPU_ENGINE_KIND_COPY);
        add_copy(reader, out_, imported_, kBytes);
        read_ = reader.finish();
    }

    bool round(uint64_t number) override {
        fill(in_.map<uint32_t>(), client_, number);
        std::memset(out_.map().data(), 0, kBytes);
        writer_.submit(writer_.copy_engine(number), write_);
        reader_.submit(reader_.copy_engine(number + 1), read_);
        // The writer's error comes first: with it, what was read means nothing.
        writer_.wait();
        reader_.wait();
        return right(out_.map<uint32_t>(), client_, number);
    }

  private:
    static constexpr uint64_t kBytes = 32768;
    unsigned client_;
    Line writer_, reader_;
    Buffer in_ = Buffer::create(writer_.device, kBytes, ENPU_BUFFER_HOST),
           shared_ = Buffer::create(writer_.device, kBytes, ENPU_BUFFER_HOST | ENPU_BUFFER_SHARED),
           out_ = Buffer::create(reader_.device, kBytes, ENPU_BUFFER_HOST), imported_;
    Command write_, read_;
};

}  // namespace

Tally*& tally() {
    static Tally own;
    static Tally* current = &own;
    return current;
}

Golden& golden() {
    static Golden results;
    return results;
}

void make_golden() {
    ModelWork model(0);
    golden().clear();
    for (unsigned i = 0; i < kModelInputs; i++) golden().push_back(model.run(i));
}

std::unique_ptr<Work> make_work(const std::string& name, unsigned client) {
    if (name == "copy") return std::make_unique<CopyWork>(client);
    if (name == "model") return std::make_unique<ModelWork>(client);
    if (name == "share") return std::make_unique<ShareWork>(client);
    throw std::logic_error("no work is called " + name);
}

}  // namespace enpu::faults
