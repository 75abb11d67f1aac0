#include "collectives/library/mpi/types.hpp"

#include <vector>

namespace polyring::interposer {
namespace {

struct KnownType {
  MPI_Datatype type;
  ElementKind kind;
  bool is_unsigned;
};

/// Fortran's types have the sizes that MPI's Fortran compiler gave them, or are not there.
std::vector<KnownType> known_types() {
  using enum ElementKind;
  std::vector<KnownType> all{
      {MPI_FLOAT, float32, false},
      {MPI_DOUBLE, float64, false},
      {MPI_REAL, float32, false},
      {MPI_DOUBLE_PRECISION, float64, false},
      {MPI_INT, int32, false},
      {MPI_LONG, int64, false},
      {MPI_INTEGER, int32, false},
      {MPI_LONG_LONG, int64, false},
      {MPI_INT32_T, int32, false},
      {MPI_INT64_T, int64, false},
      {MPI_REAL4, float32, false},
      {MPI_REAL8, float64, false},
      {MPI_INTEGER4, int32, false},
      {MPI_INTEGER8, int64, false},
      {MPI_REAL, float64, false},
      {MPI_INTEGER, int64, false},
      {MPI_UNSIGNED, int32, true},
      {MPI_UNSIGNED_LONG, int64, true},
      {MPI_UNSIGNED_LONG_LONG, int64, true},
      {MPI_UINT32_T, int32, true},
      {MPI_UINT64_T, int64, true},
      {MPI_AINT, int64, false},
      {MPI_COUNT, int64, false},
      {MPI_OFFSET, int64, false},
  };
  std::erase_if(all, [](const KnownType& known) {
    return bytes_of_type(known.type) != static_cast<std::size_t>(size_of(known.kind));
  });
  return all;
}

std::optional<ReduceOp> reduce_op(MPI_Op op) {
  if (op == MPI_SUM) return ReduceOp::sum;
  if (op == MPI_PROD) return ReduceOp::prod;
  if (op == MPI_MIN) return ReduceOp::min;
  if (op == MPI_MAX) return ReduceOp::max;
  return std::nullopt;
}

}  // namespace

Reduced reduced(MPI_Datatype type, MPI_Op op) {
  static const auto* const types = new std::vector(known_types());
  const std::optional<ReduceOp> known_op = reduce_op(op);
  for (const KnownType& known : *types) {
    if (known.type != type) continue;
    if (!known_op) return {.why_not = Why::op};
    const bool is_ordered = *known_op == ReduceOp::min || *known_op == ReduceOp::max;
    if (known.is_unsigned && is_ordered) return {.why_not = Why::op};
    return {known.kind, *known_op, std::nullopt};
  }
  return {.why_not = Why::type};
}

std::size_t bytes_of_type(MPI_Datatype type) {
  MPI_Count bytes = 0;
  if (type == MPI_DATATYPE_NULL || PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS || bytes < 0) return 0;
  return static_cast<std::size_t>(bytes);
}

bool is_plain(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  MPI_Aint begin = 0;
  MPI_Aint extent = 0;
  return PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS &&
         combiner == MPI_COMBINER_NAMED && PMPI_Type_get_extent(type, &begin, &extent) == MPI_SUCCESS &&
         begin == 0 && static_cast<std::size_t>(extent) == bytes_of_type(type);
}

}  // namespace polyring::interposer
