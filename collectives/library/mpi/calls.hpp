// The calls that may be taken. Each returns MPI's code of a call that was taken, and nothing where it is to
// go on to MPI; the choice is the same on all ranks.
#pragma once

#include <mpi.h>

#include <optional>

namespace polyring::interposer {

/// With fewer elements than this no call is looked at: MPI's longest that are taken have 8 bytes.
inline constexpr int kFewest = 512;

std::optional<int> take_allreduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op,
                                  MPI_Comm comm);
std::optional<int> take_reduce_scatter_block(const void* input, void* output, int count, MPI_Datatype type,
                                             MPI_Op op, MPI_Comm comm);
std::optional<int> take_allgather(const void* input, int send_count, MPI_Datatype send_type, void* output,
                                  int count, MPI_Datatype type, MPI_Comm comm);

}  // namespace polyring::interposer
