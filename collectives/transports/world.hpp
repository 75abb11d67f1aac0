// The transport for the ranks that mpirun started: shared memory inside hosts, MPI or TCP between them.
#pragma once

#include <memory>
#include <string>

#include "collectives/mpi/world.hpp"
#include "collectives/transport.hpp"

namespace polyring {

enum class TransportChoice {
  automatic,  // shared memory where it can be had, and MPI
  shared,     // it must be had
  mpi,        // for everything
  tcp,        // in the place of MPI
};

/// Throws a usage Error for anything but "auto", "shared", "mpi" and "tcp".
TransportChoice parse_transport(const std::string& text);

struct WorldTransport {
  std::unique_ptr<Transport> transport;
  std::string name;      // "shared memory", "MPI", "TCP", "shared memory and MPI"
  std::string fallback;  // why shared memory is not used although it was wanted; empty otherwise
};

/// Collective. Keeps a reference to the world, and has its time limit as it is now. TCP's is the interface of
/// this name, or chosen when it is empty. Throws Error(ExitCode::not_available) where shared memory must be
/// had and cannot, and where ranks do not reach each other by TCP.
WorldTransport make_world_transport(const MpiWorld& world, TransportChoice choice,
                                    const std::string& tcp_interface = {});

}  // namespace polyring
