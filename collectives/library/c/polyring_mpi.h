/* A communicator of MPI's ranks, for any MPI: all that is called of it stands in this header. Operations go
 * over shared memory inside a host and over TCP between hosts, and never through MPI. */
#ifndef POLYRING_MPI_H
#define POLYRING_MPI_H

#include <limits.h>
#include <mpi.h>

#include "polyring.h"

static int polyring_mpi_allgather(void* context, const void* own, void* all, size_t bytes) {
  if (bytes > (size_t)INT_MAX) return MPI_ERR_COUNT;
  return MPI_Allgather(own, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, *(MPI_Comm*)context);
}

/* Collective over `mpi`, an intracommunicator, which is used by this call alone. Between MPI_Init and
 * MPI_Finalize; its ranks are the communicator's. Errors of MPI's own go to the error handler of `mpi`. */
static inline polyring_result polyring_comm_create_from_mpi(polyring_comm* comm, MPI_Comm mpi,
                                                            const polyring_options* options) {
  polyring_group group;
  int rank = -1, ranks = 0, inter = 0;
  if (mpi != MPI_COMM_NULL) MPI_Comm_test_inter(mpi, &inter);
  if (mpi != MPI_COMM_NULL && !inter) { /* any other has no rank, and is refused */
    MPI_Comm_rank(mpi, &rank);
    MPI_Comm_size(mpi, &ranks);
  }
  group.context = &mpi;
  group.allgather = polyring_mpi_allgather;
  return polyring_comm_create_from_group(comm, &group, rank, ranks, options);
}

#endif
