// Ranks that are threads of one process.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "collectives/runtime/bootstrap.hpp"

namespace polyring {

/// What the threads of a group share. It lives longer than their bootstraps.
class ThreadTeam {
 public:
  explicit ThreadTeam(int size, Seconds timeout = {60});

  int size() const { return static_cast<int>(own_.size()); }

  /// One rank has failed: every allgather() that is not complete throws, now and later.
  void abort(const std::string& reason);

 private:
  friend class ThreadBootstrap;
  using Everyones = std::vector<std::vector<std::byte>>;

  void fail(const Error& error);
  Everyones allgather(Rank rank, std::span<const std::byte> bytes);

  std::mutex mutex_;
  std::condition_variable changed_;
  Seconds timeout_;
  Everyones own_;              // of this round, so far
  std::vector<bool> arrived_;  // in this round
  std::size_t missing_;
  std::size_t round_ = 0;
  Everyones all_;  // of the round before
  std::optional<Error> failure_;
};

class ThreadBootstrap final : public Bootstrap {
 public:
  /// Keeps the reference. One for each rank from 0 to the team's size − 1, each used by one thread.
  ThreadBootstrap(ThreadTeam& team, Rank rank) : team_(team), rank_(rank) {}

  Rank rank() const override { return rank_; }
  int size() const override { return team_.size(); }
  std::vector<std::vector<std::byte>> allgather(std::span<const std::byte> own) const override {
    return team_.allgather(rank_, own);
  }

 private:
  ThreadTeam& team_;
  Rank rank_;
};

}  // namespace polyring
