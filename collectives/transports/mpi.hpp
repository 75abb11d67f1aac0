// Ranks as MPI processes: nonblocking point-to-point messages between host buffers.
#pragma once

#include <memory>

#include "collectives/mpi/world.hpp"
#include "collectives/transport.hpp"

namespace polyring {

/// MPI counts in int: longer messages travel in pieces, of which both ends know.
inline constexpr Bytes kMpiPiece{std::uint64_t{1} << 30};

/// Keeps a reference to the world, and has its time limit as it is now. `piece`: at least 1 byte, the same on
/// all ranks.
std::unique_ptr<Transport> make_mpi_transport(const MpiWorld& world, Bytes piece = kMpiPiece);

}  // namespace polyring
