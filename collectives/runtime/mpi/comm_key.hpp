// Attributes of MPI's communicators, for what belongs to one and must end with it, or with MPI.
#pragma once

#include <mpi.h>

namespace polyring {

/// A new key. `freed` is called when a communicator that has the attribute is freed. `ended` is called once,
/// when MPI_Finalize begins and the ranks still reach each other: MPI frees the attributes of MPI_COMM_SELF
/// first (MPI 3.1, section 8.7.1). A duplicate of a communicator does not have the attribute. Throws
/// Error(ExitCode::mpi).
int make_comm_key(MPI_Comm_delete_attr_function* freed, MPI_Comm_delete_attr_function* ended);

/// The attribute, or null. Throws Error(ExitCode::mpi).
void* comm_attribute(MPI_Comm comm, int key);

}  // namespace polyring
