// A part of a cluster's hosts, in another order: those of a job.
#pragma once

#include <span>

#include "topology/cluster.hpp"

namespace polyring {

/// The fabric as it is between some hosts, given by their numbers in the cluster, in the order of a job.
/// Hosts under one switch need no uplink. Where the hosts of a leaf or pod are neighbours in the job, there
/// are as many in each (their mean, rounded up, where they are unevenly many); hosts of a leaf that are apart
/// get a leaf each, with their part of its uplink. Pods whose hosts are apart count as never blocking, and
/// hosts of an NVLink domain that are apart or unevenly many as joined by NICs.
Fabric fabric_among(const Fabric& fabric, std::span<const int> hosts);

}  // namespace polyring
