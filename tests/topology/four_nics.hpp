// Hosts whose ranks have several NICs each, like those of an AWS p5.
#pragma once

#include <algorithm>

#include "topology/cluster.hpp"

namespace polyring::testing {

/// The same hosts with four NICs of a quarter of the bandwidth in the place of each.
inline Cluster four_nics_for_each(Cluster cluster) {
  for (HostGroup& group : cluster.groups) {
    Machine& machine = group.machine;
    const std::size_t nics = machine.nics.size();
    for (std::size_t nic = 0; nic < nics; ++nic) {
      for (Port& port : machine.nics[nic].ports) port.bandwidth = 0.25 * port.bandwidth;
      const Link link =
          *std::ranges::find(machine.links, DeviceId{DeviceKind::nic, static_cast<int>(nic)}, &Link::from);
      for (const char letter : {'b', 'c', 'd'}) {
        machine.links.push_back(link);
        machine.links.back().from.index = static_cast<int>(machine.nics.size());
        machine.nics.push_back(machine.nics[nic]);
        machine.nics.back().name += letter;
      }
    }
  }
  return cluster;
}

}  // namespace polyring::testing
