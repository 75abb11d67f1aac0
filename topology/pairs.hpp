// Pairs: what is between each two GPUs of a host, and between each GPU and NIC: the type of the path, its
// speed, and the reason in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/path.hpp"

namespace polyring {

/// A way between two GPUs that have no NVLink to each other: two NVLinks (or xGMI), through a third GPU.
struct Detour {
  int gpu = 0;
  Bandwidth bandwidth;  // the narrower of the two; 0 when one is unknown
  Seconds latency;
};

/// The widest detour, if there is one that NCCL would take: it prefers the way with fewer hops, and of
/// equally many the wider one (src/graph/paths.cc, ncclTopoSetPaths(); NCCL_NVB_DISABLE forbids it). Routes
/// and simulations don't take it: there a transfer never passes through another GPU.
std::optional<Detour> find_detour(const Machine& machine, int from_gpu, int to_gpu);

struct Pair {
  DeviceId from;
  DeviceId to;
  PathType type = PathType::self;  // nvb where there is a detour; the rest is then the detour's
  Bandwidth bandwidth;             // 0 when unknown
  Seconds latency;
  std::vector<DeviceId> way;  // both ends included
  std::string reason;
  bool nearest = false;  // of a GPU and a NIC: by this NIC routes leave the host, see rank_nics()
};

/// Each two GPUs, the lower first. Throws as path_between() does.
std::vector<Pair> gpu_pairs(const Machine& machine);
/// Each GPU with each NIC, GPU after GPU.
std::vector<Pair> nic_pairs(const Machine& machine);

/// "gpu0 - package0 - gpu1"
std::string way_text(const Machine& machine, const std::vector<DeviceId>& way);

}  // namespace polyring
