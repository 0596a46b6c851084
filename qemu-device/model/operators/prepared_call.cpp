// SPDX-License-Identifier: MIT
#include "prepared_call.h"

#include <mutex>
#include <vector>

namespace enpu::ops {
namespace {

// What one thread calls with.
struct Objects {
    explicit Objects(const std::vector<std::pair<int, dnnl::memory::desc>>& arguments)
        : stream(dnnl_engine()) {
        for (const auto& [argument, desc] : arguments) {
            memories.push_back(memory_at(desc, nullptr));
            list.push_back({argument, memories.back().get()});
        }
    }

    dnnl::stream stream;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> list;
};

}  // namespace

struct PreparedCall::State {
    dnnl::primitive primitive;
    std::vector<std::pair<int, dnnl::memory::desc>> arguments;
    std::vector<bool> present;  // of what was given
    std::mutex mutex;
    std::vector<std::unique_ptr<Objects>> idle;

    std::unique_ptr<Objects> take() {
        {
            const std::lock_guard lock(mutex);
            if (!idle.empty()) {
                auto objects = std::move(idle.back());
                idle.pop_back();
                return objects;
            }
        }
        return std::make_unique<Objects>(arguments);
    }
    void give_back(std::unique_ptr<Objects> objects) {
        const std::lock_guard lock(mutex);
        idle.push_back(std::move(objects));
    }
};

PreparedCall::PreparedCall() = default;
PreparedCall::~PreparedCall() = default;
PreparedCall::PreparedCall(PreparedCall&&) noexcept = default;
PreparedCall& PreparedCall::operator=(PreparedCall&&) noexcept = default;

PreparedCall::PreparedCall(const dnnl::primitive& primitive, Arguments arguments)
    : state_(std::make_unique<State>()) {
    state_->primitive = primitive;
    for (const auto& argument : arguments) {
        state_->present.push_back(argument.second.get_size() > 0);
        if (state_->present.back()) state_->arguments.push_back(argument);
    }
}

void PreparedCall::run(std::initializer_list<const void*> pointers) const {
    auto objects = state_->take();
    size_t given = 0, used = 0;
    for (const void* pointer : pointers)
        if (state_->present.at(given++))
            objects->memories.at(used++).set_data_handle(const_cast<void*>(pointer));
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(state_->primitive.get(), objects->stream.get(),
                               static_cast<int>(objects->list.size()), objects->list.data()),
        "could not execute a primitive");
    objects->stream.wait();
    state_->give_back(std::move(objects));
}

}  // namespace enpu::ops
