// The hosts of a job among those of an inventory.
#pragma once

#include <span>
#include <string>

#include "topology/cluster.hpp"
#include "topology/inventory/inventory.hpp"

namespace polyring {

/// The cluster that a job on these hosts has, in their order. The inventory knows them by name, whole or up
/// to the first dot; where it knows none of them and all its hosts are equal, the job's are like these: as
/// many neighbours, or any number where it has a single host. Throws a usage Error that begins with `what`
/// otherwise.
Cluster hosts_of_job(const Inventory& inventory, std::span<const std::string> names, const std::string& what);

}  // namespace polyring
