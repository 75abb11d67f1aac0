// Where a job runs, as rank 0 knows it.
#pragma once

#include <string>

#include "bench/accept/check.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

/// Collective; ranks other than 0 get a site without hosts. `own`: probe_own_host()'s. Where the ranks of a
/// host are not numbered one after another, or a host could not be probed, the cluster has no hosts.
Site find_site(const World& world, const std::string& own);

/// What a result says of the hosts, and a baseline is compared with: all that was probed, and the links that
/// are emulated here.
Inventory recorded_hosts(const Site& site);

}  // namespace polyring
