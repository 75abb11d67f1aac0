// Ranks that are threads of one process.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "collectives/runtime/bootstrap.hpp"

namespace polyring {

/// What the threads of a group share. It lives longer than what uses it.
class ThreadTeam {
 public:
  /// Each rank's bytes, by rank.
  using Everyones = std::shared_ptr<const std::vector<std::vector<std::byte>>>;

  explicit ThreadTeam(int size, Seconds timeout = {60});

  int size() const { return static_cast<int>(own_.size()); }

  /// Collective, as is barrier(). When they have not all come within `limit`,
  /// this and every later call throws Error(ExitCode::timeout) that names those who are absent.
  Everyones allgather(Rank rank, std::span<const std::byte> bytes, Seconds limit);
  Everyones allgather(Rank rank, std::span<const std::byte> bytes) {
    return allgather(rank, bytes, timeout_);
  }
  /// Polls, so that all return at about the same time; `yields` means what it means to Backoff.
  void barrier(Rank rank, Seconds limit, bool yields);

  /// One rank has failed: every call that is not complete throws, now and later.
  void abort(const std::string& reason);

  /// The same team for all who ask for the same ranks, ascending, and not all of them.
  ThreadTeam& part(std::span<const Rank> ranks);

 private:
  /// How many barriers a rank has reached.
  struct alignas(64) Reached {
    std::atomic<std::uint64_t> barriers{0};
  };

  void fail(const Error& error);
  Error absence(const std::vector<Rank>& absent, Seconds limit) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  Seconds timeout_;
  std::vector<std::vector<std::byte>> own_;  // of this round, so far
  std::vector<bool> arrived_;                // in this round
  std::size_t missing_;
  std::size_t round_ = 0;
  Everyones all_;  // the round before
  std::optional<Error> failure_;
  std::atomic<bool> failed_ = false;  // there is a failure_
  std::vector<Reached> reached_;      // by rank
  std::map<std::vector<Rank>, std::unique_ptr<ThreadTeam>> parts_;
};

class ThreadBootstrap final : public Bootstrap {
 public:
  /// Keeps the reference. One for each rank from 0 to the team's size − 1, each used by one thread.
  ThreadBootstrap(ThreadTeam& team, Rank rank) : team_(team), rank_(rank) {}

  Rank rank() const override { return rank_; }
  int size() const override { return team_.size(); }
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own) const override {
    return *team_.allgather(rank_, own);
  }

 private:
  ThreadTeam& team_;
  Rank rank_;
};

}  // namespace polyring
