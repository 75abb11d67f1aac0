// Watchdog: ends this process when the call that it watches does not return. For vendors' calls, which know
// no time limit, and as a second line behind the transports' own. It also notices when the process does not
// run for a while.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "topology/units.hpp"

namespace polyring {

class Watchdog {
 public:
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

  /// For how long this process has not run, so far: it was stopped, or its cores were busy with others. Known
  /// soon after, about 0.2 s too short, and only of what is longer than that.
  Seconds paused();

 private:
  void run();

  std::string who_;
  Seconds timeout_;
  std::function<void(int)> end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  bool watching_ = false;
  bool stop_ = false;
  Seconds paused_;
  std::chrono::steady_clock::time_point limit_;
  std::thread thread_;
};

}  // namespace polyring
