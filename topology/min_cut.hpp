// Cuts of a host: the least that joins some of its ranks to all other ranks.
#pragma once

#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// What must be cut to part some ranks of a host from all others, with every other device on either side, so
/// that the bandwidth is least.
struct MinCut {
  Bandwidth bandwidth;     // per direction, all that is cut together; 0 when nothing joins the two
  bool unknown = false;    // a way from one to the other is of unknown speed: links and nics are that way's
  std::vector<int> links;  // indices into Machine::links
  std::vector<int> nics;   // whose ports are cut
};

/// Parts the ranks for which `inside` is true from the host's others and from all ranks of other hosts: with
/// `several_hosts` from those that usable_nics() reach, where nothing passes through a NIC within the host,
/// and with `domain` from those of its NVLink domain, which its NVSwitches reach. The largest flow between
/// the two (Ford and Fulkerson, 1956): links are full duplex, and one of unknown speed is never cut. Of equal
/// cuts the one nearest to the ranks inside. There must be a rank inside and one outside.
MinCut min_cut(const Machine& machine, const std::vector<bool>& inside, bool several_hosts,
               bool domain = false);

}  // namespace polyring
