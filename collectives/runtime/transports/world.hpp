// The transport for the ranks that mpirun started: shared memory inside hosts, MPI between them.
#pragma once

#include <memory>
#include <string>

#include "collectives/runtime/mpi/world.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

enum class TransportChoice {
  automatic,  // shared memory where it can be had
  shared,     // it must be had
  mpi,        // for everything
};

/// Throws a usage Error for anything but "auto", "shared" and "mpi".
TransportChoice parse_transport(const std::string& text);

struct WorldTransport {
  std::unique_ptr<Transport> transport;
  std::string name;      // "shared memory", "MPI", "shared memory and MPI"
  Bytes message{};       // the longest between hosts where it is short; 0 otherwise
  Bytes unasked{};       // see MpiPieces
  std::string fallback;  // why shared memory is not used although it was wanted; empty otherwise
};

/// Collective. Keeps a reference to the world, and has its time limit as it is now. Throws
/// Error(ExitCode::not_available) where shared memory must be had and cannot.
WorldTransport make_world_transport(const MpiWorld& world, TransportChoice choice);

}  // namespace polyring
