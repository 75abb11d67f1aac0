// MPI_Allreduce as a benchmark's rival.
#pragma once

#include <memory>

#include "collectives/allreduce.hpp"
#include "collectives/element.hpp"
#include "collectives/mpi/world.hpp"
#include "collectives/slice.hpp"

namespace polyring {

/// The MPI library's own allreduce of `count` elements, with the algorithm that it chooses. float16 and
/// bfloat16, which MPI does not know, go through a user-defined operation; avg is a sum and a division.
/// Counts beyond an int are cut into several calls.
std::unique_ptr<Allreduce> make_mpi_allreduce(const MpiWorld& world, ElementKind kind, ReduceOp op,
                                              Count count);

}  // namespace polyring
