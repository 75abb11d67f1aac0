// What all ranks of a program's communicator find out together, by one small sum each.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace polyring::interposer {

/// Errors on the communicator are returned while it lives; then its handler is the program's again.
class ErrorsReturned {
 public:
  explicit ErrorsReturned(MPI_Comm comm);
  ~ErrorsReturned();
  ErrorsReturned(const ErrorsReturned&) = delete;
  ErrorsReturned& operator=(const ErrorsReturned&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler program_ = MPI_ERRHANDLER_NULL;
};

/// The largest of the ranks' values, one by one. Collective; says once on stderr when it has waited for a
/// minute. Throws Error(ExitCode::mpi), and Error(ExitCode::timeout) after this limit.
std::vector<std::int64_t> largest(MPI_Comm comm, const std::vector<std::int64_t>& own, Seconds limit);

}  // namespace polyring::interposer
