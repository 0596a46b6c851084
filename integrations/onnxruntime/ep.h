// SPDX-License-Identifier: MIT
// The execution provider of one session.
#ifndef ENPU_ORT_EP_H
#define ENPU_ORT_EP_H

#include <memory>

#include "ort_api.h"
#include "report.h"
#include "session.h"

namespace enpu::ort {

struct EpOptions {
    std::string device = "npu";  // spec of rt_device_open
    std::string report;          // file that gets the report as JSON after every run; empty: none
    size_t max_programs = 16;    // sets of input shapes that stay compiled, per subgraph
};

// Reads "ep.enpuexecutionprovider.KEY" entries; throws lowering::Error for a value that is wrong.
EpOptions read_options(const OrtSessionOptions* options);

// ORT calls through the function pointers of the base.
class Ep : public OrtEp {
  public:
    Ep(const EpOptions& options, const OrtLogger* logger);

    void get_capability(const OrtGraph* graph, OrtEpGraphSupportInfo* info);
    std::unique_ptr<OrtNodeComputeInfo> compile(const OrtGraph* graph, const OrtNode* fused);
    void run_start();
    void run_end();

  private:
    void write_report();
    EpOptions options_;
    const OrtLogger* logger_;
    std::shared_ptr<lowering::DeviceSession> session_;
    std::vector<std::weak_ptr<lowering::Executable>> executables_;
    Report report_;
    std::mutex report_lock_;
};

}  // namespace enpu::ort
#endif
