// SPDX-License-Identifier: MIT
#pragma once

#include <atomic>

#include "device.h"

struct enpu_context final : enpu::Object {
    enpu_context(enpu_device* device_in, uint32_t id_in) : device(device_in), id(id_in) {}

    const enpu::Ref<enpu_device> device;
    const uint32_t id;
    std::atomic<uint32_t> reported{0};  // failed jobs that enpu_context_wait has told of

  private:
    ~enpu_context() override { device->os->ctx_destroy(id); }
};

namespace enpu {
// The failure in one sentence, with the names of the data sheet.
std::string describe_failure(const drm_enpu_ctx_status& status);
}  // namespace enpu
