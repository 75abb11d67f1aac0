// Clusters of a given size, made of hosts like those that are known.
#pragma once

#include "topology/cluster.hpp"

namespace polyring {

/// The machine with only its first `gpus` GPUs, and the links that remain. `gpus` is 1 to
/// machine.gpus.size().
Machine with_gpus(const Machine& machine, int gpus);

/// `ranks` ranks on hosts like the cluster's first one: part of one host, or as many whole hosts as they
/// fill; these spread evenly over as few NVLink domains as they can, since jobs are placed so (Slurm's
/// topology/block with --segment). A cluster that has exactly so many ranks is returned as it is. Throws a
/// usage Error for fewer than 1 rank, and for a number that leaves a host partly filled.
Cluster with_ranks(const Cluster& cluster, int ranks);

}  // namespace polyring
