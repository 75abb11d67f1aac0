// Watchdog: ends this process when the call that it watches does not return. For vendors' calls, which know
// no time limit. It also notices when the process does not run for a while.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "topology/units.hpp"

namespace polyring {

class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  /// `who` names this process: "rank 1 (node07)". A little more patient than `timeout`, so that an error
  /// which names the rank that is waited for comes first. `end` ends the whole job with an exit code, from
  /// another thread; should it hang as well, this process ends all the same.
  Watchdog(std::string who, Seconds timeout, std::function<void(int code)> end);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on `what` is being done, and the time starts anew. When it is over, the process prints one
  /// sentence and ends the job with ExitCode::timeout.
  void watch(const std::string& what);
  /// Nothing is being waited for.
  void rest();

  /// For how long this process did not run between `begin` and `end`: it was stopped, or its cores were busy
  /// with others. Up to 0.2 s too short, and unknown for that long after the pause.
  Seconds paused_between(Clock::time_point begin, Clock::time_point end);

 private:
  struct Pause {
    Clock::time_point begin, end;
  };

  void run();

  std::string who_;
  Seconds timeout_;
  std::function<void(int)> end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  bool watching_ = false;
  bool stop_ = false;
  std::vector<Pause> pauses_;  // in order
  Clock::time_point limit_;
  std::thread thread_;
};

}  // namespace polyring
