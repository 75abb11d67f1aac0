// What an implementation can use together of a cluster, link by link: the rates that efficiency.hpp's parts
// are of.
//
// Inside a host a ring is as fast as the least cut between some GPUs and the others, over NVLinks or xGMI
// alone where these join all GPUs. NVSwitches from the third generation on reduce by themselves: of n ranks
// each sends its payload once and receives 1/n of the sum to spread, so that (1 + 1/n) · S cross each GPU's
// links and the bus bandwidth is 2(n − 1)/(n + 1) times their rate: it may exceed that rate, since
// nccl-tests' definition is a ring's. Between hosts a flat ring carries as much as a host's NICs; what sends
// S once out of each host, as multi-ring and a tree over two hosts do, reaches up to 2(n − 1)/n of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "collectives/schedule/schedule.hpp"
#include "topology/cluster.hpp"

namespace polyring {

struct UsableRate {
  std::string link;            // "NVLink 4", "InfiniBand NDR", "TCP up to 40 Gb/s"
  std::string implementation;  // by its name in PublishedRate
  Bandwidth rate;              // as bus bandwidth
  std::string limit;           // "each GPU reaches the others only over 18 x NVLink of 25.0 GB/s: 450 GB/s"
};

/// All that a payload crosses; the slowest limits.
using UsableWay = std::vector<UsableRate>;

/// The ways among which the implementation chooses; `algorithm` is a contender's name, as "multi-ring",
/// "mpi", "gloo:ring" or "nccl:tree". Empty where it cannot run, where the speed of a link is unknown, inside
/// hosts without GPUs, and for what nobody can say anything of.
std::vector<UsableWay> usable_ways(const Cluster& cluster, Collective collective, std::string_view algorithm);

/// Whether the host's switches reduce: NVSwitches that join all of at least four GPUs from Hopper on.
bool switches_reduce(const Machine& machine);

}  // namespace polyring
