// The bound: the least time in which any allreduce whose reductions are done at the ranks can move its
// payload over this topology, by all network ports that join hosts (usable_nics()), also those that no route
// takes. Switches that reduce (SHARP, NVLink SHARP) can do better.
#pragma once

#include <string>

#include "base/units.hpp"
#include "collectives/schedule/schedule.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// What limits: a cut that parts the ranks, and what joins a part to the rest in each direction.
struct Bound {
  Seconds time;  // 0 when no cut has a known bandwidth, infinite when nothing joins a host to the others
  Bandwidth bandwidth;  // of the part that has least, or of all parts on average, whichever limits
  /// In words: "4 GPUs of a host share 2 x EDR InfiniBand: 24.2 GB/s"; of no time what would have to be
  /// known, "minsky: the speed of mlx5_0", and of an infinite one what is missing. Empty for a single part.
  std::string cut;
};

/// The largest over all cuts of the ranks into m parts. B(i) is the bandwidth that joins part i to the rest:
///
///     max( 2(m − 1) · payload / ΣB(i),  payload / min B(i) )
///
/// where the first is Patarasuk and Yuan's lower bound (JPDC 69(2), 2009) applied to parts instead of ranks.
/// Cuts are those into leaf switches, hosts (NVLink domains where there are any), packages, PCIe switches,
/// groups that NVLinks join, and single ranks; B(i) is that of min_cut(). `payload` is each rank's. Parts
/// with nothing of known speed around them are left out, and so are hosts with a port of unknown speed, their
/// leaf switches and pods.
Bound allreduce_bound(const Cluster& cluster, Bytes payload);

/// The same for any collective, with `payload` the longer of a rank's two buffers. Of n ranks a part has r.
/// In a reduce-scatter something must leave it for each of the others' blocks, and enter it for each of its
/// own; in an allgather the other way about; in an alltoall each of its ranks has a block for each of the
/// others:
///
///     max max(r, n − r)/n · payload / B(i)    reduce-scatter, allgather
///     max r(n − r)/n · payload / B(i)         alltoall
Bound collective_bound(Collective collective, const Cluster& cluster, Bytes payload);

/// The same, but inside one host or NVLink domain over with_gpu_fabric_alone(): no implementation that is
/// known sends over NVLinks and PCIe at once. An alltoall does where the NVLinks join all GPUs and not each
/// two of them (gpu_fabric_joins_each_pair()): the others exchange over PCIe meanwhile. Several domains are
/// cut as before.
Bound usual_bound(Collective collective, const Cluster& cluster, Bytes payload);

/// allreduce_bound() with the cuts into domains (Cluster::domain_count()) and into leaf switches only; its
/// time is 0 for one domain.
Bound network_bound(const Cluster& cluster, Bytes payload);

/// Bus bandwidth as nccl-tests defines it: payload / time · 2(n − 1) / n for n ranks; 0 for no time.
Bandwidth bus_bandwidth(Bytes payload, int ranks, Seconds time);

}  // namespace polyring
