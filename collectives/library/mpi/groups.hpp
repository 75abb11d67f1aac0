// The groups of this process, found by their communicators: each is an attribute of one.
#pragma once

#include <mpi.h>

#include "collectives/library/mpi/group.hpp"

namespace polyring::interposer {

/// Whether this thread is within a call of the library's own.
bool is_nested();
class Nested {
 public:
  Nested();
  ~Nested();
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  bool before_;
};

/// Why no call is taken any more, or in this process at all.
std::optional<Why> closed() noexcept;

/// Collective at the communicator's first call, by those ranks alone. Throws Error, after which this rank
/// must not leave the call to MPI: others may have agreed to take it. What is returned stays until the
/// communicator is freed, or MPI finalized.
KnownComm& group_of(MPI_Comm comm);

}  // namespace polyring::interposer
