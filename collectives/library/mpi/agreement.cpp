#include "collectives/library/mpi/agreement.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/units.hpp"
#include "collectives/runtime/backoff.hpp"
#include "collectives/runtime/mpi/handle.hpp"

namespace polyring::interposer {
namespace {

constexpr Seconds kLong{60};

void say_that_others_are_late(MPI_Comm comm) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  fmt::print(
      stderr,
      "polyring: rank {} of a communicator waits for the others, and has for {}; see whether LD_PRELOAD "
      "names libpolyring_mpi.so on all hosts (mpirun -x LD_PRELOAD)\n",
      rank, to_text(kLong));
}

}  // namespace

ErrorsReturned::ErrorsReturned(MPI_Comm comm) : comm_(comm) {
  if (PMPI_Comm_get_errhandler(comm, &program_) == MPI_SUCCESS)
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

ErrorsReturned::~ErrorsReturned() {
  if (program_ == MPI_ERRHANDLER_NULL) return;
  PMPI_Comm_set_errhandler(comm_, program_);
  PMPI_Errhandler_free(&program_);
}

/// Nonblocking, so that a rank whose others are without the library can say so.
std::vector<std::int64_t> largest(MPI_Comm comm, const std::vector<std::int64_t>& own) {
  std::vector<std::int64_t> result(own.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(PMPI_Iallreduce(own.data(), result.data(), static_cast<int>(own.size()), MPI_INT64_T, MPI_MAX,
                            comm, &request),
            "MPI_Iallreduce");
  Backoff backoff(kLong, true);
  bool said = false;
  for (int done = 0; done == 0;) {
    check_mpi(PMPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0 || backoff.again()) continue;
    if (!said) say_that_others_are_late(comm);
    said = true;
    backoff.renew();
  }
  return result;
}

}  // namespace polyring::interposer
