// KnownComm: what the interposer knows of a program's communicator.
#pragma once

#include <mpi.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "collectives/library/mpi/counters.hpp"
#include "collectives/library/mpi/settings.hpp"
#include "collectives/library/topology/topology.hpp"
#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "collectives/runtime/processes.hpp"

namespace polyring::interposer {

/// One thread at a time uses it, as MPI asks of a communicator's collective calls.
class KnownComm {
 public:
  /// Throws Error(ExitCode::mpi).
  explicit KnownComm(MPI_Comm comm);
  KnownComm(const KnownComm&) = delete;
  KnownComm& operator=(const KnownComm&) = delete;

  int size() const { return size_; }
  int rank() const { return rank_; }
  /// Collective, once, before what is below: the ranks agree on their settings. Throws Error.
  void agree(MPI_Comm comm);
  /// Why it takes nothing of this length; nothing where it does. The same on all ranks. Throws what agree()
  /// or join() threw.
  std::optional<Why> refuses(SizeClass size_class, Bytes longer) const;
  /// Collective at the first call. Whether the ranks are joined; the same on all. Throws Error
  /// where they cannot agree on that.
  bool join(MPI_Comm comm);

  /// Collective, when they are. Throws Error; from then on, always the same.
  void run(const CollectiveOf& what, const std::byte* input, std::byte* output);

  /// Another rank may still read this one's memory: the two wait for all ranks without blocking. Throw
  /// Error(ExitCode::mpi).
  void begin_end();
  bool has_ended();
  /// Whether it holds nothing that others, or MPI, may still use.
  bool is_idle() const { return !world_; }

 private:
  enum class Joining { done, refused, broken_off };

  void find_settings(MPI_Comm comm);
  Joining try_to_join(MPI_Comm comm, std::string& why);
  /// Throws it again.
  [[noreturn]] void keep_failure();
  void release();
  void plan();
  CommunicatorOptions options();
  void go_on_meanwhile();

  int size_ = 1;
  int rank_ = 0;
  std::optional<Why> refusal_;
  Settings agreed_;
  bool tried_ = false;
  bool settled_ = false;          // neither agree() nor join() is under way, or was broken off
  std::optional<Error> failure_;  // which broke it off
  std::unique_ptr<MpiWorld> world_;
  std::optional<Processes> processes_;
  library::Planning planning_;
  std::optional<Communicator> communicator_;
  MPI_Request ending_ = MPI_REQUEST_NULL;
  std::chrono::steady_clock::time_point progressed_{};
};

}  // namespace polyring::interposer
