// The same functions as Open MPI's Fortran interfaces call them: mpif.h and the module mpi by any of a
// compiler's names, mpi_f08 by its own. MPICH's call the C functions.
#include <mpi.h>

#include <initializer_list>

#include "collectives/library/mpi/groups.hpp"

#if defined(OPEN_MPI)

extern "C" {

// Programs pass the addresses of these for MPI_IN_PLACE and MPI_BOTTOM, by the name that their compiler
// gives.
#define POLYRING_FORTRAN_CONSTANTS(name)    \
  extern int name __attribute__((weak));    \
  extern int name##_ __attribute__((weak)); \
  extern int name##__ __attribute__((weak));
POLYRING_FORTRAN_CONSTANTS(mpi_fortran_in_place)
POLYRING_FORTRAN_CONSTANTS(mpi_fortran_bottom)
extern int MPI_FORTRAN_IN_PLACE __attribute__((weak));
extern int MPI_FORTRAN_BOTTOM __attribute__((weak));

// MPI's own, which a program without Fortran does not have.
void pmpi_allreduce_(void* input, void* output, const MPI_Fint* count, const MPI_Fint* type,
                     const MPI_Fint* op, const MPI_Fint* comm, MPI_Fint* error) __attribute__((weak));
void pmpi_reduce_scatter_block_(void* input, void* output, const MPI_Fint* count, const MPI_Fint* type,
                                const MPI_Fint* op, const MPI_Fint* comm, MPI_Fint* error)
    __attribute__((weak));
void pmpi_allgather_(void* input, const MPI_Fint* send_count, const MPI_Fint* send_type, void* output,
                     const MPI_Fint* count, const MPI_Fint* type, const MPI_Fint* comm, MPI_Fint* error)
    __attribute__((weak));
}

namespace {

/// Of another kind of MPI, whose handles and constants are not these.
bool is_foreign() { return polyring::interposer::closed() == polyring::interposer::Why::other_mpi; }

bool is_one_of(const void* address, std::initializer_list<const int*> constants) {
  for (const int* constant : constants) {
    if (constant != nullptr && constant == address) return true;
  }
  return false;
}

/// What C calls it.
void* buffer(void* address) {
  if (is_one_of(address, {&mpi_fortran_in_place, &mpi_fortran_in_place_, &mpi_fortran_in_place__,
                          &MPI_FORTRAN_IN_PLACE}))
    return MPI_IN_PLACE;
  if (is_one_of(address,
                {&mpi_fortran_bottom, &mpi_fortran_bottom_, &mpi_fortran_bottom__, &MPI_FORTRAN_BOTTOM}))
    return MPI_BOTTOM;
  return address;
}

/// mpi_f08 need not give one.
void tell(MPI_Fint* error, int code) {
  if (error != nullptr) *error = code;
}

}  // namespace

extern "C" {

void polyring_mpi_fortran_allreduce(void* input, void* output, const MPI_Fint* count, const MPI_Fint* type,
                                    const MPI_Fint* op, const MPI_Fint* comm,
                                    MPI_Fint* error) __asm__("mpi_allreduce_");
void polyring_mpi_fortran_allreduce(void* input, void* output, const MPI_Fint* count, const MPI_Fint* type,
                                    const MPI_Fint* op, const MPI_Fint* comm, MPI_Fint* error) {
  if (is_foreign()) return pmpi_allreduce_(input, output, count, type, op, comm, error);
  tell(error, MPI_Allreduce(buffer(input), buffer(output), *count, PMPI_Type_f2c(*type), PMPI_Op_f2c(*op),
                            PMPI_Comm_f2c(*comm)));
}

void polyring_mpi_fortran_reduce_scatter_block(void* input, void* output, const MPI_Fint* count,
                                               const MPI_Fint* type, const MPI_Fint* op, const MPI_Fint* comm,
                                               MPI_Fint* error) __asm__("mpi_reduce_scatter_block_");
void polyring_mpi_fortran_reduce_scatter_block(void* input, void* output, const MPI_Fint* count,
                                               const MPI_Fint* type, const MPI_Fint* op, const MPI_Fint* comm,
                                               MPI_Fint* error) {
  if (is_foreign()) return pmpi_reduce_scatter_block_(input, output, count, type, op, comm, error);
  tell(error, MPI_Reduce_scatter_block(buffer(input), buffer(output), *count, PMPI_Type_f2c(*type),
                                       PMPI_Op_f2c(*op), PMPI_Comm_f2c(*comm)));
}

void polyring_mpi_fortran_allgather(void* input, const MPI_Fint* send_count, const MPI_Fint* send_type,
                                    void* output, const MPI_Fint* count, const MPI_Fint* type,
                                    const MPI_Fint* comm, MPI_Fint* error) __asm__("mpi_allgather_");
void polyring_mpi_fortran_allgather(void* input, const MPI_Fint* send_count, const MPI_Fint* send_type,
                                    void* output, const MPI_Fint* count, const MPI_Fint* type,
                                    const MPI_Fint* comm, MPI_Fint* error) {
  if (is_foreign()) return pmpi_allgather_(input, send_count, send_type, output, count, type, comm, error);
  tell(error, MPI_Allgather(buffer(input), *send_count, PMPI_Type_f2c(*send_type), buffer(output), *count,
                            PMPI_Type_f2c(*type), PMPI_Comm_f2c(*comm)));
}

#define POLYRING_OTHER_NAME(function, known, name) \
  decltype(function) polyring_mpi_as_##name __asm__(#name) __attribute__((alias(#known)));
#define POLYRING_OTHER_NAMES(function, name, upper) \
  POLYRING_OTHER_NAME(function, name##_, name)      \
  POLYRING_OTHER_NAME(function, name##_, name##__)  \
  POLYRING_OTHER_NAME(function, name##_, upper)     \
  POLYRING_OTHER_NAME(function, name##_, name##_f08_)
POLYRING_OTHER_NAMES(polyring_mpi_fortran_allreduce, mpi_allreduce, MPI_ALLREDUCE)
POLYRING_OTHER_NAMES(polyring_mpi_fortran_reduce_scatter_block, mpi_reduce_scatter_block,
                     MPI_REDUCE_SCATTER_BLOCK)
POLYRING_OTHER_NAMES(polyring_mpi_fortran_allgather, mpi_allgather, MPI_ALLGATHER)
}

#endif
