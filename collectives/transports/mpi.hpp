// Ranks as MPI processes: nonblocking point-to-point messages between host buffers.
#pragma once

#include <memory>

#include "collectives/mpi/world.hpp"
#include "collectives/transport.hpp"

namespace polyring {

/// Keeps a reference to the world. `timeout`: how long wait() stands it that nothing completes.
std::unique_ptr<Transport> make_mpi_transport(const MpiWorld& world, Seconds timeout);

}  // namespace polyring
