// SPDX-License-Identifier: MIT
#include "random.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/library.h>

#include "launch.h"

namespace enpu::pytorch {
namespace {

// A host generator under the name of the device. Both give the same numbers for the same seed.
class DeviceGenerator final : public c10::GeneratorImpl {
  public:
    DeviceGenerator()
        : GeneratorImpl(npu(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
          host_(at::make_generator<at::CPUGeneratorImpl>(c10::default_rng_seed_val)) {}

    static c10::DeviceType device_type() { return c10::DeviceType::PrivateUse1; }
    const at::Generator& host() const { return host_; }

    void set_current_seed(uint64_t seed) override { host_.set_current_seed(seed); }
    void set_offset(uint64_t offset) override { host_.set_offset(offset); }
    uint64_t get_offset() const override { return host_.get_offset(); }
    uint64_t current_seed() const override { return host_.current_seed(); }
    uint64_t seed() override { return host_.seed(); }
    void set_state(const c10::TensorImpl& state) override {
        host_.unsafeGetGeneratorImpl()->set_state(state);
    }
    c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
        return host_.unsafeGetGeneratorImpl()->get_state();
    }

  private:
    GeneratorImpl* clone_impl() const override {
        auto* copy = new DeviceGenerator;
        copy->host_ = host_.clone();
        return copy;
    }

    at::Generator host_;
};

at::Generator host_of(const std::optional<at::Generator>& given) {
    const at::Generator& generator = given && given->defined() ? *given : default_generator();
    TORCH_CHECK(generator.device().type() == c10::DeviceType::PrivateUse1,
                "enpu: the generator is one of ", generator.device(), ", not of the NPU");
    return generator.get<DeviceGenerator>()->host();
}

// Fills a host tensor like `self` by `draw`, and copies it.
template <class Draw>
Tensor& fill_from_host(Tensor& self, Draw&& draw) {
    Tensor host = at::empty(self.sizes(), self.options().device(at::kCPU));
    draw(host);
    return self.copy_(host);
}

Tensor& uniform_(Tensor& self, double from, double to, std::optional<at::Generator> g) {
    return fill_from_host(self, [&](Tensor& host) { host.uniform_(from, to, host_of(g)); });
}
Tensor& normal_(Tensor& self, double mean, double std, std::optional<at::Generator> g) {
    return fill_from_host(self, [&](Tensor& host) { host.normal_(mean, std, host_of(g)); });
}
Tensor& random_(Tensor& self, std::optional<at::Generator> g) {
    return fill_from_host(self, [&](Tensor& host) { host.random_(host_of(g)); });
}
Tensor& random_to(Tensor& self, int64_t to, std::optional<at::Generator> g) {
    return fill_from_host(self, [&](Tensor& host) { host.random_(to, host_of(g)); });
}
Tensor& random_from(Tensor& self, int64_t from, std::optional<int64_t> to,
                    std::optional<at::Generator> g) {
    return fill_from_host(self, [&](Tensor& host) { host.random_(from, to, host_of(g)); });
}
Tensor& bernoulli_float(Tensor& self, double p, std::optional<at::Generator> g) {
    return fill_from_host(self, [&](Tensor& host) { host.bernoulli_(p, host_of(g)); });
}
Tensor& exponential_(Tensor& self, double lambda, std::optional<at::Generator> g) {
    return fill_from_host(self, [&](Tensor& host) { host.exponential_(lambda, host_of(g)); });
}
Tensor& randperm_out(int64_t n, std::optional<at::Generator> g, Tensor& out) {
    resize_out(out, {n});
    return fill_from_host(out, [&](Tensor& host) { at::randperm_out(host, n, host_of(g)); });
}
// The mask is drawn on the host, compared and applied on the device.
std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
    if (!train.value_or(true) || p == 0)
        return {input.clone(), at::ones_like(input, input.options().dtype(at::kBool))};
    Tensor keep = at::empty_like(input, input.options().dtype(at::kBool));
    keep.bernoulli_(1 - p);
    if (p == 1) return {at::zeros_like(input), keep};
    return {input.mul(keep).mul_(1 / (1 - p)), keep};
}
Tensor native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale) {
    return grad.mul(mask).mul_(scale);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("uniform_", uniform_);
    m.impl("normal_", normal_);
    m.impl("random_", random_);
    m.impl("random_.to", random_to);
    m.impl("random_.from", random_from);
    m.impl("bernoulli_.float", bernoulli_float);
    m.impl("exponential_", exponential_);
    m.impl("randperm.generator_out", randperm_out);
    m.impl("native_dropout", native_dropout);
    m.impl("native_dropout_backward", native_dropout_backward);
}

}  // namespace

const at::Generator& default_generator() {
    static auto* made = new at::Generator(new_generator());
    return *made;
}

at::Generator new_generator() {
    return at::make_generator<DeviceGenerator>();
}

}  // namespace enpu::pytorch
