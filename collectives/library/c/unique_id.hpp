// The id by which ranks find each other over TCP: rank 0's address and port, and a secret.
#pragma once

#include <string>

#include "base/units.hpp"
#include "collectives/library/c/polyring.h"
#include "collectives/runtime/bootstraps/tcp.hpp"

namespace polyring::library {

/// This process listens from now on, until it has made the group of the id. Throws
/// Error(ExitCode::not_available) where it cannot listen, or has no network interface.
polyring_unique_id make_unique_id();

/// Of a group whose rank 0 listens at an address that all ranks know. Throws a usage Error for what is no
/// address, or too long.
polyring_unique_id unique_id_at(const std::string& address, const std::string& secret);

/// A rank's place in the group of an id. Throws a usage Error for bytes that are none.
TcpGroup group_of(const polyring_unique_id& id, int rank, int ranks, Seconds timeout);

}  // namespace polyring::library
