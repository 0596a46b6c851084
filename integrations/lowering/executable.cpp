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

OpenDevice::OpenDevice(const DeviceOptions& options) {
    check(rt_device_open(options.spec.c_str(), &device_), "device");
    has_fallback_ = !options.fallback.empty();
    if (!has_fallback_) return;
    rt_policy policy{};
    policy.struct_size = sizeof(policy);
    policy.retries = 1;
    policy.fallbacks[0] = options.fallback.c_str();
    policy.retain = 1;
    policy.notice = options.notice;
    policy.context = options.context;
    rt_status status = rt_device_set_policy(device_, &policy);
    if (status == RT_OK) return;
    rt_device_close(device_);
    check(status, "fallback");
}

OpenDevice::~OpenDevice() {
    rt_device_close(device_);
}

rt_stream make_stream(rt_device device, const char* name) {
    rt_stream_options options{};
    options.struct_size = sizeof(options);
    options.timeout_ns = kTimeoutNs;
    options.name = name;
    rt_stream stream = nullptr;
    check(rt_stream_create(device, &options, &stream), "stream");
    return stream;
}

DeviceSession::DeviceSession(const std::string& spec)
    : DeviceSession(std::make_shared<OpenDevice>(DeviceOptions{spec, {}, nullptr, nullptr})) {}

DeviceSession::DeviceSession(std::shared_ptr<OpenDevice> opened)
    : device_(std::move(opened)), stream_(make_stream(device_->handle(), "lowering")) {
    weights_ = std::make_unique<WeightStore>(device(), stream_, !device_->has_fallback());
}

DeviceSession::~DeviceSession() {
    weights_.reset();
    rt_stream_destroy(stream_);
}

std::string DeviceSession::check_kernel(const Kernel& kernel) {
    rt_kernel function = nullptr;
    rt_status status = rt_kernel_for_op(device(), static_cast<enpu_op>(kernel.op), &function);
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

uint64_t Executable::input_bytes(const RunInput& input, size_t index) const {
    const Value& value = graph_.values[static_cast<size_t>(graph_.inputs[index])];
    return static_cast<uint64_t>(element_count(input.dims)) * dtype_bytes(value.dtype);
}

void Executable::run_on_host_memory(const std::vector<RunInput>& inputs, const Output& output) {
    Program& program = program_for(inputs);
    const rt_stream stream = session_->stream();
    for (const auto& [i, buffer] : program.inputs) {
        program.copy_in(stream, buffer, inputs[i].data, input_bytes(inputs[i], i));
    }
    for (const PlanOutput& out : program.plan.outputs) {
        if (!out.host && program.is_whole_temporary(out.view))
            program.bind(out.view.buffer, nullptr);
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

void Executable::run_on_device_memory(std::vector<RunInput> inputs, const Output& output,
                                      const RunPlace& place) {
    const rt_stream stream = place.stream ? place.stream : session_->stream();
    std::vector<std::vector<std::byte>> fetched(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {  // what the program depends on must be known here
        if (!host_inputs_[i] || inputs[i].on_host) continue;
        fetched[i].resize(input_bytes(inputs[i], i));
        if (fetched[i].empty()) continue;
        check(rt_memcpy_d2h(stream, fetched[i].data(), inputs[i].data, fetched[i].size()),
              "copy of a shape");
        inputs[i].data = fetched[i].data();
        inputs[i].on_host = true;
    }
    const uint64_t compiled = stats_.misses;
    Program& program = program_for(inputs);
    if (stats_.misses != compiled) {  // memory and constants are of the session's own stream
        check(rt_stream_sync(session_->stream(), rt_deadline_ns(kTimeoutNs)), "constants");
    }
    check(rt_stream_wait_event(stream, program.finished), "order of runs");
    for (const auto& [i, buffer] : program.inputs) {
        if (!inputs[i].on_host) {
            program.bind(buffer, const_cast<void*>(inputs[i].data));
            continue;
        }
        program.copy_in(stream, buffer, inputs[i].data, input_bytes(inputs[i], i));
    }
    std::vector<void*> to;
    std::vector<bool> direct(program.plan.outputs.size(), false);
    std::vector<int> taken;
    for (size_t i = 0; i < program.plan.outputs.size(); ++i) {
        const PlanOutput& out = program.plan.outputs[i];
        to.push_back(output(i, out.dims));
        if (out.host || !program.is_whole_temporary(out.view)) continue;
        if (std::count(taken.begin(), taken.end(), out.view.buffer)) continue;
        program.bind(out.view.buffer, to.back());
        taken.push_back(out.view.buffer);
        direct[i] = true;
    }
    if (program.exec) check(rt_graph_launch(program.exec, stream), "launch");
    for (size_t i = 0; i < program.plan.outputs.size(); ++i) {
        const PlanOutput& out = program.plan.outputs[i];
        const size_t bytes = static_cast<size_t>(element_count(out.dims)) * dtype_bytes(out.dtype);
        if (bytes == 0 || direct[i]) continue;
        check(out.host ? rt_memcpy_h2d(stream, to[i], out.host->bytes.data(), bytes)
                       : rt_memcpy_d2d(stream, to[i], program.address(out.view), bytes),
              "copy of an output");
    }
    check(rt_event_record(program.finished, stream), "order of runs");
    if (!place.stream) check(rt_stream_sync(stream, rt_deadline_ns(kTimeoutNs)), "wait");
}

void Executable::run(const std::vector<RunInput>& inputs, const Output& output,
                     const RunPlace& place) {
    if (inputs.size() != graph_.inputs.size()) fail("internal: wrong number of inputs");
    const std::lock_guard guard(session_->lock());
    ++stats_.runs;
    try {
        if (place.on_device) {
            run_on_device_memory(inputs, output, place);
        } else {
            run_on_host_memory(inputs, output);
        }
    } catch (const Error&) {
        rt_status_free(rt_stream_reset(session_->stream()));  // the next run starts clean
        throw;
    }
}

}  // namespace enpu::lowering
