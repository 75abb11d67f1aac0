// Probes all hosts of a job at once.
#pragma once

#include <functional>

#include "collectives/mpi/world.hpp"
#include "topology/inventory.hpp"
#include "topology/units.hpp"

namespace polyring {

/// Calls `probe` on the first rank of each host, each no longer than `limit`, and gathers what they found on
/// rank 0: the hosts in the order of their first ranks, merged as merged() does. A host whose probe throws or
/// takes too long is among the unprobed. Other ranks get an inventory without hosts. Collective; throws as
/// MpiWorld's calls do when a rank is gone.
Inventory gather_probes(const MpiWorld& world, const std::function<Machine()>& probe, Seconds limit);

}  // namespace polyring
