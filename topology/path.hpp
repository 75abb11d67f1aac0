// Paths between two devices of one machine: which links a transfer crosses, and how NCCL and `nvidia-smi
// topo -m` would name that path.
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// From near to far, named as NCCL does (src/graph/topo.h); NODE is nvidia-smi's, where NCCL says PHB.
enum class PathType {
  self,     // X
  nvl,      // NVLink (or xGMI), direct or through an NVSwitch
  nvb,      // two NVLinks, through another GPU: an alternative to the path, see pairs.hpp
  c2c,      // NVLink-C2C, between a GPU and the CPU beside it
  pix,      // at most one PCIe switch
  pxb,      // several PCIe switches, no host bridge
  p2c,      // C2C to the CPU, then the CPU's PCIe
  phb,      // one PCIe host bridge
  node,     // several host bridges of one NUMA node
  sys,      // across NUMA nodes or packages
  unknown,  // over packages, but nothing tells which one an end is near
};

std::string_view to_text(
    PathType type);  // "X", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PHB", "NODE", "SYS", "?"

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
/// through, so a path is never of the type nvb. Nothing when there is no way at all.
std::optional<Path> find_path(const Machine& machine, DeviceId from, DeviceId to);

/// The same; throws a usage Error that names both devices when there is no way.
Path path_between(const Machine& machine, DeviceId from, DeviceId to);

/// All devices to which find_path() finds a way from this one, itself included.
std::set<DeviceId> reachable(const Machine& machine, DeviceId from);

/// The packages to which the way has the fewest hops: several for a NIC on both sockets, none where nothing
/// tells which one a GPU or a NIC is near.
std::vector<int> nearest_packages(const Machine& machine, DeviceId gpu_or_nic);

/// All devices that a path from `from` touches, in order, both ends included.
std::vector<DeviceId> devices_of(const Machine& machine, DeviceId from, const Path& path);

}  // namespace polyring
