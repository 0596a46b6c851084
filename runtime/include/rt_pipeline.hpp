// SPDX-License-Identifier: MIT
// C++ owner of a pipeline (rt_pipeline.h), and the memory plan. Part of rt.hpp: include that.
#pragma once

namespace enpu::rt {

class Pipeline : public Owner<rt_pipeline, rt_pipeline_destroy> {
  public:
    Pipeline(const Device& device, const rt_pipeline_desc& desc)
        : Owner(make(device.get(), desc)) {}

    uint32_t slots() const { return rt_pipeline_slots(get()); }
    uint32_t free_slots() const { return rt_pipeline_free_slots(get()); }
    uint32_t in_flight() const { return rt_pipeline_in_flight(get()); }
    rt_pipeline_slot slot(uint32_t index) const {
        rt_pipeline_slot result;
        check(rt_pipeline_get_slot(get(), index, &result));
        return result;
    }
    // Pinned memory for the next item, then push() without pieces.
    void* input(uint64_t deadline_ns) const {
        void* host = nullptr;
        check(rt_pipeline_input(get(), deadline_ns, &host));
        return host;
    }
    void push(std::span<const rt_pipeline_piece> pieces = {}) const {
        check(rt_pipeline_push(get(), pieces.data(), uint32_t(pieces.size())));
    }
    // The oldest item, in pinned memory, until the next pop or release.
    const void* pop(uint64_t deadline_ns) const {
        const void* host = nullptr;
        check(rt_pipeline_pop(get(), deadline_ns, &host));
        return host;
    }
    void release() const { rt_pipeline_release(get()); }
    void reset() const { check(rt_pipeline_reset(get())); }

  private:
    static rt_pipeline make(rt_device device, const rt_pipeline_desc& desc) {
        rt_pipeline pipeline = nullptr;
        check(rt_pipeline_create(device, &desc, &pipeline));
        return pipeline;
    }
};

// Writes the offsets into `values`.
inline rt_plan_result plan_memory(std::span<rt_plan_value> values,
                                  std::span<const rt_plan_reuse> reuses, uint64_t alignment) {
    auto result = sized<rt_plan_result>();
    check(rt_plan_memory(values.data(), uint32_t(values.size()), reuses.data(),
                         uint32_t(reuses.size()), alignment, &result));
    return result;
}

}  // namespace enpu::rt
