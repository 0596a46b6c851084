// SPDX-License-Identifier: MIT
// C++ owner of a recording (rt_profile.h). Part of rt.hpp: include that.
#pragma once

namespace enpu::rt {

class Profile : public Owner<rt_profile, rt_profile_destroy> {
  public:
    using Owner::Owner;

    // Of what `work` does; one recording at a time. When work throws, the recording is ended.
    template <typename Work>
    static Profile record(const rt_profile_options& options, uint64_t deadline_ns, Work work) {
        check(rt_profile_start(&options));
        rt_profile profile = nullptr;
        try {
            work();
        } catch (...) {
            rt_status_free(rt_profile_stop(deadline_ns, &profile));
            rt_profile_destroy(profile);
            throw;
        }
        check(rt_profile_stop(deadline_ns, &profile));
        return Profile(profile);
    }

    rt_profile_info info() const {
        auto result = sized<rt_profile_info>();
        check(rt_profile_get_info(get(), &result));
        return result;
    }
    // The longest in all first.
    std::vector<rt_profile_kernel> kernels() const {
        uint32_t count = 0;
        check(rt_profile_get_kernels(get(), nullptr, 0, &count));
        std::vector<rt_profile_kernel> rows(count);
        if (count) check(rt_profile_get_kernels(get(), rows.data(), count, &count));
        return rows;
    }
    void write(const char* path) const { check(rt_profile_write(get(), path)); }
    void print(const char* path) const { check(rt_profile_print(get(), path)); }
};

}  // namespace enpu::rt
