// Probes all hosts of a job at once.
#pragma once

#include <functional>
#include <string>

#include "base/units.hpp"
#include "collectives/runtime/world.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// What `probe` finds, or why it finds nothing, as a message for gather_probes().
std::string probe_message(const std::function<Machine()>& probe);

/// The same from a child process, for which it waits no longer than `limit`; empty in processes that are not
/// the first of their host. To be called before MPI is initialised: a fork() after MPI_Init may damage memory
/// that is registered with a network (ibv_fork_init(3)).
std::string probe_own_host(const std::function<Machine()>& probe, Seconds limit);

/// Gathers the ranks' messages on rank 0: the hosts in the order of their first ranks, merged as merged()
/// does. A host without one, or whose probe failed, is among the unprobed. Other ranks get an inventory
/// without hosts. Collective; throws as World's calls do when a rank is gone.
Inventory gather_probes(const World& world, const std::string& own);

}  // namespace polyring
