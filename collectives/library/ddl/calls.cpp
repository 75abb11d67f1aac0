#include <mpi.h>

#include <cstdlib>
#include <mutex>
#include <string>

#include "base/error.hpp"
#include "collectives/library/c/failure.hpp"
#include "collectives/library/ddl/ddl.h"
#include "collectives/library/ddl/ddl_mpi.hpp"
#include "collectives/library/ddl/ranks.hpp"
#include "collectives/runtime/mpi/handle.hpp"

using namespace polyring;
using namespace polyring::ddl;

namespace {

DDL_Result result_of(polyring_result result) {
  switch (result) {
    case POLYRING_SUCCESS:
      return DDL_SUCCESS;
    case POLYRING_ERROR_TIMEOUT:
      return DDL_ERROR_TIMEOUT;
    case POLYRING_ERROR_ARGUMENT:
      return DDL_ERROR_ARGUMENT;
    case POLYRING_ERROR_CONNECTION:
      return DDL_ERROR_MPI;
    default:
      return DDL_ERROR;
  }
}

template <typename Action>
DDL_Result guarded(Action&& action) noexcept {
  return result_of(library::guarded([&] {
    const std::lock_guard lock(calls());
    action();
  }));
}

ElementKind element_kind(DDL_Type type) {
  switch (type) {
    case DDL_TYPE_FLOAT:
      return ElementKind::float32;
    case DDL_TYPE_HALF:
      return ElementKind::float16;
  }
  usage_error("there is no type {}; give DDL_TYPE_FLOAT or DDL_TYPE_HALF", static_cast<int>(type));
}

ReduceOp reduce_op(DDL_Op op) {
  switch (op) {
    case DDL_OP_SUM:
      return ReduceOp::sum;
    case DDL_OP_PRODUCT:
      return ReduceOp::prod;
    case DDL_OP_MIN:
      return ReduceOp::min;
    case DDL_OP_MAX:
      return ReduceOp::max;
  }
  usage_error("there is no operation {}; see DDL_Op", static_cast<int>(op));
}

void combine(Ranks& ranks, void* data, std::size_t count, ElementKind kind, ReduceOp op) {
  if (count > 0) ranks.check_memory(data);
  ranks.run({Collective::allreduce, library::to_count(count), kind, op}, data, data);
}

Ranks& world() {
  need_mpi();
  Ranks* const ranks = known_ranks(MPI_COMM_WORLD);
  if (ranks == nullptr) usage_error("ddl_init() was not called; call it before the first allreduce");
  return *ranks;
}

std::string text_of(const char* options) { return options == nullptr ? "" : options; }

std::string or_variable(const char* options) {
  return text_of(options != nullptr ? options : std::getenv("DDL_OPTIONS"));
}

}  // namespace

DDL_Result ddl_init(const char* options) {
  return guarded([&] {
    begin_mpi();
    ranks_of(MPI_COMM_WORLD, or_variable(options));
  });
}

DDL_Result ddl_rank(int* rank) {
  return guarded([&] {
    if (rank == nullptr) usage_error("the rank is a null pointer; give the address of a variable");
    need_mpi();
    check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, rank), "MPI_Comm_rank");
  });
}

DDL_Result ddl_size(int* size) {
  return guarded([&] {
    if (size == nullptr) usage_error("the size is a null pointer; give the address of a variable");
    need_mpi();
    check_mpi(MPI_Comm_size(MPI_COMM_WORLD, size), "MPI_Comm_size");
  });
}

size_t ddl_malloc(void** memory, size_t alignment, size_t bytes) {
  // What CUDA promises of its memory: CUDA C++ Programming Guide, "Device Memory Accesses".
  constexpr std::size_t kMostAligned = 256;
  const DDL_Result result = guarded([&] {
    if (memory == nullptr) usage_error("the memory is a null pointer; give the address of a pointer");
    *memory = nullptr;
    if (alignment == 0 || alignment > kMostAligned || (alignment & (alignment - 1)) != 0)
      usage_error("an alignment of {} cannot be; give a power of two up to {}", alignment, kMostAligned);
    need_mpi();
    Ranks* const known = known_ranks(MPI_COMM_WORLD);
    Ranks& ranks = known != nullptr ? *known : ranks_of(MPI_COMM_WORLD, or_variable(nullptr));
    *memory = ranks.allocate(Bytes{bytes});
  });
  return result == DDL_SUCCESS ? bytes : 0;
}

DDL_Result ddl_free(void* memory) {
  return guarded([&] { world().free(memory); });
}

DDL_Result ddl_allreduce(void* data, size_t count, DDL_Type type, DDL_Op op) {
  return guarded([&] { combine(world(), data, count, element_kind(type), reduce_op(op)); });
}

DDL_Result ddl_allreduce_mpi(const char* options, void* data, size_t count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
  return guarded([&] {
    need_mpi();
    if (type != MPI_FLOAT || op != MPI_SUM)
      usage_error("ddl_allreduce_mpi() sums MPI_FLOAT; give MPI_FLOAT and MPI_SUM");
    if (comm == MPI_COMM_NULL) usage_error("the communicator is MPI_COMM_NULL; give one of MPI's");
    combine(ranks_of(comm, text_of(options)), data, count, ElementKind::float32, ReduceOp::sum);
  });
}

DDL_Result ddl_finalize(void) {
  return guarded([] {
    world();
    check_mpi(MPI_Finalize(), "MPI_Finalize");
  });
}

const char* ddl_error_text(void) { return library::error_text(); }
