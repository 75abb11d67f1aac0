// NVML as a source of a probe: GPU models and memory, NVLink, and what is wrong with GPUs.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "base/units.hpp"
#include "topology/inventory/probe/nvml_report.hpp"
#include "topology/inventory/probe/trial.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// What NVML said beside what went into the machine.
struct NvmlFindings {
  ProbeSource source;
  std::set<std::string> gpus;  // PCI addresses of those that it reaches
  std::set<std::string> busy;  // of those that work right now
};

/// Asks the library in a child process, so that a driver that crashes or hangs costs no more than the limit,
/// and merges what it says into the machine. Loading the driver for each call, as where no persistence daemon
/// runs, takes one to three seconds for each GPU (NVIDIA, «Driver Persistence»); answering takes
/// milliseconds. `notice` is told, in words, of a call that takes longer than kLongWait (trial.hpp).
NvmlFindings add_nvml(Machine& machine, const std::function<void(const std::string&)>& notice = {},
                      const std::string& library = "libnvidia-ml.so.1", Seconds limit = {30});

/// Why the library said nothing, and what would help: half a sentence. Empty: it has answered.
std::string nvml_failure(Ending ending, const NvmlNotes& notes, const std::string& library, Seconds limit);

/// Whether NVIDIA's driver seems to be there: where it is not, asking would only take time.
bool has_nvidia_driver();

/// Adds the report to the machine: models, memory, NVLink and C2C links in place of those that it has;
/// remarks on links that are inactive, peers that cannot reach each other, throttled clocks and ECC errors.
void merge_nvml(const NvmlReport& report, Machine& machine);

/// One NVLink's payload per direction: what NVIDIA publishes for its version (20 GB/s for NVLink 1, 25 for 2
/// to 4, 50 for 5), or for its speed on the line where that is less. 0 when neither is known.
Bandwidth nvlink_bandwidth(const NvmlLink& link);

}  // namespace polyring::probe
