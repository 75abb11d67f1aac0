// The ranks of MPI's communicators, as DDL's calls use them.
#pragma once

#include <mpi.h>

#include <mutex>
#include <string>

#include "collectives/library/c/group.hpp"

namespace polyring::ddl {

/// Held by each call of DDL's, and while MPI frees a communicator or ends, also within such a call.
std::recursive_mutex& calls();

/// Initializes MPI where the program has not. Throws a usage Error where it is finalized.
void begin_mpi();
/// Throws a usage Error where MPI is not running.
void need_mpi();

/// The communicator's ranks. Collective at the first call: with the grid that the options ask for, and in the
/// memory of the GPU that has this process's number on its host, where all processes have one. Lives until
/// the communicator is freed, or MPI is finalized. Throws a usage Error for options that cannot be, and
/// Error(ExitCode::mpi).
library::Group& group_of(MPI_Comm comm, const std::string& options);
/// The same, or null where that has not been called.
library::Group* known_group(MPI_Comm comm);

}  // namespace polyring::ddl
