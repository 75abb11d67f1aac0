// Watchdog: ends the job when a call that it watches does not return. For calls of libraries, which know no
// time limit: starting and ending MPI, vendors' allreduces. It also notices when the process does not run for
// a while.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/units.hpp"

namespace polyring {

/// A call that has to return in time.
struct WatchedCall {
  std::string what;  // "starting MPI"
  Seconds limit;
  std::string advice = "see whether all ranks still run";
};

/// What a Watchdog knows. Whoever asks says what time it is, and asks every kPeriod.
class Watch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kPeriod{200};

  explicit Watch(Time now) : next_look_(now + kPeriod) {}

  void begin(const WatchedCall& call, Time now);
  void end() { watching_ = false; }

  /// A sentence when the call that is being watched has taken too long, once for each call. It is allowed
  /// half as much again as its limit and a second, so that an error which names the rank that is waited for
  /// comes first.
  std::optional<std::string> look(Time now);

  /// For how long this process did not run between these times: it was stopped, or its cores were busy with
  /// others. Up to one period too short, and unknown for that long after the pause.
  Seconds paused_between(Time begin, Time end) const;

 private:
  struct Pause {
    Time begin, end;
  };

  Time next_look_;
  std::vector<Pause> pauses_;  // in order
  WatchedCall call_;
  Time over_at_;
  bool watching_ = false;
};

class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeout` is for calls that have no limit of their own. `end` ends the whole job, from another thread,
  /// and is given the sentence that says why.
  Watchdog(Seconds timeout, std::function<void(const std::string& sentence)> end);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on this is being done, and nothing else.
  void watch(const WatchedCall& call);
  /// So many calls.
  void watch(const std::string& what, int calls = 1) { watch({what, calls * timeout_}); }
  /// Nothing is being waited for.
  void rest();

  Seconds paused_between(Clock::time_point begin, Clock::time_point end) const;

 private:
  void run();

  Seconds timeout_;
  std::function<void(const std::string&)> end_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Watch watch_{Clock::now()};
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace polyring
