// SPDX-License-Identifier: MIT
// A layer stands between the caller and a plug-in: it has the same tables, and each of its slots
// calls a method that may look, change or answer, and by default passes the call on. A layer that is
// not asked for costs nothing: the tables below are then used as they are. Handles are those of the
// plug-in below, unless a layer says otherwise.
#pragma once

#include <memory>

#include "enpu_hal.h"

namespace enpu::hal {

class Layer {
  public:
    explicit Layer(const enpu_hal_plugin& below) : next(below) {}
    virtual ~Layer() = default;
    Layer(const Layer&) = delete;

    virtual uint32_t enumerate(uint32_t, enpu_hal_device_info*, enpu_hal_status*);
    virtual uint32_t accepts(const char*);
    virtual uint32_t open(const char*, enpu_hal_device**, enpu_hal_status*);

    virtual void close(enpu_hal_device*);
    virtual uint32_t device_info(enpu_hal_device*, enpu_hal_device_info*, enpu_hal_status*);
    virtual uint32_t device_check(enpu_hal_device*, enpu_hal_status*);

    virtual uint32_t alloc(enpu_hal_device*, const enpu_hal_buffer_desc*, enpu_hal_buffer**,
                           enpu_hal_status*);
    virtual void free(enpu_hal_buffer*);
    virtual uint32_t buffer_info(enpu_hal_buffer*, enpu_hal_buffer_info*, enpu_hal_status*);
    virtual uint32_t usage(enpu_hal_device*, uint64_t*, uint64_t*, enpu_hal_status*);
    virtual uint32_t wrap(enpu_hal_device*, void*, uint64_t, enpu_hal_buffer**, enpu_hal_status*);
    virtual uint32_t buffer_export(enpu_hal_buffer*, int*, enpu_hal_status*);
    virtual uint32_t buffer_import(enpu_hal_device*, int, enpu_hal_buffer**, enpu_hal_status*);

    virtual uint32_t queue_create(enpu_hal_device*, const enpu_hal_queue_desc*, enpu_hal_queue**,
                                  enpu_hal_status*);
    virtual void queue_destroy(enpu_hal_queue*);
    virtual uint32_t submit(enpu_hal_queue*, const enpu_hal_submission*, uint64_t,
                            enpu_hal_status*);

    virtual uint32_t fence_create(enpu_hal_device*, uint64_t, enpu_hal_fence**, enpu_hal_status*);
    virtual void fence_destroy(enpu_hal_fence*);
    virtual uint32_t fence_query(enpu_hal_fence*, uint64_t*, enpu_hal_status*);
    virtual uint32_t fence_wait(enpu_hal_device*, const enpu_hal_point*, uint32_t, uint32_t,
                                uint64_t, enpu_hal_status*);
    virtual uint32_t fence_signal(enpu_hal_fence*, uint64_t, enpu_hal_status*);
    virtual uint32_t fence_export(enpu_hal_fence*, int*, enpu_hal_status*);
    virtual uint32_t fence_import(enpu_hal_device*, int, enpu_hal_fence**, enpu_hal_status*);

    virtual uint32_t supported(enpu_hal_device*, const enpu_hal_dispatch*, enpu_hal_status*);
    virtual uint32_t packed_size(enpu_hal_device*, const enpu_op_tensor*,
                                 const enpu_op_pack_params*, uint64_t*, enpu_hal_status*);

    virtual uint32_t graph_create(enpu_hal_device*, const enpu_hal_command*, uint32_t,
                                  enpu_hal_graph**, enpu_hal_status*);
    virtual void graph_destroy(enpu_hal_graph*);
    virtual uint32_t graph_update(enpu_hal_graph*, uint32_t, const enpu_hal_command*,
                                  enpu_hal_status*);
    virtual uint32_t graph_launch(enpu_hal_queue*, enpu_hal_graph*, const enpu_hal_submission*,
                                  uint64_t, enpu_hal_status*);

    virtual uint32_t counters(enpu_hal_device*, enpu_hal_counters*, enpu_hal_status*);
    virtual uint32_t clock(enpu_hal_device*, uint64_t*, uint64_t*, enpu_hal_status*);

  protected:
    const enpu_hal_plugin& next;
};

// The plug-in whose slots call the layer; `caps` are those it offers. Layer and tables live as long
// as the process. nullptr when there are more layers than kMostLayers.
constexpr unsigned kMostLayers = 32;
const enpu_hal_plugin* interpose(std::unique_ptr<Layer> layer, const enpu_hal_plugin& below,
                                 uint32_t caps);

}  // namespace enpu::hal
