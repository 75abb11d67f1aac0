// What hwloc's files say wrongly of the links of NVIDIA's GPUs, by the release that wrote them. From
// hwloc/topology-nvml.c, the back end that asks NVML:
//
// - It took NVML's number of an NVLink's version for the version, but NVML counts on: 3 is 2.2, 4 is 3.0, 5
//   is 3.1, 6 is 4.0 (nvmlNvlinkVersion_t). Numbers 3 and 4 counted as 50 GB/s a link, until open-mpi/hwloc
//   issue 574 of March 2023, since then as 25. Links of other numbers were left out, until release 2.12
//   (issue 658). An A6000's link counts as 25, too.
// - A GPU's PCIe speed was the greatest that NVML knows of the GPU, not of its link, and of no more than
//   the third generation. By release 2.12 it is the present one, which idle GPUs turn down.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "topology/inventory/probe/hwloc_topology.hpp"
#include "topology/machine.hpp"

namespace polyring::probe {

/// A release of hwloc's; 2.5.0 for "2.5.0a1-git" as well. 0.0.0: a file that does not say.
struct HwlocVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  auto operator<=>(const HwlocVersion&) const = default;
};

/// Corrects the links of a file's GPUs, or makes them unknown (0) where nothing tells what they carry.
class NvmlCorrections {
 public:
  /// Of a file that `topology` was read from.
  explicit NvmlCorrections(const HwlocTopology& topology);

  /// `link` is that of the GPU to the switch or package above it.
  void correct_pcie(hwloc_obj_t object, const Gpu& gpu, Link& link);

  /// All NVLinks of the machine.
  void correct_nvlinks(Machine& machine);

  /// Says what was corrected and why.
  void remark(Machine& machine) const;

 private:
  Bandwidth counted_for_a_link(const Machine& machine, DeviceId gpu) const;
  bool is_before(HwlocVersion other) const;

  std::string name_;  // "hwloc 2.9.0", "hwloc" when unknown
  HwlocVersion version_;
  bool has_nvml_ = false;            // of any GPU
  std::vector<std::string> capped_;  // GPUs' names
  std::vector<std::string> unknown_;
  std::vector<std::string> idle_;
  std::vector<std::string> miscounted_;
  std::vector<std::string> in_doubt_;
};

}  // namespace polyring::probe
