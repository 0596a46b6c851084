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
                std::vector<size_t> outputs)
        : OrtNodeComputeInfo{},
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
            inputs.push_back(
                {value.GetTensorRawData(), value.GetTensorTypeAndShapeInfo().GetShape()});
        }
        executable_->run(inputs, [&](size_t i, const lowering::Dims& dims) -> void* {
            return context.GetOutput(outputs_[i], dims).GetTensorMutableRawData();
        });
    }

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

EpOptions read_options(const OrtSessionOptions* options) {
    EpOptions result;
    if (const char* device = std::getenv("ENPU_DEVICE")) result.device = device;
    if (std::string device = option(options, "device"); !device.empty()) result.device = device;
    result.report = option(options, "report");
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

Ep::Ep(const EpOptions& options, const OrtLogger* logger)
    : OrtEp{}, options_(options), logger_(logger) {
    ort_version_supported = api_version;
    GetName = [](const OrtEp*) noexcept { return kEpName; };
    GetCapability = [](OrtEp* self, const OrtGraph* graph,
                       OrtEpGraphSupportInfo* info) noexcept -> OrtStatus* {
        return guarded([&] { static_cast<Ep*>(self)->get_capability(graph, info); });
    };
    Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused, size_t count,
                 OrtNodeComputeInfo** infos, OrtNode**) noexcept -> OrtStatus* {
        return guarded([&] {
            std::vector<std::unique_ptr<OrtNodeComputeInfo>> made;
            for (size_t i = 0; i < count; ++i) {
                made.push_back(static_cast<Ep*>(self)->compile(graphs[i], fused[i]));
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
    session_ = std::make_shared<lowering::DeviceSession>(options.device);
}

void Ep::get_capability(const OrtGraph* raw, OrtEpGraphSupportInfo* info) {
    const Ort::ConstGraph from(raw);
    const auto nodes = from.GetNodes();
    if (nodes.empty()) return;
    const lowering::Graph graph = import_graph(from, false);
    lowering::Claim claim;
    if (from.GetParentNode()) {
        claim.reasons.assign(nodes.size(), "it is inside the body of a control-flow node");
        claim.groups.assign(nodes.size(), -1);
    } else {
        claim = lowering::claim(
            graph, [&](const lowering::Kernel& kernel) { return session_->check_kernel(kernel); });
    }
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

std::unique_ptr<OrtNodeComputeInfo> Ep::compile(const OrtGraph* raw, const OrtNode* fused) {
    lowering::Graph graph = import_graph(Ort::ConstGraph(raw), true);
    const Ort::ConstNode kernel(fused);
    auto inputs = positions(graph, graph.inputs, kernel.GetInputs());
    auto outputs = positions(graph, graph.outputs, kernel.GetOutputs());
    auto executable =
        std::make_shared<Executable>(session_, std::move(graph), options_.max_programs);
    const std::lock_guard guard(report_lock_);
    executables_.push_back(executable);
    return std::make_unique<ComputeInfo>(std::move(executable), std::move(inputs),
                                         std::move(outputs));
}

void Ep::run_start() {
    if (options_.report.empty()) return;
    const std::lock_guard guard(report_lock_);
    report_.before.struct_size = sizeof(rt_counters);
    lowering::check(rt_device_get_counters(session_->device(), &report_.before), "counters");
}

void Ep::run_end() {
    if (options_.report.empty()) return;
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
