#include "collectives/library/mpi/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "collectives/library/mpi/failure.hpp"
#include "collectives/runtime/backoff.hpp"
#include "collectives/runtime/mpi/handle.hpp"

namespace polyring::interposer {
namespace {

constexpr Seconds kLong{60};

std::string waiting(MPI_Comm comm, Seconds waited) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return fmt::format(
      "rank {} of a communicator has waited {} for the others; see whether they run, and whether LD_PRELOAD "
      "names libpolyring_mpi.so on all hosts (mpirun -x LD_PRELOAD)",
      rank, to_text(waited));
}

/// The wait goes on, whatever happens: MPI uses what would be freed.
void say_waiting(MPI_Comm comm, Seconds waited) noexcept {
  try {
    say(waiting(comm, waited));
  } catch (const std::exception&) {
    say("a rank of a communicator waits for the others");
  }
}

/// What a nonblocking call of MPI uses until it is over.
struct Values {
  std::vector<std::int64_t> own;
  std::vector<std::int64_t> largest;
};

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
std::vector<std::int64_t> largest(MPI_Comm comm, const std::vector<std::int64_t>& own, Seconds limit) {
  auto values = std::make_unique<Values>(Values{own, own});
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(PMPI_Iallreduce(values->own.data(), values->largest.data(), static_cast<int>(own.size()),
                            MPI_INT64_T, MPI_MAX, comm, &request),
            "MPI_Iallreduce");
  const auto begin = std::chrono::steady_clock::now();
  Backoff backoff(std::min(kLong, limit), true);
  bool said = false;
  for (int done = 0; done == 0;) {
    const int code = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && (done != 0 || backoff.again())) continue;
    const Seconds waited{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
    if (code != MPI_SUCCESS || waited >= limit) {
      static_cast<void>(values.release());  // MPI may still use it
      check_mpi(code, "MPI_Test");
      throw Error(ExitCode::timeout, waiting(comm, waited));
    }
    if (!said) say_waiting(comm, waited);
    said = true;
    backoff.renew();
  }
  return values->largest;
}

}  // namespace polyring::interposer
