// Paths between two devices of one machine: which links a transfer crosses, and how `nvidia-smi topo -m`
// would name that path.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// As NCCL and `nvidia-smi topo -m` name them, from near to far.
enum class PathType {
  self,  // X
  nvl,   // NVLink (or xGMI), direct or through an NVSwitch
  pix,   // at most one PCIe switch
  pxb,   // several PCIe switches, no host bridge
  phb,   // one PCIe host bridge
  node,  // several host bridges of one NUMA node
  sys,   // across NUMA nodes or packages
};

std::string_view to_text(PathType type);  // "X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS"

/// One link of a path, and whether it is crossed from `from` to `to`.
struct Hop {
  int link = 0;  // index into Machine::links
  bool forward = true;
};

struct Path {
  PathType type = PathType::self;
  std::vector<Hop> hops;  // empty for self
  Bandwidth bandwidth;    // the narrowest hop; 0 when a hop is unknown
  Seconds latency;        // the sum over the hops
};

/// The path that a direct transfer takes: NVLink or xGMI where the two are joined by it (also through an
/// NVSwitch), else the way with the fewest hops, the widest among equals. GPUs and NICs are never passed
/// through. Nothing when there is no way at all.
std::optional<Path> find_path(const Machine& machine, DeviceId from, DeviceId to);

}  // namespace polyring
