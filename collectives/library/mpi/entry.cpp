// MPI's C functions that the library has in MPI's place. Handles are pointers in one kind of MPI, and ints in
// another. A call that goes on does so with all bits that came, so that even a program of another kind than
// the library's works.
#include <mpi.h>

#include <cstdint>
#include <type_traits>

#include "collectives/library/mpi/calls.hpp"
#include "collectives/library/mpi/counters.hpp"

namespace interposer = polyring::interposer;

namespace {

using Raw = std::uintptr_t;  // a handle as it came

template <typename Handle>
Handle handle(Raw raw) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<Handle>(raw);
  } else {
    return static_cast<Handle>(raw);
  }
}

}  // namespace

extern "C" {

int polyring_mpi_next_allreduce(const void* input, void* output, int count, Raw type, Raw op,
                                Raw comm) __asm__("PMPI_Allreduce");
int polyring_mpi_next_reduce_scatter_block(const void* input, void* output, int count, Raw type, Raw op,
                                           Raw comm) __asm__("PMPI_Reduce_scatter_block");
int polyring_mpi_next_allgather(const void* input, int send_count, Raw send_type, void* output, int count,
                                Raw type, Raw comm) __asm__("PMPI_Allgather");

int polyring_mpi_allreduce(const void* input, void* output, int count, Raw type, Raw op,
                           Raw comm) __asm__("MPI_Allreduce");
int polyring_mpi_reduce_scatter_block(const void* input, void* output, int count, Raw type, Raw op,
                                      Raw comm) __asm__("MPI_Reduce_scatter_block");
int polyring_mpi_allgather(const void* input, int send_count, Raw send_type, void* output, int count,
                           Raw type, Raw comm) __asm__("MPI_Allgather");

int polyring_mpi_allreduce(const void* input, void* output, int count, Raw type, Raw op, Raw comm) {
  if (count < interposer::kFewest) {
    interposer::count_passed_on(interposer::Call::allreduce, interposer::Why::small);
  } else if (const auto code = interposer::take_allreduce(input, output, count, handle<MPI_Datatype>(type),
                                                          handle<MPI_Op>(op), handle<MPI_Comm>(comm))) {
    return *code;
  }
  return polyring_mpi_next_allreduce(input, output, count, type, op, comm);
}

int polyring_mpi_reduce_scatter_block(const void* input, void* output, int count, Raw type, Raw op,
                                      Raw comm) {
  if (count < interposer::kFewest) {
    interposer::count_passed_on(interposer::Call::reduce_scatter_block, interposer::Why::small);
  } else if (const auto code =
                 interposer::take_reduce_scatter_block(input, output, count, handle<MPI_Datatype>(type),
                                                       handle<MPI_Op>(op), handle<MPI_Comm>(comm))) {
    return *code;
  }
  return polyring_mpi_next_reduce_scatter_block(input, output, count, type, op, comm);
}

/// An element may have any length.
int polyring_mpi_allgather(const void* input, int send_count, Raw send_type, void* output, int count,
                           Raw type, Raw comm) {
  if (const auto code = interposer::take_allgather(input, send_count, handle<MPI_Datatype>(send_type), output,
                                                   count, handle<MPI_Datatype>(type), handle<MPI_Comm>(comm)))
    return *code;
  return polyring_mpi_next_allgather(input, send_count, send_type, output, count, type, comm);
}
}
