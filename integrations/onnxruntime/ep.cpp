// SPDX-License-Identifier: MIT
#include "ep.h"

#include <charconv>
#include <cstdlib>

#include "import.h"

namespace enpu::ort {
namespace {

using lowering::Executable;

// ---- one compiled subgraph

class ComputeInfo : public OrtNodeComputeInfo {
  public:
    ComputeInfo(std::shared_ptr<Executable> executable, std::vector<size_t> inputs,
                std::vector<size_t> outputs, bool on_device)
        : OrtNodeComputeInfo{},
          on_device_(on_device),
          executable_(std::move(executable)),
          inputs_(std::move(inputs)),
          outputs_(std::move(outputs)) {
        ort_version_supported = api_version;
        CreateState = [](OrtNodeComputeInfo* self, OrtNodeComputeContext*,
                         void** state) noexcept -> OrtStatus* {
            *state = self;
            return nullptr;
        };
        ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
        Compute = [](OrtNodeComputeInfo*, void* state,
                     OrtKernelContext* context) noexcept -> OrtStatus* {
            return guarded([&] { static_cast<ComputeInfo*>(state)->compute(context); });
        };
    }

  private:
    void compute(OrtKernelContext* raw) {
        const Ort::KernelContext context(raw);
        std::vector<lowering::RunInput> inputs;
        for (size_t index : inputs_) {
            const Ort::ConstValue value = context.GetInput(index);
            check_memory(value.GetTensorRawData(), value.GetTensorSizeInBytes(),
                         "input " + std::to_string(index));
            // ONNX Runtime 1.23 leaves what comes from a node on the CPU in host memory, though it
            // plans a copy.
            inputs.push_back({value.GetTensorRawData(),
                              value.GetTensorTypeAndShapeInfo().GetShape(),
                              on_device_ && in_host_memory(value)});
        }
        lowering::RunPlace place;
        place.on_device = on_device_;
        if (on_device_) place.stream = static_cast<rt_stream>(context.GetGPUComputeStream());
        executable_->run(
            inputs,
            [&](size_t i, const lowering::Dims& dims) -> void* {
                Ort::UnownedValue value = context.GetOutput(outputs_[i], dims);
                if (on_device_ && in_host_memory(value)) {
                    lowering::fail("output " + std::to_string(i) +
                                   " was planned in host memory, but the session works in the "
                                   "device's");
                }
                check_memory(value.GetTensorRawData(), value.GetTensorSizeInBytes(),
                             "output " + std::to_string(i));
                return value.GetTensorMutableRawData();
            },
            place);
    }

    bool on_device_;

    std::shared_ptr<Executable> executable_;
    std::vector<size_t> inputs_, outputs_;  // of the graph, as numbers in the kernel's context
};

std::vector<size_t> positions(const lowering::Graph& graph, const std::vector<int>& values,
                              const std::vector<Ort::ConstValueInfo>& of_kernel) {
    std::vector<size_t> result;
    for (int v : values) {
        const std::string& name = graph.values[static_cast<size_t>(v)].name;
        size_t at = 0;
        while (at < of_kernel.size() && of_kernel[at].GetName() != name) ++at;
        if (at == of_kernel.size())
            lowering::fail("'" + name + "' is no operand of the fused node");
        result.push_back(at);
    }
    return result;
}

std::string option(const OrtSessionOptions* options, const std::string& key) {
    const std::string full = std::string("ep.enpuexecutionprovider.") + key;
    int has = 0;
    Ort::ThrowOnError(Ort::GetApi().HasSessionConfigEntry(options, full.c_str(), &has));
    if (!has) return {};
    size_t size = 0;
    Ort::ThrowOnError(Ort::GetApi().GetSessionConfigEntry(options, full.c_str(), nullptr, &size));
    std::string value(size, '\0');
    Ort::ThrowOnError(
        Ort::GetApi().GetSessionConfigEntry(options, full.c_str(), value.data(), &size));
    while (!value.empty() && value.back() == '\0') value.pop_back();
    return value;
}

}  // namespace

std::string default_device() {
    const char* device = std::getenv("ENPU_DEVICE");
    return device ? device : "npu";
}

EpOptions read_options(const OrtSessionOptions* options) {
    EpOptions result;
    result.device = option(options, "device");
    if (result.device.empty()) result.device = default_device();
    result.report = option(options, "report");
    const std::string failure = option(options, "on_failure");
    if (!failure.empty() && failure != "error" && failure != "cpu") {
        lowering::fail("option on_failure is '" + failure + "', it must be error or cpu");
    }
    result.cpu_on_failure = failure == "cpu";
    result.context = read_context_options(options);
    const std::string programs = option(options, "max_programs");
    if (!programs.empty()) {
        const auto [end, error] = std::from_chars(
            programs.data(), programs.data() + programs.size(), result.max_programs);
        if (error != std::errc() || end != programs.data() + programs.size() ||
            result.max_programs < 1 || result.max_programs > 4096) {
            lowering::fail("option max_programs is '" + programs + "', it must be 1 to 4096");
        }
    }
    return result;
}

Ep::Ep(const EpOptions& options, std::shared_ptr<SharedDevice> memory, const OrtLogger* logger)
    : OrtEp{}, options_(options), memory_(std::move(memory)), logger_(logger) {
    ort_version_supported = api_version;
    GetName = [](const OrtEp*) noexcept { return kEpName; };
    GetCapability = [](OrtEp* self, const OrtGraph* graph,
                       OrtEpGraphSupportInfo* info) noexcept -> OrtStatus* {
        return guarded([&] { static_cast<Ep*>(self)->get_capability(graph, info); });
    };
    Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                 OrtNodeComputeInfo** infos, OrtNode** contexts) noexcept -> OrtStatus* {
        return guarded([&] {
            auto& ep = *static_cast<Ep*>(self);
            std::vector<std::unique_ptr<OrtNodeComputeInfo>> made;
            for (size_t i = 0; i < count; ++i) {
                OrtNode** context = ep.options_.context.enabled ? &contexts[i] : nullptr;
                made.push_back(ep.compile(graphs[i], fused[i], context));
            }
            for (size_t i = 0; i < count; ++i) infos[i] = made[i].release();
        });
    };
    ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
        for (size_t i = 0; i < count; ++i) delete static_cast<ComputeInfo*>(infos[i]);
    };
    OnRunStart = [](OrtEp* self, const OrtRunOptions*) noexcept -> OrtStatus* {
        return guarded([&] { static_cast<Ep*>(self)->run_start(); });
    };
    OnRunEnd = [](OrtEp* self, const OrtRunOptions*, bool) noexcept -> OrtStatus* {
        return guarded([&] { static_cast<Ep*>(self)->run_end(); });
    };
    session_ = std::make_shared<lowering::DeviceSession>(open_device());
}

std::shared_ptr<lowering::OpenDevice> Ep::open_device() {
    if (memory_) return memory_->open();
    lowering::DeviceOptions device{options_.device, {}, nullptr, this};
    if (options_.cpu_on_failure) device.fallback = "cpu";
    device.notice = [](void* context, const char* text) {
        Ort::Status(Ort::GetApi().Logger_LogMessage(static_cast<Ep*>(context)->logger_,
                                                    ORT_LOGGING_LEVEL_WARNING, text, __FILE__,
                                                    __LINE__, "on_failure"));
    };
    return std::make_shared<lowering::OpenDevice>(device);
}

// A context is a subgraph of its own; the others are judged by the device.
lowering::Claim Ep::claim_nodes(const lowering::Graph& graph, bool in_body) {
    lowering::Claim claim;
    // ONNX Runtime asks again when it has put bodies in the place of functions, but would give the
    // subgraphs of that round the names of the first one's.
    const bool again = compiled_;
    if (in_body || again) {
        claim.reasons.assign(graph.nodes.size(),
                             in_body ? "it is inside the body of a control-flow node"
                                     : "it came with the body of a function after the others were "
                                       "claimed");
        claim.groups.assign(graph.nodes.size(), -1);
        return claim;
    }
    claim = lowering::claim(
        graph, [&](const lowering::Kernel& kernel) { return session_->check_kernel(kernel); });
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
        if (!is_context(graph.nodes[n])) continue;
        claim.reasons[n].clear();
        claim.groups[n] = claim.group_count++;
    }
    return claim;
}

void Ep::get_capability(const OrtGraph* raw, OrtEpGraphSupportInfo* info) {
    const Ort::ConstGraph from(raw);
    const auto nodes = from.GetNodes();
    if (nodes.empty()) return;
    const lowering::Graph graph = import_graph(from, false);
    const lowering::Claim claim = claim_nodes(graph, from.GetParentNode() != nullptr);
    std::vector<std::vector<const OrtNode*>> groups(static_cast<size_t>(claim.group_count));
    const std::lock_guard guard(report_lock_);
    for (size_t n = 0; n < nodes.size(); ++n) {
        ++report_.nodes_total;
        if (claim.groups[n] >= 0) {
            ++report_.nodes_npu;
            groups[static_cast<size_t>(claim.groups[n])].push_back(nodes[n]);
        } else {
            report_.left_out.push_back({graph.nodes[n].name, graph.nodes[n].op, claim.reasons[n]});
        }
    }
    for (const auto& group : groups) {
        OrtNodeFusionOptions options{};
        options.ort_version_supported = api_version;
        options.drop_constant_initializers = true;
        Ort::ThrowOnError(Ort::GetEpApi().EpGraphSupportInfo_AddNodesToFuse(
            info, group.data(), group.size(), &options));
        ++report_.subgraphs;
    }
}

std::unique_ptr<OrtNodeComputeInfo> Ep::compile(const OrtGraph* raw, const OrtNode* fused,
                                                OrtNode** context) {
    const Ort::ConstGraph from(raw);
    compiled_ = true;
    lowering::Graph graph = import_graph(from, true);
    if (graph.nodes.size() == 1 && is_context(graph.nodes[0])) {
        graph = load_context(graph.nodes[0], from.GetModelPath());
    }
    const Ort::ConstNode kernel(fused);
    auto inputs = positions(graph, graph.inputs, kernel.GetInputs());
    auto outputs = positions(graph, graph.outputs, kernel.GetOutputs());
    auto executable =
        std::make_shared<Executable>(session_, std::move(graph), options_.max_programs);
    if (context) {
        *context =
            make_context_node(options_.context, from.GetModelPath(), fused, executable->graph());
    }
    const std::lock_guard guard(report_lock_);
    executables_.push_back(executable);
    return std::make_unique<ComputeInfo>(std::move(executable), std::move(inputs),
                                         std::move(outputs), memory_ != nullptr);
}

void Ep::run_start() {
    if (options_.report.empty()) return;
    const std::lock_guard guard(report_lock_);
    report_.before.struct_size = sizeof(rt_counters);
    lowering::check(rt_device_get_counters(session_->device(), &report_.before), "counters");
}

void Ep::run_end() {
    if (options_.report.empty()) return;
    if (memory_) memory_->wait();  // what has been enqueued is to be counted
    const std::lock_guard guard(report_lock_);
    report_.after.struct_size = sizeof(rt_counters);
    lowering::check(rt_device_get_counters(session_->device(), &report_.after), "counters");
    write_report();
}

void Ep::write_report() {
    std::vector<lowering::ExecutableStats> stats;
    for (const auto& weak : executables_) {
        if (const auto executable = weak.lock()) stats.push_back(executable->stats());
    }
    write_file(options_.report,
               to_json(report_, session_->device(), stats, session_->weights().bytes()));
}

}  // namespace enpu::ort
