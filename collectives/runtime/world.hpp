// World: the ranks of a job, and the few collective calls that a benchmark needs beside what it times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/hosts.hpp"
#include "collectives/runtime/transport.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// All calls that are collective must be made by all ranks in the same order.
class World : public Bootstrap {
 public:
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// What the ranks are: "Open MPI 4.1.4", "threads of one process".
  virtual std::string kind() const = 0;

  Rank rank() const final { return rank_; }
  int size() const final { return size_; }
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
  /// The lowest rank that is in the same process as `rank`.
  virtual Rank first_of_process(Rank rank) const { return rank; }
  bool is_first_of_process() const { return first_of_process(rank_) == rank_; }
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
  /// before anything is freed that is still in use. It may end the job; else the exception goes on.
  void on_failure(std::function<void()> action) { failed_ = std::move(action); }

  /// The same for transports, as it stands now.
  WaitRules wait_rules() const;

  /// A barrier that leaves the processor to other threads while it waits, for when those of other ranks, or a
  /// library's, have not finished yet.
  virtual void idle_barrier() const = 0;
  /// barrier(), where the ranks' library has one of its own that is faster, but knows no time limit: whoever
  /// calls it has a watchdog.
  virtual void barrier_without_limit() const { barrier(); }
  double max(double value) const { return max(std::span(&value, 1)).front(); }
  virtual std::vector<double> max(std::span<const double> values) const = 0;  // element by element
  virtual std::int64_t sum(std::int64_t value) const = 0;
  virtual std::int64_t broadcast(std::int64_t value) const = 0;  // rank 0's
  /// The same with a time limit of its own, and like idle_barrier().
  virtual std::int64_t broadcast(std::int64_t value, Seconds limit) const = 0;
  /// Each rank's bytes on rank 0 alone; nothing on the others.
  virtual std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own) const = 0;

  /// What the ranks that are not in a part do meanwhile.
  enum class Others { rest, work };
  /// These ranks, ascending, as a world of their own, with the same to be done on a failure. This one lives
  /// longer. Collective over these ranks, and over no others; each part that is in use at a time has other
  /// ranks. Where the others work, the part's ranks share cores as those of the whole do.
  virtual std::unique_ptr<World> part(std::span<const Rank> ranks, Others others) const = 0;

  /// For a rank that has waited in vain, for `whom` if it knows: throws Error(ExitCode::timeout).
  [[noreturn]] virtual void give_up(const std::string& what, const std::vector<Rank>& whom) const = 0;

  /// Ends the whole job with this exit code, for a failure that the other ranks do not know of. No
  /// destructors run.
  [[noreturn]] void abort(int code) const;
  /// The same after a signal, when a call of this world's may be under way in another thread.
  [[noreturn]] void end(int code) const;

 protected:
  /// What they do beside ending this process.
  virtual void abort_others(int) const {}
  virtual void end_others(int) const {}

  World(Rank rank, int size) : rank_(rank), size_(size) {}
  /// A part of `whole`, with its time limit, and the same to be done on a failure. See part(), whose ranks
  /// include this one.
  World(const World& whole, std::span<const Rank> ranks, Others others);

  /// To be called once, when allgather() can be.
  void find_own_hosts();
  const RankHosts& hosts() const { return hosts_; }
  /// For a call that has failed, while its exception is being handled.
  void tell_failure() const {
    if (failed_) failed_();
  }

 private:
  Rank rank_;
  int size_;
  RankHosts hosts_;
  bool shares_cores_ = false;
  Seconds timeout_ = kSetUpTimeout;
  std::function<void()> failed_;
};

}  // namespace polyring
