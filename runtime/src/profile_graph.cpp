// SPDX-License-Identifier: MIT
#include "profile_graph.h"

#include <algorithm>

#include "device.h"
#include "profile.h"

namespace enpu::rt::profile {

std::unique_ptr<TimedGraph> TimedGraph::make(rt_device_impl& device,
                                             const enpu_hal_command* commands, uint32_t count) {
    constexpr uint32_t kNeeded = ENPU_HAL_CAP_TIMESTAMP | ENPU_HAL_CAP_PROFILE;
    if ((device.info.caps & kNeeded) != kNeeded) return nullptr;
    std::unique_ptr<TimedGraph> made(new TimedGraph(device));
    void* host = nullptr;
    rt_status status = device.allocate_host((uint64_t{count} + 1) * sizeof(uint64_t),
                                            "rt_graph_launch", &made->buffer_, &host);
    if (status) {
        rt_status_free(status);
        made->buffer_ = nullptr;
        return nullptr;
    }
    made->words_ = static_cast<volatile uint64_t*>(host);
    const auto timed = with_timestamps(commands, count, made->buffer_, 0);
    enpu_hal_status why{};
    if (device.hal.graph->create(device.handle, timed.data(), static_cast<uint32_t>(timed.size()),
                                 &made->handle_, &why) != ENPU_HAL_OK) {
        made->handle_ = nullptr;
        return nullptr;
    }
    auto names = std::make_shared<Names>();
    for (uint32_t i = 0; i < count; ++i) names->push_back(command_name(commands[i]));
    made->names = std::move(names);
    return made;
}

TimedGraph::~TimedGraph() {
    if (recorder_) recorder_->forget(*this);
    if (handle_) device_.hal.graph->destroy(handle_);
    if (buffer_) device_.hal.memory->free(buffer_);
}

const volatile uint64_t* TimedGraph::clear_words() {
    for (size_t i = 0; i <= names->size(); ++i) words_[i] = 0;
    return words_;
}

bool TimedGraph::update(uint32_t index, const enpu_hal_command& changed) {
    enpu_hal_status why{};
    // One timestamp before the first command and one behind each.
    return device_.hal.graph->update(handle_, 2 * index + 1, &changed, &why) == ENPU_HAL_OK;
}

bool TimedGraph::make_free(const std::shared_ptr<DeviceRecorder>& recorder) {
    if (!last.settled()) return false;
    if (recorder_) recorder_->forget(*this);
    recorder_ = recorder;
    return true;
}

TimedGraph* TimedGraphs::take(rt_device_impl& device, const enpu_hal_command* commands,
                              uint32_t count) {
    const auto recorder = recorder_of(device);
    if (!recorder || refused_) return nullptr;
    for (const auto& graph : all_)
        if (graph->make_free(recorder)) return graph.get();
    if (all_.size() == kMost) return nullptr;
    auto made = TimedGraph::make(device, commands, count);
    refused_ = !made;
    if (!made || !made->make_free(recorder)) return nullptr;
    return all_.emplace_back(std::move(made)).get();
}

void TimedGraphs::update(uint32_t index, const enpu_hal_command& changed) {
    std::erase_if(all_, [&](const auto& graph) { return !graph->update(index, changed); });
}

}  // namespace enpu::rt::profile
