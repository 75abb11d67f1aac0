// The ranks of MPI's communicators, as DDL's calls use them.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "collectives/library/c/group.hpp"

namespace polyring::ddl {

/// Held by each call of DDL's, and while MPI frees a communicator or ends, also within such a call.
std::recursive_mutex& calls();

/// Initializes MPI where the program has not. Throws a usage Error where it is finalized.
void begin_mpi();
/// Throws a usage Error where MPI is not running.
void need_mpi();

/// A communicator's ranks.
class Ranks final : public library::Group {
 public:
  /// `dims`: the grid that was asked for, if any. `why_host`: why their memory is the host's; empty where it
  /// is their GPUs'.
  Ranks(std::unique_ptr<Bootstrap> bootstrap, library::GroupOptions options, std::vector<int> dims,
        std::string why_host);

  /// Throws a usage Error for options that cannot be read, and for another grid than that of the ranks.
  void check_options(const std::string& text) const;
  void* allocate(Bytes bytes);
  /// Throws a usage Error for memory that is not allocate()'s.
  void free(void* memory);
  /// Throws a usage Error for memory of a GPU where that of the ranks is the host's.
  void check_memory(const void* data) const;

 private:
  std::vector<int> dims_;
  std::string why_host_;
  std::set<void*> allocated_;
};

/// The communicator's ranks. Collective at the first call: with the grid that the options ask for, and in the
/// memory of a GPU of each process's own where all have one. That is the only GPU that the process sees, or
/// the one that has its number on its host; of MPI_COMM_WORLD's ranks if these were made before. Lives until
/// the communicator is freed, or MPI is finalized. Throws a usage Error for options that cannot be, or that
/// ask for another grid than those of the first call, Error(ExitCode::mpi), and
/// Error(ExitCode::not_available) where POLYRING_CUDA_PLUGIN names what is no plug-in.
Ranks& ranks_of(MPI_Comm comm, const std::string& options);
/// The same, or null where that has not been called.
Ranks* known_ranks(MPI_Comm comm);

}  // namespace polyring::ddl
