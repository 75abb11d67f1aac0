#include "collectives/runtime/bootstraps/threads.hpp"

#include <fmt/format.h>

#include <chrono>

#include "base/index.hpp"
#include "topology/rank_hosts.hpp"

namespace polyring {

ThreadTeam::ThreadTeam(int size, Seconds timeout)
    : timeout_(timeout), own_(index(size)), arrived_(index(size), false), missing_(index(size)) {}

void ThreadTeam::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  fail(Error(ExitCode::internal, reason));
}

void ThreadTeam::fail(const Error& error) {
  if (!failure_) failure_ = error;
  changed_.notify_all();
}

ThreadTeam::Everyones ThreadTeam::allgather(Rank rank, std::span<const std::byte> bytes) {
  std::unique_lock lock(mutex_);
  if (failure_) throw *failure_;
  own_[index(rank)].assign(bytes.begin(), bytes.end());
  arrived_[index(rank)] = true;
  const std::size_t round = round_;
  if (--missing_ == 0) {
    all_ = own_;
    arrived_.assign(own_.size(), false);
    missing_ = own_.size();
    ++round_;
    changed_.notify_all();
  }
  changed_.wait_for(lock, std::chrono::duration<double>(timeout_.value),
                    [&] { return round_ != round || failure_.has_value(); });
  // A round that is over counts, whatever has failed since; the next one cannot be, without this rank.
  if (round_ != round) return all_;
  if (!failure_) {
    std::vector<Rank> absent;
    for (Rank other = 0; other < size(); ++other) {
      if (!arrived_[index(other)]) absent.push_back(other);
    }
    fail(Error(ExitCode::timeout, fmt::format("waited {} for {}; see what its thread does", to_text(timeout_),
                                              ranks_text(absent, {}))));
  }
  throw *failure_;
}

}  // namespace polyring
