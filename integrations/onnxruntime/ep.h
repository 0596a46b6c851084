// SPDX-License-Identifier: MIT
// The execution provider of one session.
#ifndef ENPU_ORT_EP_H
#define ENPU_ORT_EP_H

#include <memory>

#include "context_cache.h"
#include "device_memory.h"
#include "report.h"

namespace enpu::ort {

struct EpOptions {
    std::string device;           // spec of rt_device_open
    bool cpu_on_failure = false;  // what fails on the device is done again on the runtime's "cpu"
    std::string report;           // file that gets the report as JSON after every run; empty: none
    size_t max_programs = 16;     // sets of input shapes that stay compiled, per subgraph
    ContextOptions context;
};

std::string default_device();  // $ENPU_DEVICE, else "npu"

// Reads "ep.enpuexecutionprovider.KEY" entries; throws lowering::Error for a value that is wrong.
EpOptions read_options(const OrtSessionOptions* options);

// ORT calls through the function pointers of the base.
class Ep : public OrtEp {
  public:
    // With `memory` operands are in that device's memory; NULL: in host memory, and the session
    // opens its device itself.
    Ep(const EpOptions& options, std::shared_ptr<SharedDevice> memory, const OrtLogger* logger);

    void get_capability(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
    // `context`: where the node goes that stands for the result in a model; NULL: none is wanted.
    std::unique_ptr<OrtNodeComputeInfo> compile(const OrtGraph* graph, const OrtNode* fused,
                                                OrtNode** context);
    void run_start();
    void run_end();

  private:
    std::shared_ptr<lowering::OpenDevice> open_device();
    lowering::Claim claim_nodes(const lowering::Graph& graph, bool in_body);
    void write_report();
    EpOptions options_;
    std::shared_ptr<SharedDevice> memory_;
    const OrtLogger* logger_;
    std::shared_ptr<lowering::DeviceSession> session_;
    std::vector<std::weak_ptr<lowering::Executable>> executables_;
    bool compiled_ = false;  // a round of claims has been taken up
    Report report_;
    std::mutex report_lock_;
};

}  // namespace enpu::ort
#endif
