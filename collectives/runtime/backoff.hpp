// Backoff: how a rank polls for what other ranks do, and when it gives up.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "base/units.hpp"

namespace polyring {

/// What Backoff asks of the world. Tests have another one.
struct SteadyTime {
  using Duration = std::chrono::steady_clock::duration;
  static std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }
  static void yield() { std::this_thread::yield(); }
  static void sleep(Duration duration) { std::this_thread::sleep_for(duration); }
};

/// One per wait. Spins, since that reacts fastest. Where ranks share cores, whoever is waited for must get to
/// run: after a short spin each further poll yields, and in a long wait, for a network say, sleeps, for
/// longer the longer it lasts, since many ranks that yield to each other leave little of the cores to those
/// with work. A wait is long after kYields, or sooner where yielding takes long: another program keeps the
/// core then for a scheduler's tick each time, and a rank that wakes up interrupts it.
template <typename Time>
class BackoffIn {
 public:
  static constexpr std::uint64_t kSpins = 200;  // also from one look at the clock to the next
  static constexpr std::uint64_t kYields = 100;
  static constexpr std::chrono::milliseconds kLongestYielding{1};
  static constexpr std::chrono::microseconds kShortestSleep{20};
  static constexpr std::chrono::microseconds kLongestSleep{500};

  BackoffIn(Seconds timeout, bool yields) : timeout_(timeout), yields_(yields) {}

  /// To be called after each poll that found nothing. False when `timeout` has passed since the first call or
  /// the last renew(), give or take a few polls: the clock is not read in a short wait.
  bool again() {
    ++polls_;
    if (polls_ < kSpins) return true;
    if (polls_ == kSpins) begin_ = Time::now();
    if (polls_ % kSpins == 0 && is_over(Time::now() - begin_)) return false;
    if (!yields_) return true;
    const typename Time::Duration waited = Time::now() - begin_;
    if (is_over(waited)) return false;
    sleeps_ = sleeps_ || polls_ >= kSpins + kYields || waited > kLongestYielding;
    if (!sleeps_) {
      Time::yield();
    } else {
      const typename Time::Duration part = waited / 16;
      Time::sleep(std::clamp<typename Time::Duration>(part, kShortestSleep, kLongestSleep));
    }
    return true;
  }

  /// Something has happened, though not what is waited for: the time starts anew.
  void renew() {
    if (polls_ >= kSpins) begin_ = Time::now();
  }

 private:
  bool is_over(typename Time::Duration waited) const {
    return std::chrono::duration<double>(waited).count() > timeout_.value;
  }

  Seconds timeout_;
  bool yields_;
  bool sleeps_ = false;
  std::uint64_t polls_ = 0;  // 32 bits would be through in a minute
  decltype(Time::now()) begin_{};
};

using Backoff = BackoffIn<SteadyTime>;

}  // namespace polyring
