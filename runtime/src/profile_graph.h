// SPDX-License-Identifier: MIT
// Executables of graphs in a recording: encoded once more with a timestamp between the commands, so
// that a recorded launch costs what a launch costs.
#pragma once

#include <memory>
#include <vector>

#include "profile_device.h"

namespace enpu::rt::profile {

// One step of an executable with words for its times. One launch at a time.
class TimedGraph {
  public:
    // Null when the backend does not take it, or there is no memory.
    static std::unique_ptr<TimedGraph> make(rt_device_impl& device,
                                            const enpu_hal_command* commands, uint32_t count);
    ~TimedGraph();
    TimedGraph(const TimedGraph&) = delete;
    TimedGraph& operator=(const TimedGraph&) = delete;

    enpu_hal_graph* handle() const { return handle_; }
    const volatile uint64_t* words() const { return words_; }
    // Before a launch: a word that stays 0 was not reached.
    const volatile uint64_t* clear_words();
    // False: it is as it was and no longer what the step is.
    bool update(uint32_t index, const enpu_hal_command& changed);
    // Nothing of it runs; what ran has been read when this returns true.
    bool make_free(const std::shared_ptr<DeviceRecorder>& recorder);

    std::shared_ptr<const Names> names;  // of the commands
    Point last;                          // launch

  private:
    explicit TimedGraph(rt_device_impl& device) : device_(device) {}

    rt_device_impl& device_;  // of the executable, which keeps it
    enpu_hal_graph* handle_ = nullptr;
    enpu_hal_buffer* buffer_ = nullptr;
    volatile uint64_t* words_ = nullptr;
    std::shared_ptr<DeviceRecorder> recorder_;  // that reads the words
};

// Of a step: as many as launches are under way at once, up to a limit. Guarded by the executable.
class TimedGraphs {
  public:
    // One of the commands that is free; null: there is none, record command by command.
    TimedGraph* take(rt_device_impl& device, const enpu_hal_command* commands, uint32_t count);
    // As the step's own graph was.
    void update(uint32_t index, const enpu_hal_command& changed);

  private:
    static constexpr size_t kMost = 8;
    std::vector<std::unique_ptr<TimedGraph>> all_;
    bool refused_ = false;
};

}  // namespace enpu::rt::profile
