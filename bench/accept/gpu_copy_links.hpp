// What the links that a probe found let copies by GPUs reach.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "collectives/cuda/gpu.hpp"
#include "topology/machine.hpp"

namespace polyring {

/// Of one copy among those that are made at once.
struct CopyLink {
  std::string kind;  // "NVL 450 GB/s", "PIX 31.5 GB/s": its path, and its share of the narrowest link
  Bandwidth share;   // 0 where that is unknown, or where it says little of what a copy reaches
  bool nvlink = false;
};

/// Of each copy; `gpus`: the machine's GPUs in the order of CUDA's indices. A copy has the share of a link
/// that is left when all that cross it in the same direction have as much. Host memory carries reads and
/// writes together. Over a socket's bridge between PCIe links GPUs reach each other at rates that depend on
/// the processor: these have no share.
std::vector<CopyLink> links_of_copies(const Machine& machine, const std::vector<std::optional<int>>& gpus,
                                      std::span<const GpuCopy> at_once);

}  // namespace polyring
