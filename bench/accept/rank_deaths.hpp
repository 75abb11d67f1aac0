// What the ranks of `polyring accept` do when a process of the job has ended before its time: rank 0 names
// it, and of rank 0 the next process does.
#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <string>

#include "bench/session/process_watch.hpp"
#include "bench/session/session.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

class RankDeaths {
 public:
  /// Keeps the reference.
  explicit RankDeaths(const World& world) : world_(world) {}

  /// Collective, when rank 0 has opened the session: all know its journal then.
  void tell_journal(const Session& session);

  /// What a ProcessWatch calls. Ends the job, unless rank 0 is telling its verdict already.
  void has_ended(const ProcessEnd& end);

  /// On rank 0, before it tells the verdict of a job that comes to no end: the rank that has died, or may be
  /// heard of to have died within this time; none: −1. A launcher may notice first, and end rank 0 by a
  /// signal.
  Rank dead_within(std::chrono::milliseconds longest);

 private:
  [[noreturn]] void root_has_ended(const ProcessEnd& end) const;
  bool is_next_process() const;

  const World& world_;
  std::string created_;            // rank 0's result
  std::filesystem::path journal_;  // rank 0's; empty: there is none
  std::mutex mutex_;
  std::atomic<Rank> dead_ = -1;
  bool is_told_ = false;
};

}  // namespace polyring
