// Which of MPI's types and operations are Polyring's.
#pragma once

#include <mpi.h>

#include <optional>

#include "collectives/library/mpi/counters.hpp"
#include "collectives/runtime/executor.hpp"

namespace polyring::interposer {

/// A type's elements as Polyring's, or why not. The sums and products of unsigned numbers have the bits of
/// those of signed ones; their minima and maxima do not. After MPI_Init.
struct Reduced {
  ElementKind kind{};
  ReduceOp op{};
  std::optional<Why> why_not;
};
Reduced reduced(MPI_Datatype type, MPI_Op op);

/// The bytes of one element's data. 0 where it is no type, or is not known.
std::size_t bytes_of_type(MPI_Datatype type);
/// Whether elements of it lie in memory as they travel: predefined, and without gaps.
bool is_plain(MPI_Datatype type);

}  // namespace polyring::interposer
