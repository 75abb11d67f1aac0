// The one header that includes mpi.h, for the few files that call MPI.
#pragma once

#include <mpi.h>

#include <memory>
#include <string_view>

#include "collectives/runtime/mpi/world.hpp"

namespace polyring {

/// Communicators of our own: messages cannot meet those of another library.
struct MpiWorld::Handle {
  Handle() = default;
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  /// For an MpiWorld of the communicator's ranks. Collective.
  static std::unique_ptr<Handle> of(MPI_Comm group);
  /// MPI_Comm_dup of the world's communicator, within the world's time limit. Collective.
  static MPI_Comm duplicate(const MpiWorld& world);

  Rank rank() const;
  int size() const;

  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm roll_call = MPI_COMM_NULL;  // for when a collective call on the other may be half done
};

/// Throws Error(ExitCode::mpi) naming the call unless `result` is MPI_SUCCESS.
void check_mpi(int result, std::string_view call);

}  // namespace polyring
