// Clusters for the tests of prices and simulations.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace polyring::testing {

inline constexpr double kLatency = 2e-6;       // between hosts
inline constexpr double kLocalLatency = 1e-6;  // inside a host
inline constexpr double kNic = 10e9;
inline constexpr double kLink = 40e9;
inline constexpr int kSize = 4;

/// Hosts of `gpus` GPUs, each joined to every other by a link of its own, and to the one NIC by links that
/// constrain nothing.
inline Cluster uniform(int hosts, int gpus) {
  Machine machine;
  machine.name = "uniform";
  machine.packages.resize(1);
  machine.packages.front().name = "package0";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    machine.gpus.push_back({});
    machine.gpus.back().name = "gpu" + std::to_string(gpu);
    machine.links.push_back({{DeviceKind::gpu, gpu}, {DeviceKind::package, 0}, LinkKind::pcie, {}, {}});
    for (int other = 0; other < gpu; ++other) {
      machine.links.push_back({{DeviceKind::gpu, gpu},
                               {DeviceKind::gpu, other},
                               LinkKind::nvlink,
                               Bandwidth{kLink},
                               {kLocalLatency}});
    }
  }
  machine.nics = {{"nic0", {}, {}, -1, -1, NicKind::infiniband, {{1, true, Bandwidth{kNic}}}}};
  machine.links.push_back({{DeviceKind::nic, 0}, {DeviceKind::package, 0}, LinkKind::pcie, {}, {}});
  Cluster cluster;
  cluster.name = "uniform";
  cluster.groups = {{machine, hosts}};
  cluster.fabric.latency = {kLatency};
  return cluster;
}

}  // namespace polyring::testing
