// SPDX-License-Identifier: MIT
#include <algorithm>

#include "program.h"
#include "rt_tensor.h"

namespace enpu::lowering {
namespace {

constexpr uint64_t kTimeoutNs = 600ull * 1000 * 1000 * 1000;

std::string key_of(const std::vector<RunInput>& inputs, const std::vector<bool>& by_value,
                   const Graph& graph) {
    std::string key;
    for (size_t i = 0; i < inputs.size(); ++i) {
        key += to_string(inputs[i].dims);
        if (!by_value[i]) continue;
        const Value& value = graph.values[static_cast<size_t>(graph.inputs[i])];
        const size_t bytes =
            static_cast<size_t>(element_count(inputs[i].dims)) * dtype_bytes(value.dtype);
        if (bytes > (1 << 16)) fail("the shape operand '" + value.name + "' is too large");
        key.append("=").append(static_cast<const char*>(inputs[i].data), bytes);
    }
    return key;
}

bool is_out_of_memory(const Error& error) {
    return std::string(error.what()).find(rt_code_name(RT_RESOURCE_EXHAUSTED)) != std::string::npos;
}

}  // namespace

DeviceSession::DeviceSession(const std::string& spec) {
    check(rt_device_open(spec.c_str(), &device_), "device");
    rt_stream_options options{};
    options.struct_size = sizeof(options);
    options.timeout_ns = kTimeoutNs;
    options.name = "lowering";
    rt_status status = rt_stream_create(device_, &options, &stream_);
    if (status != RT_OK) {
        rt_device_close(device_);
        check(status, "stream");
    }
    weights_ = std::make_unique<WeightStore>(device_, stream_);
}

DeviceSession::~DeviceSession() {
    weights_.reset();
    rt_stream_destroy(stream_);
    rt_device_close(device_);
}

std::string DeviceSession::check_kernel(const Kernel& kernel) {
    rt_kernel function = nullptr;
    rt_status status = rt_kernel_for_op(device_, static_cast<enpu_op>(kernel.op), &function);
    std::vector<rt_operand> operands(kernel.operands.size());
    for (size_t i = 0; i < operands.size(); ++i) {
        const View& view = kernel.operands[i];
        if (!view.absent()) operands[i].desc = tensor_desc(view);
    }
    if (status == RT_OK) {
        status = rt_kernel_supported(function, kernel.params_bytes ? kernel.params.data() : nullptr,
                                     kernel.params_bytes, operands.data(),
                                     static_cast<uint32_t>(operands.size()));
    }
    const std::string reason = rt_status_message(status);
    const bool ok = status == RT_OK;
    rt_status_free(status);
    return ok ? std::string() : (reason.empty() ? "refused by the device" : reason);
}

Executable::Executable(std::shared_ptr<DeviceSession> session, Graph graph, size_t max_programs)
    : session_(std::move(session)), graph_(std::move(graph)), max_programs_(max_programs) {
    optimised_ = optimise(graph_);
    host_inputs_ = host_inputs(graph_);
}

Executable::~Executable() {
    const std::lock_guard guard(session_->lock());
    programs_.clear();
}

ExecutableStats Executable::stats() const {
    const std::lock_guard guard(session_->lock());
    return stats_;
}

std::unique_ptr<Program> Executable::compile(const std::vector<RunInput>& inputs) {
    std::vector<Dims> dims;
    std::vector<HostTensorPtr> values;
    for (size_t i = 0; i < inputs.size(); ++i) {
        dims.push_back(inputs[i].dims);
        values.push_back(nullptr);
        if (!host_inputs_[i]) continue;
        HostTensor tensor = make_host_tensor(
            graph_.values[static_cast<size_t>(graph_.inputs[i])].dtype, inputs[i].dims);
        if (!tensor.bytes.empty())
            std::memcpy(tensor.bytes.data(), inputs[i].data, tensor.bytes.size());
        values.back() = std::make_shared<const HostTensor>(std::move(tensor));
    }
    const Plan plan = lower(graph_, dims, values);
    while (true) {
        try {
            return std::make_unique<Program>(*session_, plan);
        } catch (const Error& error) {
            // The device is full: older programs make room.
            if (!is_out_of_memory(error) || programs_.empty()) throw;
            programs_.pop_back();
            ++stats_.evictions;
        }
    }
}

Program& Executable::program_for(const std::vector<RunInput>& inputs) {
    const std::string key = key_of(inputs, host_inputs_, graph_);
    for (auto it = programs_.begin(); it != programs_.end(); ++it) {
        if (it->first != key) continue;
        ++stats_.hits;
        programs_.splice(programs_.begin(), programs_, it);
        return *programs_.front().second;
    }
    ++stats_.misses;
    while (programs_.size() >= max_programs_) {
        programs_.pop_back();
        ++stats_.evictions;
    }
    const uint64_t start = rt_now_ns();
    auto program = compile(inputs);
    stats_.compile_ns += rt_now_ns() - start;
    stats_.kernels = program->plan.kernels.size();
    stats_.arena_bytes = program->plan.arena_bytes;
    stats_.lower_bound_bytes = program->plan.lower_bound_bytes;
    programs_.emplace_front(key, std::move(program));
    return *programs_.front().second;
}

void Executable::execute(Program& program, const std::vector<RunInput>& inputs,
                         const std::function<void*(size_t, const Dims&)>& output) {
    const rt_stream stream = session_->stream();
    for (const auto& [i, to] : program.inputs) {
        const size_t bytes =
            static_cast<size_t>(element_count(inputs[i].dims)) *
            dtype_bytes(graph_.values[static_cast<size_t>(graph_.inputs[i])].dtype);
        check(rt_memcpy_h2d(stream, to, inputs[i].data, bytes), "copy of an input");
    }
    if (program.exec) check(rt_graph_launch(program.exec, stream), "launch");
    for (size_t i = 0; i < program.plan.outputs.size(); ++i) {
        const PlanOutput& out = program.plan.outputs[i];
        void* to = output(i, out.dims);
        const size_t bytes = static_cast<size_t>(element_count(out.dims)) * dtype_bytes(out.dtype);
        if (bytes == 0) continue;
        if (out.host) {
            std::memcpy(to, out.host->bytes.data(), bytes);
        } else {
            check(rt_memcpy_d2h(stream, to, program.address(out.view), bytes), "copy of an output");
        }
    }
    check(rt_stream_sync(stream, rt_deadline_ns(kTimeoutNs)), "wait");
}

void Executable::run(const std::vector<RunInput>& inputs,
                     const std::function<void*(size_t, const Dims&)>& output) {
    if (inputs.size() != graph_.inputs.size()) fail("internal: wrong number of inputs");
    const std::lock_guard guard(session_->lock());
    ++stats_.runs;
    try {
        execute(program_for(inputs), inputs, output);
    } catch (const Error&) {
        rt_status_free(rt_stream_reset(session_->stream()));  // the next run starts clean
        throw;
    }
}

}  // namespace enpu::lowering
