// DDL's allreduce over a communicator of MPI's, for programs that initialize and finalize MPI themselves.
#pragma once

#include <ddl.h>
#include <mpi.h>

/* Collective over the communicator, between MPI_Init and MPI_Finalize: as ddl_init(options), once for each
 * communicator, and ddl_allreduce(). Options that name another grid than the communicator's first call are
 * refused. The type is MPI_FLOAT, and the operation MPI_SUM. Where ranks have GPUs, call ddl_init() first: it
 * decides for all communicators whether gradients are in their memory. */
extern "C" DDL_API DDL_Result ddl_allreduce_mpi(const char* options, void* data, size_t count,
                                                MPI_Datatype type, MPI_Op op, MPI_Comm comm);
