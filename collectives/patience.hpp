// Patience: how a rank polls for what other ranks do, and when it gives up.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#include "topology/units.hpp"

namespace polyring {

/// One per wait. Spins, since that reacts fastest. Where ranks share cores, whoever is waited for must get to
/// run: after a short spin each further poll yields, and in a long wait, for a network say, sleeps, for
/// longer the longer it lasts, since many ranks that yield to each other leave little of the cores to those
/// with work.
class Patience {
 public:
  Patience(Seconds timeout, bool yields) : timeout_(timeout), yields_(yields) {}

  /// To be called after each poll that found nothing. False when `timeout` has passed since the first call or
  /// the last renew(), give or take a few polls: the clock is not read in a short wait.
  bool again() {
    ++polls_;
    if (polls_ < kSpins) return true;
    if (polls_ == kSpins) begin_ = Clock::now();
    if (polls_ % kSpins == 0 &&
        std::chrono::duration<double>(Clock::now() - begin_).count() > timeout_.value) {
      return false;
    }
    if (yields_ && polls_ < kSpins + kYields) {
      std::this_thread::yield();
    } else if (yields_) {
      const Clock::duration part = (Clock::now() - begin_) / 16;
      std::this_thread::sleep_for(std::clamp<Clock::duration>(part, kShortestSleep, kLongestSleep));
    }
    return true;
  }

  /// Something has happened, though not what is waited for: the time starts anew.
  void renew() {
    if (polls_ >= kSpins) begin_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kSpins = 200;  // also from one look at the clock to the next
  static constexpr std::uint64_t kYields = 100;
  static constexpr std::chrono::microseconds kShortestSleep{20};
  static constexpr std::chrono::microseconds kLongestSleep{500};

  Seconds timeout_;
  bool yields_;
  std::uint64_t polls_ = 0;  // 32 bits would be through in a minute
  Clock::time_point begin_{};
};

}  // namespace polyring
