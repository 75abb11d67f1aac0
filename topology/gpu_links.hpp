// How fast one link between GPUs is, by the GPU's generation: files count links, and seldom say their speed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// One NVLink or xGMI link, per direction, and who says so. A bandwidth of 0 is unknown, with no source.
struct GpuLinkRate {
  Bandwidth bandwidth;
  std::string_view source;
};

/// The NVLinks of the GPUs of one CUDA compute capability.
struct NvlinkGeneration {
  int compute_capability;  // 70 for 7.0
  int version;             // of NVLink: 3 for 3.0 and 3.1
  Bandwidth bandwidth;     // of one link, per direction, as the wire carries it
  std::string_view source;
};

/// All that are known, older ones first; of one version the data centre's first.
std::span<const NvlinkGeneration> nvlink_generations();

/// Of a GPU of this CUDA compute capability.
GpuLinkRate nvlink_rate(int compute_capability);

/// Of a GPU of this AMD architecture: `gfx90a`, also with features behind a colon, or `908` as older files
/// have it.
GpuLinkRate xgmi_rate(std::string_view architecture);

/// Which GPUs have fewer NVLinks to NVSwitches than most of their host have, so that some must be lost: gpu0
/// has the first number. Empty when none has.
std::string lost_nvlinks(const std::vector<int>& nvlinks_of_gpus);

/// Whether the machine has several GPUs of a product that is sold with NVLinks or xGMI links only, and no
/// such link: then its source cannot tell them, as a copy of /sys, or XML of an hwloc without NVML or RSMI.
bool misses_gpu_links(const Machine& machine);

/// By a product's name, such as `Tesla P100-SXM2-16GB`: 60. 0 for one that is not known to have NVLink.
int compute_capability_of(std::string_view product);

/// How many NVLinks one GPU of this product has, whether or not something is at their other ends. 0 for one
/// that is not known to have NVLink.
int most_nvlinks_of(std::string_view product);

}  // namespace polyring
