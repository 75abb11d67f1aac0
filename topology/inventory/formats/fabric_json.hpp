// A fabric as JSON, for tools.
#pragma once

#include <string>

#include "topology/inventory/fabric_map.hpp"

namespace polyring {

/// One object: `switches`, `adapters` and `links` between them (ends by GUID and port, `GBps` per direction),
/// then what follows: `leaves` with their adapters of hosts, uplinks and oversubscription, `neighbourhoods`
/// of hosts that share leaves, and `findings`, what somebody should look at. What is unknown is null.
std::string fabric_json(const FabricMap& map);

}  // namespace polyring
