#include "collectives/runtime/bootstraps/threads.hpp"

#include <fmt/format.h>

#include <chrono>

#include "base/index.hpp"
#include "collectives/runtime/backoff.hpp"
#include "topology/rank_hosts.hpp"

namespace polyring {

ThreadTeam::ThreadTeam(int size, Seconds timeout)
    : timeout_(timeout),
      own_(index(size)),
      arrived_(index(size), false),
      missing_(index(size)),
      reached_(index(size)) {}

void ThreadTeam::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  fail(Error(ExitCode::internal, reason));
}

void ThreadTeam::fail(const Error& error) {
  if (!failure_) failure_ = error;
  failed_ = true;
  changed_.notify_all();
  for (const auto& [ranks, part] : parts_) {
    const std::lock_guard lock(part->mutex_);
    part->fail(error);
  }
}

Error ThreadTeam::absence(const std::vector<Rank>& absent, Seconds limit) const {
  return {ExitCode::timeout,
          fmt::format("waited {} for {}: stuck, or its core is busy; or raise the time limit", to_text(limit),
                      ranks_text(absent, {}))};
}

ThreadTeam::Everyones ThreadTeam::allgather(Rank rank, std::span<const std::byte> bytes, Seconds limit) {
  std::unique_lock lock(mutex_);
  if (failure_) throw *failure_;
  own_[index(rank)].assign(bytes.begin(), bytes.end());
  arrived_[index(rank)] = true;
  const std::size_t round = round_;
  if (--missing_ == 0) {
    all_ = std::make_shared<const std::vector<std::vector<std::byte>>>(own_);
    arrived_.assign(own_.size(), false);
    missing_ = own_.size();
    ++round_;
    changed_.notify_all();
  }
  changed_.wait_for(lock, std::chrono::duration<double>(limit.value),
                    [&] { return round_ != round || failure_.has_value(); });
  // A round that is over counts, whatever has failed since; the next one cannot be, without this rank.
  if (round_ != round) return all_;
  if (!failure_) {
    std::vector<Rank> absent;
    for (Rank other = 0; other < size(); ++other) {
      if (!arrived_[index(other)]) absent.push_back(other);
    }
    fail(absence(absent, limit));
  }
  throw *failure_;
}

void ThreadTeam::barrier(Rank rank, Seconds limit, bool yields) {
  if (failed_) {
    const std::lock_guard lock(mutex_);
    throw *failure_;
  }
  const std::uint64_t own = reached_[index(rank)].barriers.fetch_add(1, std::memory_order_acq_rel) + 1;
  const auto has_come = [&](Rank other) {
    return reached_[index(other)].barriers.load(std::memory_order_acquire) >= own;
  };
  Backoff backoff(limit, yields);
  for (Rank other = 0; other < size(); ++other) {
    while (!has_come(other)) {
      const bool patient = backoff.again();
      if (patient && !failed_) continue;
      const std::lock_guard lock(mutex_);
      std::vector<Rank> absent;
      for (Rank late = 0; late < size(); ++late) {
        if (!has_come(late)) absent.push_back(late);
      }
      if (absent.empty()) return;
      if (!failure_) fail(absence(absent, limit));
      throw *failure_;
    }
  }
}

ThreadTeam& ThreadTeam::part(std::span<const Rank> ranks) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ThreadTeam>& part = parts_[std::vector<Rank>(ranks.begin(), ranks.end())];
  if (part) return *part;
  part = std::make_unique<ThreadTeam>(static_cast<int>(ranks.size()), timeout_);
  if (failure_) part->fail(*failure_);
  return *part;
}

}  // namespace polyring
