// MpiWorld: the ranks that mpirun started, and the few collective calls that a benchmark needs beside what it
// times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/hosts.hpp"
#include "collectives/runtime/transport.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// True when this process was started by mpirun, mpiexec or srun; known without initialising MPI.
bool launched_by_mpi();
/// Its rank then, before MPI is initialised; 0 otherwise.
Rank launched_rank();
/// How many ranks the launcher says that it has started; 1 where it does not say, and where there was none.
int launched_ranks();
/// Its number among the ranks of its host, as the launcher sets it; 0 where it does not say.
int launched_local_rank();
/// "srun", "Open MPI's mpirun", …; for people, when a launcher has started this process.
std::string launched_by();

/// A group of MPI's ranks. Every failing call throws Error(ExitCode::mpi) that names the call.
class MpiWorld final : public Bootstrap {
 public:
  struct Handle;  // its communicators, see handle.hpp

  /// All ranks. Initialises MPI, and finalises it in the end: one at a time.
  MpiWorld();
  /// The ranks of a communicator of a program that has initialised MPI: Handle::of(comm). Collective over
  /// these. MPI is used by the thread that uses the world, and no setting of it is changed.
  explicit MpiWorld(std::unique_ptr<Handle> handle);
  /// The first `ranks` of another world, which lives longer, as a world with communicators of its own.
  /// Collective over these ranks, and over no others. What is to be done on a failure is the same.
  MpiWorld(const MpiWorld& whole, int ranks);
  ~MpiWorld() override;
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  Rank rank() const override { return rank_; }
  int size() const override { return size_; }
  /// The name of the rank's host; no two hosts have the same (rank_hosts.hpp).
  const std::string& host(Rank rank) const {
    return hosts_.names[static_cast<std::size_t>(host_number(rank))];
  }
  const std::string& host() const { return host(rank_); }
  /// Hosts are numbered in the order of their first ranks.
  int host_number(Rank rank) const { return hosts_.of_rank[static_cast<std::size_t>(rank)]; }
  bool shares_host_with(Rank rank) const { return host_number(rank) == host_number(rank_); }
  /// Whether no lower rank is on this host.
  bool is_first_of_host() const;
  int nodes() const { return hosts_.count(); }
  /// See RankHosts::per_host().
  int ranks_per_node() const { return hosts_.per_host(); }

  /// The ranks of this machine, though they may be on several hosts that it emulates, outnumber the cores
  /// that they may use: who waits should let the others run.
  bool shares_cores() const { return shares_cores_; }

  /// The calls below give up when nothing has happened for so long: they throw Error(ExitCode::timeout),
  /// which names the ranks that do not answer. At first kSetUpTimeout.
  void set_timeout(Seconds timeout) { timeout_ = timeout; }
  Seconds timeout() const { return timeout_; }
  static constexpr Seconds kSetUpTimeout{120};

  /// What is to be done when a call below or a transport fails, while the exception is being handled and
  /// before anything is freed that MPI may still write to. It may end the job; else the exception goes on.
  void on_failure(std::function<void()> action) { failed_ = std::move(action); }

  /// The same for transports, as it stands now.
  WaitRules wait_rules() const;

  void barrier() const override;
  /// A barrier that leaves the processor to other threads while it waits, for when those of other ranks, or a
  /// library's, have not finished yet.
  void idle_barrier() const;
  double max(double value) const;
  std::vector<double> max(std::span<const double> values) const;  // element by element
  std::int64_t sum(std::int64_t value) const;
  std::int64_t broadcast(std::int64_t value) const;  // rank 0's
  /// The same with a time limit of its own, and like idle_barrier().
  std::int64_t broadcast(std::int64_t value, Seconds limit) const;
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own) const override {
    return allgather(own, kMostAtOnce);
  }
  /// Each call of MPI takes at most `at_once` of all ranks together.
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own, Bytes at_once) const;
  /// Each rank's bytes on rank 0 alone; nothing on the others.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own,
                                             Bytes at_once = kMostAtOnce) const;
  static constexpr Bytes kMostAtOnce{256 << 20};

  /// For a rank that has waited in vain, for `whom` if it knows: throws Error(ExitCode::timeout). All that
  /// still run find out about the same time, so they call the roll among themselves, for a quarter of the
  /// time limit, and name those who are silent. Never returns.
  [[noreturn]] void give_up(const std::string& what, const std::vector<Rank>& whom = {}) const {
    give_up(what, whom, timeout_);
  }

  /// Collective, the last call before the destructor, when all is done and said. Where MPI_Finalize may hang
  /// and the process manager can be told without it (process_manager.hpp) this does not return: the process
  /// ends, with the largest of the ranks' exit codes.
  void leave(int code);

  /// Ends the whole job with this exit code, for a failure that the other ranks do not know of. Should
  /// MPI_Abort hang, this process ends all the same, and its launcher ends the others.
  [[noreturn]] void abort(int code) const;
  /// The same without MPI_Abort, for when MPI is not running, or hangs. The launcher ends the other ranks.
  [[noreturn]] static void end_without_mpi(int code);

  /// "Open MPI 4.1.4", "MPICH 4.0.2".
  static std::string library();
  /// MPI_Get_library_version()'s text, of several lines for MPICH, which tell what it was built with.
  static std::string library_version();

  const Handle& handle() const { return *handle_; }

 private:
  class Call;
  static std::unique_ptr<Handle> begin_mpi();
  void know_hosts();
  std::vector<std::vector<std::byte>> collect(std::span<const std::byte> own, Bytes at_once,
                                              bool everywhere) const;
  [[noreturn]] void give_up(const std::string& what, const std::vector<Rank>& whom, Seconds limit) const;
  std::vector<Rank> silent_ranks(Seconds limit) const;

  std::unique_ptr<Handle> handle_;
  bool finalizes_ = false;
  Rank rank_ = 0;
  int size_ = 1;
  RankHosts hosts_;
  bool shares_cores_ = false;
  Seconds timeout_ = kSetUpTimeout;
  std::function<void()> failed_;
};

}  // namespace polyring
